/* SPDX-License-Identifier: MIT */
/* How much memory of the host the process holds, and how much it may. */
#include "runtime/device/limit.h"

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/lock.h"
#include "runtime/base/registry.h"
#include "runtime/base/ring.h"
#include "runtime/base/settings.h"
#include "runtime/device/budget.h"
#include "runtime/device/group.h"

enum { ASKED_AGAIN_MAX = 16 };

/* Atomic. (What is held, and the hard limit, are those of the host as a device.) */
static size_t limit_soft;
static uint64_t limit_pressed;

/* Changed, and read as a pair, under the registry's lock. */
static tide_limit_function limit_function;
static void *limit_user;

/* This thread gives memory back, or has the program do so. */
static _Thread_local bool limit_asking;

size_t tide_limit_most(void)
{
    size_t bytes = __atomic_load_n(&tide_device_host.limit, __ATOMIC_RELAXED);
    if (bytes != 0)
        return bytes;
    double mebibytes = tide_setting_get(TIDE_SETTING_process_limit);
    if (mebibytes < 0)
        return tide_group_max();
    return mebibytes > 0 ? (size_t)(mebibytes * 1048576) : SIZE_MAX;
}

void tide_limit_pressed(void)
{
    tide_device_count(&limit_pressed);
}

size_t tide_limit_beyond_group(size_t bytes)
{
    size_t high = tide_group_high(), held = tide_budget_held(&tide_device_host);
    if (limit_asking || high == SIZE_MAX || held > SIZE_MAX - bytes)
        return 0;
    return held + bytes > high ? held + bytes - high : 0;
}

/* What nobody uses goes back: all of it where threads wait for memory. */
static void limit_ask_keepers(size_t bytes)
{
    bool tight = tide_group_look_is_due() && tide_group_look();
    size_t missing = tight ? SIZE_MAX : tide_limit_beyond_group(bytes);
    if (missing == 0)
        return;
    limit_asking = true; /* hooks of buffers that go may take memory */
    (void)tide_press(&tide_device_host, TIDE_MEMORY_DEVICE, missing);
    limit_asking = false;
}

static bool limit_asks_program(size_t bytes)
{
    size_t soft = __atomic_load_n(&limit_soft, __ATOMIC_RELAXED);
    size_t held = tide_budget_held(&tide_device_host);
    return soft != 0 && (held > soft || bytes > soft - held);
}

bool tide_limit_asks(size_t bytes)
{
    return !limit_asking && (limit_asks_program(bytes) || tide_limit_beyond_group(bytes) != 0 ||
                             tide_group_look_is_due());
}

/* True: there is more to give. */
static bool limit_ask_once(size_t bytes)
{
    tide_registry_lock();
    tide_limit_function function = limit_function;
    void *user = limit_user;
    tide_registry_unlock();
    if (function == NULL)
        return false;
    tide_device_count(&tide_device_host.asked);
    limit_asking = true;
    tide_lock_assert_none();
    bool again = function(tide_budget_held(&tide_device_host), bytes, user);
    limit_asking = false;
    return again;
}

void tide_limit_ask(size_t bytes)
{
    if (limit_asking)
        return;
    limit_ask_keepers(bytes);
    for (int i = 0; i < ASKED_AGAIN_MAX && limit_asks_program(bytes); i++)
        if (!limit_ask_once(bytes))
            return;
}

tide_status tide_limit_set(const tide_limit_options *options)
{
    const char *call = "tide_limit_set";
    const tide_limit_options none = {0};
    options = options != NULL ? options : &none;
    TIDE_FORWARD(tide_growth_check(options->growth_, call));
    if ((options->function != NULL) != (options->soft_bytes != 0))
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "a soft limit of %zu bytes and %s function",
                         options->soft_bytes, options->function != NULL ? "a" : "no");
    if (options->hard_bytes != 0 && options->soft_bytes > options->hard_bytes)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "soft limit %zu, hard limit %zu bytes",
                         options->soft_bytes, options->hard_bytes);
    tide_attach();
    tide_registry_lock();
    limit_user = options->user;
    limit_function = options->function;
    __atomic_store_n(&tide_device_host.limit, options->hard_bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&limit_soft, options->soft_bytes, __ATOMIC_RELAXED);
    tide_registry_unlock();
    return TIDE_OK;
}

tide_status tide_limit_stats(tide_limit_statistics *out)
{
    if (out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_limit_stats", "the result is NULL");
    size_t hard = tide_limit_most(), soft = __atomic_load_n(&limit_soft, __ATOMIC_RELAXED);
    size_t high = tide_group_high();
    if (high < soft || (soft == 0 && high != SIZE_MAX))
        soft = high;
    const tide_device *host = &tide_device_host;
    *out =
        (tide_limit_statistics){.bytes_held = tide_budget_held(host),
                                .bytes_peak = __atomic_load_n(&host->held_peak, __ATOMIC_RELAXED),
                                .soft_bytes = soft,
                                .hard_bytes = hard == SIZE_MAX ? 0 : hard,
                                .asked = __atomic_load_n(&host->asked, __ATOMIC_RELAXED),
                                .refused = __atomic_load_n(&host->refused, __ATOMIC_RELAXED),
                                .pressed = __atomic_load_n(&limit_pressed, __ATOMIC_RELAXED)};
    return TIDE_OK;
}
