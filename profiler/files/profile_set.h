/* SPDX-License-Identifier: MIT */
/* A set of profiles of scopes: each under the key of its site, with types numbered by a table of the
 * set's own. So it does not depend on the scopes and types of this process. It is what a file holds,
 * and what is in memory of a file that was loaded.
 *
 * Its size is bounded by the limits below: some 40 MiB, whatever a file says. */
#ifndef TIDEPOOL_PROFILER_FILES_PROFILE_SET_H
#define TIDEPOOL_PROFILER_FILES_PROFILE_SET_H

#include <stdio.h>

#include <tidepool/profile.h>
#include <tidepool/site.h>

#include "runtime/base/type.h"

/* How a scope is found again in another run. The strict key names the place in the source; the loose
 * one is what is left of it when lines move and builds happen in other folders. */

/* Longest string of a key: scopes with longer ones are not kept. */
enum { TIDE_KEY_STRING_MAX = 4096 };

typedef struct tide_key {
    uint32_t line;
    const char *name, *file, *function; /* never NULL; "" if there is none */
} tide_key;

/* Of a scope. Its strings are the site's own. */
tide_key tide_key_of(const tide_site *site);

/* The order of loose keys: function, name, last part of the file. */
int tide_key_compare_loosely(const tide_key *left, const tide_key *right);

/* The order of strict keys: first that of loose ones, so that those of one loose
 * key are neighbours. */
int tide_key_compare(const tide_key *left, const tide_key *right);

enum { TIDE_PROFILE_SET_SITES = 16384, TIDE_PROFILE_SET_TYPES = 8192 };

_Static_assert(TIDE_PROFILE_SET_TYPES < TIDE_TYPE_LIMIT, "a number in the table fits a tide_type");

typedef struct tide_profile_set_site {
    tide_key key;
    bool superseded;           /* scratch of whoever saves                          */
    tide_site_profile profile; /* its types are numbers in the table, from 1        */
    char strings[];            /* of the key                                        */
} tide_profile_set_site;

typedef struct tide_profile_set {
    tide_type_facts *types;        /* names are its own */
    tide_profile_set_site **sites; /* by strict key     */
    uint32_t type_count, type_room, site_count, site_room;
    struct tide_tuned_set *more; /* what stands beside scopes; NULL: nothing */
} tide_profile_set;

/* What stands in a profile beside scopes is of a room above (jit/tune), which sets this once, before
 * there is a set. */
struct tide_tokens;
typedef struct tide_profile_additions {
    /* Takes a line that is none of a scope's. False: refused. */
    bool (*read)(struct tide_tuned_set **more, struct tide_tokens *tokens);
    void (*write)(const struct tide_tuned_set *more, FILE *out);
    void (*weigh)(struct tide_tuned_set *more, double weight);
    void (*destroy)(struct tide_tuned_set *more);
    /* With the registry locked: it owns what was loaded, NULL too, from now on; adds a copy of that
     * to a set; adds what is known now, `own`: but nothing that was loaded. TIDE_ERROR_MEMORY or
     * TIDE_ERROR_LIMIT. */
    void (*loaded)(struct tide_tuned_set *more);
    tide_status (*copy)(struct tide_tuned_set **to, const char *call);
    tide_status (*collect)(struct tide_tuned_set **to, bool own, const char *call);
} tide_profile_additions;

extern tide_profile_additions tide_profile_more;

/* NULL with a message when memory is short. */
tide_profile_set *tide_profile_set_create(const char *call);
void tide_profile_set_destroy(tide_profile_set *set);

/* The type's number in the table, which it enters if it is new. 0 with a message when memory or the
 * table's room is short. */
uint32_t tide_profile_set_type(tide_profile_set *set, const tide_type_facts *facts,
                               const char *call);

/* Adds a profile to what the set has of its key. Its types are those of `table`, which may be the set
 * itself, or of this process (NULL). TIDE_ERROR_MEMORY or TIDE_ERROR_LIMIT; the set is then fit to
 * be destroyed only. */
tide_status tide_profile_set_add(tide_profile_set *set, const tide_key *key,
                                 const tide_site_profile *profile, const tide_profile_set *table,
                                 const char *call);

/* What is in it counts so much from now on, above 0, 1 at most; of each scope some uses are left, for
 * decisions. */
void tide_profile_set_weigh(tide_profile_set *set, double weight);

/* The scope of that strict key; NULL if there is none. */
tide_profile_set_site *tide_profile_set_find(const tide_profile_set *set, const tide_key *key);

/* The scope of that loose key; NULL unless there is exactly one. */
tide_profile_set_site *tide_profile_set_find_loosely(const tide_profile_set *set,
                                                     const tide_key *key);

/* The profile in types of this process. False if one of them is not registered (yet). */
bool tide_profile_set_resolve(const tide_profile_set *set, const tide_profile_set_site *site,
                              tide_site_profile *out);

#endif
