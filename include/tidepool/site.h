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

/* How special a plan is. Each is correct for every program; they differ in cost. */
typedef enum tide_tier {
    TIDE_TIER_FULL = 0,    /* saves every shelf the pool has            */
    TIDE_TIER_TABLE = 1,   /* saves the site's own types, from a list   */
    TIDE_TIER_COMPILED = 2 /* the same, as code made for this site      */
} tide_tier;

/* What a site runs. Immutable once published; `enter` fills the scope, up to `saved`. */
struct tide_plan {
    void (*enter)(tide_scope *scope, tide_pool *pool, const tide_plan *plan, tide_site *site);
    void (*leave)(tide_scope *scope);
    tide_tier tier;
    uint32_t type_count;
    const tide_type *types; /* each once, ascending */
    const uint32_t *shelves; /* where their shelves lie, in bytes from the pool's start */
};

/* A plan of at most this many types keeps what it saves in the scope itself where it may: see
 * tidepool/inline/typed.h for when, and why that is safe. */
enum { TIDE_SCOPE_SAVED = 4 };

/* One scope that is open, in its block's own variable. */
struct tide_scope {
    tide_pool *pool;       /* tide_pool_refusing if refused; NULL once left by function */
    tide_entry *base;      /* the log as it was at entry                                */
    uint64_t tag;          /* this level                                                */
    uint64_t outer;        /* the level around it                                       */
    const tide_plan *plan; /* left by the plan it entered by                            */
    tide_slot *saved[TIDE_SCOPE_SAVED]; /* each shelf's `next` at entry, if [0] is not NULL:
                                           the plan kept them out of the log               */
    tide_site *site;       /* set by plans that observe                                 */
    uint64_t serial;       /* of its mark; scopes entered by function only              */
};

/* A place in the source. Static in the program (TIDE_SCOPE) or made by tide_site_register. */
struct tide_site {
    const tide_plan *plan; /* atomic; never NULL                                       */
    const char *name;      /* given, or NULL                                           */
    tide_place place;      /* all zero for a registered site                           */
    uint32_t state;        /* how far registration got; the library's own              */
    struct tide_site_record *record; /* what the library knows of it; NULL until listed */
};

/* What a static site starts with: it lists the site, gives it its first real plan, and enters. */
extern TIDE_API_DATA const tide_plan tide_plan_arriving;

typedef struct tide_site_information {
    const char *name;     /* given, or the function's name, or "?" */
    const char *function; /* or ""                                 */
    const char *file;     /* or ""                                 */
    uint32_t line;        /* or 0                                  */
    tide_tier tier;       /* of the plan in force                  */
    bool pinned;
    uint32_t type_count;    /* of the plan in force                                  */
    const tide_type *types; /* the plan's: valid as long as the site keeps this plan */
} tide_site_information;

/* A site for code without macros (an FFI, an interpreter), found again by its name: the same
 * name gives the same site. The name is copied. NULL with a message when name is NULL or empty,
 * or memory is short. Lives until the process ends. Any thread. */
TIDE_API tide_site *tide_site_register(const char *name);

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

/* "full", "table", "compiled". Static text. */
TIDE_API const char *tide_tier_name(tide_tier tier);

/* For the macros: a module says which static sites it holds, and takes them back when it is
 * unloaded. `first` to `last` is its list, `anchor` any object of its own. */
TIDE_API void tide_module_enter(tide_site *const *first, tide_site *const *last,
                                const void *anchor);
TIDE_API void tide_module_leave(const void *anchor);

TIDE_END_DECLS

#endif
