/* SPDX-License-Identifier: MIT */
/* Small things that the benchmark needs and that must not disturb what is measured: its own
 * memory comes from the system, never from the process's malloc, which is one of the variants. */
#define _GNU_SOURCE
#include "bench.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static void *map(size_t bytes, int flags)
{
    assert(bytes > 0);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        bench_die("no %zu bytes of memory", bytes);
    return memory;
}

void *bench_allocate(size_t bytes)
{
    return map(bytes, MAP_PRIVATE);
}

void *bench_allocate_shared(size_t bytes)
{
    return map(bytes, MAP_SHARED);
}

void bench_release(void *memory, size_t bytes)
{
    if (memory != NULL)
        munmap(memory, bytes);
}

/* Not at the start of a page, where the pools' own hot words lie: a processor that compares only
 * the low twelve bits of an address at first would see false dependencies between the two. */
enum { STATE_OFFSET = 0x9c0 };

void *bench_state_make(size_t bytes)
{
    return (char *)bench_allocate(STATE_OFFSET + bytes) + STATE_OFFSET;
}

void bench_state_free(void *state, size_t bytes)
{
    bench_release((char *)state - STATE_OFFSET, STATE_OFFSET + bytes);
}

/* xorshift64*; the state must not be 0. */
uint64_t bench_random(uint64_t *state)
{
    assert(*state != 0);
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545F4914F6CDD1D);
}

double bench_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void say(const char *format, va_list arguments)
{
    fflush(stdout);
    fputs("tidepool-bench: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

void bench_complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

void bench_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    exit(1);
}

/* The same table in every run and for every variant: all sizes are multiples of 8 bytes, drawn
 * evenly from least to most. */
const bench_sizes *bench_sizes_make(size_t least_bytes, size_t most_bytes)
{
    assert(least_bytes % 8 == 0 && most_bytes % 8 == 0 && least_bytes <= most_bytes);
    bench_sizes *table = bench_allocate(BENCH_SIZES * sizeof *table);
    uint64_t random = 20240229 + least_bytes;
    for (size_t row = 0; row < BENCH_SIZES; row++) {
        for (size_t array = 0; array < 4; array++) {
            size_t steps = (most_bytes - least_bytes) / 8 + 1;
            size_t bytes = least_bytes + 8 * (size_t)(bench_random(&random) % steps);
            table[row].count[array] =
                (uint32_t)(bytes / (array % 2 ? sizeof(int32_t) : sizeof(double)));
        }
    }
    return table;
}
