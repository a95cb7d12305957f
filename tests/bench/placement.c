/* SPDX-License-Identifier: MIT */
/* tidepool-placement: several arrays worked on in step, which is where it shows whether their starts
 * share sets of the caches.
 *
 *   tidepool-placement WHERE ARRAYS KIB ROUNDS
 *
 * WHERE the arrays are: `slots` of a pool, `buffers`, `malloc`, or `spread`: in one static block,
 * spread by hand, each some lines after the end of the one before. Prints the least time of three
 * for an element of one array, in nanoseconds: written, and added to. Under cachegrind the misses
 * are of both, three times. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tidepool/buffers.h>
#include <tidepool/tidepool.h>

enum { MOST = 24, LINE = 64, MOST_KIB = 4096, TIMES = 3 };

static _Alignas(LINE) char block[(size_t)MOST * ((size_t)MOST_KIB * 1024 + LINE * MOST)];

typedef struct place {
    const char *name;
    void *(*make)(size_t bytes, size_t i);
} place;

static void *make_slot(size_t bytes, size_t i)
{
    (void)i;
    return tide_acquire(tide_pool_local(), char, bytes);
}

static void *make_buffer(size_t bytes, size_t i)
{
    static tide_buffers *buffers;
    void *data;
    (void)i;
    if (buffers == NULL)
        buffers = tide_buffers_create(NULL, NULL);
    (void)tide_buffer_acquire_pointer(buffers, bytes, &data);
    return data;
}

static void *make_malloc(size_t bytes, size_t i)
{
    (void)i;
    return malloc(bytes);
}

/* Twenty-four arrays of a multiple of a page share no line of it. */
static void *make_spread(size_t bytes, size_t i)
{
    enum { LINES = 64 / MOST };
    return block + i * (bytes + (size_t)LINES * LINE);
}

static const place places[] = {{"slots", make_slot},
                               {"buffers", make_buffer},
                               {"malloc", make_malloc},
                               {"spread", make_spread}};

/* ---- what is timed ---- */

static __attribute__((noinline)) void write_in_step(double *const *arrays, size_t count, size_t n)
{
    for (size_t e = 0; e < n; e++)
        for (size_t a = 0; a < count; a++)
            arrays[a][e] = (double)e;
}

static __attribute__((noinline)) void add_in_step(double *const *arrays, size_t count, size_t n)
{
    for (size_t e = 0; e < n; e++)
        for (size_t a = 0; a < count; a++)
            arrays[a][e] += 1;
}

static double least_time(void (*work)(double *const *, size_t, size_t), double *const *arrays,
                         size_t count, size_t n, unsigned rounds)
{
    double best = 0;
    for (int t = 0; t < TIMES; t++) {
        struct timespec from, to;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
        for (unsigned r = 0; r < rounds; r++)
            work(arrays, count, n);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
        double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
        best = t == 0 || ns < best ? ns : best;
    }
    return best / ((double)count * (double)n * rounds);
}

int main(int argc, char **argv)
{
    const place *where = NULL;
    for (size_t i = 0; argc == 5 && i < sizeof places / sizeof *places; i++)
        if (strcmp(argv[1], places[i].name) == 0)
            where = &places[i];
    size_t count = argc == 5 ? strtoul(argv[2], NULL, 10) : 0;
    size_t bytes = argc == 5 ? strtoul(argv[3], NULL, 10) * 1024 : 0;
    if (where == NULL || count == 0 || count > MOST || bytes == 0 || bytes > MOST_KIB * 1024) {
        fputs("tidepool-placement slots|buffers|malloc|spread ARRAYS KIB ROUNDS\n", stderr);
        return 2;
    }
    unsigned rounds = (unsigned)strtoul(argv[4], NULL, 10);
    static double *arrays[MOST];
    for (size_t i = 0; i < count; i++) {
        arrays[i] = where->make(bytes, i);
        if (arrays[i] == NULL)
            return 1;
        memset(arrays[i], 0, bytes);
    }
    size_t n = bytes / sizeof(double);
    printf("%s %zu x %zu KiB: %.3f ns written, %.3f ns added to\n", where->name, count,
           bytes / 1024, least_time(write_in_step, arrays, count, n, rounds),
           least_time(add_in_step, arrays, count, n, rounds));
    return 0;
}
