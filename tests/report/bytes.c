/* SPDX-License-Identifier: MIT */
/* bytes all|windows: uses sites of each kind that acquires, and says what of: "NAME USES BYTES".
 * Every use is observed, or those in the windows of learning. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/callsite.h>
#include <tidepool/dynamic.h>
#include <tidepool/learn.h>
#include <tidepool/profile.h>
#include <tidepool/site.h>
#include <tidepool/tidepool.h>
#include <tidepool/tune.h>

enum { SITES = 4 };

static const char *const names[SITES] = {"bytes_scope", "bytes_frame", "bytes_acquire",
                                         "bytes_array"};
static const tide_kind kinds[SITES] = {TIDE_KIND_SCOPE, TIDE_KIND_FRAME, TIDE_KIND_ACQUIRE,
                                       TIDE_KIND_ARRAY};
static tide_site *sites[SITES];
static uint64_t uses[SITES], bytes[SITES];

static void *must(void *given)
{
    if (given == NULL)
        abort();
    return given;
}

static void add(int site, size_t acquired)
{
    uses[site]++;
    bytes[site] += acquired;
}

/* Each in a scope of its own pool, so that nobody else asks more of its slots. */
static void use_scope(tide_pool *pool)
{
    tide_scope scope;
    if (tide_scope_enter(pool, sites[0], &scope) != TIDE_OK)
        abort();
    must(tide_acquire(pool, double, 300));
    must(tide_acquire(pool, int32_t, 50));
    must(tide_acquire(pool, int32_t, 7));
    tide_mark mark = tide_checkpoint(pool); /* what is inside is not its own */
    must(tide_acquire(pool, char, 100000));
    if (tide_rewind(pool, mark) != TIDE_OK || tide_scope_leave(&scope) != TIDE_OK)
        abort();
    add(0, 300 * 8 + 57 * 4);
}

static void use_others(tide_pool *pool, size_t round)
{
    static const tide_type types[] = {TIDE_F32, TIDE_U8};
    const size_t counts[] = {100 + round % 10, 5}; /* others in each round */
    void *data[2];
    tide_scope frame;
    tide_mark mark = tide_checkpoint(pool);
    if (tide_scope_enter_frame(pool, sites[1], 2, types, counts, data, &frame) != TIDE_OK)
        abort();
    must(data[0]);
    if (tide_scope_leave(&frame) != TIDE_OK)
        abort();
    add(1, counts[0] * 4 + 5);
    must(tide_site_acquire(sites[2], pool, TIDE_I64, 20 + round % 10));
    add(2, (20 + round % 10) * 8);
    must(tide_site_acquire_array(sites[3], pool, TIDE_F64, 2, (int64_t[]){8, 4}));
    add(3, 8 * 4 * 8);
    if (tide_rewind(pool, mark) != TIDE_OK)
        abort();
}

int main(int count, char **args)
{
    bool all = count > 1 && strcmp(args[1], "all") == 0;
    tide_tune_set("background", 0);
    tide_tune_set("adapt", 0); /* by the clock: a decision makes the uses an estimate */
    tide_tune_set("trial", 0);
    if (tide_profile_observe(all) != TIDE_OK)
        abort();
    for (int i = 0; i < SITES; i++)
        sites[i] = must(tide_site_register_kind(names[i], kinds[i]));
    tide_pool *own = must(tide_pool_create(NULL)), *pool = must(tide_pool_create(NULL));
    for (size_t round = 0; round < 20000; round++) {
        use_scope(own);
        use_others(pool, round);
        if (!all && round % 1000 == 0 && tide_step() != TIDE_OK)
            abort();
    }
    for (int i = 0; i < SITES; i++)
        printf("%s %" PRIu64 " %" PRIu64 "\n", names[i], uses[i], bytes[i]);
    tide_pool_destroy(own);
    tide_pool_destroy(pool);
    return 0;
}
