/* SPDX-License-Identifier: MIT */
/* From which size do huge pages pay? The library's threshold for slots of their own mapping
 * (HUGE_FROM in runtime/device/host.c) is set from these two:
 *
 *   huge-touch-N   one operation is a slot of N MiB from its birth: mapped, the first word of
 *                  every 4 KiB written, unmapped
 *   huge-random-N  one operation is a write to a random word of such a slot, long since touched
 *
 * `rounded` has whole huge pages only, which wastes up to one; `huge` ends in usual pages. */
#include "huge.h"

#include "runtime/base/os.h"

#include <sys/resource.h>

enum { PAGE = 4096, HUGE_PAGE = 2 << 20, RANDOM_STEP = 4096 };

typedef struct huge_state {
    size_t wanted; /* bytes that are used */
    size_t mapped;
    bool huge;
    char *data;
    uint64_t random;
} huge_state;

static uint64_t faults_now(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_minflt;
}

static char *map(const huge_state *s)
{
    char *data = s->huge ? tide_os_map_huge(s->mapped) : bench_allocate(s->mapped);
    if (data == NULL)
        bench_die("no %zu bytes", s->mapped);
    return data;
}

static void unmap(const huge_state *s, char *data)
{
    if (s->huge)
        tide_os_unmap_huge(data, s->mapped);
    else
        bench_release(data, s->mapped);
}

static huge_state *make(const bench_case *job, bool huge, size_t multiple)
{
    huge_state *s = bench_state_make(sizeof *s);
    s->huge = huge;
    s->wanted = (size_t)job->mebibytes << 20;
    s->mapped = (s->wanted + multiple - 1) / multiple * multiple;
    s->random = 88172645463325252;
    return s;
}

static void *plain_setup(const bench_case *job)
{
    return make(job, false, PAGE);
}

static void *huge_setup(const bench_case *job)
{
    return make(job, true, PAGE);
}

static void *rounded_setup(const bench_case *job)
{
    return make(job, true, HUGE_PAGE);
}

/* --- first touch ------------------------------------------------------------------------ */

static void touch(char *data, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += PAGE)
        *(volatile uint64_t *)(void *)(data + at) = at;
}

static uint64_t touch_run(void *state, uint64_t operations)
{
    const huge_state *s = state;
    uint64_t done = 0;
    for (; done < operations; done++) {
        char *data = map(s);
        touch(data, s->wanted);
        unmap(s, data);
    }
    return done;
}

/* Fresh memory is zero, whatever the pages. */
static void touch_prove(void *state, uint64_t operations)
{
    huge_state *s = state;
    char *data = map(s);
    for (size_t at = 0; at < s->wanted; at += sizeof(uint64_t))
        if (*(uint64_t *)(void *)(data + at) != 0)
            bench_die("fresh memory is not zero");
    unmap(s, data);
    touch_run(s, operations);
}

/* Page faults per operation: they tell whether the system gave huge pages. */
static size_t touch_figures(void *state, uint64_t operations, bench_figure *out, size_t room)
{
    (void)operations; /* other variants fault in between: one more is done for the count */
    if (room < 1)
        return 0;
    uint64_t before = faults_now();
    touch_run(state, 1);
    out[0] = (bench_figure){"faults", (double)(faults_now() - before)};
    return 1;
}

/* --- random access ------------------------------------------------------------------------ */

static uint64_t random_run(void *state, uint64_t operations)
{
    huge_state *s = state;
    uint64_t *words = (uint64_t *)(void *)s->data;
    uint64_t count = s->wanted / sizeof *words, random = s->random, done = 0;
    for (; done < operations; done++) {
        /* Multiply-shift instead of a division: evenly over all words. */
        uint64_t at = (uint64_t)(((unsigned __int128)bench_random(&random) * count) >> 64);
        words[at] += 1;
    }
    s->random = random;
    return done;
}

static void random_prove(void *state, uint64_t operations)
{
    huge_state *s = state;
    s->data = map(s);
    touch(s->data, s->wanted);
    random_run(s, operations);
}

/* --- both --------------------------------------------------------------------------------- */

static bool always(void *state, uint64_t operations)
{
    (void)state;
    (void)operations;
    return true;
}

static void teardown(void *state)
{
    huge_state *s = state;
    if (s->data != NULL)
        unmap(s, s->data);
    bench_state_free(s, sizeof *s);
}

#define HUGE_VARIANTS(name)                                                                     \
    static const bench_variant touch_##name = {#name,     NULL,   name##_setup, touch_prove,    \
                                               touch_run, always, teardown,     touch_figures}; \
    static const bench_variant random_##name = {#name,      NULL,   name##_setup, random_prove, \
                                                random_run, always, teardown,     NULL};
HUGE_VARIANTS(plain)
HUGE_VARIANTS(huge)
HUGE_VARIANTS(rounded)

const bench_variant *const bench_huge_touch_variants[] = {
    &touch_plain,
    &touch_huge,
    &touch_rounded,
    NULL,
};
const bench_variant *const bench_huge_random_variants[] = {
    &random_plain,
    &random_huge,
    &random_rounded,
    NULL,
};
