/* SPDX-License-Identifier: MIT */
/* Runs each path under Callgrind: once with 1 operation, once with 2, each dumped on its own.
 * The difference of the two is one operation, free of what surrounds it.
 *
 * The program checks what the counts cannot say: that no path left its fast lane (no growth, no
 * array left behind), or else the figures would be those of something else.
 *
 * Everything is counted a second time while another pool of the thread checks everything: a pool
 * that checks nothing must cost the same to the instruction, since no fast path asks.
 *
 * Callgrind counts all threads: the background thread, which looks after cached buffers, is ended. */
#include "compiled.h"

#include <stdio.h>
#include <stdlib.h>
#include <tidepool/learn.h>
#include <valgrind/callgrind.h>

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "golden: %s: %s\n", what, tide_error_message());
    exit(1);
}

/* All 16 built-in types in use, and slots enough for the paths that never rewind. */
static tide_pool *make_pool(tide_check check)
{
    tide_pool_options options = {.name = "golden", .check = check};
    tide_pool *pool = tide_pool_create(&options);
    must(pool != NULL, "no pool");
    for (tide_type type = 1; type <= TIDE_BUILTIN_COUNT; type++)
        must(tide_acquire_type(pool, type, 1) != NULL, "no array");
    tide_pool_reset(pool);
    return pool;
}

static void count(tide_pool *pool, const golden_path *path, size_t times, const char *when)
{
    char text[64];
    tide_pool_statistics before, after;
    snprintf(text, sizeof text, "path %s%s times %zu", path->name, when, times);
    must(tide_pool_reset(pool) == TIDE_OK && tide_pool_stats(pool, &before) == TIDE_OK, path->name);
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
    path->run(pool, times);
    CALLGRIND_DUMP_STATS_AT(text);
    CALLGRIND_STOP_INSTRUMENTATION;
    must(tide_pool_stats(pool, &after) == TIDE_OK, path->name);
    must(after.allocations == before.allocations && after.depth == 0, path->name);
}

/* Each path twice; a checking pool's existence must change nothing. */
static void count_all(tide_pool *pool, const golden_path *paths, size_t path_count)
{
    for (size_t i = 0; i < path_count; i++) { /* warms slots, sites, registered types */
        paths[i].run(pool, 4);
        must(tide_pool_reset(pool) == TIDE_OK, paths[i].name);
    }
    for (size_t i = 0; i < path_count; i++)
        for (size_t times = 1; times <= 2; times++)
            count(pool, &paths[i], times, "");
    tide_pool *checking = make_pool(TIDE_CHECK_GUARD);
    for (size_t i = 0; i < path_count; i++)
        for (size_t times = 1; times <= 2; times++)
            if (paths[i].always)
                count(pool, &paths[i], times, "+checked");
    must(tide_pool_destroy(checking) == TIDE_OK, "destroy");
}

/* With the stager's path: its code is counted, too. */
int main(int arg_count, char **args)
{
    tide_pool *pool = make_pool(TIDE_CHECK_NONE);
    must(golden_begin(), "not pinned, or no buffers, or no dispatch");
    must(tide_background_stop() == TIDE_OK, "background");
    count_all(pool, golden_paths, golden_path_count);
    if (arg_count > 1) {
        must(golden_compile(args[1]), "not compiled");
        count_all(pool, golden_compiled_paths, golden_compiled_path_count);
    }
    must(tide_pool_reset(pool) == TIDE_OK && tide_pool_destroy(pool) == TIDE_OK, "destroy");
    must(golden_end(), "buffers");
    return 0;
}
