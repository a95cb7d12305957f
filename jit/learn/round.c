/* SPDX-License-Identifier: MIT */
/* One round of learning, step by step, and the lock that lets one thread at a time do one. */
#define _GNU_SOURCE
#include "jit/learn/round.h"

#include <stdint.h>
#include <time.h>

#include <tidepool/learn.h>
#include <tidepool/pool.h>

#include "jit/events/event.h"
#include "jit/learn/compile_request.h"
#include "jit/learn/test_hooks.h"
#include "jit/learn/watch.h"
#include "jit/stager/stager.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/base/ring.h"
#include "runtime/base/settings.h"
#include "runtime/buffers/buffers.h"
#include "runtime/device/budget.h"
#include "runtime/device/group.h"
#include "runtime/pool/core.h"
#include "runtime/pool/press.h"
#include "runtime/pool/request.h"
#include "runtime/scope/site.h"

/* ---- the lock --------------------------------------------------------------------------- */

static tide_lock round_lock = TIDE_LOCK(TIDE_FORK_ROUND);
static bool round_over; /* atomic */

void tide_round_lock(void)
{
    tide_round_prepare();
    tide_lock_take(&round_lock);
}

void tide_round_unlock(void)
{
    tide_lock_let_go(&round_lock);
}

static double round_now_ms(void)
{
    return (double)tide_os_now_ns() * 1e-6;
}

bool tide_round_lock_within(double ms)
{
    static const struct timespec nap = {.tv_nsec = 200000};
    tide_round_prepare();
    for (double started = round_now_ms();;) {
        if (tide_lock_try(&round_lock))
            return true;
        if (ms == 0 || round_now_ms() - started >= ms)
            return false;
        (void)nanosleep(&nap, NULL);
    }
}

bool tide_round_held(void)
{
    return tide_lock_held(TIDE_FORK_ROUND);
}

bool tide_round_is_over(void)
{
    return __atomic_load_n(&round_over, __ATOMIC_RELAXED);
}

void tide_round_end(void)
{
    __atomic_store_n(&round_over, true, __ATOMIC_RELAXED);
}

void tide_round_begin_again(void)
{
    __atomic_store_n(&round_over, false, __ATOMIC_RELAXED);
}

/* In the child sites keep the plans that they have, and what a window or a trial was about to tell is
 * not asked for. */
void tide_round_prepare(void)
{
    static const tide_fork_handlers handlers = {.lock = &round_lock, .child = tide_round_end};
    tide_fork_register(TIDE_FORK_ROUND, &handlers);
}

bool tide_round_begin_at_once(void)
{
    if (tide_registry_held() || tide_round_held() || tide_round_is_over() ||
        !tide_round_lock_within(0))
        return false;
    if (tide_registry_try_lock())
        return true;
    tide_round_unlock();
    return false;
}

void tide_round_end_at_once(void)
{
    tide_registry_unlock();
    tide_round_unlock();
}

/* ---- memory ----------------------------------------------------------------------------- */

static void round_request_of_pool(tide_pool *pool, void *user)
{
    tide_request_lately(pool, *(const uint32_t *)user);
}

static void round_request_of_all(uint32_t requests)
{
    tide_pools_visit(round_request_of_pool, &requests);
}

/* What the settings want of every pool. */
static uint32_t round_memory_wanted(void)
{
    uint32_t requests = 0;
    if (tide_setting_get(TIDE_SETTING_auto_trim) != 0)
        requests |= TIDE_REQUEST_TRIM_UNUSED;
    if (tide_setting_get(TIDE_SETTING_auto_compact) != 0)
        requests |= TIDE_REQUEST_TRIM_WASTED;
    return requests;
}

/* When both are switched off it asks for nothing: that takes back what was asked for before. */
static void round_request_memory(void)
{
    uint32_t requests = round_memory_wanted();
    if (tide_group_is_tight(1)) {
        requests |= TIDE_REQUEST_TRIM_UNUSED | TIDE_REQUEST_TRIM_WASTED;
        (void)tide_press(&tide_device_host, TIDE_MEMORY_DEVICE, SIZE_MAX);
    }
    round_request_of_all(requests);
}

/* Has the period gone by? Then it begins again. */
static bool round_period_over(uint64_t *rounds, uint64_t passed, tide_constant period)
{
    *rounds += passed;
    if (*rounds < tide_constant_whole(period))
        return false;
    *rounds = 0;
    return true;
}

static void round_request_memory_after(uint64_t rounds)
{
    static uint64_t since_trim, since_compact; /* of the one background thread */
    uint32_t due = 0;
    if (round_period_over(&since_trim, rounds, TIDE_CONSTANT_trim_period))
        due |= TIDE_REQUEST_TRIM_UNUSED;
    if (round_period_over(&since_compact, rounds, TIDE_CONSTANT_compact_period))
        due |= TIDE_REQUEST_TRIM_WASTED;
    due &= round_memory_wanted();
    if (tide_group_is_tight(rounds)) {
        due |= TIDE_REQUEST_TRIM_UNUSED | TIDE_REQUEST_TRIM_WASTED;
        (void)tide_pools_press(&tide_device_host, TIDE_MEMORY_DEVICE, SIZE_MAX);
        tide_buffers_trim_quietly();
    }
    if (due != 0)
        round_request_of_all(due);
}

/* ---- a round ---------------------------------------------------------------------------- */

static uint64_t round_number; /* guarded by the lock */

/* Before the stager is asked: what the sites say. */
static void round_watch_sites(void)
{
    tide_site *const *sites;
    tide_assert(tide_round_held());
    tide_registry_lock();
    size_t count = tide_site_list(&sites);
    for (size_t i = 0; i < count; i++)
        tide_watch(sites[i], round_number);
    tide_compile_request_gather(round_number);
    tide_registry_unlock();
}

/* Is something to be done that needs no more uses of the sites? */
static bool round_sites_pending(void)
{
    bool pending = false;
    tide_site *const *sites;
    tide_registry_lock();
    size_t count = tide_site_list(&sites);
    for (size_t i = 0; i < count && !pending; i++)
        pending = tide_watch_pending(sites[i], round_number);
    tide_registry_unlock();
    return pending;
}

/* The round itself. Is something pending? */
static bool round_do(int wait_ms, uint64_t rounds)
{
    tide_assert(tide_round_held() && rounds > 0 && wait_ms >= 0);
    round_number += rounds;
    tide_count(rounds);
    if (tide_setting_get(TIDE_SETTING_learn) != 0)
        round_watch_sites();
    bool pending = tide_compile_request_attend(wait_ms, round_number);
    tide_stager_tend();
    __atomic_store_n(&tide_learning_figures.stagers, tide_stager_started(), __ATOMIC_RELAXED);
    pending = round_sites_pending() || pending;
    tide_events_end_round(round_number);
    return pending;
}

tide_round_rest tide_round_run_in_background(uint64_t rounds)
{
    if (tide_round_is_over())
        return TIDE_ROUND_IDLE;
    round_request_memory_after(rounds);
    bool waits = tide_buffers_age(rounds, true) || tide_setting_get(TIDE_SETTING_auto_trim) != 0;
    if (!tide_round_lock_within(0))
        return TIDE_ROUND_BUSY;
    bool pending = round_do(0, rounds);
    waits |= tide_stager_process() != 0;
    tide_round_unlock();
    return pending ? TIDE_ROUND_BUSY : waits ? TIDE_ROUND_WAITS : TIDE_ROUND_IDLE;
}

bool tide_round_leave(void)
{
    tide_site *const *sites;
    if (tide_round_is_over() || tide_setting_get(TIDE_SETTING_learn) == 0)
        return true;
    if (!tide_round_lock_within(0))
        return false;
    tide_registry_lock();
    size_t count = tide_site_list(&sites);
    for (size_t i = 0; i < count; i++)
        tide_watch_leave(sites[i], round_number);
    tide_registry_unlock();
    tide_round_unlock();
    return true;
}

/* What a round of the program's does without the lock. */
static void round_serve_program(void)
{
    tide_assert(!tide_lock_held_any());
    (void)tide_buffers_age(1, false);
    (void)tide_event_deliver();
}

uint64_t tide_round_number(void)
{
    tide_assert(tide_round_held());
    return round_number;
}

tide_status tide_step(void)
{
    tide_attach();
    TIDE_FORWARD(tide_registry_admit("tide_step")); /* which comes after the round's lock */
    round_request_memory();
    if (!tide_round_is_over() && tide_round_lock_within(0)) {
        (void)round_do(0, 1);
        tide_round_unlock();
    }
    round_serve_program();
    return TIDE_OK;
}

/* Waits for the round that another thread does, and then for the stager, so long at most each. Is
 * something pending? */
static bool round_settle_for(int ms)
{
    if (!tide_round_lock_within(ms))
        return true;
    bool pending = round_do(ms, 1);
    tide_round_unlock();
    return pending;
}

tide_status tide_settle(int timeout_ms)
{
    enum { WAIT_MS = 10 };
    double started = round_now_ms();
    tide_attach();
    TIDE_FORWARD(tide_registry_admit("tide_settle"));
    for (;;) {
        bool pending = !tide_round_is_over() && round_settle_for(WAIT_MS);
        round_serve_program();
        if (!pending)
            return TIDE_OK;
        if (round_now_ms() - started >= timeout_ms)
            return tide_fail(TIDE_ERROR_STATE, "tide_settle",
                             "something is still pending after %d ms", timeout_ms);
    }
}
