/* SPDX-License-Identifier: MIT */
/* Every public macro, used as programs use it. use_c.c and use_cpp.cc are made of this text: the
 * script `matrix` compiles them with every compiler, standard and warning that is there, and the
 * test `macros` runs them. Each function returns how many of its facts do not hold. */
#include <setjmp.h>

#include <tidepool/array.h>
#include <tidepool/bits.h>
#include <tidepool/buffers.h>
#include <tidepool/check.h>
#include <tidepool/device_bump.h>
#include <tidepool/dlpack.h>
#include <tidepool/dynamic.h>
#include <tidepool/generic.h>
#include <tidepool/scope.h>
#include <tidepool/tidepool.h>
#include <tidepool/tunable.h>
#include <tidepool/upkeep.h>
#include <tidepool/version.h>

/* Old casts are warned of in C++, useless ones in neither language. */
#ifdef __cplusplus
#define USE_AS(T, value) static_cast<T>(value)
#else
#define USE_AS(T, value) ((T)(value))
#endif

/* Counts a fact that does not hold. */
#define USE_CHECK(fact) (void)(wrong += (fact) ? 0 : 1)

typedef struct use_point {
    double x, y;
} use_point;

static const int64_t use_shape[] = {2, 3};

static void use_method(void *args)
{
    *USE_AS(int *, args) += 1;
}

static double *use_return(tide_pool *pool)
{
    double *made = tide_acquire(pool, double, 4);
    TIDE_SCOPE(pool);
    TIDE_RETURN(made);
}

/* In each form, each kind of number of elements. */
static int use_acquires(tide_pool *pool, int few, size_t many, unsigned char tiny, long long wide)
{
    int wrong = 0;
    TIDE_SCOPE_NAMED(pool, "acquires");
    USE_CHECK(tide_acquire(pool, double, few) != NULL);
    USE_CHECK(tide_acquire(pool, char, many) != NULL);
    USE_CHECK(tide_acquire(pool, unsigned long long, tiny) != NULL);
    USE_CHECK(tide_acquire(pool, use_point, wide) != NULL);
    USE_CHECK(tide_acquire(pool, const char *, few) != NULL);
    USE_CHECK(tide_acquire(pool, double, -few) == NULL);
    USE_CHECK(&tide_acquire(pool, struct use_point, 3)[2] != NULL);
    USE_CHECK(tide_zeros(pool, int, few)[0] == 0);
    USE_CHECK(tide_ones(pool, float, many)[1] > 0);
    USE_CHECK(tide_fill(pool, short, tiny, 7)[0] == 7);
    USE_CHECK(tide_fill(pool, int, few, *tide_fill(pool, int, few, few))[1] == few);
    USE_CHECK(tide_zeros_type(pool, TIDE_F64, many) != NULL);
    USE_CHECK(tide_ones_type(pool, TIDE_F64, many) != NULL);
    USE_CHECK(tide_fill_type(pool, TIDE_I32, many, &few) != NULL);
    use_point *points = tide_acquire(pool, use_point, few);
    points = tide_grow(pool, use_point, points, many);
    USE_CHECK(points != NULL && tide_grow(pool, use_point, points, wide) != NULL);
    USE_CHECK(*tide_grow(pool, int, tide_fill(pool, int, few, few), tiny) == few);
    uint64_t *bits = tide_acquire_bits(pool, few);
    USE_CHECK(bits != NULL);
    if (bits != NULL) {
        tide_bit_put(bits, 1, true);
        tide_bit_set(bits, 2);
        tide_bit_clear(bits, 2);
        USE_CHECK(tide_bit_test(bits, 1) && !tide_bit_test(bits, 2));
    }
    USE_CHECK(tide_acquire_type(pool, tide_type_of(use_point), many) != NULL);
    USE_CHECK(tide_type_of(int) == TIDE_I32 && tide_type_of(double) == TIDE_F64);
    USE_CHECK(tide_type_name(tide_type_of(use_point)) != NULL);
    return wrong;
}

static int use_arrays(tide_pool *pool, int ndim)
{
    int wrong = 0;
    TIDE_SCOPE(pool);
    tide_array *array = tide_array_acquire(pool, TIDE_F32, ndim, use_shape);
    USE_CHECK(array != NULL && tide_array_data(array) != NULL && array->length == 6);
    array = tide_array_acquire_order(pool, TIDE_F32, TIDE_COLUMN_MAJOR, 2, use_shape);
    USE_CHECK(array != NULL);
    USE_CHECK(TIDE_NDIM_MAX == 8);
    return wrong;
}

static int use_scopes(tide_pool *pool, int n, unsigned count)
{
    int wrong = 0, rounds = 0;
    TIDE_SCOPE_TYPES(pool, double, int, struct use_point, unsigned char, short, long, float, char);
    TIDE_FRAME(pool, (double, a, n), (struct use_point, b, count), (const char *, c, 3));
    USE_CHECK(a != NULL && b != NULL && c != NULL);
    TIDE_LOOP(pool, i, n)
    {
        TIDE_SCOPE(pool);
        TIDE_LOOP(pool, j, count)
        {
            TIDE_FRAME(pool, (double, g, i + 1), (int, h, j + 1));
            rounds += g != NULL && h != NULL;
        }
    }
    USE_CHECK(rounds == n * USE_AS(int, count));
    USE_CHECK(tide_pool_depth(pool) == 2);
    return wrong;
}

/* In a function that calls setjmp. (With a typed scope there, -Wclobbered of GCC names variables of
 * the headers; no header can prevent it.) */
static jmp_buf use_jump;

static int use_jumps(tide_pool *pool, int n)
{
    int wrong = 0;
    TIDE_SCOPE(pool);
    double *a = tide_acquire(pool, double, n);
    struct use_point *b = tide_acquire(pool, struct use_point, n);
    if (setjmp(use_jump) == 0) {
        TIDE_SCOPE(pool);
        longjmp(use_jump, 1);
    }
    USE_CHECK(a != NULL && b != NULL);
    return wrong;
}

/* A count below 0 is none, one of an unsigned type is what it is. */
static int use_counts(tide_pool *pool)
{
    int wrong = 0;
    size_t rounds = 0;
    const signed char below = -1;
    const unsigned char above = 3;
    const bool once = true;
    TIDE_LOOP(pool, i, -5) rounds += 1000 + i;
    TIDE_LOOP(pool, i, -5LL) rounds += 1000 + i;
    TIDE_LOOP(pool, i, below) rounds += 1000 + i;
    TIDE_LOOP(pool, i, INT64_MIN) rounds += 1000 + i;
    TIDE_LOOP(pool, i, 0) rounds += 1000 + i;
    TIDE_LOOP(pool, i, 0u) rounds += 1000 + i;
    TIDE_LOOP(pool, i, USE_AS(size_t, 0)) rounds += 1000 + i;
    USE_CHECK(rounds == 0);
    TIDE_LOOP(pool, i, above) rounds += 1 + 0 * i;
    TIDE_LOOP(pool, i, 2u) rounds += 1 + 0 * i;
    TIDE_LOOP(pool, i, USE_AS(uint64_t, 2)) rounds += 1 + 0 * i;
    TIDE_LOOP(pool, i, once) rounds += 1 + 0 * i;
    USE_CHECK(rounds == 8);
    TIDE_LOOP(pool, i, UINT64_MAX)
    {
        rounds++;
        if (i == 1)
            break;
    }
    TIDE_LOOP(pool, i, UINT32_MAX)
    {
        rounds++;
        if (i == 1)
            break;
    }
    USE_CHECK(rounds == 12 && tide_pool_depth(pool) == 0);
    return wrong;
}

static int use_dispatch(void)
{
    int wrong = 0, calls = 0;
    tide_generic *generic = tide_generic_create("use");
    if (generic == NULL)
        return 1;
    USE_CHECK(tide_generic_add(generic, TIDE_ALL_TYPES, use_method) == TIDE_OK);
    TIDE_DISPATCH(generic, TIDE_F64, &calls);
    USE_CHECK(calls == 1);
    return wrong;
}

TIDE_KNOB(use_knob, "use: a knob", 1, 9, 4);
TIDE_VARIANTS(use_variants, "use: variants", "one", "two");
TIDE_MEASURED(use_measured, "use: measured");

static int use_tunables(int key)
{
    int wrong = 0;
    TIDE_MEASURE(&use_variants, key, which);
    TIDE_MEASURE(&use_measured, 7U, unused);
    TIDE_MEASURE_AS(which, 5);
    USE_CHECK(which < 2);
    USE_CHECK(tide_tunable("use: low", 1, 9) == 1 && tide_tunable("use: initial", 1, 9, 3) == 3);
    USE_CHECK(tide_tunable_value(&use_knob) == 4 && use_knob.high < TIDE_TUNABLE_LIMIT);
    USE_CHECK(TIDE_TUNABLE_OTHER > 0);
    return wrong;
}

static int use_constants(void)
{
    int wrong = 0;
    USE_CHECK((TIDE_BUFFER_TAG(3) | TIDE_BUFFER_HOST) == 0x302);
    USE_CHECK(TIDE_DL_READ_ONLY == 1 && TIDE_TYPE_LIMIT == 65536);
    USE_CHECK(TIDE_KEY_FIRST >= TIDE_TYPE_LIMIT);
    USE_CHECK(TIDEPOOL_VERSION >= 100 && tide_version_check() == TIDE_OK);
    USE_CHECK(TIDEPOOL_VERSION_MAJOR + TIDEPOOL_VERSION_MINOR + TIDEPOOL_VERSION_PATCH >= 1);
    size_t types = 0;
#define USE_TYPE(id, constant, T, bits, name) types += sizeof(T) > 0 && (constant) == (id);
    TIDE_BUILTIN_TYPES(USE_TYPE)
    USE_CHECK(types == TIDE_BUILTIN_COUNT);
    return wrong;
}

static int use_all(tide_pool *pool)
{
    int wrong = use_tunables(2) + use_acquires(pool, 3, 4, 5, 6) + use_arrays(pool, 2) +
                use_scopes(pool, 2, 3) + use_counts(pool) + use_jumps(pool, 2) + use_dispatch() +
                use_constants();
    USE_CHECK(use_return(pool) != NULL);
    return wrong;
}
