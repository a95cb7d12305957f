/* SPDX-License-Identifier: MIT */
/* What listening costs the program that does it.
 *
 *   tidepool-listening                            seven rounds of half a second, 2000 attaches each
 *   tidepool-listening --rounds 3 --ms 100 --attaches 500
 *
 * One thread runs scopes and takes the time of each block of them. The phases of a round: no
 * socket; a socket and nobody; a client that asks for the facts each second; one that connects and
 * hangs up as fast as it is let in; one that also reads the facts each time. Printed are medians
 * over the rounds. A percentile is of the blocks of a phase. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tidepool/listen.h>
#include <tidepool/tidepool.h>

#include "client.h"

enum { BLOCK = 256, BLOCKS_MAX = 16 << 20, ROUNDS_MAX = 99 };
typedef enum phase { CLOSED, NOBODY, SCRAPE, ATTACH, ASK, PHASES } phase;
static const char *const phase_names[PHASES] = {"no socket", "nobody asks", "asked each second",
                                                "attach, detach", "attach, ask, detach"};

typedef struct result {
    double mean, p50, p999; /* ns of a scope; the two others of a block, as ns of a scope */
    double attaches, bytes;
} result;

static uint32_t *blocks; /* ns of each block of a phase */
static unsigned rounds = 7, phase_ms = 500, attaches = 2000;

static void die(const char *what)
{
    fprintf(stderr, "tidepool-listening: %s: %s\n", what, tide_error_message());
    exit(3);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- the program's own work ---------------------------------------------------------------- */

static double work(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    double *a = tide_acquire(pool, double, 64);
    int32_t *b = tide_acquire(pool, int32_t, 64);
    if (a == NULL || b == NULL)
        die("acquire");
    a[0] = 1;
    b[63] = 2;
    return a[0] + b[63];
}

static uint32_t work_block(tide_pool *pool)
{
    uint64_t start = now_ns();
    double sum = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += work(pool);
    if (sum != 3.0 * BLOCK)
        die("sum");
    uint64_t took = now_ns() - start;
    return took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
}

static int compare_blocks(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

/* A phase with attaches goes on until there were enough. */
static result run_phase(phase which, tide_pool *pool)
{
    size_t count = 0;
    bool counted = which == ATTACH || which == ASK;
    uint64_t start = now_ns(), end = start + phase_ms * UINT64_C(1000000);
    while (count < BLOCKS_MAX && (now_ns() < end || (counted && client_look().attaches < attaches)))
        blocks[count++] = work_block(pool);
    double took = (double)(now_ns() - start);
    qsort(blocks, count, sizeof *blocks, compare_blocks);
    return (result){.mean = took / (double)count / BLOCK,
                    .p50 = (double)blocks[count / 2] / BLOCK,
                    .p999 = (double)blocks[count - 1 - count / 1000] / BLOCK};
}

static result measure(phase which, tide_pool *pool, const char *folder)
{
    static const client_mode modes[PHASES] = {CLIENT_NONE, CLIENT_NONE, CLIENT_SCRAPE,
                                              CLIENT_ATTACH, CLIENT_ASK};
    char path[128];
    snprintf(path, sizeof path, "%s/%d.sock", folder, (int)getpid());
    if (which != CLOSED && tide_listen(folder) != TIDE_OK)
        die("tide_listen");
    client_start(modes[which], path);
    result one = run_phase(which, pool);
    client_tally tally = client_stop();
    one.attaches = (double)tally.attaches;
    one.bytes = (double)tally.bytes;
    if (which != CLOSED && tide_listen_end() != TIDE_OK)
        die("tide_listen_end");
    return one;
}

/* ---- what is printed ------------------------------------------------------------------------ */

static int compare_numbers(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(const result *results, size_t offset, const result *base)
{
    double values[ROUNDS_MAX];
    for (unsigned i = 0; i < rounds; i++) {
        memcpy(&values[i], (const char *)&results[i] + offset, sizeof *values);
        double one;
        if (base != NULL) {
            memcpy(&one, (const char *)&base[i] + offset, sizeof one);
            values[i] /= one;
        }
    }
    qsort(values, rounds, sizeof *values, compare_numbers);
    return values[rounds / 2];
}

#define MEDIAN(results, member)      median(results, offsetof(result, member), NULL)
#define RATIO(results, base, member) median(results, offsetof(result, member), base)

static void print(result results[PHASES][ROUNDS_MAX])
{
    printf(
        "| phase | ns a scope | to no socket | p50 | p99.9 | to nobody | attaches | bytes read |\n"
        "|---|---|---|---|---|---|---|---|\n");
    for (phase i = 0; i < PHASES; i++)
        printf("| %s | %.2f | %.3f | %.2f | %.2f | %.2f | %.0f | %.0f |\n", phase_names[i],
               MEDIAN(results[i], mean), RATIO(results[i], results[CLOSED], mean),
               MEDIAN(results[i], p50), MEDIAN(results[i], p999),
               RATIO(results[i], results[NOBODY], p999), MEDIAN(results[i], attaches),
               MEDIAN(results[i], bytes));
}

static unsigned read_number(const char *text, unsigned most)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < 1 || value > (long)most) {
        fprintf(stderr, "tidepool-listening: '%s' is no number from 1 to %u\n", text, most);
        exit(2);
    }
    return (unsigned)value;
}

static void read_options(int count, char **args)
{
    for (int i = 1; i + 1 < count; i += 2) {
        if (strcmp(args[i], "--rounds") == 0)
            rounds = read_number(args[i + 1], ROUNDS_MAX);
        else if (strcmp(args[i], "--ms") == 0)
            phase_ms = read_number(args[i + 1], 60000);
        else if (strcmp(args[i], "--attaches") == 0)
            attaches = read_number(args[i + 1], 1000000);
        else
            count = 0;
    }
    if (count % 2 == 0) {
        fputs("usage: tidepool-listening [--rounds N] [--ms N] [--attaches N]\n", stderr);
        exit(2);
    }
}

int main(int count, char **args)
{
    static result results[PHASES][ROUNDS_MAX];
    char folder[] = "/tmp/tide-listening-XXXXXX";
    read_options(count, args);
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.name = "work"});
    blocks = malloc(BLOCKS_MAX * sizeof *blocks);
    if (pool == NULL || blocks == NULL || mkdtemp(folder) == NULL)
        die("no pool, memory or folder");
    for (int i = 0; i < 10000; i++) /* learned, as far as a static program goes */
        (void)work_block(pool);
    for (unsigned round = 0; round < rounds; round++)
        for (phase i = 0; i < PHASES; i++)
            results[i][round] = measure(i, pool, folder);
    print(results);
    for (unsigned i = 0; i < rounds; i++)
        if (results[ATTACH][i].attaches < attaches || results[ASK][i].bytes < attaches)
            die("fewer attaches than wanted");
    rmdir(folder);
    return tide_pool_destroy(pool) == TIDE_OK ? 0 : 3;
}
