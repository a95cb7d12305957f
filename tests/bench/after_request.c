/* SPDX-License-Identifier: MIT */
/* after-request: a scope of two arrays in an outer scope that stays open all the time, as in a loop
 * that never comes back to the root. Of the `-requested` variants' pools a compact was asked for
 * meanwhile; it can only be done when the outer scope has ended. What do scopes cost until then? */
#include <tidepool/dynamic.h>
#include <tidepool/upkeep.h>

#include "after_request.h"
#include "work.h"

static const bench_work_row after_row = {TIDE_F64, TIDE_I32};

#define AFTER_TWO (double, a, n->count[0]), (int32_t, b, n->count[1])
#define AFTER_ONCE(form, mode)                                   \
    FORM_BEGIN(form, c, s->sites, (double, int32_t), AFTER_TWO); \
    BENCH_WORK_WRITE(mode, 0, AFTER_TWO);                        \
    BENCH_WORK_READ(mode, 0, AFTER_TWO);                         \
    FORM_END(form, c, b, a)
#define AFTER_LOOP(form) BENCH_WORK_LOOP(BENCH_FOR, form, form, 1, AFTER_ONCE)

AFTER_LOOP(types)
AFTER_LOOP(frame)
AFTER_LOOP(site)

static void *after_make(const bench_case *job, bool requested, bool table)
{
    bench_work *s = bench_work_pool(job);
    s->requested = requested;
    if (table)
        bench_work_pin_named(s, "after-request table", TIDE_TIER_TABLE, &after_row);
    if (tide_scope_enter(s->tide->pool, NULL, &s->outer) != TIDE_OK)
        bench_die("%s", tide_error_message());
    return s;
}

static void *plain_setup(const bench_case *job)
{
    return after_make(job, false, false);
}

static void *requested_setup(const bench_case *job)
{
    return after_make(job, true, false);
}

static void *table_setup(const bench_case *job)
{
    return after_make(job, false, true);
}

static void *table_requested_setup(const bench_case *job)
{
    return after_make(job, true, true);
}

/* Once the slots have their sizes; the step that follows meets the request. */
static void after_ask(void *state)
{
    const bench_work *s = state;
    if (s->requested && tide_pool_request(s->tide->pool, TIDE_REQUEST_COMPACT) != TIDE_OK)
        bench_die("%s", tide_error_message());
}

static uint64_t after_served(const bench_work *s)
{
    tide_pool_statistics now;
    if (tide_pool_stats(s->tide->pool, &now) != TIDE_OK)
        bench_die("%s", tide_error_message());
    return now.requests;
}

/* The pool has met the request: its fast paths are open again. Nothing was served while the outer
 * scope was open, and after it, what was asked for. */
static bool after_verify(void *state, uint64_t operations)
{
    bench_work *s = state;
    tide_scope root;
    uint64_t before = after_served(s);
    if (tide_log_open(s->tide->pool) <= s->tide->pool->log_top) {
        bench_complain("%s: no fast path can be taken", s->job->name);
        return false;
    }
    bool left = tide_scope_leave(&s->outer) == TIDE_OK &&
                tide_scope_enter(s->tide->pool, NULL, &root) == TIDE_OK &&
                tide_scope_leave(&root) == TIDE_OK;
    if (left && before == 0 && after_served(s) == (s->requested ? 1 : 0))
        return bench_work_verify(state, operations);
    bench_complain("%s: the request was served at another time", s->job->name);
    return false;
}

#define AFTER_VARIANT(name, form, label, setup)                \
    static void name##_proof(void *state, uint64_t operations) \
    {                                                          \
        form##_prove(state, operations);                       \
        after_ask(state);                                      \
        bench_work_proved(state, form##_run);                  \
    }                                                          \
    static const bench_variant variant_##name = {              \
        label, NULL, setup, name##_proof, form##_run, after_verify, bench_work_free, NULL};
AFTER_VARIANT(types, types, "tide-types", plain_setup)
AFTER_VARIANT(types_requested, types, "tide-types-requested", requested_setup)
AFTER_VARIANT(frame, frame, "tide-frame", plain_setup)
AFTER_VARIANT(frame_requested, frame, "tide-frame-requested", requested_setup)
AFTER_VARIANT(table, site, "tide-table", table_setup)
AFTER_VARIANT(table_requested, site, "tide-table-requested", table_requested_setup)

const bench_variant *const bench_after_request_variants[] = {
    &variant_types, &variant_types_requested, &variant_frame, &variant_frame_requested,
    &variant_table, &variant_table_requested, NULL,
};
