/* SPDX-License-Identifier: MIT */
#include "work.h"

#include <tidepool/array.h>
#include <tidepool/generic.h>
#include <tidepool/site.h>

/* The types come from outside: from a file, a script, a message. No compiler of this program can
 * know them; the library sees which ones come, and has code made for those. */
const phase phases[PHASES] = {
    {"double", TIDE_F64, TIDE_I32, 2, {8, 8}},
    {"single", TIDE_F32, TIDE_I16, 3, {4, 4, 4}},
    {"complex", TIDE_C64, TIDE_I64, 2, {16, 4}},
};

enum { ELEMENTS = 64 };

static bool failed;

bool work_failed(void)
{
    return failed;
}

/* So that no compiler finds out that nobody reads it. */
static void touch(void *data)
{
    if (data != NULL)
        *(volatile char *)data = 1;
    else
        failed = true; /* without memory, times say nothing */
}

/* ---- a scope ---- */

/* A helper acquires what it likes: the caller's scope gives it all back. */
static void helper(tide_pool *pool, const phase *now)
{
    touch(tide_acquire_type(pool, now->numbers, ELEMENTS));
    touch(tide_acquire_type(pool, now->numbers, ELEMENTS));
    touch(tide_acquire_type(pool, now->indices, ELEMENTS));
}

/* TIDE_SCOPE is a call site of its own; the name is for reports. Once it is known which types are
 * acquired inside, entering saves just those. */
static void one_scope(tide_pool *pool, const phase *now)
{
    TIDE_SCOPE_NAMED(pool, "scope");
    helper(pool, now);
}

static void scopes(tide_pool *pool, const phase *now, size_t times)
{
    for (size_t i = 0; i < times; i++)
        one_scope(pool, now);
}

/* N-D arrays of a shape that is known at run time only. */
static void arrays(tide_pool *pool, const phase *now, size_t times)
{
    for (size_t i = 0; i < times; i++) {
        TIDE_SCOPE(pool); /* without a name of its own: its function's */
        tide_array *array = tide_array_acquire(pool, now->numbers, now->ndim, now->shape);
        touch(array == NULL ? NULL : tide_array_data(array));
    }
}

/* ---- a dispatch ---- */

typedef struct sum {
    const void *data;
    double result;
} sum;

#define SUM_METHOD(name, T)                            \
    static void name(void *args)                       \
    {                                                  \
        sum *s = args;                                 \
        const T *from = s->data;                       \
        s->result = (double)from[0] + (double)from[1]; \
    }
SUM_METHOD(sum_double, double)
SUM_METHOD(sum_single, float)
SUM_METHOD(sum_complex, float)

/* One name, a method for each type. */
static tide_generic *sums;

static void dispatches(tide_pool *pool, const phase *now, size_t times)
{
    static const double data[2] = {0, 0};
    (void)pool;
    sum s = {data, 0};
    for (size_t i = 0; i < times; i++)
        TIDE_DISPATCH(sums, now->numbers, &s);
    touch(&s);
}

/* ---- all of them ---- */

const work works[WORKS] = {
    {"scope", TIDE_KIND_SCOPE, scopes},
    {"arrays", TIDE_KIND_SCOPE, arrays},
    {"dispatches", TIDE_KIND_DISPATCH, dispatches},
};

bool work_prepare(void)
{
    sums = tide_generic_create("sum");
    return sums != NULL && tide_generic_add(sums, TIDE_F64, sum_double) == TIDE_OK &&
           tide_generic_add(sums, TIDE_F32, sum_single) == TIDE_OK &&
           tide_generic_add(sums, TIDE_C64, sum_complex) == TIDE_OK;
}

tide_site *work_site(const work *w)
{
    return tide_site_find(w->name, w->kind);
}
