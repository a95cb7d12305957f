/* SPDX-License-Identifier: MIT */
/* tidepool-replay: a recorded trace of buffers, replayed line by line against buffers and
 * against malloc. One thread does all the lines, in the order
 * in which they were recorded: hits, waste and peak are the same in every run, only the time
 * differs. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tidepool/buffers.h>
#include <tidepool/tidepool.h>

#include "trace.h"

typedef struct options {
    const char *path;
    unsigned rounds; /* the first warms up, and is shown apart */
    size_t bytes_max;
    uint32_t count_max;
    bool print;
} options;

static const char usage[] =
    "tidepool-replay [--rounds N] [--bytes MiB] [--count N] [--print] TRACE\n"
    "\n"
    "Replays a trace (tide_buffer_trace; - for standard input) against buffers and against "
    "malloc.\n"
    "Buffers that the trace leaves live are released at its end.\n"
    "\n"
    "  --rounds N  the trace so many times over (5); the first warms up\n"
    "  --bytes MiB, --count N  bounds of the cache (4096, 1000000)\n"
    "  --print     the page of each instance, too\n"
    "\n"
    "Prints for each: hit rate of the first round and of all later ones, waste (part of the "
    "memory\n"
    "handed out that nobody asked for), most memory held, nanoseconds for an acquire and its "
    "release\n"
    "(the fastest round). Ends with what that means for the bounds of the cache.\n";

typedef struct result {
    const char *name;
    double first, later, waste, ns; /* ns: of an acquire and its release */
    size_t peak;
    uint64_t dropped;
} result;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "tidepool-replay: %s\n", what);
    exit(1);
}

/* ---- against buffers --------------------------------------------------------------------------
 */

static void replay_buffers(const trace *t, tide_buffers *buffers, tide_buffer *live)
{
    for (size_t i = 0; i < t->count; i++) {
        const trace_line *l = &t->lines[i];
        if (!l->acquires) {
            (void)tide_buffer_release(buffers, live[l->slot]);
            live[l->slot] = (tide_buffer){0};
        } else {
            live[l->slot] = tide_buffer_acquire_on(buffers, l->bytes, l->flags, NULL);
            if (live[l->slot].generation == 0)
                die(tide_error_message());
        }
    }
    for (uint32_t slot = 0; slot < t->slots; slot++) /* what was live when recording ended */
        if (live[slot].generation != 0) {
            (void)tide_buffer_release(buffers, live[slot]);
            live[slot] = (tide_buffer){0};
        }
}

static void print_result(const result *r)
{
    printf("%-8s %9.3f%% %9.3f%% %8.1f%% %11.1f %9.1f\n", r->name, 100 * r->first, 100 * r->later,
           100 * r->waste, (double)r->peak / 1024, r->ns);
}

static result result_of(const tide_buffers_statistics *first, const tide_buffers_statistics *all)
{
    uint64_t later = all->hits + all->misses - first->hits - first->misses;
    return (result){.first = first->hit_rate,
                    .later = later > 0 ? (double)(all->hits - first->hits) / (double)later : 0,
                    .waste = all->waste,
                    .peak = all->bytes_high,
                    .dropped = all->dropped};
}

static result measure_buffers(const trace *t, const options *o)
{
    tide_buffers *buffers = tide_buffers_create(
        NULL, &(tide_buffers_options){.bytes_max = o->bytes_max, .count_max = o->count_max});
    tide_buffer *live = calloc(t->slots, sizeof *live);
    tide_buffers_statistics first = {0}, all = {0};
    double best = 0;
    if (buffers == NULL || live == NULL)
        die(buffers == NULL ? tide_error_message() : "no memory");
    for (unsigned round = 0; round < o->rounds; round++) {
        double start = now();
        replay_buffers(t, buffers, live);
        double took = now() - start;
        best = round == 0 || took < best ? took : best;
        (void)tide_buffers_stats(buffers, round == 0 ? &first : &all, NULL, 0);
    }
    result r = result_of(&first, o->rounds == 1 ? &first : &all);
    r.name = "buffers";
    r.ns = best / (double)t->acquires;
    print_result(&r);
    if (o->print)
        (void)tide_buffers_print(buffers, stdout);
    free(live);
    if (tide_buffers_destroy(buffers) != TIDE_OK)
        die(tide_error_message());
    return r;
}

/* ---- against malloc ----------------------------------------------------------------------------
 */

static void replay_malloc(const trace *t, void **live)
{
    for (size_t i = 0; i < t->count; i++) {
        const trace_line *l = &t->lines[i];
        if (!l->acquires) {
            free(live[l->slot]);
            live[l->slot] = NULL;
        } else {
            live[l->slot] = malloc(l->bytes);
            if (live[l->slot] == NULL)
                die("no memory");
            __asm__ volatile("" ::"r"(live[l->slot]) : "memory"); /* it is wanted */
        }
    }
    for (uint32_t slot = 0; slot < t->slots; slot++) {
        free(live[slot]);
        live[slot] = NULL;
    }
}

/* Its peak is what was asked for: what malloc adds it does not tell. */
static double measure_malloc(const trace *t, const options *o)
{
    void **live = calloc(t->slots, sizeof *live);
    double best = 0;
    if (live == NULL)
        die("no memory");
    for (unsigned round = 0; round < o->rounds; round++) {
        double start = now();
        replay_malloc(t, live);
        double took = now() - start;
        best = round == 0 || took < best ? took : best;
    }
    result r = {.name = "malloc", .peak = t->peak, .ns = best / (double)t->acquires};
    print_result(&r);
    free(live);
    return r.ns;
}

/* ---- what it means ----------------------------------------------------------------------------
 */

/* The time stands last in its line, as above: all the rest is the same in every replay. */
static void print_meaning(const trace *t, const result *r, double malloc_ns)
{
    double hits = r->later > 0 ? r->later : r->first;
    printf("\nIt hits in %.1f%% of the acquires once it is warm, and holds %.1f KiB, %.2f of what\n"
           "was asked for at a time.\n",
           100 * hits, (double)r->peak / 1024, t->peak > 0 ? (double)r->peak / (double)t->peak : 0);
    if (r->dropped > 0)
        printf("%llu releases found the cache full: larger bounds (bytes_max, count_max) keep "
               "more.\n",
               (unsigned long long)r->dropped);
    else
        printf("The bounds were not met: a bytes_max of %zu would do.\n", r->peak);
    if (hits < 0.5)
        printf("Most acquires miss: the sizes do not come back, and a cache serves little here.\n");
    printf("The time of an acquire and its release, to malloc's: %.2f\n", r->ns / malloc_ns);
}

/* ---- options ------------------------------------------------------------------------------------
 */

static bool read_options(int count, char **arguments, options *o)
{
    for (int i = 1; i < count; i++) {
        const char *a = arguments[i];
        bool takes =
            strcmp(a, "--rounds") == 0 || strcmp(a, "--bytes") == 0 || strcmp(a, "--count") == 0;
        long value = takes && i + 1 < count ? atol(arguments[++i]) : 0;
        if (takes && (value < 1 || value > 1 << 30))
            return false;
        if (strcmp(a, "--rounds") == 0)
            o->rounds = (unsigned)value;
        else if (strcmp(a, "--bytes") == 0)
            o->bytes_max = (size_t)value << 20;
        else if (strcmp(a, "--count") == 0)
            o->count_max = (uint32_t)value;
        else if (strcmp(a, "--print") == 0)
            o->print = true;
        else if (o->path == NULL && (a[0] != '-' || a[1] == '\0'))
            o->path = a;
        else
            return false;
    }
    return o->path != NULL;
}

int main(int count, char **arguments)
{
    options o = {.rounds = 5};
    trace t;
    if (!read_options(count, arguments, &o)) {
        fputs(usage, stderr);
        return 2;
    }
    if (!trace_read(o.path, &t))
        return 1;
    printf("%zu acquires in %u slots by %u threads, at most %.1f KiB at a time; %u rounds\n",
           t.acquires, t.slots, t.threads, (double)t.peak / 1024, o.rounds);
    printf("cache     hits first      later    waste    peak KiB   ns each\n");
    result r = measure_buffers(&t, &o);
    print_meaning(&t, &r, measure_malloc(&t, &o));
    trace_free(&t);
    if (fflush(stdout) != 0 || ferror(stdout))
        die("the output cannot be written");
    return 0;
}
