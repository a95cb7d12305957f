/* SPDX-License-Identifier: MIT */
/* The page at the end of the process, or the document.
 *
 * It is written by a handler of exit, so after what the program does at its end in handlers of its
 * own and before the library's last one, which says that the end has begun. Other threads may go on
 * meanwhile: all that is asked here may be asked by any thread. */
#define _GNU_SOURCE
#include "jit/facts/stats.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tidepool/facts.h>
#include <tidepool/limit.h>
#include <tidepool/profile.h>
#include <tidepool/version.h>

#include "runtime/base/assert.h"
#include "runtime/base/document.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/settings.h"

static void stats_put_bytes(FILE *out, const char *what, size_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    unsigned unit = 0;
    for (; value >= 10240 && unit < sizeof units / sizeof *units - 1; unit++)
        value /= 1024;
    fprintf(out, "%s %.*f %s", what, unit == 0 ? 0 : 1, value, units[unit]);
}

static bool stats_put_pool(const tide_pool_information *pool, void *user)
{
    FILE *out = user;
    const tide_pool_statistics *s = &pool->statistics;
    fprintf(out, "  '%s' of thread '%s' (%d) on %s:", pool->name, pool->thread_name, pool->thread,
            pool->device);
    stats_put_bytes(out, "", s->bytes_held);
    stats_put_bytes(out, " held, most", s->bytes_peak);
    if (s->bytes_limit != 0)
        stats_put_bytes(out, ", limit", s->bytes_limit);
    fprintf(out,
            ", %zu types; allocated %" PRIu64 " times, released %" PRIu64 ", exchanged %" PRIu64
            "\n",
            s->shelves, s->allocations, s->releases, s->exchanges);
    return true;
}

static bool stats_put_buffers(const tide_buffers_information *buffers, void *user)
{
    FILE *out = user;
    const tide_buffers_statistics *s = &buffers->statistics;
    fprintf(out, "  '%s' on %s: %zu live,", buffers->name, buffers->device, s->live);
    stats_put_bytes(out, "", s->bytes_live);
    fprintf(out, "; %zu cached,", s->cached);
    stats_put_bytes(out, "", s->bytes_cached);
    fprintf(out, "; %.2f %% of %" PRIu64 " acquires hit, %.1f %% wasted\n", 100 * s->hit_rate,
            s->hits + s->misses, 100 * s->waste);
    return true;
}

static void stats_put_learning(FILE *out)
{
    tide_learning_statistics s = {0};
    (void)tide_learning_stats(&s);
    fprintf(out,
            "learning: %" PRIu64 " rounds, %" PRIu64 " windows, %" PRIu64 " decisions; %" PRIu64
            " sites ordered, %" PRIu64 " compiled, %" PRIu64 " failed; trials won %" PRIu64
            ", not won %" PRIu64 "; %.3f s of the processor spent on compiles\n",
            s.rounds, s.windows, s.decisions, s.ordered, s.compiled, s.failed, s.won, s.lost,
            (double)s.spent_us * 1e-6);
}

static void stats_put_page(FILE *out)
{
    tide_limit_statistics all = {0};
    (void)tide_limit_stats(&all);
    fprintf(out, "tidepool %s: '%s' (%ld) ends\n", tide_version(), program_invocation_short_name,
            (long)getpid());
    stats_put_bytes(out, "pools and buffers hold", all.bytes_held);
    stats_put_bytes(out, " of the host's memory, most", all.bytes_peak);
    fprintf(out, "\npools that are there now:\n");
    (void)tide_pool_each(stats_put_pool, out);
    fprintf(out, "buffers that are there now:\n");
    (void)tide_buffers_each(stats_put_buffers, out);
    (void)tide_profile_print(out);
    stats_put_learning(out);
}

static tide_status stats_write_page(FILE *out)
{
    const char *call = "the page of statistics";
    tide_document document;
    TIDE_FORWARD(tide_document_begin(&document, call));
    stats_put_page(document.page);
    return tide_document_end(&document, out, call);
}

static char stats_path[PATH_MAX]; /* the environment's TIDEPOOL_STATS_FILE; "": standard error */

static void stats_note_path(void)
{
    const char *path = secure_getenv("TIDEPOOL_STATS_FILE");
    if (path != NULL && strlen(path) < sizeof stats_path)
        strcpy(stats_path, path);
}

static tide_status stats_write(FILE *out)
{
    return tide_setting_get(TIDE_SETTING_stats) == TIDE_STATS_JSON ? tide_facts_write(out)
                                                                   : stats_write_page(out);
}

/* Several processes may have the same file, and end at the same time: each appends all it has by
 * one call, so nothing comes in between. */
static bool stats_append(void)
{
    FILE *out = fopen(stats_path, "ae");
    if (out == NULL)
        return false;
    (void)setvbuf(out, NULL, _IONBF, 0);
    bool written = stats_write(out) == TIDE_OK;
    return fclose(out) == 0 && written;
}

static void stats_at_exit(void)
{
    if (tide_setting_get(TIDE_SETTING_stats) == TIDE_STATS_NONE ||
        (stats_path[0] != '\0' && stats_append()))
        return;
    if (stats_path[0] != '\0')
        tide_os_complain(
            "TIDEPOOL_STATS_FILE cannot be written (%s), so here is what was to go there",
            strerror(errno));
    if (stats_write(stderr) == TIDE_ERROR_MEMORY)
        tide_os_complain("no memory for what TIDEPOOL_STATS asks for");
}

void tide_stats_prepare(void)
{
    static bool prepared; /* whoever attaches does so once, or again after a fork */
    if (!prepared)
        stats_note_path();
    if (!prepared)
        prepared = atexit(stats_at_exit) == 0;
    tide_assert(prepared || tide_setting_get(TIDE_SETTING_stats) >= TIDE_STATS_NONE);
}
