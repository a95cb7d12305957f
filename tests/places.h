/* SPDX-License-Identifier: MIT */
/* Scopes in the places where programs put them: inline functions of headers (this is one), macros,
 * twice on a line, statement expressions, recursion. Compiled as C and as C++. */
#ifndef TIDEPOOL_TESTS_PLACES_H
#define TIDEPOOL_TESTS_PLACES_H

#include <tidepool/upkeep.h>

#include "forms.h"

typedef struct place {
    const char *name; /* NULL ends a table */
    void (*run)(tide_pool *pool);
} place;

/* clang-format off */
#define PLACE(function) {#function, function}
/* clang-format on */

#ifdef __cplusplus
extern "C" {
#endif
extern const place places_cpp[]; /* tests/places_cpp.cc */
#ifdef __cplusplus
}
#endif

/* Uses arrays of three types, and says how deep it was. */
static inline size_t use_here(tide_pool *pool)
{
    take(pool, TIDE_F64, 11, 1);
    take(pool, TIDE_I32, 12, 2);
    take(pool, TIDE_U16, 13, 3);
    CHECK_POOL(pool);
    return tide_pool_depth(pool);
}

static inline void in_an_inline_function(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    assert_int_equal(use_here(pool), 1);
}

#define SCOPE_FROM_A_MACRO(pool, n) \
    TIDE_SCOPE(pool);               \
    double *from_macro = tide_acquire(pool, double, n)

static inline void in_a_macro(tide_pool *pool)
{
    SCOPE_FROM_A_MACRO(pool, 30);
    assert_non_null(from_macro);
    from_macro[29] = 1;
    use_here(pool);
}

#define TWO_SCOPES(pool) \
    TIDE_SCOPE(pool);    \
    TIDE_SCOPE_TYPES(pool, double, float)

static inline void twice_on_one_line(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    use_here(pool);
    TIDE_SCOPE(pool);
    use_here(pool);
    TWO_SCOPES(pool);
    TIDE_FRAME(pool, (int, a, 3));
    TIDE_FRAME(pool, (int, b, 3));
    assert_true(a != b);
    assert_int_equal(use_here(pool), 6);
    {
        TIDE_SCOPE(pool);
        {
            TIDE_SCOPE(pool);
            assert_int_equal(use_here(pool), 8);
        }
    }
    assert_int_equal(use_here(pool), 6);
}

static inline void nested_in_one_function(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    double *outer = (double *)take(pool, TIDE_F64, 20, 7);
    if (outer != NULL) {
        TIDE_SCOPE_TYPES(pool, int32_t, double);
        use_here(pool);
        do {
            TIDE_FRAME(pool, (float, f, 10), (double, d, 10));
            assert_true(f != NULL && d != NULL && d != outer);
            TIDE_LOOP(pool, i, 3)
            {
                TIDE_SCOPE(pool);
                assert_int_equal(use_here(pool), 5);
            }
            assert_int_equal(use_here(pool), 3);
        } while (false);
        assert_int_equal(use_here(pool), 2);
    } else {
        TIDE_SCOPE(pool);
        use_here(pool);
    }
    assert_int_equal(use_here(pool), 1);
    expect_bytes(outer, 20 * sizeof *outer, 7);
}

static inline size_t recurse(tide_pool *pool, size_t left, size_t depth)
{
    TIDE_SCOPE(pool);
    uint32_t *mine = tide_fill(pool, uint32_t, 3, (uint32_t)left);
    TIDE_FRAME(pool, (uint32_t, more, 2));
    more[1] = (uint32_t)depth;
    size_t deepest = left == 0 ? tide_pool_depth(pool) : recurse(pool, left - 1, depth + 2);
    assert_int_equal(mine[2], left);
    assert_int_equal(more[1], depth);
    assert_int_equal(tide_pool_depth(pool), depth);
    return deepest;
}

static inline void recursively(tide_pool *pool)
{
    assert_int_equal(recurse(pool, 100, 2), 202);
    assert_int_equal(recurse(pool, 3, 2), 8);
}

static inline void in_a_statement_expression(tide_pool *pool)
{
    double sum = __extension__({
        TIDE_SCOPE(pool);
        double *d = tide_fill(pool, double, 4, 2.5);
        d[0] + d[1] + d[2] + d[3];
    });
    assert_true(sum == 10);
    assert_int_equal(tide_pool_depth(pool), 0);
}

/* ---- what is evaluated, and how often ---- */

static inline tide_pool *counted(tide_pool *pool, size_t *times)
{
    ++*times;
    return pool;
}

static inline void arguments_are_evaluated_once(tide_pool *pool)
{
    size_t pools = 0, n = 3, m = 4, k = 5, rounds = 0;
    {
        TIDE_SCOPE(counted(pool, &pools));
        TIDE_SCOPE_TYPES(counted(pool, &pools), double, float);
        TIDE_FRAME(counted(pool, &pools), (double, d, n++), (float, f, m++), (int, i, k++));
        d[2] = 1;
        f[3] = 1;
        i[4] = 1;
        TIDE_LOOP(counted(pool, &pools), j, n++)
        {
            use_here(pool);
            rounds += j;
        }
        assert_non_null(tide_fill(counted(pool, &pools), double, m++, (double)k++));
    }
    assert_int_equal(pools, 5);
    assert_int_equal(rounds, 0 + 1 + 2 + 3);
    assert_true(n == 5 && m == 6 && k == 7);
}

static inline void eight_of_each(tide_pool *pool)
{
    TIDE_SCOPE_TYPES(pool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, double);
    use_here(pool);
    TIDE_FRAME(pool, (int8_t, a, 1), (int16_t, b, 2), (int32_t, c, 3), (int8_t, d, 4),
               (float, e, 5), (int8_t, f, 6), (double, g, 7), (double, h, 8));
    a[0] = 1, b[1] = 2, c[2] = 3, d[3] = 4, e[4] = 5, f[5] = 6, g[6] = 7, h[7] = 8;
    assert_true(a[0] == 1 && d[3] == 4 && f[5] == 6 && g[6] == 7 && h[7] == 8 && b[1] + c[2] == 5);
    assert_true(e[4] == 5);
    assert_int_equal(tide_pool_active(pool, TIDE_I8), 3);
    CHECK_POOL(pool);
}

struct place_point {
    float x, y, z;
};
typedef unsigned char place_word[4];

static inline void types_of_their_own(tide_pool *pool)
{
    TIDE_SCOPE_TYPES(pool, struct place_point, char *, double);
    struct place_point *points = tide_acquire(pool, struct place_point, 5);
    char **texts = tide_acquire(pool, char *, 5);
    TIDE_FRAME(pool, (struct place_point, more, 4), (place_word, words, 3), (double *, rows, 2));
    rows[1] = tide_acquire(pool, double, 9);
    rows[1][8] = 1;
    texts[4] = NULL;
    points[4].z = more[3].z = 1;
    words[2][3] = 'x';
    assert_ptr_not_equal(points, more);
    CHECK_POOL(pool);
}

#define PLACES_OF_BOTH                                                                       \
    PLACE(in_an_inline_function), PLACE(in_a_macro), PLACE(twice_on_one_line),               \
        PLACE(nested_in_one_function), PLACE(recursively), PLACE(in_a_statement_expression), \
        PLACE(arguments_are_evaluated_once), PLACE(eight_of_each), PLACE(types_of_their_own)

#endif
