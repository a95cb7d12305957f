/* SPDX-License-Identifier: MIT */
/* The process's element types: a table that readers need no lock for, and a tree by identity. */
#include "runtime/base/type.h"

#include <search.h>
#include <stdatomic.h>
#include <string.h>
#include <tidepool/dynamic.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"

enum { CHUNK = 1024, CHUNKS = TIDE_TYPE_LIMIT / CHUNK, MOST_ALIGN = 4096 };

static const tide_type_facts builtin[TIDE_BUILTIN_COUNT + 1] = {
#define TIDE_X(id, constant, ctype, bits, name) \
    [id] = {name, (bits) == 1 ? 0 : sizeof(ctype), _Alignof(ctype)},
    TIDE_BUILTIN_TYPES(TIDE_X)
#undef TIDE_X
};

_Static_assert((CHUNK) * (CHUNKS) == TIDE_TYPE_LIMIT, "each number has its place in a chunk");

/* A registered type; never freed, so that facts may be held for good. */
typedef struct registered_type {
    tide_type_facts facts;
    tide_type type;
    char name[];
} registered_type;

/* Chunks are published by the last number, which is stored last and read first. */
static const tide_type_facts **type_chunks[CHUNKS];
static _Atomic tide_type type_last = TIDE_BUILTIN_COUNT;

static void *type_tree; /* guarded by the registry */

const tide_type_facts *tide_type_facts_of(tide_type type)
{
    if (type <= TIDE_BUILTIN_COUNT)
        return type == TIDE_NO_TYPE ? NULL : &builtin[type];
    if (type > atomic_load_explicit(&type_last, memory_order_acquire))
        return NULL;
    tide_assert(type < TIDE_TYPE_LIMIT);
    return type_chunks[type / CHUNK][type % CHUNK];
}

tide_type tide_type_find(const char *name)
{
    const char *call = "tide_type_find";
    if (name == NULL) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the name is NULL");
        return TIDE_NO_TYPE;
    }
    for (tide_type type = 1, last = tide_type_count(); type <= last; type++) {
        const tide_type_facts *facts = tide_type_facts_of(type);
        if (strcmp(facts->name, name) == 0)
            return type;
    }
    tide_fail(TIDE_ERROR_NAME, call, "no type has the name '%.60s'", name);
    return TIDE_NO_TYPE;
}

/* Size, alignment and name are a type's identity. */
static int type_compare(const void *left, const void *right)
{
    const tide_type_facts *a = &((const registered_type *)left)->facts;
    const tide_type_facts *b = &((const registered_type *)right)->facts;
    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    if (a->align != b->align)
        return a->align < b->align ? -1 : 1;
    return strcmp(a->name, b->name);
}

static tide_type type_find_builtin(const tide_type_facts *facts)
{
    tide_assert(facts->name != NULL);
    for (tide_type type = 1; type <= TIDE_BUILTIN_COUNT; type++)
        if (builtin[type].size == facts->size && builtin[type].align == facts->align &&
            strcmp(builtin[type].name, facts->name) == 0)
            return type;
    return TIDE_NO_TYPE;
}

static registered_type *type_make_registered(const tide_type_facts *facts)
{
    size_t length = strlen(facts->name) + 1;
    registered_type *made = tide_os_resize(NULL, sizeof *made + length);
    if (made == NULL)
        return NULL;
    memcpy(made->name, facts->name, length);
    made->facts = *facts;
    made->facts.name = made->name;
    return made;
}

static const tide_type_facts **type_make_chunk(void)
{
    const tide_type_facts **made = tide_os_resize(NULL, CHUNK * sizeof *made);
    if (made != NULL)
        memset(made, 0, CHUNK * sizeof *made);
    return made;
}

/* Gives `made` the next number. False when memory is short; then nothing has changed. */
static bool type_publish(registered_type *made)
{
    tide_type type = type_last + 1;
    tide_assert(type < TIDE_TYPE_LIMIT);
    const tide_type_facts ***chunk = &type_chunks[type / CHUNK];
    if (*chunk == NULL && (*chunk = type_make_chunk()) == NULL)
        return false;
    if (tide_os_faulted(sizeof(void *)) || tsearch(made, &type_tree, type_compare) == NULL)
        return false;
    made->type = type;
    tide_assert((*chunk)[type % CHUNK] == NULL);
    (*chunk)[type % CHUNK] = &made->facts;
    atomic_store_explicit(&type_last, type, memory_order_release);
    return true;
}

/* ---- registering ------------------------------------------------------------------------ */

/* With the registry locked. */
static tide_type type_find_or_make(const tide_type_facts *facts)
{
    const char *call = "tide_type_register";
    registered_type key = {.facts = *facts};
    registered_type *const *found = tfind(&key, &type_tree, type_compare);
    if (found != NULL)
        return (*found)->type;
    if (type_last == TIDE_TYPE_LIMIT - 1) {
        tide_fail(TIDE_ERROR_LIMIT, call, "no number left for '%s': there are %u types",
                  facts->name, TIDE_TYPE_LIMIT - 1);
        return TIDE_NO_TYPE;
    }
    registered_type *made = type_make_registered(facts);
    if (made != NULL && type_publish(made))
        return made->type;
    tide_os_free(made);
    tide_fail(TIDE_ERROR_MEMORY, call, "no memory to register '%s'", facts->name);
    return TIDE_NO_TYPE;
}

static tide_status type_validate(const tide_type_facts *facts)
{
    const char *call = "tide_type_register";
    if (facts->name == NULL || facts->name[0] == '\0')
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the name is %s",
                         facts->name == NULL ? "NULL" : "empty");
    if (facts->size == 0)
        return tide_fail(TIDE_ERROR_SIZE, call, "size of '%s' is 0, least is 1", facts->name);
    if (facts->align == 0 || (facts->align & (facts->align - 1)) != 0 || facts->align > MOST_ALIGN)
        return tide_fail(TIDE_ERROR_SIZE, call,
                         "alignment %zu of '%s' is not a power of two from 1 to %d", facts->align,
                         facts->name, MOST_ALIGN);
    if (facts->size % facts->align != 0)
        return tide_fail(TIDE_ERROR_SIZE, call, "size %zu of '%s' is no multiple of alignment %zu",
                         facts->size, facts->name, facts->align);
    return TIDE_OK;
}

tide_type tide_type_register(const char *name, size_t size, size_t align)
{
    tide_type_facts facts = {name, size, align};
    if (type_validate(&facts) != TIDE_OK)
        return TIDE_NO_TYPE;
    tide_type type = type_find_builtin(&facts);
    if (type != TIDE_NO_TYPE)
        return type;
    tide_registry_lock();
    type = type_find_or_make(&facts);
    tide_registry_unlock();
    return type;
}

tide_type tide_type_known(const tide_type_facts *facts)
{
    tide_type type = type_find_builtin(facts);
    if (type != TIDE_NO_TYPE)
        return type;
    registered_type key = {.facts = *facts};
    tide_registry_lock();
    registered_type *const *found = tfind(&key, &type_tree, type_compare);
    type = found != NULL ? (*found)->type : TIDE_NO_TYPE;
    tide_registry_unlock();
    return type;
}

tide_type tide_type_learn(tide_type *cell, const char *name, size_t size, size_t align)
{
    tide_assert(cell != NULL);
    tide_type type = tide_type_register(name, size, align);
    __atomic_store_n(cell, type, __ATOMIC_RELAXED);
    return type;
}

/* tide_type_of() has no status: the thread's last failure tells whether it failed just now. */
tide_status tide_type_refuse(tide_type type, const char *call)
{
    tide_assert(tide_type_facts_of(type) == NULL);
    tide_status why = tide_error_status();
    bool shortage = why == TIDE_ERROR_MEMORY || why == TIDE_ERROR_LIMIT;
    if (type == TIDE_NO_TYPE && shortage && tide_failed_last("tide_type_register"))
        return tide_fail(why, call, "no type (%.300s)", tide_error_message());
    return tide_fail(TIDE_ERROR_TYPE, call, "no type %u, there are %u", type, tide_type_count());
}

static const tide_type_facts *type_facts_or_fail(tide_type type, const char *call)
{
    const tide_type_facts *facts = tide_type_facts_of(type);
    if (facts == NULL)
        tide_type_refuse(type, call);
    return facts;
}

const char *tide_type_name(tide_type type)
{
    const tide_type_facts *facts = type_facts_or_fail(type, "tide_type_name");
    return facts != NULL ? facts->name : NULL;
}

size_t tide_type_size(tide_type type)
{
    const tide_type_facts *facts = type_facts_or_fail(type, "tide_type_size");
    return facts != NULL ? facts->size : 0;
}

size_t tide_type_align(tide_type type)
{
    const tide_type_facts *facts = type_facts_or_fail(type, "tide_type_align");
    return facts != NULL ? facts->align : 0;
}

uint32_t tide_type_count(void)
{
    return atomic_load_explicit(&type_last, memory_order_acquire);
}
