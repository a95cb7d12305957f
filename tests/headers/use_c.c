/* SPDX-License-Identifier: MIT */
/* Every public macro in C (use.h), and what only C has: compound literals, types without a name. */
#include <tidepool/array.h>
#include <tidepool/bits.h>
#include <tidepool/check.h>
#include <tidepool/generic.h>
#include <tidepool/scope.h>

#include "use.h"

int use_in_c(tide_pool *pool);

typedef struct use_pair {
    int first, second;
} use_pair;

static int use_last_sum;

static void use_sum(void *args)
{
    const use_pair *pair = args;
    use_last_sum = pair->first + pair->second;
}

/* The commas of a compound literal, where it is the last argument. */
static int use_literals(tide_pool *pool)
{
    int wrong = 0;
    TIDE_SCOPE(*(tide_pool *[]){pool, pool});
    double *x = tide_acquire(pool, double, (size_t[]){1, 2}[1]);
    int *zeros = tide_zeros(pool, int, (size_t[]){1, 2}[1]);
    float *ones = tide_ones(pool, float, (size_t[]){1, 2}[1]);
    use_pair *pairs = tide_fill(pool, use_pair, 4, (use_pair){3, 4});
    USE_CHECK(x != NULL && zeros[1] == 0 && ones[1] > 0 && pairs[3].second == 4);
    USE_CHECK(tide_acquire_bits(pool, (size_t[]){1, 70}[1]) != NULL);
    tide_array *array = tide_array_acquire(pool, TIDE_F32, 2, (int64_t[]){2, 3});
    USE_CHECK(array->length == 6);
    array = tide_array_acquire_order(pool, TIDE_F32, TIDE_ROW_MAJOR, 2, (int64_t[]){2, 4});
    USE_CHECK(array->length == 8);
    tide_generic *generic = tide_generic_create("sum");
    USE_CHECK(tide_generic_add(generic, TIDE_ALL_TYPES, use_sum) == TIDE_OK);
    TIDE_DISPATCH(generic, TIDE_F64, &(use_pair){3, 4});
    USE_CHECK(use_last_sum == 7);
    TIDE_FRAME(pool, (double, a, (size_t[]){1, 2}[1]), (int, b, 2));
    USE_CHECK(a != NULL && b != NULL);
    size_t rounds = 0;
    TIDE_LOOP(pool, i, (int[]){1, 2}[1]) rounds += i + 1;
    USE_CHECK(rounds == 3);
    return wrong;
}

static const int *use_return_of_literal(tide_pool *pool, const int *first, const int *second)
{
    TIDE_SCOPE(pool);
    TIDE_RETURN((const int *[]){first, second}[1]);
}

/* A type with a comma stands in parentheses. */
static int use_commas(tide_pool *pool)
{
    int wrong = 0;
    TIDE_SCOPE_TYPES(pool, double, (struct { int a, b; }), int);
    TIDE_FRAME(pool, (double, x, 2), ((struct { int a, b; }), y, 3));
    void *made = tide_acquire(pool, (struct { int a, b; }), 2);
    USE_CHECK(made != NULL && x != NULL && y != NULL);
    USE_CHECK(tide_zeros(pool, (struct { int a, b; }), 2)[1].b == 0);
    USE_CHECK(tide_type_size(tide_type_of(struct { int a, b; })) == 8);
    USE_CHECK(tide_type_of((use_pair)) == tide_type_of(use_pair));
    USE_CHECK(tide_type_of((double)) == TIDE_F64);
    USE_CHECK(tide_type_of((__typeof__(*x))) == TIDE_F64);
    return wrong;
}

int use_in_c(tide_pool *pool)
{
    const int one = 1, two = 2;
    return use_all(pool) + use_literals(pool) + use_commas(pool) +
           (use_return_of_literal(pool, &one, &two) == &two ? 0 : 1);
}
