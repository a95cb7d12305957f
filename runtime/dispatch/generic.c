/* SPDX-License-Identifier: MIT */
/* Generic functions: methods by type, in pages that any thread may read while
 * another one adds to them. */
#include <tidepool/generic.h>

#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/base/type.h"
#include "runtime/dispatch/generic.h"

/* A page of methods stays where it is for good: plans hold addresses of places in it. */
enum { PAGE_TYPES = 256, PAGES = TIDE_TYPE_LIMIT / PAGE_TYPES };
_Static_assert(TIDE_TYPE_LIMIT % PAGE_TYPES == 0, "every type has a place in a page");
_Static_assert(TIDE_ALL_TYPES >= TIDE_TYPE_LIMIT, "no type is taken for the fallback");

struct tide_generic {
    tide_method **pages[PAGES]; /* atomic each; NULL until one of its types has a method */
    tide_method *fallback;      /* atomic; of types without their own, or NULL           */
    uint64_t unmet;
    tide_generic *older;
    uint32_t keys; /* 0: by type */
    char name[];
};

/* All generic functions, from the youngest to the oldest: one whose maker was unloaded is still
 * reached, so it is no leak. Guarded by the registry. */
static tide_generic *generic_youngest;

static tide_generic *generic_create(const char *name, uint32_t keys, const char *call)
{
    tide_assert(keys <= TIDE_TYPE_LIMIT);
    if (name == NULL || name[0] == '\0') {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the name is %s", name == NULL ? "NULL" : "empty");
        return NULL;
    }
    size_t length = strlen(name) + 1;
    tide_generic *made = tide_os_resize(NULL, sizeof *made + length);
    if (made == NULL) {
        tide_fail(TIDE_ERROR_MEMORY, call, "no memory for generic function '%.64s'", name);
        return NULL;
    }
    memset(made, 0, sizeof *made);
    memcpy(made->name, name, length);
    made->keys = keys;
    tide_registry_lock();
    made->older = generic_youngest;
    generic_youngest = made;
    tide_registry_unlock();
    return made;
}

tide_generic *tide_generic_create(const char *name)
{
    return generic_create(name, 0, "tide_generic_create");
}

tide_generic *tide_generic_create_keys(const char *name, size_t count)
{
    const char *call = "tide_generic_create_keys";
    if (count == 0 || count > TIDE_TYPE_LIMIT) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "%zu keys, not 1 to %u", count, TIDE_TYPE_LIMIT);
        return NULL;
    }
    return generic_create(name, (uint32_t)count, call);
}

/* ---- types and keys ----------------------------------------------------------------------- */

_Static_assert(TIDE_KEY_FIRST >= TIDE_TYPE_LIMIT, "no type has the number of a key");
_Static_assert(TIDE_KEY_FIRST + TIDE_TYPE_LIMIT <= TIDE_ALL_TYPES, "every key has a number");

static bool generic_by_keys(const tide_generic *generic)
{
    return generic->keys != 0;
}

bool tide_generic_takes(const tide_generic *generic, tide_type type)
{
    return generic_by_keys(generic) ? type < generic->keys : tide_type_facts_of(type) != NULL;
}

static tide_status generic_refuse(const tide_generic *generic, tide_type type, const char *call)
{
    tide_assert(!tide_generic_takes(generic, type));
    if (!generic_by_keys(generic))
        return tide_type_refuse(type, call);
    return tide_fail(TIDE_ERROR_TYPE, call, "%u is no key of '%s', which has %u", type,
                     generic->name, generic->keys);
}

tide_type tide_generic_number(const tide_generic *generic, tide_type type)
{
    tide_assert(tide_generic_takes(generic, type) && type < TIDE_TYPE_LIMIT);
    return generic_by_keys(generic) ? TIDE_KEY_FIRST + type : type;
}

/* Where the type's own method stands; NULL: it has none. */
static tide_method **generic_entry(const tide_generic *generic, tide_type type)
{
    tide_assert(generic != NULL);
    tide_method **page = type < TIDE_TYPE_LIMIT
                             ? __atomic_load_n(&generic->pages[type / PAGE_TYPES], __ATOMIC_ACQUIRE)
                             : NULL;
    return page != NULL && __atomic_load_n(&page[type % PAGE_TYPES], __ATOMIC_ACQUIRE) != NULL
               ? &page[type % PAGE_TYPES]
               : NULL;
}

tide_method **tide_generic_entry_of(const tide_generic *generic, tide_type number)
{
    bool key = number >= TIDE_KEY_FIRST;
    return key == generic_by_keys(generic)
               ? generic_entry(generic, key ? number - TIDE_KEY_FIRST : number)
               : NULL;
}

/* For messages. */
static const char *generic_noun(const tide_generic *generic)
{
    return generic_by_keys(generic) ? "key" : "type";
}

/* ---- methods ------------------------------------------------------------------------------ */

/* The page of a type, made if there is none. NULL when memory is short. Registry locked. */
static tide_method **generic_page_for(tide_generic *generic, tide_type type)
{
    tide_assert(generic != NULL && type / PAGE_TYPES < PAGES);
    tide_method **page = generic->pages[type / PAGE_TYPES];
    if (page == NULL && (page = tide_os_resize(NULL, PAGE_TYPES * sizeof *page)) != NULL) {
        memset(page, 0, PAGE_TYPES * sizeof *page);
        __atomic_store_n(&generic->pages[type / PAGE_TYPES], page, __ATOMIC_RELEASE);
    }
    return page;
}

static tide_status generic_add_method(tide_generic *generic, tide_type type, tide_method *method)
{
    tide_method **page;
    tide_assert(method != NULL); /* a place that was filled is never NULL again */
    if (type == TIDE_ALL_TYPES)
        __atomic_store_n(&generic->fallback, method, __ATOMIC_RELEASE);
    else if ((page = generic_page_for(generic, type)) != NULL)
        __atomic_store_n(&page[type % PAGE_TYPES], method, __ATOMIC_RELEASE);
    else
        return tide_fail(TIDE_ERROR_MEMORY, "tide_generic_add", "no memory for method %u of '%s'",
                         type, generic->name);
    return TIDE_OK;
}

tide_status tide_generic_add(tide_generic *generic, tide_type type, tide_method *method)
{
    const char *call = "tide_generic_add";
    if (generic == NULL || method == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the %s is NULL",
                         generic == NULL ? "generic function" : "method");
    if (type != TIDE_ALL_TYPES && !tide_generic_takes(generic, type))
        return generic_refuse(generic, type, call);
    tide_registry_lock();
    tide_status status = generic_add_method(generic, type, method);
    tide_registry_unlock();
    return status;
}

const char *tide_generic_name(const tide_generic *generic)
{
    return generic != NULL ? generic->name : "";
}

uint64_t tide_generic_unmet(const tide_generic *generic)
{
    return generic != NULL ? __atomic_load_n(&generic->unmet, __ATOMIC_RELAXED) : 0;
}

/* ---- looking up -------------------------------------------------------------------------- */

TIDE_INLINE tide_method *generic_look_up(const tide_generic *generic, tide_type type)
{
    tide_method **place = generic_entry(generic, type);
    return TIDE_LIKELY(place != NULL) ? __atomic_load_n(place, __ATOMIC_ACQUIRE)
                                      : __atomic_load_n(&generic->fallback, __ATOMIC_ACQUIRE);
}

/* Says that there is no method, or no generic function, to call. */
static TIDE_COLD void generic_report_unmet(tide_generic *generic, tide_type type, const char *call)
{
    if (generic == NULL) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the generic function is NULL");
        return;
    }
    __atomic_fetch_add(&generic->unmet, 1, __ATOMIC_RELAXED);
    tide_fail(TIDE_ERROR_TYPE, call, "'%s' has no method for %s %u", generic->name,
              generic_noun(generic), type);
}

tide_method *tide_generic_find(const tide_generic *generic, tide_type type)
{
    tide_method *method = generic != NULL ? generic_look_up(generic, type) : NULL;
    if (generic == NULL)
        tide_fail(TIDE_ERROR_ARGUMENT, "tide_generic_find", "the generic function is NULL");
    else if (method == NULL)
        tide_fail(TIDE_ERROR_TYPE, "tide_generic_find", "'%s' has no method for %s %u",
                  generic->name, generic_noun(generic), type);
    return method;
}

tide_method *tide_generic_meet(tide_generic *generic, tide_type type, const char *caller)
{
    tide_method *method = TIDE_LIKELY(generic != NULL) ? generic_look_up(generic, type) : NULL;
    if (TIDE_UNLIKELY(method == NULL))
        generic_report_unmet(generic, type, caller);
    return method;
}
