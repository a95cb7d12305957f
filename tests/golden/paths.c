/* SPDX-License-Identifier: MIT */
/* One function for each fast path, in an object file that is always compiled with the same flags.
 *
 * Each does its operation `times` times in a loop. What the loop itself costs is the path
 * `nothing`, which the comparison takes off; the counts are those of the operation alone, with
 * its arrays handed to the rest of the program. */
#include "paths.h"

#include <stdio.h>
#include <string.h>

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/check.h>
#include <tidepool/generic.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>

#include "runtime/dispatch/generic.h"

typedef struct sample {
    double value;
    int64_t time;
} sample;

/* The rest of the program: it has the array, and anything in memory may have changed. */
#define USE(data) __asm__ volatile("" : : "r"(data) : "memory")
#define KEEP()    __asm__ volatile("" : : : "memory")

#define PATH(name) static __attribute__((noinline)) void name(tide_pool *pool, size_t times)

PATH(nothing)
{
    for (size_t i = 0; i < times; i++)
        USE(pool);
}

PATH(acquire)
{
    for (size_t i = 0; i < times; i++)
        USE(tide_acquire(pool, double, 100));
}

PATH(acquire_registered)
{
    for (size_t i = 0; i < times; i++)
        USE(tide_acquire(pool, sample, 100));
}

/* The shape is in memory, as a caller's is that computed it; the rest is constant. */
PATH(acquire_array)
{
    int64_t shape[2] = {10, 10};
    __asm__ volatile("" : "+m"(shape));
    for (size_t i = 0; i < times; i++)
        USE(tide_array_acquire(pool, TIDE_F64, 2, shape));
}

/* Type and rank known at run time only. */
PATH(acquire_array_general)
{
    int64_t shape[2] = {10, 10};
    tide_type type = TIDE_F64;
    int ndim = 2;
    __asm__ volatile("" : "+m"(shape), "+r"(type), "+r"(ndim));
    for (size_t i = 0; i < times; i++)
        USE(tide_array_acquire(pool, type, ndim, shape));
}

static inline __attribute__((always_inline)) void *give(void *pointer)
{
    TIDE_RETURN(pointer);
}

PATH(guarded_return)
{
    for (size_t i = 0; i < times; i++)
        USE(give(pool));
}

#define FOUR_ACQUIRES                      \
    USE(tide_acquire(pool, double, 100));  \
    USE(tide_acquire(pool, int32_t, 100)); \
    USE(tide_acquire(pool, double, 100));  \
    USE(tide_acquire(pool, int32_t, 100))

PATH(scope_types)
{
    for (size_t i = 0; i < times; i++) {
        TIDE_SCOPE_TYPES(pool, double, int32_t);
        FOUR_ACQUIRES;
    }
}

PATH(frame)
{
    for (size_t i = 0; i < times; i++) {
        TIDE_FRAME(pool, (double, a, 100), (int32_t, b, 100), (double, c, 100), (int32_t, d, 100));
        USE(a);
        USE(b);
        USE(c);
        USE(d);
    }
}

PATH(loop)
{
    TIDE_LOOP(pool, i, times)
    {
        FOUR_ACQUIRES;
    }
}

PATH(full_scope)
{
    for (size_t i = 0; i < times; i++) {
        TIDE_SCOPE_NAMED(pool, "golden full");
        KEEP();
    }
}

PATH(table_scope)
{
    for (size_t i = 0; i < times; i++) {
        TIDE_SCOPE_NAMED(pool, "golden table");
        KEEP();
    }
}

PATH(table_scope_acquires)
{
    for (size_t i = 0; i < times; i++) {
        TIDE_SCOPE_NAMED(pool, "golden table");
        FOUR_ACQUIRES;
    }
}

PATH(untracked)
{
    for (size_t i = 0; i < times; i++) {
        TIDE_SCOPE_NAMED(pool, "golden table");
        USE(tide_acquire(pool, float, 100));
    }
}

/* ---- dispatches ------------------------------------------------------------------------------- */

static tide_generic *generic;
static tide_dispatch_table table = {.plan.kind = TIDE_KIND_DISPATCH};
static tide_site dispatching = {.plan = &table.plan, .kind = TIDE_KIND_DISPATCH};

PATH(dispatch)
{
    for (size_t i = 0; i < times; i++)
        tide_site_dispatch(&dispatching, generic, TIDE_F64, pool);
}

static void method(void *args)
{
    USE(args);
}

static bool make_dispatch(void)
{
    static const tide_type tested[] = {TIDE_F64, TIDE_I32};
    generic = tide_generic_create("golden");
    if (generic == NULL || tide_generic_add(generic, TIDE_F64, method) != TIDE_OK ||
        tide_generic_add(generic, TIDE_I32, method) != TIDE_OK)
        return false;
    table.plan.type_count = 2;
    table.plan.types = tested;
    return tide_dispatch_use_table(&table, generic);
}

/* ---- buffers ---------------------------------------------------------------------------------- */

static tide_buffers *buffers;

PATH(buffer)
{
    (void)pool;
    for (size_t i = 0; i < times; i++) {
        tide_buffer one = tide_buffer_acquire(buffers, 1000);
        USE(one.slot);
        tide_buffer_release(buffers, one);
    }
    KEEP();
}

/* ---- all --------------------------------------------------------------------------------------- */

const golden_path golden_paths[] = {
    {"nothing", nothing, true},
    {"acquire", acquire, true},
    {"acquire-registered", acquire_registered, true},
    {"acquire-array-2d", acquire_array, true},
    {"acquire-array-any-rank", acquire_array_general, true},
    {"scope-types-4-acquires", scope_types, true},
    {"frame-4-arrays", frame, true},
    {"loop-4-acquires", loop, true},
    {"full-scope-16-shelves", full_scope, true},
    {"table-scope-2-types", table_scope, true},
    {"table-scope-4-acquires", table_scope_acquires, true},
    {"table-scope-1-touch", untracked, true},
    {"return", guarded_return, false}, /* asks whether any pool checks */
    {"buffer", buffer, true},
    {"table-dispatch", dispatch, true},
};
const size_t golden_path_count = sizeof golden_paths / sizeof golden_paths[0];

/* Two sites may share a name: all of them get the same plan. */
static bool pin(tide_site *site, void *failed)
{
    static const tide_type types[] = {TIDE_F64, TIDE_I32};
    tide_status status = TIDE_OK;
    if (site->name != NULL && strcmp(site->name, "golden full") == 0)
        status = tide_site_pin(site, TIDE_TIER_FULL);
    if (site->name != NULL && strcmp(site->name, "golden table") == 0) {
        status = tide_site_declare(site, types, 2);
        if (status == TIDE_OK)
            status = tide_site_pin(site, TIDE_TIER_TABLE);
    }
    if (status != TIDE_OK) {
        fprintf(stderr, "%s: %s\n", site->name, tide_error_message());
        *(bool *)failed = true;
    }
    return true;
}

bool golden_begin(void)
{
    bool failed = false;
    tide_site_each(pin, &failed);
    buffers = tide_buffers_create(NULL, NULL);
    return !failed && buffers != NULL && make_dispatch();
}

bool golden_end(void)
{
    return tide_buffers_destroy(buffers) == TIDE_OK;
}
