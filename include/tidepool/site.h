/* SPDX-License-Identifier: MIT */
/* Call sites and the plans they run.
 *
 * Every TIDE_SCOPE in a program is a site: a static descriptor with one atomic pointer to the
 * plan that its scopes run now. Whoever stores another plan there re-stages the site; a scope
 * leaves by the plan it entered with. The idea of staging call sites is Catwalk.jl's. */
#ifndef TIDEPOOL_SITE_H
#define TIDEPOOL_SITE_H

#include <tidepool/inline/layout.h>
#include <tidepool/pool.h>

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

/* How special a plan is. Each is correct for every program; they differ in cost. */
typedef enum tide_tier {
    TIDE_TIER_FULL = 0,    /* general: a scope saves every shelf the pool has      */
    TIDE_TIER_TABLE = 1,   /* saves the site's own types, from a list; scopes only */
    TIDE_TIER_COMPILED = 2 /* code made for this site                              */
} tide_tier;

/* One implementation of a generic function. */
typedef void tide_method(void *args);

/* What each kind of site calls. A scope is filled up to `saved` by `enter`; for a frame, `plan` and
 * `site` are set already. */
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

/* Most methods one compiled dispatch tests for. */
enum { TIDE_PLAN_METHODS = 4 };

/* What happened to a plan since it was made. */
typedef struct tide_plan_counts {
    uint64_t misses; /* uses that a guard sent to the general path; counted in cold code only  */
    uint64_t runs;   /* uses of compiled code, if it was compiled to count (setting count_runs) */
} tide_plan_counts;

/* What a site runs. Once published, only its two pointers to code change: when compiled code is
 * retired they are set to the general path, which understands what the compiled code left. */
struct tide_plan {
    union { /* by kind; read with one relaxed atomic load */
        tide_enter_function *enter;
        tide_frame_function *frame;
        tide_acquire_function *acquire;
        tide_array_function *array;
        tide_dispatch_function *dispatch;
    };
    tide_leave_function *leave; /* of scopes and frames; the same */
    tide_kind kind;
    tide_tier tier;
    uint32_t type_count;
    const tide_type *types;   /* a scope's: each once, ascending; else as the guards test them */
    const uint32_t *shelves;  /* where their shelves lie, in bytes from the pool's start */
    tide_plan_counts *counts; /* NULL: not counted                                           */
    const struct tide_generic *generic;       /* dispatch: the one it was made for ...      */
    tide_method **methods[TIDE_PLAN_METHODS]; /* ... and where the methods of `types` stand */
};

/* A plan of at most this many types keeps what it saves in the scope itself where it may: see
 * tidepool/inline/typed.h for when, and why that is safe. */
enum { TIDE_SCOPE_SAVED = 4 };

/* One scope that is open, in its block's own variable. */
struct tide_scope {
    tide_pool *pool;       /* tide_pool_refusing if refused; NULL once left by function */
    tide_entry *base;      /* the log as it was at entry; marked: see tide_scope_logged */
    uint64_t tag;          /* this level                                                */
    uint64_t outer;        /* the level around it                                       */
    const tide_plan *plan; /* left by the plan it entered by                            */
    tide_slot *saved[TIDE_SCOPE_SAVED]; /* each shelf's `next` at entry, unless logged */
    tide_site *site; /* of a frame, and set by plans that observe                 */
    uint64_t serial; /* of its mark; scopes entered by function only              */
};

/* What a scope saves at entry, it keeps in `saved` or writes to the log. In the second case the
 * lowest bit of `base` is set, so it equals no log's top. The one guard of the first case (nothing
 * was logged since) therefore tells the two cases apart as well. */
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

/* A place in the source. Static in the program (TIDE_SCOPE) or made by tide_site_register. */
struct tide_site {
    const tide_plan *plan; /* atomic; never NULL                                       */
    const char *name;      /* given, or NULL                                           */
    tide_place place;      /* all zero for a registered site                           */
    uint32_t state;        /* how far registration got; the library's own              */
    tide_kind kind;
    struct tide_site_record *record; /* what the library knows of it; NULL until listed */
};

/* The plans that static sites start with, by kind. Each lists the site, gives it its first real
 * plan, and does by that plan what was asked. */
extern TIDE_API_DATA const tide_plan tide_plans_arriving[TIDE_KIND_COUNT];

enum { TIDE_SITE_TYPES = 16 };

typedef struct tide_site_information {
    const char *name;     /* given, or the function's name, or "?" */
    const char *function; /* or ""                                 */
    const char *file;     /* or ""                                 */
    uint32_t line;        /* or 0                                  */
    tide_kind kind;
    tide_tier tier; /* of the plan in force */
    bool pinned;
    bool observed;                    /* a window is open                                         */
    uint32_t type_count;              /* of the plan in force                                     */
    tide_type types[TIDE_SITE_TYPES]; /* the first of them                            */
    double calls; /* uses in all. This and the next are estimated from how fast windows */
    double calls_per_second; /* of observation fill. Being observed slows a use by up to 0.1 µs,
                                so they are too low for very hot sites; never below `samples` */
    uint64_t samples;        /* uses seen by the profiler                                */
    uint64_t misses;         /* uses that a guard sent to the general path, all plans    */
    uint64_t runs;           /* uses of compiled code, as far as it was compiled to count */
    uint64_t generation;     /* plans published for it by learning                       */
    uint64_t compiles;       /* compiled plans made for it                               */
    const char *reason;      /* the last decision about it, in words; "" if none. Static */
} tide_site_information;

/* A site for code without macros (an FFI, an interpreter), found again by its name: the same
 * name gives the same site. The name is copied. NULL with a message when name is NULL or empty,
 * or memory is short. Lives until the process ends. Any thread. */
TIDE_API tide_site *tide_site_register(const char *name);

/* The same for a site of another kind than a scope. NULL with a message, too, when the name is that
 * of a site of another kind. */
TIDE_API tide_site *tide_site_register_kind(const char *name, tide_kind kind);

/* Sites known now: static ones of every loaded module, and registered ones. Any thread. */
TIDE_API size_t tide_site_count(void);

/* Calls visit for each site, in order of discovery, until it returns false. The list is locked
 * meanwhile: visit must not register sites or load libraries. Any thread. */
TIDE_API void tide_site_each(bool (*visit)(tide_site *site, void *user), void *user);

TIDE_API tide_status tide_site_info(const tide_site *site, tide_site_information *out);

/* Says which types the site's table plan shall save (each once; order does not matter), and
 * uses it from now on unless the site is pinned to full. TIDE_ERROR_TYPE for an unknown type,
 * nothing changed. Other types the site touches are saved when touched. Any thread. */
TIDE_API tide_status tide_site_declare(tide_site *site, const tide_type *types, size_t count);

/* Holds the site at a tier whatever is learned; the table tier uses the types declared or
 * learned so far (none: every type is saved when touched). TIDE_ERROR_STATE for a tier the site
 * has no plan for. Any thread; scopes that are open leave as they entered. */
TIDE_API tide_status tide_site_pin(tide_site *site, tide_tier tier);
TIDE_API tide_status tide_site_unpin(tide_site *site);

/* Forgets what was declared or learned, and any pin: the site starts again. */
TIDE_API tide_status tide_site_reset(tide_site *site);

/* "full", "table", "compiled"; "scope", "frame", "acquire", "array", "dispatch". Static text. */
TIDE_API const char *tide_tier_name(tide_tier tier);
TIDE_API const char *tide_kind_name(tide_kind kind);

/* For the macros: a module says which static sites it holds, and takes them back when it is
 * unloaded. `first` to `last` is its list, `anchor` any object of its own. */
TIDE_API void tide_module_enter(tide_site *const *first, tide_site *const *last,
                                const void *anchor);
TIDE_API void tide_module_leave(const void *anchor);

TIDE_END_DECLS

#endif
