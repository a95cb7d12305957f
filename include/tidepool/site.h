/* SPDX-License-Identifier: MIT */
/* Call sites and the plans they run.
 *
 * Every TIDE_SCOPE and TIDE_DISPATCH in a program is a site: a static descriptor. One atomic pointer in it names the
 * plan that the site's scopes run now; to publish another is to store its address there. A scope is
 * left by the plan that it was entered by. Staging call sites is an idea of Catwalk.jl.
 *
 *   guard          the tests that decide whether a plan's fast path may do the work
 *   general path   what does the work if a guard fails; it is right in every case
 *   miss           a use whose guard failed
 *
 * Any thread, all functions. */
#ifndef TIDEPOOL_SITE_H
#define TIDEPOOL_SITE_H

#include <tidepool/inline/site.h>
#include <tidepool/pool.h>

TIDE_BEGIN_DECLS

enum { TIDE_SITE_TYPES = 16 };

/* What a use of a site would take by another tier than the plan in force. */
typedef struct tide_site_rival {
    tide_tier tier;
    double ns;     /* of one use                                            */
    bool measured; /* by a trial on the site's own uses; else it is a model */
} tide_site_rival;

typedef struct tide_site_information {
    const char *name;     /* as given, or the function's name, or "?" */
    const char *function; /* or ""                                 */
    const char *file;     /* or ""                                 */
    uint32_t line;        /* or 0                                  */
    tide_kind kind;
    tide_tier tier; /* of the plan in force */
    bool pinned;
    bool observed;                    /* a window is open: its uses are counted now               */
    bool declared;                    /* what it is used for was declared, and is not learned     */
    uint32_t type_count;              /* of the plan in force                                     */
    tide_type types[TIDE_SITE_TYPES]; /* the first of these; keys from TIDE_KEY_FIRST on      */
    uint64_t uses;                    /* in all, counted; never below `samples`                   */
    bool uses_counted;   /* else `uses` is the least there were: of sites beyond the first 4 095,
                                for each pool has room for so many counts, and of dispatches, which
                                have no pool                                               */
    uint64_t samples;    /* uses seen by the profiler                                */
    uint64_t misses;     /* uses whose guard failed, of all plans                    */
    uint64_t runs;       /* uses of compiled code, as far as it was compiled to count */
    uint64_t generation; /* plans published for it by learning                       */
    uint64_t compiles;   /* compiled plans made for it                               */
    double lost_ns;      /* what it has lost for want of compiled code, estimated: a compile
                                is ordered once that covers it (setting break_even)      */
    double compile_ns;   /* of the processor, that its compiles have taken: its part of theirs   */
    double saved_ns;     /* that its compiled code has saved, estimated. They have paid once this is
                          more than compile_ns                                               */
    uint64_t trial_uses; /* that the last trial of its types has compared; 0: none yet      */
    double trial_ns, trial_code_ns; /* of one of them, by the plan in force and by compiled code */
    double trial_error_ns;          /* standard error of what one saves                       */
    const char *reason;             /* the last decision about it, in words; "" if none. Static */
    const char *reason_code;        /* the same as a code (tide_reason_each); "" if none. Static */
    uint64_t id;   /* number of the site in its process, in the order in which sites became known,
                          from 1: none had it before. 0: not known yet                              */
    double use_ns; /* of one use by the plan in force, estimated; 0: nobody knows               */
    bool use_measured; /* by a trial; else it is a model */
    uint32_t rival_count;
    tide_site_rival rivals[TIDE_TIER_COMPILED]; /* the other tiers of which something is known */
    double use_bytes;  /* that a use of a scope acquires at most, the mean of those in
                         `samples` (tide_site_profile.bytes). What scopes inside it acquire
                         is theirs                                                           */
    double use_arrays; /* how many arrays that is, likewise                               */
    TIDE_GROWTH;
} tide_site_information;

/* Makes a scope's site for code without macros, for good. The same name, which is copied, gives the
 * same site. NULL with a message when the name is NULL or empty, or memory is short. */
TIDE_API tide_site *tide_site_register(const char *name);

/* The same for a site of any kind. NULL with a message also when a site of another kind has the
 * name. */
TIDE_API tide_site *tide_site_register_kind(const char *name, tide_kind kind);

/* The first site of this kind and name, static or registered. NULL with a message: TIDE_ERROR_NAME,
 * TIDE_ERROR_ARGUMENT. A static site dangles once its module is unloaded. */
TIDE_API tide_site *tide_site_find(const char *name, tide_kind kind);

/* How many sites are known now: static ones of every loaded module, and registered ones. */
TIDE_API size_t tide_site_count(void);

/* Calls `visit` for each site, in the order in which they became known, until it returns false. The
 * list is locked meanwhile, so `visit` must not register sites, load libraries, fork or wait for other
 * threads, nor do what calls functions of the program: hooks, deleters, handlers. What would wait is
 * refused (TIDE_ERROR_STATE): tide_step, tide_settle, tide_background_stop, tide_listen,
 * tide_listen_end, tide_buffers_destroy, and opening and closing a device but the host. */
TIDE_API void tide_site_each(bool (*visit)(tide_site *site, void *user), void *user);

/* TIDE_ERROR_ARGUMENT for NULLs. The strings live as long as the site. */
TIDE_API tide_status tide_site_info(const tide_site *site, tide_site_information *out);

/* The tuner's own data of a site, NULL until it is set. It goes when the site's module is unloaded, and
 * stays at a reset. TIDE_ERROR_ARGUMENT, TIDE_ERROR_MEMORY. */
TIDE_API tide_status tide_site_set_user(tide_site *site, void *user);
TIDE_API void *tide_site_user(const tide_site *site);

/* Declares which types a scope is used for, in any order: its table plan saves these, and it uses that
 * plan from now on, unless it is pinned to full. It is compiled for them when that pays, or by
 * tide_site_compile_now. Other types are saved when touched; with none declared, every type is. What
 * was declared stands until it is declared anew or the site is reset; profiles that are saved have what
 * was seen.
 *
 * `types` is copied. TIDE_ERROR_TYPE for an unknown type, TIDE_ERROR_ARGUMENT for a dispatch,
 * TIDE_ERROR_MEMORY; nothing is changed then. */
TIDE_API tide_status tide_site_declare(tide_site *site, const tide_type *types, size_t count);

/* Orders compiled code for what the site is known to be used for, whatever `break_even` says, and does
 * not wait. It is then tried and adopted as any other, or the site keeps its plan; events and the
 * site's `reason` say which. TIDE_OK also if it is there, or on its way. TIDE_ERROR_STATE, with the
 * reason: nothing is known of the site's types yet, it has more than code is made for, it is pinned, or
 * learning is off. TIDE_ERROR_ARGUMENT, TIDE_ERROR_MEMORY. */
TIDE_API tide_status tide_site_compile_now(tide_site *site);

/* Keeps the site at a tier, whatever is learned, until tide_site_unpin. The table tier uses the types
 * declared or learned so far; without any, every type is saved when touched. TIDE_ERROR_STATE for a
 * tier for which the site has no plan. */
TIDE_API tide_status tide_site_pin(tide_site *site, tide_tier tier);
TIDE_API tide_status tide_site_unpin(tide_site *site);

/* Forgets what was declared or learned, and the pin: the site starts again. */
TIDE_API tide_status tide_site_reset(tide_site *site);

/* "full", "table", "compiled"; "scope", "dispatch". Static text. */
TIDE_API const char *tide_tier_name(tide_tier tier);
TIDE_API const char *tide_kind_name(tide_kind kind);

TIDE_END_DECLS

#endif
