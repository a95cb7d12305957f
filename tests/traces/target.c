/* SPDX-License-Identifier: MIT */
/* A program to be looked into from outside, live and after its end: each thing that debuggers and
 * tracers name is there once. It ends in target_stop, with what it knows of itself on its standard
 * output: NAME=VALUE lines, asked for by the public interface. Its argument says how it ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/dynamic.h>
#include <tidepool/learn.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/tidepool.h>
#include <tidepool/tune.h>

typedef struct target_point {
    double x, y;
} target_point;

/* For debuggers: the site, and the code that it runs. */
static tide_site *target_site;
static const void *target_code;

static uint64_t target_events[TIDE_EVENT_GAVE_UP + 1];

static void target_count(const tide_event *event, void *user)
{
    (void)user;
    target_events[event->kind]++;
}

/* ---- work --------------------------------------------------------------------------------- */

static double target_use(tide_pool *pool, int turn)
{
    TIDE_SCOPE_NAMED(pool, "target_scope");
    double *d = tide_acquire(pool, double, 100);
    if (d == NULL)
        abort();
    d[0] = turn;
    if (turn % 2 == 1) { /* types that no table foresees */
        int32_t *i = tide_acquire(pool, int32_t, 50);
        float *f = tide_acquire(pool, float, 50);
        if (i == NULL || f == NULL)
            abort();
        d[0] += i == NULL || f == NULL;
    }
    return d[0];
}

static bool target_learns(void)
{
    tide_learning_statistics learning;
    return tide_learning_stats(&learning) == TIDE_OK && learning.compiled > 0;
}

/* Does the site run its code, and not a plan that observes it? Then that is the code to look for.
 */
static bool target_runs_code(void)
{
    Dl_info info;
    const void *code;
    target_site = tide_site_find("target_scope", TIDE_KIND_SCOPE);
    if (target_site == NULL)
        abort();
    memcpy(&code, &target_site->plan->enter, sizeof code);
    if (dladdr(code, &info) == 0 || info.dli_sname == NULL ||
        strncmp(info.dli_sname, "tide_scope_f64_", 15) != 0) /* by its types */
        return false;
    target_code = code;
    return true;
}

/* Learned and, as the work changes, missed; where there is a stager also compiled. Then
 * the work stays the same until its code runs. */
static void target_learn(tide_pool *pool)
{
    bool changed = false, all = false;
    for (int phase = 0; !all; phase++) {
        if (phase == 1000)
            abort();
        for (int i = 0; i < 2000; i++)
            target_use(pool, 2 * i + (changed ? 0 : phase % 2));
        if (tide_settle(500000) != TIDE_OK)
            abort();
        changed = phase >= 6 && target_events[TIDE_EVENT_MISSED] > 0;
        all = changed && (target_runs_code() || !target_learns());
    }
}

/* ---- memory ------------------------------------------------------------------------------- */

/* A pool that meets its limit, and is trimmed; buffers for which there is no memory, until what
 * they cached is given back. */
static void target_press(tide_buffers *buffers)
{
    tide_pool *pool =
        tide_pool_create(&(tide_pool_options){.name = "limited", .limit_bytes = 1 << 20});
    if (pool == NULL || tide_acquire(pool, char, 1000) == NULL ||
        tide_acquire(pool, double, 1000) == NULL || tide_acquire(pool, double, 1 << 20) != NULL)
        abort();
    tide_pool_reset(pool);
    tide_trim_summary gone = tide_pool_trim(pool, TIDE_ALL_TYPES);
    tide_pool_statistics stats;
    if (tide_pool_stats(pool, &stats) != TIDE_OK || gone.slots != 2)
        abort();
    tide_tune_set("process_limit", 1);
    if (tide_buffer_acquire(buffers, 8 << 20).generation != 0)
        abort();
    tide_tune_set("process_limit", 0);
    tide_buffers_statistics pressed;
    if (tide_buffers_stats(buffers, &pressed, NULL, 0) != TIDE_OK)
        abort();
    printf("limited_allocations=%" PRIu64 "\ntrimmed=%zu\npressed=%" PRIu64 "\n", stats.allocations,
           gone.bytes, pressed.pressed);
    if (tide_pool_destroy(pool) != TIDE_OK)
        abort();
}

/* ---- what it knows of itself -------------------------------------------------------------- */

static bool target_tell_site(tide_site *site, void *user)
{
    tide_site_information information;
    (void)user;
    if (tide_site_info(site, &information) != TIDE_OK ||
        strcmp(information.name, "target_scope") != 0)
        return true;
    printf("site=%" PRIu64 "\nsite_address=%p\ntier=%s\nmisses=%" PRIu64 "\nreason=%s\nline=%u\n",
           information.id, (void *)site, tide_tier_name(information.tier), information.misses,
           information.reason_code, information.line);
    return true;
}

/* As whoever samples the process would see it: an address in a file. */
static void target_tell_code(void)
{
    Dl_info info;
    if (dladdr(target_code, &info) != 0)
        printf("code_file=%s\ncode_offset=%td\n", info.dli_fname,
               (const char *)target_code - (const char *)info.dli_fbase);
}

static void target_tell(const tide_pool *pool)
{
    static const char *const kinds[] = {"found", "staged", "published", "missed", "gave_up"};
    tide_pool_statistics stats;
    if (tide_pool_stats(pool, &stats) != TIDE_OK)
        abort();
    printf("pid=%d\nheld=%zu\nlive=%zu\nallocations=%" PRIu64 "\ndepth=%zu\n", (int)getpid(),
           stats.bytes_held, stats.bytes_live, stats.allocations, stats.depth);
    tide_site_each(target_tell_site, NULL);
    target_tell_code();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        printf("%s=%" PRIu64 "\n", kinds[i], target_events[i]);
    tide_learning_statistics learning;
    if (tide_learning_stats(&learning) != TIDE_OK)
        abort();
    printf("ordered=%" PRIu64 "\n", learning.ordered);
}

/* Where it is looked at, and how it ends. */
__attribute__((noinline)) static void target_stop(const char *how, tide_pool *pool,
                                                  tide_scope *scope, tide_array *array,
                                                  target_point *points, char *buffer)
{
    __asm__ volatile("" ::"r"(pool), "r"(scope), "r"(array), "r"(points), "r"(buffer),
                     "r"(target_site), "r"(target_code)
                     : "memory");
    bool busy = strcmp(how, "busy") == 0;
    for (int i = 0; busy && i < 20000000; i++)
        target_use(pool, 2 * i);
    if (strcmp(how, "killed") == 0)
        kill(getpid(), SIGKILL);
}

static void target_open(const char *how, tide_pool *pool, tide_buffers *buffers)
{
    tide_scope scope;
    tide_site *site = tide_site_register("target_outer");
    tide_buffer handle = tide_buffer_acquire(buffers, 5000);
    char *buffer = tide_buffer_pointer(buffers, handle);
    if (site == NULL || buffer == NULL || tide_scope_enter(pool, site, &scope) != TIDE_OK)
        abort();
    tide_array *array = tide_array_acquire(pool, TIDE_F64, 2, ((int64_t[]){3, 40}));
    target_point *points = tide_acquire(pool, target_point, 30);
    if (array == NULL || points == NULL)
        abort();
    if (tide_step() != TIDE_OK) /* all that happened is told */
        abort();
    target_tell(pool);
    printf("points=%p\narray=%p\n", (void *)points, (void *)array);
    fflush(stdout);
    target_stop(how, pool, &scope, array, points, buffer);
    if (tide_scope_leave(&scope) != TIDE_OK || tide_buffer_release(buffers, handle) != TIDE_OK)
        abort();
}

int main(int count, char **args)
{
    if (count > 1 && strcmp(args[1], "nothing") == 0)
        return 0;
    tide_event_set_handler(target_count, NULL);
    tide_tune_set("background", 0);
    tide_tune_set("trial", 0);
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.name = "target"});
    tide_buffers *buffers =
        tide_buffers_create(NULL, &(tide_buffers_options){.name = "target_buffers"});
    if (pool == NULL || buffers == NULL)
        abort();
    target_press(buffers);
    target_learn(pool);
    target_open(count > 1 ? args[1] : "", pool, buffers);
    tide_buffers_destroy(buffers);
    tide_pool_destroy(pool);
    return 0;
}
