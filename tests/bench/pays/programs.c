/* SPDX-License-Identifier: MIT */
/* The programs. The uses of each are many enough for a run of .03 to 2 s. */
#define _GNU_SOURCE
#include "programs.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <tidepool/array.h>
#include <tidepool/scope.h>

enum { SMALL = 64, MEDIUM = 200 };

/* A generator of random numbers that costs a nanosecond. */
PAYS_INLINE uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

/* ---- one site ----------------------------------------------------------------------------- */

#define ONE_SITE(function, name)          \
    static void function(tide_pool *pool) \
    {                                     \
        TIDE_SCOPE_NAMED(pool, name);     \
        PAYS_TAKE(pool, double, MEDIUM);  \
        PAYS_TAKE(pool, double, SMALL);   \
        PAYS_TAKE(pool, int32_t, MEDIUM); \
        PAYS_TAKE(pool, int32_t, SMALL);  \
    }
ONE_SITE(short_use, "short:di")
ONE_SITE(rare_use, "rare:di")
ONE_SITE(hot_use, "hot:di")
ONE_SITE(threads_use, "threads:di")

static void run_short(tide_pool *pool, uint64_t uses)
{
    for (uint64_t i = 0; i < uses; i++)
        short_use(pool);
}

static void run_hot(tide_pool *pool, uint64_t uses)
{
    for (uint64_t i = 0; i < uses; i++)
        hot_use(pool);
}

static void run_rare(tide_pool *pool, uint64_t uses)
{
    for (uint64_t i = 0; i < uses; i++) {
        rare_use(pool);
        usleep(5000);
    }
}

static void tiny_use(tide_pool *pool)
{
    TIDE_SCOPE_NAMED(pool, "tiny:d");
    PAYS_TAKE(pool, double, SMALL);
}

static void run_tiny(tide_pool *pool, uint64_t uses)
{
    for (uint64_t i = 0; i < uses; i++)
        tiny_use(pool);
}

static double heavy_sum; /* keeps the compiler from leaving the work out */

static void run_heavy(tide_pool *pool, uint64_t uses)
{
    for (uint64_t use = 0; use < uses; use++) {
        TIDE_SCOPE_NAMED(pool, "heavy:di");
        double *a = tide_acquire(pool, double, 1024);
        int32_t *b = tide_acquire(pool, int32_t, 1024);
        for (int i = 0; i < 1024; i++) {
            b[i] = i & 15;
            a[i] = (double)b[i] * 1.5;
        }
        for (int i = 1; i < 1024; i++)
            a[i] += a[i - 1] * 0.25;
        heavy_sum += a[1023];
    }
}

/* ---- nested sites, four deep --------------------------------------------------------------- */

#define NESTED(function, name, first, second, inner) \
    static void function(tide_pool *pool)            \
    {                                                \
        TIDE_SCOPE_NAMED(pool, name);                \
        PAYS_TAKE(pool, first, SMALL);               \
        PAYS_TAKE(pool, second, SMALL);              \
        inner;                                       \
    }
NESTED(nested_4, "nested 4:bs", uint8_t, int16_t, (void)0)
NESTED(nested_3, "nested 3:fi", float, int32_t, nested_4(pool))
NESTED(nested_2, "nested 2:dl", double, int64_t, nested_3(pool))
NESTED(nested_1, "nested 1:di", double, int32_t, nested_2(pool))

static void run_nested(tide_pool *pool, uint64_t uses)
{
    for (uint64_t i = 0; i < uses; i++)
        nested_1(pool);
}

/* ---- types known at run time only ---------------------------------------------------------- */

PAYS_INLINE void take_type(tide_pool *pool, tide_type type)
{
    double *taken = tide_acquire_type(pool, type, SMALL);
    taken[0] = 1;
    __asm__ volatile("" : : "r"(taken) : "memory");
}

static void run_megamorphic(tide_pool *pool, uint64_t uses)
{
    static const tide_type types[] = {TIDE_F64, TIDE_I32, TIDE_F32, TIDE_I64,
                                      TIDE_U8,  TIDE_I16, TIDE_C64, TIDE_U32};
    uint32_t state = 1;
    for (uint64_t i = 0; i < uses; i++) {
        TIDE_SCOPE_NAMED(pool, "megamorphic:");
        double *a = tide_acquire_type(pool, types[next_random(&state) % 8], SMALL);
        a[0] = 1;
        __asm__ volatile("" : : "r"(a) : "memory");
    }
}

static void run_random_sets(tide_pool *pool, uint64_t uses)
{
    static const tide_type sets[2][2] = {{TIDE_F64, TIDE_I32}, {TIDE_F32, TIDE_I64}};
    uint32_t state = 1;
    for (uint64_t i = 0; i < uses; i++) {
        const tide_type *set = sets[next_random(&state) & 1];
        TIDE_SCOPE_NAMED(pool, "random sets:difl");
        take_type(pool, set[0]);
        take_type(pool, set[1]);
    }
}

/* Four pairs in turn. Told of all eight types, as a person would who knows the whole program. */
enum { PHASES = 4 };
static const tide_type phase_pairs[PHASES][2] = {
    {TIDE_F64, TIDE_I32}, {TIDE_F32, TIDE_I64}, {TIDE_U8, TIDE_I16}, {TIDE_C64, TIDE_U32}};

PAYS_INLINE void phase_use(tide_pool *pool, const tide_type *pair)
{
    TIDE_SCOPE_NAMED(pool, "phase:diflbscu");
    take_type(pool, pair[0]);
    take_type(pool, pair[1]);
}

static void run_phases(tide_pool *pool, uint64_t uses, uint64_t length)
{
    for (uint64_t i = 0; i < uses; i += length) {
        const tide_type *pair = phase_pairs[i / length % PHASES];
        for (uint64_t j = 0; j < length; j++)
            phase_use(pool, pair);
    }
}

static void run_phases_short(tide_pool *pool, uint64_t uses)
{
    run_phases(pool, uses, 700000);
}

static void run_phases_long(tide_pool *pool, uint64_t uses)
{
    run_phases(pool, uses, 70000000);
}

/* ---- threads ------------------------------------------------------------------------------- */

typedef struct crew_member {
    pthread_t thread;
    uint64_t uses;
} crew_member;

static void *work(void *user)
{
    const crew_member *member = user;
    tide_pool *pool = tide_pool_local();
    for (uint64_t i = 0; i < member->uses; i++)
        threads_use(pool);
    return NULL;
}

static void run_threads(tide_pool *pool, uint64_t uses)
{
    enum { CREW = 64 };
    crew_member crew[CREW];
    (void)pool;
    for (int i = 0; i < CREW; i++) {
        crew[i].uses = uses / CREW;
        if (pthread_create(&crew[i].thread, NULL, work, &crew[i]) != 0)
            _exit(3);
    }
    for (int i = 0; i < CREW; i++)
        pthread_join(crew[i].thread, NULL);
}

/* ---- arrays -------------------------------------------------------------------------------- */

static void run_arrays(tide_pool *pool, uint64_t uses)
{
    for (uint64_t i = 0; i < uses; i++) {
        TIDE_SCOPE_NAMED(pool, "arrays:di");
        tide_array *a = tide_array_acquire(pool, TIDE_F64, 2, ((const int64_t[]){12, 30}));
        tide_array *b = tide_array_acquire(pool, TIDE_I32, 3, ((const int64_t[]){4, 9, 10}));
        tide_array *c = tide_array_acquire(pool, TIDE_F64, 4, ((const int64_t[]){3, 4, 5, 6}));
        __asm__ volatile("" : : "r"(a), "r"(b), "r"(c) : "memory");
    }
}

/* ---- all ----------------------------------------------------------------------------------- */

const pays_program pays_programs[] = {
    {"short", "1.5 million scopes, then exit", run_short, 1500000},
    {"sites-200", "200 sites, 15 million scopes", pays_sites_200, 15000000},
    {"nested", "nested sites, four deep", run_nested, 4000000},
    {"rare", "used 300 times, 5 ms apart", run_rare, 300},
    {"heavy", "heavy body", run_heavy, 250000},
    {"megamorphic", "megamorphic acquire", run_megamorphic, 5000000},
    {"threads", "64 threads, one site", run_threads, 6400000},
    {"random-sets", "two sets of types at random", run_random_sets, 10000000},
    {"hot", "one site, 20 million", run_hot, 20000000},
    {"arrays", "N-D acquires", run_arrays, 3000000},
    {"tiny", "one tiny site, 10^8", run_tiny, 100000000},
    {"phases-10ms", "phases of 700 000 scopes", run_phases_short, 42000000},
    {"phases-1s", "phases of 70 million scopes", run_phases_long, 210000000},
    {NULL, NULL, NULL, 0},
};
