/* SPDX-License-Identifier: MIT */
/* What a scope costs without a library: static buffers, a bump arena, and obstacks. */
#include "plain.h"
#include "scope4.h"

#include <assert.h>
#include <obstack.h>
#include <stdalign.h>

static void nothing(void *state)
{
    (void)state;
}

static bool always(void *state, uint64_t operations)
{
    (void)state;
    (void)operations;
    return true;
}

/* --- floor: the arrays are always there ------------------------------------------------- */

typedef struct floor_state {
    const bench_sizes *sizes;
} floor_state;

/* Not a multiple of the page size: the first elements shall not all fall on one cache set. */
enum { FLOOR_BYTES = 704 * 1024 + 5 * 64 };
static alignas(64) double floor_a[FLOOR_BYTES / sizeof(double)];
static alignas(64) int32_t floor_b[FLOOR_BYTES / sizeof(int32_t)];
static alignas(64) double floor_c[FLOOR_BYTES / sizeof(double)];
static alignas(64) int32_t floor_d[FLOOR_BYTES / sizeof(int32_t)];

static void *floor_setup(const bench_case *job)
{
    static floor_state state;
    state.sizes = job->sizes;
    return &state;
}

BENCH_SCOPE4(floor, floor_state, BENCH_USE(floor_a, floor_b, floor_c, floor_d);)

const bench_variant bench_floor = {"floor",   NULL,   floor_setup, floor_prove,
                                   floor_run, always, nothing,     NULL};

/* --- bump: mark, advance, release ------------------------------------------------------- */

enum { BUMP_ROOM = 4 * 1024 * 1024 };

bench_bump *bench_bump_make(const bench_case *job)
{
    bench_bump *bump = bench_state_make(sizeof *bump + BUMP_ROOM);
    char *first =
        (char *)(((uintptr_t)(bump + 1) + BENCH_BUMP_ALIGN - 1) & -(uintptr_t)BENCH_BUMP_ALIGN);
    bump->sizes = job->sizes;
    bump->first = bump->top = first;
    bump->end = (char *)bump + BUMP_ROOM;
    return bump;
}

static void *bump_setup(const bench_case *job)
{
    return bench_bump_make(job);
}

static bool bump_verify(void *state, uint64_t operations)
{
    (void)operations;
    return bench_bump_empty(state);
}

bool bench_bump_empty(const bench_bump *bump)
{
    if (bump->top == bump->first)
        return true;
    bench_complain("bump: %td bytes were not released", bump->top - bump->first);
    return false;
}

void bench_bump_free(void *state)
{
    bench_state_free(state, sizeof(bench_bump) + BUMP_ROOM);
}

/* clang-format off */
BENCH_SCOPE4(bump, bench_bump,
    char *mark = s->top;
    double *a = bench_bump_take(s, n->count[0] * sizeof *a);
    int32_t *b = bench_bump_take(s, n->count[1] * sizeof *b);
    double *c = bench_bump_take(s, n->count[2] * sizeof *c);
    int32_t *d = bench_bump_take(s, n->count[3] * sizeof *d);
    BENCH_USE(a, b, c, d);
    s->top = mark;
)
/* clang-format on */

const bench_variant bench_bump_variant = {"bump",   NULL,        bump_setup,      bump_prove,
                                          bump_run, bump_verify, bench_bump_free, NULL};

/* --- obstack: the arena of the C library ------------------------------------------------ */

/* Not from malloc: the C library's heap learns from what is freed, and is a variant itself. */
static void *chunk_alloc(size_t bytes)
{
    return bench_allocate(bytes);
}

static void chunk_free(void *chunk)
{
    bench_release(chunk, BUMP_ROOM);
}

#define obstack_chunk_alloc chunk_alloc
#define obstack_chunk_free  chunk_free

typedef struct obstack_state {
    const bench_sizes *sizes;
    struct obstack stack;
} obstack_state;

static void *obstack_setup(const bench_case *job)
{
    obstack_state *s = bench_state_make(sizeof *s);
    s->sizes = job->sizes;
    obstack_begin(&s->stack, BUMP_ROOM); /* one chunk holds any operation */
    return s;
}

static void obstack_teardown(void *state)
{
    obstack_state *s = state;
    obstack_free(&s->stack, NULL);
    bench_state_free(s, sizeof *s);
}

/* An obstack frees an object and all after it. */
/* clang-format off */
BENCH_SCOPE4(obstack, obstack_state,
    double *a = obstack_alloc(&s->stack, n->count[0] * sizeof *a);
    int32_t *b = obstack_alloc(&s->stack, n->count[1] * sizeof *b);
    double *c = obstack_alloc(&s->stack, n->count[2] * sizeof *c);
    int32_t *d = obstack_alloc(&s->stack, n->count[3] * sizeof *d);
    BENCH_USE(a, b, c, d);
    obstack_free(&s->stack, a);
)
/* clang-format on */

#if BENCH_SANITIZED
#define OBSTACK_MISSING "the C library's macros add to a null pointer"
#else
#define OBSTACK_MISSING NULL
#endif

const bench_variant bench_obstack = {"obstack",   OBSTACK_MISSING, obstack_setup,    obstack_prove,
                                     obstack_run, always,          obstack_teardown, NULL};
