/* SPDX-License-Identifier: MIT */
/* One round of learning, step by step, and the lock that lets one thread at a time do one. */
#define _GNU_SOURCE
#include "jit/learn/round.h"

#include <pthread.h>
#include <time.h>

#include <tidepool/learn.h>
#include <tidepool/pool.h>

#include "jit/cache/artefact.h"
#include "jit/kernels/modules.h"
#include "jit/learn/compile_request.h"
#include "jit/learn/event.h"
#include "jit/learn/limbo.h"
#include "jit/learn/watch.h"
#include "jit/stager/stager.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/hooks.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/base/settings.h"
#include "runtime/buffers/buffers.h"
#include "runtime/pool/core.h"
#include "runtime/scope/site.h"

/* ---- the lock --------------------------------------------------------------------------- */

/* Recursive: a listener to events may step, pin and reset. */
static pthread_mutex_t round_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_once_t round_prepared = PTHREAD_ONCE_INIT;
static _Thread_local unsigned round_times_held; /* by this thread */
static _Thread_local int round_cancel;          /* its state before */

/* The child has neither keeper nor stager; it may get its own. The lock is made anew there. */
static void round_in_child(void)
{
    tide_round_unlock();
    round_mutex = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    tide_event_forget();
    tide_compile_request_forget();
    tide_modules_forget();
    tide_limbo_forked();
}

static void round_prepare(void)
{
    static const tide_fork_handlers handlers = {tide_round_lock, tide_round_unlock, round_in_child};
    tide_fork_register(TIDE_FORK_ROUND, &handlers);
}

void tide_round_lock(void)
{
    pthread_once(&round_prepared, round_prepare);
    pthread_mutex_lock(&round_mutex);
    if (round_times_held++ == 0)
        round_cancel = tide_os_forbid_cancel();
}

void tide_round_unlock(void)
{
    tide_assert(round_times_held > 0);
    round_times_held--;
    pthread_mutex_unlock(&round_mutex);
    if (round_times_held == 0)
        tide_os_restore_cancel(round_cancel);
}

bool tide_round_held(void)
{
    return round_times_held > 0;
}

/* ---- memory ----------------------------------------------------------------------------- */

static void round_request_of_pool(tide_pool *pool, void *user)
{
    tide_pool_request(pool, *(const uint32_t *)user);
}

/* When both are switched off it asks for nothing: that takes back what was asked for before. */
static void round_request_memory(void)
{
    uint32_t requests = 0;
    if (tide_setting_get(TIDE_SETTING_auto_trim) != 0)
        requests |= TIDE_REQUEST_TRIM;
    if (tide_setting_get(TIDE_SETTING_auto_compact) != 0)
        requests |= TIDE_REQUEST_COMPACT;
    tide_pool_each(round_request_of_pool, &requests);
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
    for (size_t i = 0; i < count; i++) {
        tide_watch(sites[i], round_number);
        tide_compile_request_gather(sites[i], round_number);
    }
    tide_registry_unlock();
}

/* After: what it answered. */
static void round_install(void)
{
    tide_assert(tide_round_held());
    tide_compile_request_find_code();
    tide_registry_lock();
    tide_compile_request_install(round_number);
    tide_limbo_round();
    tide_registry_unlock();
    size_t unloaded = tide_limbo_unload();
    for (size_t i = 0; i < unloaded; i++)
        tide_event_note(TIDE_EVENT_RETIRED, NULL, TIDE_TIER_COMPILED, TIDE_REASON_retired, "");
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

/* The stager's own figures are for whoever holds the lock. */
static void round_note_stagers(void)
{
    tide_stager_figures figures;
    tide_assert(tide_round_held());
    tide_stager_figures_get(&figures);
    __atomic_store_n(&tide_learning_figures.stagers, figures.started, __ATOMIC_RELAXED);
}

bool tide_round_run(int wait_ms)
{
    tide_assert(wait_ms >= 0);
    tide_round_lock();
    round_number++;
    tide_count(rounds);
    if (tide_setting_get(TIDE_SETTING_learn) != 0)
        round_watch_sites();
    tide_compile_request_send();
    tide_modules_order();
    tide_compile_request_receive(wait_ms, round_number);
    round_note_stagers();
    round_install();
    bool pending = tide_compile_request_pending() || round_sites_pending();
    tide_events_tell(round_number);
    tide_round_unlock();
    tide_buffers_tick();
    tide_modules_build(); /* drivers may take long */
    return pending || tide_modules_pending();
}

/* A visitor of sites has the registry. A round may wait for another thread's, which wants it. */
static tide_status round_admit(const char *call)
{
    return tide_registry_held() ? tide_fail(TIDE_ERROR_STATE, call, "called by a visitor of sites")
                                : TIDE_OK;
}

tide_status tide_step(void)
{
    tide_attach();
    TIDE_FORWARD(round_admit("tide_step"));
    round_request_memory();
    tide_round_run(0);
    return TIDE_OK;
}

/* ---- settling --------------------------------------------------------------------------- */

static double round_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

tide_status tide_settle(int timeout_ms)
{
    double started = round_now_ms();
    tide_attach();
    TIDE_FORWARD(round_admit("tide_settle"));
    while (tide_round_run(10))
        if (round_now_ms() - started >= timeout_ms)
            return tide_fail(TIDE_ERROR_STATE, "tide_settle",
                             "something is still pending after %d ms", timeout_ms);
    return TIDE_OK;
}
