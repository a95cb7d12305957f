/* SPDX-License-Identifier: MIT */
/* A user's program in the common part of C and C++: every form of scope, from installed headers. */
#include <stdio.h>
#include <string.h>
#include <tidepool/learn.h>
#include <tidepool/listen.h>
#include <tidepool/site.h>
#include <tidepool/tidepool.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>
#include <tidepool/version.h>

struct point {
    double x, y;
};

static double sum(const double *values, size_t n)
{
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += values[i];
    return total;
}

static double in_scope(tide_pool *pool, size_t n)
{
    TIDE_SCOPE(pool);
    double *values = tide_acquire(pool, double, n);
    struct point *points = tide_acquire(pool, struct point, n);
    for (size_t i = 0; i < n; i++) {
        points[i].x = (double)i;
        values[i] = points[i].x;
    }
    return sum(values, n);
}

static double in_typed_scope(tide_pool *pool, size_t n)
{
    TIDE_SCOPE_TYPES(pool, double, struct point);
    return in_scope(pool, n);
}

static double in_frame(tide_pool *pool, size_t n)
{
    TIDE_FRAME(pool, (double, values, n), (int32_t, index, n));
    for (size_t i = 0; i < n; i++) {
        index[i] = (int32_t)i;
        values[i] = index[i];
    }
    return sum(values, n);
}

static double in_loop(tide_pool *pool, size_t n)
{
    double total = 0;
    TIDE_LOOP(pool, i, n)
    {
        double *value = tide_acquire(pool, double, 1);
        *value = (double)i;
        total += *value;
    }
    return total;
}

/* Has the program's own scope compiled by the installed stager, and its executions counted. */
static bool find(tide_site *site, void *found)
{
    tide_site_information info;
    if (tide_site_info(site, &info) == TIDE_OK && strcmp(info.function, "in_scope") == 0)
        *(tide_site **)found = site;
    return *(tide_site **)found == NULL;
}

static int learn(tide_pool *pool)
{
    tide_site *site = NULL;
    tide_site_information before, after;
    memset(&after, 0, sizeof after);
    tide_tune_set("background", 0);
    tide_tune_set("trial", 0);
    tide_tune_set("count_runs", 1);
    for (int window = 0; window < 50 && after.tier != TIDE_TIER_COMPILED; window++) {
        for (int i = 0; i < 200; i++)
            (void)in_scope(pool, 10);
        tide_settle(20000);
        tide_site_each(find, &site);
        if (site == NULL || tide_site_info(site, &after) != TIDE_OK)
            return 1;
    }
    (void)in_scope(pool, 10);
    tide_site_info(site, &before);
    for (int i = 0; i < 100; i++)
        (void)in_scope(pool, 10);
    tide_site_info(site, &after);
    printf("consumer: %s, %d executed\n", tide_tier_name(after.tier),
           (int)(after.runs - before.runs));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf("%d.%d.%d\n", TIDEPOOL_VERSION_MAJOR, TIDEPOOL_VERSION_MINOR,
               TIDEPOOL_VERSION_PATCH);
        return 0;
    }
    tide_pool *pool = tide_pool_local();
    if (argc > 1 && strcmp(argv[1], "--learn") == 0)
        return learn(pool);
    if (argc > 1 && strcmp(argv[1], "--listen") == 0) {
        printf("consumer: %s\n", tide_listen(NULL) == TIDE_OK ? "listens" : tide_error_message());
        return 0;
    }
    double answer = in_scope(pool, 1000);
    if (in_typed_scope(pool, 1000) != answer || in_frame(pool, 1000) != answer ||
        in_loop(pool, 1000) != answer || tide_pool_active(pool, TIDE_F64) != 0 ||
        tide_pool_depth(pool) != 0)
        return 1;
    printf("consumer: %.0f\n", answer);
    return 0;
}
