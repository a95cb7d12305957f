/* SPDX-License-Identifier: MIT */
/* nd: three N-D temporaries whose type and rank are known at run time only, in a loop scope.
 *
 *   tide-general  a function that is not inlined calls tide_array_acquire with what it is given
 *   tide-site     TIDE_ARRAY_SITE, each of the three sites pinned to its general plan
 *   tide-compiled the same sites with code compiled for what they were seen to ask for
 *   aot           what a person would write for these shapes: tide_acquire of the product, strides
 *                 as constants, no header
 *   raw           tide_acquire_type of the same lengths: what tide-general costs without headers
 *   empty         the loop scope alone, with what the others do to their arrays done to one buffer
 *
 * Each slot sees one shape for ever. */
#include "cases.h"
#include "tide.h"

#include <assert.h>
#include <string.h>

#include <tidepool/array.h>
#include <tidepool/callsite.h>
#include <tidepool/site.h>

enum { ARRAYS = 3 };

typedef struct request {
    tide_type type;
    int ndim;
    int64_t shape[TIDE_NDIM_MAX];
    size_t length;
} request;

typedef struct nd_state {
    bench_tide *tide;
    tide_pool *pool;
    request requests[ARRAYS];
    tide_array_statistics warm;
    bool headers; /* the variant uses them */
    double buffer[512];
} nd_state;

/* The shapes that aot is written for. */
#define SHAPE_A 12, 30
#define SHAPE_B 4, 9, 10
#define SHAPE_C 3, 4, 5, 6

static request make_request(tide_type type, int ndim, const int64_t *shape)
{
    request r = {.type = type, .ndim = ndim, .length = 1};
    for (int i = 0; i < ndim; i++) {
        r.shape[i] = shape[i];
        r.length *= (size_t)r.shape[i];
    }
    return r;
}

static nd_state *make(const bench_case *job, bool headers)
{
    nd_state *s = bench_state_make(sizeof *s);
    s->tide = bench_tide_make(job, NULL, BENCH_SHELVES, false);
    s->pool = s->tide->pool;
    s->headers = headers;
    s->requests[0] = make_request(TIDE_F64, 2, (const int64_t[]){SHAPE_A});
    s->requests[1] = make_request(TIDE_I32, 3, (const int64_t[]){SHAPE_B});
    s->requests[2] = make_request(TIDE_F64, 4, (const int64_t[]){SHAPE_C});
    return s;
}

static void *setup(const bench_case *job)
{
    return make(job, false);
}

static void *general_setup(const bench_case *job)
{
    return make(job, true);
}

/* The three sites of one of the bodies below. */
static bench_compiled sites_of(const char *body)
{
    bench_compiled c = {.count = ARRAYS};
    bench_sites_in(__FILE__, body, TIDE_KIND_ARRAY, c.sites, ARRAYS);
    return c;
}

static void *site_setup(const bench_case *job)
{
    bench_compiled c = sites_of("site_block");
    for (size_t i = 0; i < c.count; i++)
        if (tide_site_pin(c.sites[i], TIDE_TIER_FULL) != TIDE_OK)
            bench_die("%s", tide_error_message());
    return make(job, true);
}

/* --- the arrays are what was asked for ---------------------------------------------------- */

static void check_header(const tide_array *array, const request *r)
{
    int64_t stride = 1;
    if (array == NULL || array->type != r->type || array->tensor.ndim != r->ndim)
        bench_die("nd: not the array that was asked for");
    for (int i = r->ndim - 1; i >= 0; i--) {
        if (array->tensor.shape[i] != r->shape[i] || array->tensor.strides[i] != stride)
            bench_die("nd: extent %d has shape or stride of another array", i);
        stride *= r->shape[i];
    }
}

static void fill_and_check(const request *requests, void *const data[ARRAYS])
{
    for (int i = 0; i < ARRAYS; i++)
        memset(data[i], 0x11 * (i + 1), requests[i].length * tide_type_size(requests[i].type));
    for (int i = 0; i < ARRAYS; i++) {
        const char *bytes = data[i];
        size_t count = requests[i].length * tide_type_size(requests[i].type);
        if (bytes[0] != 0x11 * (i + 1) || memcmp(bytes, bytes + 1, count - 1) != 0)
            bench_die("nd: array %d was overwritten", i);
    }
}

/* --- the bodies ------------------------------------------------------------------------- */

/* As in scope4: first and last element written, the arrays handed on, the operation counted. */
BENCH_INLINE void use(bool prove, const request *r, uint64_t *done, double *a, size_t a_last,
                      int32_t *b, size_t b_last, double *c, size_t c_last)
{
    if (prove)
        fill_and_check(r, (void *const[ARRAYS]){a, b, c});
    a[0] = 1.0;
    a[a_last] = 2.0;
    b[0] = 3;
    b[b_last] = 4;
    c[0] = 5.0;
    c[c_last] = 6.0;
    *done += 1;
    __asm__ volatile("" : "+r"(*done) : "r"(a), "r"(b), "r"(c) : "memory");
}

#define ND(name, ...)                                                                          \
    BENCH_INLINE uint64_t name##_block(nd_state *s, uint64_t operations, bool prove)           \
    {                                                                                          \
        tide_pool *const pool = s->pool;                                                       \
        uint64_t done = 0;                                                                     \
        TIDE_LOOP(pool, i, operations)                                                         \
        {                                                                                      \
            const request *r = s->requests;                                                    \
            __VA_ARGS__                                                                        \
        }                                                                                      \
        return done;                                                                           \
    }                                                                                          \
    static __attribute__((noinline, unused)) uint64_t name##_run(void *s, uint64_t operations) \
    {                                                                                          \
        return name##_block(s, operations, false);                                             \
    }                                                                                          \
    static void name##_prove(void *state, uint64_t operations)                                 \
    {                                                                                          \
        nd_state *s = state;                                                                   \
        if (name##_block(s, operations, true) != operations)                                   \
            bench_die(#name " lost operations");                                               \
        bench_tide_warm(s->tide);                                                              \
        if (tide_array_stats(s->pool, &s->warm) != TIDE_OK)                                    \
            bench_die("%s", tide_error_message());                                             \
    }

static __attribute__((noinline)) tide_array *request_array(tide_pool *pool, const request *r)
{
    return tide_array_acquire(pool, r->type, r->ndim, r->shape);
}

static void check_headers(const request *r, tide_array *const arrays[ARRAYS])
{
    for (int i = 0; i < ARRAYS; i++)
        check_header(arrays[i], &r[i]);
}

/* clang-format off */
#define THREE_ARRAYS(ACQUIRE)                                                         \
    tide_array *a = ACQUIRE(&r[0]);                                                   \
    tide_array *b = ACQUIRE(&r[1]);                                                   \
    tide_array *c = ACQUIRE(&r[2]);                                                   \
    if (prove)                                                                        \
        check_headers(r, (tide_array *const[ARRAYS]){a, b, c});                       \
    use(prove, r, &done, a->tensor.data, a->length - 1, b->tensor.data,               \
        b->length - 1, c->tensor.data, c->length - 1);

#define BY_CALL(r) request_array(pool, (r))
ND(general, THREE_ARRAYS(BY_CALL))

#define BY_SITE(r) TIDE_ARRAY_SITE(pool, (r)->type, (r)->ndim, (r)->shape)
ND(site, THREE_ARRAYS(BY_SITE))

ND(compiled, THREE_ARRAYS(BY_SITE))

ND(counted, THREE_ARRAYS(BY_SITE))

ND(raw,
    double *a = tide_acquire_type(pool, r[0].type, r[0].length);
    int32_t *b = tide_acquire_type(pool, r[1].type, r[1].length);
    double *c = tide_acquire_type(pool, r[2].type, r[2].length);
    use(prove, r, &done, a, r[0].length - 1, b, r[1].length - 1, c, r[2].length - 1);
)
/* clang-format on */

enum { COMPILE_PASS = 256 };

/* The first iteration of a loop touches its types: those acquires are no hits. */
static void *compiled_setup(const bench_case *job)
{
    bench_compiled twin = sites_of("counted_block");
    nd_state *s = make(job, true);
    bench_compile(&twin, counted_prove, s, COMPILE_PASS, true);
    bench_prove_executed(&twin, counted_prove, s, COMPILE_PASS, 1);
    s->tide->compiled = sites_of("compiled_block");
    bench_compile(&s->tide->compiled, compiled_prove, s, COMPILE_PASS, false);
    return s;
}

/* Row-major strides of the constant shapes, by hand. */
enum {
    A_ROWS = 12,
    A_COLUMNS = 30,
    B_PLANES = 4,
    B_ROWS = 9,
    B_COLUMNS = 10,
    C_BLOCKS = 3,
    C_PLANES = 4,
    C_ROWS = 5,
    C_COLUMNS = 6
};
#define A_AT(i, j)       ((size_t)(i)*A_COLUMNS + (j))
#define B_AT(i, j, k)    (((size_t)(i)*B_ROWS + (j)) * B_COLUMNS + (k))
#define C_AT(i, j, k, l) ((((size_t)(i)*C_PLANES + (j)) * C_ROWS + (k)) * C_COLUMNS + (l))

/* clang-format off */
ND(aot,
    double *a = tide_acquire(pool, double, A_ROWS * A_COLUMNS);
    int32_t *b = tide_acquire(pool, int32_t, B_PLANES * B_ROWS * B_COLUMNS);
    double *c = tide_acquire(pool, double, C_BLOCKS * C_PLANES * C_ROWS * C_COLUMNS);
    use(prove, r, &done, a, A_AT(A_ROWS - 1, A_COLUMNS - 1),
        b, B_AT(B_PLANES - 1, B_ROWS - 1, B_COLUMNS - 1),
        c, C_AT(C_BLOCKS - 1, C_PLANES - 1, C_ROWS - 1, C_COLUMNS - 1));
)

ND(empty,
    (void)prove; /* it has nothing of its own to prove */
    use(false, r, &done, s->buffer, 1, (int32_t *)(s->buffer + 64), 1, s->buffer + 128, 1);
)
/* clang-format on */

/* --- was it what its name says? ----------------------------------------------------------- */

/* Every shape known, by the header used last. */
static bool all_known(const nd_state *s, uint64_t operations)
{
    tide_array_statistics now;
    uint64_t wanted = s->headers ? ARRAYS * operations : 0;
    if (tide_array_stats(s->pool, &now) != TIDE_OK)
        return false;
    uint64_t recent = now.recent - s->warm.recent;
    if (now.computed == s->warm.computed && now.headers == s->warm.headers && recent == wanted)
        return true;
    bench_complain("nd: %llu recent, %llu computed of %llu shapes", (unsigned long long)recent,
                   (unsigned long long)(now.computed - s->warm.computed),
                   (unsigned long long)wanted);
    return false;
}

static bool verify(void *state, uint64_t operations)
{
    const nd_state *s = state;
    return all_known(s, operations) && bench_tide_verify(s->tide, operations);
}

static void teardown(void *state)
{
    nd_state *s = state;
    bench_tide_free(s->tide);
    bench_state_free(s, sizeof *s);
}

static const bench_variant variant_general = {"tide-general", NULL,   general_setup, general_prove,
                                              general_run,    verify, teardown,      NULL};
static const bench_variant variant_site = {"tide-site", NULL,   site_setup, site_prove,
                                           site_run,    verify, teardown,   NULL};
static const bench_variant variant_compiled = {"tide-compiled", BENCH_MISSING_STAGER,
                                               compiled_setup,  compiled_prove,
                                               compiled_run,    verify,
                                               teardown,        NULL};
#define PLAIN_VARIANT(name)                                                                  \
    static const bench_variant variant_##name = {#name,      NULL,   setup,    name##_prove, \
                                                 name##_run, verify, teardown, NULL};
PLAIN_VARIANT(raw)
PLAIN_VARIANT(aot)
PLAIN_VARIANT(empty)

const bench_variant *const bench_nd_variants[] = {
    &variant_empty, &variant_aot,      &variant_raw, &variant_general,
    &variant_site,  &variant_compiled, NULL,
};
