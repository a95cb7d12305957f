/* SPDX-License-Identifier: MIT */
/* Sites that the program makes at run time, by name, for callers that have no place in a source.
 * Unlike the sites of modules they are never unlisted. */
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/scope/plan.h"
#include "runtime/scope/site.h"

typedef struct named_site {
    tide_site site;
    char name[];
} named_site;

/* The site of this name, or NULL. Static sites may have the same name; they have a place.
 * Looks at every site: a program registers each name once and keeps what it got. */
static tide_site *named_find(const char *name)
{
    tide_site *const *sites;
    size_t count = tide_site_list(&sites);
    for (size_t i = 0; i < count; i++) {
        tide_site *site = sites[i];
        tide_assert(site->record != NULL); /* as every site in the list has */
        if (site->place.file == NULL && site->name != NULL && strcmp(site->name, name) == 0)
            return site;
    }
    return NULL;
}

/* The same of all sites, static ones too, of one kind. */
static tide_site *named_find_any(const char *name, tide_kind kind)
{
    tide_site *const *sites;
    size_t count = tide_site_list(&sites);
    for (size_t i = 0; i < count; i++)
        if (sites[i]->kind == kind && strcmp(tide_site_name(sites[i]), name) == 0)
            return sites[i];
    return NULL;
}

static tide_site *named_make(const char *name, tide_kind kind)
{
    tide_assert((unsigned)kind < TIDE_KIND_COUNT && name[0] != '\0');
    size_t length = strlen(name) + 1;
    named_site *made = tide_os_resize(NULL, sizeof *made + length);
    if (made == NULL)
        return NULL;
    memcpy(made->name, name, length);
    made->site = (tide_site){.plan = &tide_plans_arriving[kind], .name = made->name, .kind = kind};
    if (tide_site_enlist(&made->site))
        return &made->site;
    tide_os_free(made);
    return NULL;
}

/* NULL with a message if the site is of another kind, or memory is short. Registry locked. */
static tide_site *named_find_or_make(const char *name, tide_kind kind, const char *call)
{
    tide_site *site = named_find(name);
    if (site != NULL && site->kind != kind) {
        tide_fail(TIDE_ERROR_NAME, call, "site '%s' is of kind %s, not %s", name,
                  tide_kind_name(site->kind), tide_kind_name(kind));
        return NULL;
    }
    if (site == NULL && (site = named_make(name, kind)) == NULL)
        tide_fail(TIDE_ERROR_MEMORY, call, "no memory for site '%s'", name);
    tide_assert(site == NULL || site->kind == kind);
    return site;
}

static tide_site *named_register(const char *name, tide_kind kind, const char *call)
{
    if (name == NULL || name[0] == '\0') {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the name is %s", name == NULL ? "NULL" : "empty");
        return NULL;
    }
    if ((unsigned)kind >= TIDE_KIND_COUNT) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "no kind %d of site, there are %d", (int)kind,
                  TIDE_KIND_COUNT);
        return NULL;
    }
    tide_registry_lock();
    tide_site *site = named_find_or_make(name, kind, call);
    tide_registry_unlock();
    return site;
}

tide_site *tide_site_register(const char *name)
{
    return named_register(name, TIDE_KIND_SCOPE, "tide_site_register");
}

tide_site *tide_site_register_kind(const char *name, tide_kind kind)
{
    return named_register(name, kind, "tide_site_register_kind");
}

tide_site *tide_site_find(const char *name, tide_kind kind)
{
    const char *call = "tide_site_find";
    if (name == NULL || (unsigned)kind >= TIDE_KIND_COUNT) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "name %s, kind %d of %d", name == NULL ? "NULL" : name,
                  (int)kind, TIDE_KIND_COUNT);
        return NULL;
    }
    tide_registry_lock();
    tide_site *site = named_find_any(name, kind);
    tide_registry_unlock();
    if (site == NULL)
        tide_fail(TIDE_ERROR_NAME, call, "no %s is named '%s'", tide_kind_name(kind), name);
    return site;
}
