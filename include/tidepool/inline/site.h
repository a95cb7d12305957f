/* SPDX-License-Identifier: MIT */
/* Sites and plans as the scope forms and compiled code know them. Programs steer sites by
 * tidepool/site.h. */
#ifndef TIDEPOOL_INLINE_SITE_H
#define TIDEPOOL_INLINE_SITE_H

#include <tidepool/inline/layout.h>

TIDE_BEGIN_DECLS

typedef struct tide_site tide_site;
typedef struct tide_plan tide_plan;
typedef struct tide_scope tide_scope;
struct tide_generic;

/* What a site does. */
typedef enum tide_kind {
    TIDE_KIND_SCOPE = 0,    /* TIDE_SCOPE: a level opens and ends                 */
    TIDE_KIND_DISPATCH = 1, /* TIDE_DISPATCH: one of a generic function's methods */
    TIDE_KIND_COUNT = 2
} tide_kind;

/* How specialised a plan is. Each plan is correct in every program; they differ only in cost. */
typedef enum tide_tier {
    TIDE_TIER_FULL = 0,    /* general: a scope saves every shelf the pool has */
    TIDE_TIER_TABLE = 1,   /* the site's own types, from a list               */
    TIDE_TIER_COMPILED = 2 /* of a scope: code made for its types             */
} tide_tier;

/* One implementation of a generic function. */
typedef void tide_method(void *args);

/* The functions that sites call, by kind. `enter` fills a scope's fields up to `saved`. */
typedef void tide_enter_function(tide_scope *scope, tide_pool *pool, const tide_plan *plan,
                                 tide_site *site);
typedef void tide_dispatch_function(struct tide_generic *generic, tide_type type, void *args,
                                    const tide_plan *plan, tide_site *site);
typedef void tide_leave_function(tide_scope *scope);

/* A plan of at most this many types may save the shelves' states in the scope itself.
 * tidepool/inline/typed.h says when, and why that is safe. */
enum { TIDE_SCOPE_SAVED = 4 };

/* What happened to a plan since it was made. */
typedef struct tide_plan_counts {
    uint64_t misses; /* uses whose guard failed; counted in cold code only                     */
    uint64_t runs;   /* uses of compiled code, if it was compiled to count (setting count_runs) */
    uint64_t alarm;  /* as many misses of a scope and learning is told; 0: it is not            */
} tide_plan_counts;

/* What a site runs. After it is published, only its two pointers to code change, once: from the
 * table to compiled code. Each can end what the other began. */
struct tide_plan {
    union { /* by kind; read with one relaxed atomic load */
        tide_enter_function *enter;
        tide_dispatch_function *dispatch;
    };
    tide_leave_function *leave; /* of scopes; read in the same way */
    tide_kind kind;
    tide_tier tier;
    uint32_t type_count;
    uint32_t near[TIDE_SCOPE_SAVED]; /* the first of `shelves`, beside the pointers to code   */
    const uint32_t *shelves;         /* where their shelves lie, in bytes from the pool's start */
    const tide_type *types;   /* a scope's: each once, ascending; a dispatch's: as it tests  */
    tide_plan_counts *counts; /* NULL: not counted                                           */
};

/* One open scope. It is a variable of its block. */
struct tide_scope {
    tide_pool *pool;       /* if refused: one whose guards fail; NULL once left by function */
    tide_entry *base;      /* the log as it was at entry; marked: runtime/scope/plan.h */
    uint64_t tag;          /* this level                                                */
    uint64_t outer_saved;  /* what the level around had saved: as tide_pool.saved       */
    const tide_plan *plan; /* left by the plan it entered by                            */
    tide_slot *saved[TIDE_SCOPE_SAVED]; /* each shelf's `next` at entry, unless logged */
    tide_site *site; /* set by plans that observe                                       */
    uint64_t serial; /* of the scope's mark; scopes entered by function only            */
    size_t position; /* where the mark stands in the undo log, in bytes; likewise       */
};

/* A site. It is static in the program (TIDE_SCOPE) or made by tide_site_register. */
struct tide_site {
    const tide_plan *plan; /* atomic; never NULL                                       */
    const char *name;      /* as the program gave it, or NULL                          */
    tide_place place;      /* all zero for a registered site                           */
    uint32_t number;       /* where pools count its uses; 0: nowhere (yet)             */
    tide_kind kind;
    struct tide_site_record *record; /* what the library knows of it; NULL until listed */
};

/* The plans that static sites start with, by kind. Such a plan lists the site, gives it its first
 * real plan, and passes the call on to that plan. */
extern TIDE_API_DATA const tide_plan tide_plans_arriving[TIDE_KIND_COUNT];

/* For the macros. A module tells the library its static sites when it is loaded, and takes them
 * back when it is unloaded. `first` to `last` is its list; `anchor` is the address of any object of
 * the module. */
TIDE_API void tide_module_enter(tide_site *const *first, tide_site *const *last,
                                const void *anchor);
TIDE_API void tide_module_leave(const void *anchor);

TIDE_END_DECLS

#endif
