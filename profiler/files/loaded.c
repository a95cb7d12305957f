/* SPDX-License-Identifier: MIT */
/* What files said of this program's scopes: found again by key, and put together with what was seen
 * since, for a file to be written. */
#include "profiler/files/loaded.h"

#include <string.h>

#include "profiler/add.h"
#include "profiler/tally.h"
#include "runtime/base/assert.h"
#include "runtime/scope/site.h"

static tide_profile_set *loaded_set; /* guarded by the registry; NULL: nothing */

void tide_loaded_replace(tide_profile_set *set)
{
    tide_assert(set == NULL || set != loaded_set);
    tide_profile_set_destroy(loaded_set);
    loaded_set = set;
    tide_profile_more.loaded(set != NULL ? set->more : NULL);
    if (set != NULL)
        set->more = NULL;
}

/* ---- which site ------------------------------------------------------------------------- */

/* Does the loose key name one scope of this program alone? */
static bool loaded_key_is_unique(const tide_key *key)
{
    tide_site *const *sites;
    size_t count = tide_site_list(&sites), same = 0;
    for (size_t i = 0; i < count && same < 2; i++) {
        if (sites[i]->kind != TIDE_KIND_SCOPE)
            continue;
        tide_key other = tide_key_of(sites[i]);
        same += tide_key_compare_loosely(&other, key) == 0;
    }
    return same < 2;
}

/* What was loaded of a site, or NULL. */
static tide_profile_set_site *loaded_find(const tide_site *site)
{
    if (loaded_set == NULL || site->kind != TIDE_KIND_SCOPE)
        return NULL;
    tide_key key = tide_key_of(site);
    tide_profile_set_site *found = tide_profile_set_find(loaded_set, &key);
    if (found != NULL)
        return found;
    found = tide_profile_set_find_loosely(loaded_set, &key);
    return found != NULL && loaded_key_is_unique(&key) ? found : NULL;
}

/* All that this process has seen of a scope. False: nothing. */
static bool loaded_seen_of(const tide_site *site, tide_site_profile *out)
{
    tide_tally *tally = site->kind == TIDE_KIND_SCOPE ? tide_tally_of(site) : NULL;
    if (tally == NULL)
        return false;
    tide_tally_read(tally, out);
    return out->scopes != 0;
}

/* What was loaded counts until a window has been taken: a first one that is still
 * filling says less. */
bool tide_profile_prior(tide_site *site, tide_site_profile *out)
{
    const tide_profile_set_site *loaded = loaded_find(site);
    const tide_tally *tally = tide_tally_of(site);
    if (loaded == NULL || (tally != NULL && tide_packed_scopes(tally->before) != 0))
        return false;
    return tide_profile_set_resolve(loaded_set, loaded, out);
}

/* ---- all of it -------------------------------------------------------------------------- */

/* Adds one loaded site to another set. */
static tide_status loaded_copy_site(tide_profile_set *to, const tide_profile_set_site *site,
                                    const char *call)
{
    tide_assert(to != loaded_set);
    return tide_profile_set_add(to, &site->key, &site->profile, loaded_set, call);
}

tide_status tide_loaded_copy(tide_profile_set *to, const char *call)
{
    tide_status status = TIDE_OK;
    for (uint32_t i = 0; loaded_set != NULL && status == TIDE_OK && i < loaded_set->site_count; i++)
        status = loaded_copy_site(to, loaded_set->sites[i], call);
    return status == TIDE_OK ? tide_profile_more.copy(&to->more, call) : status;
}

/* Adds the loaded sites of which nothing was seen, as long as there is room. */
static tide_status loaded_copy_rest(tide_profile_set *to, const char *call)
{
    tide_status status = TIDE_OK;
    for (uint32_t i = 0; loaded_set != NULL && status == TIDE_OK && i < loaded_set->site_count; i++)
        if (!loaded_set->sites[i]->superseded && to->site_count < TIDE_PROFILE_SET_SITES)
            status = loaded_copy_site(to, loaded_set->sites[i], call);
    return status;
}

/* A file takes no longer strings. */
static bool loaded_key_fits(const tide_key *key)
{
    return strlen(key->name) <= TIDE_KEY_STRING_MAX && strlen(key->file) <= TIDE_KEY_STRING_MAX &&
           strlen(key->function) <= TIDE_KEY_STRING_MAX;
}

/* ---- collecting ------------------------------------------------------------------------- */

/* Adds what was seen of a site. What was loaded of it is then superseded. */
static tide_status loaded_collect_site(const tide_site *site, tide_profile_set *to,
                                       const char *call)
{
    tide_site_profile seen;
    if (!loaded_seen_of(site, &seen))
        return TIDE_OK;
    tide_key key = tide_key_of(site);
    tide_profile_set_site *loaded = loaded_find(site);
    if (loaded != NULL)
        loaded->superseded = true;
    return loaded_key_fits(&key) ? tide_profile_set_add(to, &key, &seen, NULL, call) : TIDE_OK;
}

tide_status tide_loaded_collect(tide_profile_set *to, bool own, const char *call)
{
    tide_site *const *sites;
    size_t count = tide_site_list(&sites);
    tide_status status = TIDE_OK;
    tide_assert(to != loaded_set);
    for (uint32_t i = 0; loaded_set != NULL && i < loaded_set->site_count; i++)
        loaded_set->sites[i]->superseded = false;
    for (size_t i = 0; i < count && status == TIDE_OK; i++)
        status = loaded_collect_site(sites[i], to, call);
    if (status == TIDE_OK && !own)
        status = loaded_copy_rest(to, call);
    return status == TIDE_OK ? tide_profile_more.collect(&to->more, own, call) : status;
}
