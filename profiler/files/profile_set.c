/* SPDX-License-Identifier: MIT */
/* Sets of profiles by key. Sites are sorted, so that they are found by bisection; types of one
 * table are translated to those of another, or to those of the process. */
#include "profiler/files/profile_set.h"

#include <string.h>

#include "profiler/add.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"

tide_profile_additions tide_profile_more;

/* ---- made and destroyed ----------------------------------------------------------------- */

tide_profile_set *tide_profile_set_create(const char *call)
{
    tide_profile_set *set = tide_os_resize(NULL, sizeof *set);
    if (set != NULL)
        memset(set, 0, sizeof *set);
    else
        tide_fail(TIDE_ERROR_MEMORY, call, "no memory for a profile");
    return set;
}

void tide_profile_set_destroy(tide_profile_set *set)
{
    if (set == NULL)
        return;
    for (uint32_t i = 0; i < set->type_count; i++)
        tide_os_free((char *)set->types[i].name);
    for (uint32_t i = 0; i < set->site_count; i++)
        tide_os_free(set->sites[i]);
    tide_os_free(set->types);
    tide_os_free(set->sites);
    if (set->more != NULL)
        tide_profile_more.destroy(set->more);
    tide_os_free(set);
}

enum { SET_USES_LEFT = 64 }; /* of a scope, however little its profile counts */

_Static_assert(TIDE_PROFILE_SET_SITES <= UINT32_MAX / 2 && TIDE_PROFILE_SET_TYPES <= UINT32_MAX / 2,
               "a doubled room does not wrap");

/* Makes room for one more element; doubles. */
static bool set_reserve(void **array, uint32_t *room, uint32_t count, size_t size)
{
    tide_assert(count <= *room);
    if (count < *room)
        return true;
    uint32_t wanted = *room == 0 ? 16 : *room * 2;
    void *made = tide_os_resize(*array, wanted * size);
    if (made == NULL)
        return false;
    *array = made;
    *room = wanted;
    tide_assert(count < *room);
    return true;
}

static char *set_copy_string(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = tide_os_resize(NULL, bytes);
    return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

/* ---- types ------------------------------------------------------------------------------ */

static uint32_t set_append_type(tide_profile_set *set, const tide_type_facts *facts,
                                const char *call)
{
    if (set->type_count == TIDE_PROFILE_SET_TYPES) {
        tide_fail(TIDE_ERROR_LIMIT, call, "more than %d types", TIDE_PROFILE_SET_TYPES);
        return 0;
    }
    void *types = set->types;
    bool room = set_reserve(&types, &set->type_room, set->type_count, sizeof *facts);
    set->types = types;
    char *name = room ? set_copy_string(facts->name) : NULL;
    if (name == NULL) {
        tide_fail(TIDE_ERROR_MEMORY, call, "no memory for type '%.64s'", facts->name);
        return 0;
    }
    tide_assert(set->type_count < set->type_room);
    set->types[set->type_count] = (tide_type_facts){name, facts->size, facts->align};
    return ++set->type_count;
}

uint32_t tide_profile_set_type(tide_profile_set *set, const tide_type_facts *facts,
                               const char *call)
{
    for (uint32_t i = 0; i < set->type_count; i++) {
        const tide_type_facts *there = &set->types[i];
        if (there->size == facts->size && there->align == facts->align &&
            strcmp(there->name, facts->name) == 0)
            return i + 1;
    }
    return set_append_type(set, facts, call);
}

/* The profile's types become numbers of the set's table. False with a message. */
static bool set_take_types(tide_profile_set *set, tide_site_profile *profile,
                           const tide_profile_set *table, const char *call)
{
    tide_assert(profile->type_count <= TIDE_PROFILE_TYPES);
    for (uint32_t i = 0; set != table && i < profile->type_count; i++) {
        tide_type *type = &profile->types[i].type;
        tide_assert(table == NULL || (*type >= 1 && *type <= table->type_count));
        const tide_type_facts *facts =
            table != NULL ? &table->types[*type - 1] : tide_type_facts_of(*type);
        tide_assert(facts != NULL);
        *type = tide_profile_set_type(set, facts, call);
        if (*type == 0)
            return false;
    }
    return true;
}

/* Equally frequent types are ordered by number, and the numbers have changed: adding the profile to
 * an empty one sorts it again. */
bool tide_profile_set_resolve(const tide_profile_set *set, const tide_profile_set_site *site,
                              tide_site_profile *out)
{
    tide_site_profile profile = site->profile;
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < profile.type_count; i++) {
        tide_type *type = &profile.types[i].type;
        tide_assert(*type >= 1 && *type <= set->type_count);
        *type = tide_type_known(&set->types[*type - 1]);
        if (*type == TIDE_NO_TYPE)
            return false;
    }
    tide_profile_add(out, &profile, 1);
    return true;
}

/* ---- scopes ----------------------------------------------------------------------------- */

/* The place of the first scope that `compare` does not put before the key. */
static uint32_t set_lower_bound(const tide_profile_set *set, const tide_key *key,
                                int (*compare)(const tide_key *left, const tide_key *right))
{
    uint32_t from = 0, to = set->site_count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (compare(&set->sites[middle]->key, key) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    tide_assert(from == to && to <= set->site_count);
    return from;
}

tide_profile_set_site *tide_profile_set_find(const tide_profile_set *set, const tide_key *key)
{
    uint32_t at = set_lower_bound(set, key, tide_key_compare);
    return at < set->site_count && tide_key_compare(&set->sites[at]->key, key) == 0 ? set->sites[at]
                                                                                    : NULL;
}

tide_profile_set_site *tide_profile_set_find_loosely(const tide_profile_set *set,
                                                     const tide_key *key)
{
    uint32_t at = set_lower_bound(set, key, tide_key_compare_loosely);
    if (at == set->site_count || tide_key_compare_loosely(&set->sites[at]->key, key) != 0)
        return NULL;
    bool alone =
        at + 1 == set->site_count || tide_key_compare_loosely(&set->sites[at + 1]->key, key) != 0;
    return alone ? set->sites[at] : NULL;
}

/* Copies the string to *at and moves *at past it. */
static const char *set_append_string(char **at, const char *text)
{
    char *copy = *at;
    size_t bytes = strlen(text) + 1;
    memcpy(copy, text, bytes);
    *at += bytes;
    return copy;
}

/* NULL when memory is short. */
static tide_profile_set_site *set_make_site(const tide_key *key)
{
    size_t bytes = strlen(key->name) + strlen(key->file) + strlen(key->function) + 3;
    tide_profile_set_site *made = tide_os_resize(NULL, sizeof *made + bytes);
    if (made == NULL)
        return NULL;
    char *at = made->strings;
    memset(made, 0, sizeof *made);
    made->key =
        (tide_key){key->line, set_append_string(&at, key->name), set_append_string(&at, key->file),
                   set_append_string(&at, key->function)};
    tide_assert(at == made->strings + bytes);
    return made;
}

/* Adds a scope to the sorted list; its key is not there yet. NULL with a message. */
static tide_profile_set_site *set_insert_site(tide_profile_set *set, const tide_key *key,
                                              const char *call)
{
    if (set->site_count == TIDE_PROFILE_SET_SITES) {
        tide_fail(TIDE_ERROR_LIMIT, call, "more than %d scopes", TIDE_PROFILE_SET_SITES);
        return NULL;
    }
    void *sites = set->sites;
    bool room = set_reserve(&sites, &set->site_room, set->site_count, sizeof *set->sites);
    set->sites = sites;
    tide_profile_set_site *made = room ? set_make_site(key) : NULL;
    if (made == NULL) {
        tide_fail(TIDE_ERROR_MEMORY, call, "no memory for what is known of a scope");
        return NULL;
    }
    uint32_t at = set_lower_bound(set, key, tide_key_compare);
    tide_assert(set->site_count < set->site_room);
    tide_assert(at == 0 || tide_key_compare(&set->sites[at - 1]->key, key) < 0);
    tide_assert(at == set->site_count || tide_key_compare(&set->sites[at]->key, key) > 0);
    memmove(&set->sites[at + 1], &set->sites[at], (set->site_count - at) * sizeof *set->sites);
    set->site_count++;
    return set->sites[at] = made;
}

tide_status tide_profile_set_add(tide_profile_set *set, const tide_key *key,
                                 const tide_site_profile *profile, const tide_profile_set *table,
                                 const char *call)
{
    tide_site_profile own = *profile;
    tide_assert(own.generic == NULL);
    if (!set_take_types(set, &own, table, call))
        return tide_error_status();
    tide_profile_set_site *site = tide_profile_set_find(set, key);
    if (site == NULL && (site = set_insert_site(set, key, call)) == NULL)
        return tide_error_status();
    tide_profile_add(&site->profile, &own, 1);
    return TIDE_OK;
}

void tide_profile_set_weigh(tide_profile_set *set, double weight)
{
    tide_assert(weight > 0 && weight <= 1);
    for (uint32_t i = 0; i < set->site_count; i++) {
        tide_site_profile *profile = &set->sites[i]->profile, whole = *profile;
        double least = SET_USES_LEFT / (double)whole.scopes;
        if (weight == 1 || least >= 1)
            continue;
        memset(profile, 0, sizeof *profile);
        tide_profile_add(profile, &whole, weight > least ? weight : least);
    }
    tide_profile_more.weigh(set->more, weight);
}

/* ---- keys ------------------------------------------------------------------------------- */

static const char *key_or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* Without a file, `function` may be an address and no string: it is left out. */
tide_key tide_key_of(const tide_site *site)
{
    tide_assert(site->kind == TIDE_KIND_SCOPE);
    return (tide_key){site->place.line, key_or_empty(site->name), key_or_empty(site->place.file),
                      site->place.file != NULL ? key_or_empty(site->place.function) : ""};
}

static const char *key_last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

int tide_key_compare_loosely(const tide_key *left, const tide_key *right)
{
    tide_assert(left->name != NULL && left->file != NULL && left->function != NULL);
    tide_assert(right->name != NULL && right->file != NULL && right->function != NULL);
    int order = strcmp(left->function, right->function);
    if (order == 0)
        order = strcmp(left->name, right->name);
    return order != 0 ? order : strcmp(key_last_part(left->file), key_last_part(right->file));
}

int tide_key_compare(const tide_key *left, const tide_key *right)
{
    int order = tide_key_compare_loosely(left, right);
    if (order == 0)
        order = strcmp(left->file, right->file);
    return order != 0 ? order : (left->line > right->line) - (left->line < right->line);
}
