/* SPDX-License-Identifier: MIT */
/* Call sites and the plans they run.
 *
 * Every TIDE_SCOPE in a program is a site: a static descriptor. One atomic pointer in it names the
 * plan that the site's scopes run now. To publish another plan, the library stores its address
 * there. A scope is left by the plan that it was entered by. Staging call sites is an idea of
 * Catwalk.jl.
 *
 *   guard          the tests that decide whether a plan's fast path may do the work
 *   general path   what does the work if a guard fails; it is right in every case
 *   miss           a use whose guard failed */
#ifndef TIDEPOOL_SITE_H
#define TIDEPOOL_SITE_H

#include <tidepool/inline/array.h>
#include <tidepool/inline/layout.h>
#include <tidepool/pool.h>
#ifdef TIDE_LANGUAGE_OK

TIDE_BEGIN_DECLS

typedef struct tide_site tide_site;
typedef struct tide_plan tide_plan;
typedef struct tide_scope tide_scope;
struct tide_array;
struct tide_generic;

/* What a site does. */
typedef enum tide_kind {
    TIDE_KIND_SCOPE = 0,    /* TIDE_SCOPE: a level opens and ends                     */
    TIDE_KIND_FRAME = 1,    /* TIDE_FRAME_SITE: a level and all its temporaries       */
    TIDE_KIND_ACQUIRE = 2,  /* TIDE_ACQUIRE_SITE: of a type known at run time         */
    TIDE_KIND_ARRAY = 3,    /* TIDE_ARRAY_SITE: of a type and shape known at run time */
    TIDE_KIND_DISPATCH = 4, /* TIDE_DISPATCH: one of a generic function's methods     */
    TIDE_KIND_COUNT = 5
} tide_kind;

/* How specialised a plan is. Each plan is correct in every program; they differ only in cost. */
typedef enum tide_tier {
    TIDE_TIER_FULL = 0,    /* general: a scope saves every shelf the pool has      */
    TIDE_TIER_TABLE = 1,   /* saves the site's own types, from a list; scopes only */
    TIDE_TIER_COMPILED = 2 /* code made for this site                              */
} tide_tier;

/* One implementation of a generic function. */
typedef void tide_method(void *args);

/* The functions that sites call, by kind. `enter` fills a scope's fields up to `saved`. For a
 * frame, the caller has set `plan` and `site`. */
typedef void tide_enter_function(tide_scope *scope, tide_pool *pool, const tide_plan *plan,
                                 tide_site *site);
typedef void tide_frame_function(tide_scope *scope, tide_pool *pool, uint32_t count,
                                 const tide_type *types, const size_t *counts, void **data);
typedef void *tide_acquire_function(tide_pool *pool, tide_type type, size_t n,
                                    const tide_plan *plan, tide_site *site);
typedef struct tide_array *tide_array_function(tide_pool *pool, tide_type type, int ndim,
                                               const int64_t *shape, const tide_plan *plan,
                                               tide_site *site);
typedef void tide_dispatch_function(struct tide_generic *generic, tide_type type, void *args,
                                    const tide_plan *plan, tide_site *site);
typedef void tide_leave_function(tide_scope *scope);

/* Most methods that one compiled dispatch tests for. */
enum { TIDE_PLAN_METHODS = 16 };

/* A plan of at most this many types may save the shelves' states in the scope itself.
 * tidepool/inline/typed.h says when, and why that is safe. */
enum { TIDE_SCOPE_SAVED = 4 };

/* What happened to a plan since it was made. */
typedef struct tide_plan_counts {
    uint64_t misses; /* uses whose guard failed; counted in cold code only                     */
    uint64_t runs;   /* uses of compiled code, if it was compiled to count (setting count_runs) */
    uint64_t alarm;  /* as many misses of a scope and policy is told; 0: it is not              */
} tide_plan_counts;

/* What a site runs. After it is published, only its two pointers to code change, once: from the
 * general path to compiled code. Each can end what the other began. */
struct tide_plan {
    union { /* by kind; read with one relaxed atomic load */
        tide_enter_function *enter;
        tide_frame_function *frame;
        tide_acquire_function *acquire;
        tide_array_function *array;
        tide_dispatch_function *dispatch;
    };
    tide_leave_function *leave; /* of scopes and frames; read in the same way */
    tide_kind kind;
    tide_tier tier;
    uint32_t type_count;
    uint32_t near[TIDE_SCOPE_SAVED]; /* the first of `shelves`, beside the pointers to code   */
    const uint32_t *shelves;         /* where their shelves lie, in bytes from the pool's start */
    const tide_type *types;   /* a scope's: each once, ascending; others: as the guards test */
    tide_plan_counts *counts; /* NULL: not counted                                           */
    const struct tide_generic *generic;       /* dispatch: the one it was made for ...      */
    tide_method **methods[TIDE_PLAN_METHODS]; /* ... where the methods of `types` stand ... */
    tide_type tests[TIDE_PLAN_METHODS];       /* ... and these as a call names them, a key by
                                                 itself; `type_count` of them                */
};

/* One open scope. It is a variable of its block. */
struct tide_scope {
    tide_pool *pool;       /* tide_pool_refusing if refused; NULL once left by function */
    tide_entry *base;      /* the log as it was at entry; marked: see tide_scope_logged */
    uint64_t tag;          /* this level                                                */
    uint64_t outer_saved;  /* what the level around had saved: as tide_pool.saved       */
    const tide_plan *plan; /* left by the plan it entered by                            */
    tide_slot *saved[TIDE_SCOPE_SAVED]; /* each shelf's `next` at entry, unless logged */
    tide_site *site; /* of a frame, and set by plans that observe                       */
    uint64_t serial; /* of the scope's mark; scopes entered by function only            */
    size_t position; /* where the mark stands in the undo log, in bytes; likewise       */
};

/* A scope saves the shelves' states at entry, either in `saved` or in the log. In the second case
 * the lowest bit of `base` is set, so `base` never equals the log's top. The guard of the first
 * case asks whether the log's top is still `base`; it therefore also tells the two cases apart. */
TIDE_INLINE tide_entry *tide_base_mark(tide_entry *base)
{
    return (tide_entry *)(void *)((char *)base + 1);
}

TIDE_INLINE bool tide_scope_logged(const tide_scope *scope)
{
    return ((uintptr_t)scope->base & 1) != 0;
}

TIDE_INLINE tide_entry *tide_scope_base(const tide_scope *scope)
{
    return (tide_entry *)((uintptr_t)scope->base & ~(uintptr_t)1);
}

/* A site. It is static in the program (TIDE_SCOPE) or made by tide_site_register. */
struct tide_site {
    const tide_plan *plan; /* atomic; never NULL                                       */
    const char *name;      /* as the program gave it, or NULL                          */
    tide_place place;      /* all zero for a registered site                           */
    uint32_t state;        /* how far registration got; the library's own              */
    tide_kind kind;
    struct tide_site_record *record; /* what the library knows of it; NULL until listed */
};

/* The plans that static sites start with, by kind. Such a plan lists the site, gives it its first
 * real plan, and passes the call on to that plan. */
extern TIDE_API_DATA const tide_plan tide_plans_arriving[TIDE_KIND_COUNT];

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
    uint32_t type_count;              /* of the plan in force                                     */
    tide_type types[TIDE_SITE_TYPES]; /* the first of these; keys from TIDE_KEY_FIRST on      */
    double calls; /* uses in all; never below `samples`. This and the next are estimates, */
    double calls_per_second; /* from how fast windows fill. They are too low for very hot sites,
                                because observing a use slows it by up to 0.1 µs             */
    uint64_t samples;        /* uses seen by the profiler                                */
    uint64_t misses;         /* uses whose guard failed, of all plans                    */
    uint64_t runs;           /* uses of compiled code, as far as it was compiled to count */
    uint64_t generation;     /* plans published for it by learning                       */
    uint64_t compiles;       /* compiled plans made for it                               */
    double lost_ns;          /* what it has lost for want of compiled code, estimated: a compile
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
    uint32_t shape_count; /* of an array's compiled plan: as type_count; else 0                  */
    int32_t ndims[TIDE_SITE_TYPES];                 /* what it is for: of each of `types` the */
    int64_t shapes[TIDE_SITE_TYPES][TIDE_NDIM_MAX]; /* dimensions and the extents              */
    double use_bytes; /* that a use acquires, the mean of those in `samples`; of a scope at
                         most that much (tide_site_profile.bytes). What scopes inside it
                         acquire is theirs                                                   */
    TIDE_GROWTH;
} tide_site_information;

/* Makes a scope's site for code without macros (an FFI, an interpreter). The same name gives the
 * same site. The name is copied. The site lives until the process ends. NULL with a message when
 * the name is NULL or empty, or memory is short. Any thread. */
TIDE_API tide_site *tide_site_register(const char *name);

/* The same for a site of any kind. NULL with a message also when a site of another kind has the
 * name. */
TIDE_API tide_site *tide_site_register_kind(const char *name, tide_kind kind);

/* The site of this kind that tide_site_info gives this name: static or registered, the one that
 * became known first if there are several. NULL with a message: TIDE_ERROR_NAME if there is none,
 * TIDE_ERROR_ARGUMENT. A static site dangles once its module is unloaded. Any thread. */
TIDE_API tide_site *tide_site_find(const char *name, tide_kind kind);

/* How many sites are known now: static ones of every loaded module, and registered ones. Any
 * thread. */
TIDE_API size_t tide_site_count(void);

/* Calls `visit` for each site, in the order in which they became known, until it returns false. The
 * list is locked meanwhile, so `visit` must not register sites, load libraries, fork or wait for
 * other threads, nor do what calls functions of the program: hooks, deleters, the handlers of
 * reports and events. It is refused what would wait (TIDE_ERROR_STATE): tide_step, tide_settle,
 * tide_background_stop, tide_listen, tide_listen_end, tide_buffers_destroy, and tide_device_open and
 * tide_device_close of any device but the host. Any thread. */
TIDE_API void tide_site_each(bool (*visit)(tide_site *site, void *user), void *user);

/* TIDE_ERROR_ARGUMENT for NULLs. The strings live as long as the site. Any thread. */
TIDE_API tide_status tide_site_info(const tide_site *site, tide_site_information *out);

/* Declares which types a site is used for; what it is used for else works as before, only slower.
 *
 *   scope      the types that its table plan saves, in any order. The site uses that plan from now
 *              on, unless it is pinned to full. Other types are saved when touched. None: every
 *              type is saved when touched
 *   frame      the types of its arrays, in order, one to eight; code is made for four different
 *              ones at most
 *   acquire    the types that come, the most frequent first, one to TIDE_PLAN_METHODS, each once
 *
 * (Of an array: tide_site_declare_shapes; of a dispatch: tide_site_declare_dispatch.) The site is
 * compiled for them when that pays, or by tide_site_compile_now. What was declared stands until it
 * is declared anew or the site is reset; profiles that are saved have it, as if it had been seen.
 *
 * `types` is copied. TIDE_ERROR_TYPE for an unknown type, TIDE_ERROR_ARGUMENT for a site of another
 * kind or a bad count, TIDE_ERROR_MEMORY; nothing is changed then. Any thread. */
TIDE_API tide_status tide_site_declare(tide_site *site, const tide_type *types, size_t count);

/* Orders compiled code for what the site is known to be used for, whatever the setting `break_even`
 * says: the next round sends it to the stager. It waits for nothing. The code is then tried and
 * adopted as any other, or the site keeps its plan; events and the site's `reason` say which.
 * TIDE_OK also if the code is there, or on its way. TIDE_ERROR_STATE, with the reason: nothing is
 * known of the site's types yet (declare them), it has more than code is made for, it is pinned, or
 * learning is off. TIDE_ERROR_ARGUMENT for NULL, TIDE_ERROR_MEMORY. Any thread. */
TIDE_API tide_status tide_site_compile_now(tide_site *site);

/* Keeps the site at a tier, whatever is learned, until tide_site_unpin. The table tier uses the
 * types that were declared or learned so far; if there are none, every type is saved when touched.
 * TIDE_ERROR_STATE for a tier for which the site has no plan. Open scopes are left by the plan that
 * they were entered by. Any thread. */
TIDE_API tide_status tide_site_pin(tide_site *site, tide_tier tier);
TIDE_API tide_status tide_site_unpin(tide_site *site);

/* Forgets what was declared or learned, and the pin: the site starts again. Any thread. */
TIDE_API tide_status tide_site_reset(tide_site *site);

/* "full", "table", "compiled"; "scope", "frame", "acquire", "array", "dispatch". Static text. */
TIDE_API const char *tide_tier_name(tide_tier tier);
TIDE_API const char *tide_kind_name(tide_kind kind);

/* For the macros. A module tells the library its static sites when it is loaded, and takes them
 * back when it is unloaded. `first` to `last` is its list; `anchor` is the address of any object of
 * the module. */
TIDE_API void tide_module_enter(tide_site *const *first, tide_site *const *last,
                                const void *anchor);
TIDE_API void tide_module_leave(const void *anchor);

TIDE_END_DECLS

#endif
#endif
