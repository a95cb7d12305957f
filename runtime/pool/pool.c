/* SPDX-License-Identifier: MIT */
/* A pool's beginning and end, and the two ways to rewind all of it. */
#define _GNU_SOURCE
#include "runtime/pool/pool.h"

#include <string.h>
#include <tidepool/upkeep.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/registry.h"
#include "runtime/base/ring.h"
#include "runtime/base/settings.h"
#include "runtime/buffers/buffers.h"
#include "runtime/check/guard.h"
#include "runtime/check/levels.h"
#include "runtime/check/report.h"
#include "runtime/device/lender.h"
#include "runtime/device/region.h"
#include "runtime/pool/level.h"
#include "runtime/pool/row.h"
#include "runtime/pool/shell.h"
#include "runtime/pool/shut.h"
#include "runtime/pool/streams.h"
#include "runtime/pool/trim.h"

_Static_assert(TIDE_CHECK_POISON == 1 && TIDE_CHECK_GUARD == 2 && TIDE_CHECK_NONE < 0,
               "a level is its own number, here and in the setting");

_Static_assert(offsetof(tide_pool, shelves) % sizeof(tide_refusing_head[0]) == 0,
               "whole words stand for the head of a pool");

/* As much of a pool as a guard reads. No level has the tag 0. */
uint64_t tide_refusing_head[offsetof(tide_pool, shelves) / sizeof(uint64_t)];

/* ---- fork ------------------------------------------------------------------------------- */

/* One of another thread is used by nobody: no guard of a fast path holds, and cold code refuses it.
 * The thread that forked has another number in the child. */
static void pool_lose(tide_pool *pool, void *user)
{
    if (tide_pool_owner(pool->core) == *(const uintptr_t *)user) {
        pool->core->owner.number = tide_os_thread_number();
        return;
    }
    pool->core->lost = true;
    pool->copy = tide_pool_copy(true); /* tide_pool_use looks further */
    pool->saved = 0;
    tide_log_set_room(pool, pool->core->log.start);
    tide_pool_delist(pool);
}

/* In the child: the thread that forked has the id that it had. */
static void pool_lose_others(void)
{
    uintptr_t self = tide_os_thread();
    tide_pools_visit(pool_lose, &self);
}

static const tide_fork_handlers pool_around_fork = {.child = pool_lose_others};

/* ---- create ----------------------------------------------------------------------------- */

/* The setting decides where the options do not. */
static tide_check pool_check_level(tide_check asked)
{
    if (asked != TIDE_CHECK_DEFAULT)
        return asked;
    int level = (int)tide_setting_get(TIDE_SETTING_check);
    return level != 0 ? (tide_check)level : TIDE_CHECK_NONE;
}

static size_t pool_limit_bytes(size_t asked)
{
    if (asked != 0)
        return asked;
    double mebibytes = tide_setting_get(TIDE_SETTING_limit);
    return mebibytes > 0 ? (size_t)(mebibytes * 1048576) : SIZE_MAX;
}

static tide_status pool_validate_options(const tide_pool_options *options)
{
    const char *call = "tide_pool_create";
    TIDE_FORWARD(tide_growth_check(options->growth_, call));
    if (options->check < TIDE_CHECK_NONE || options->check > TIDE_CHECK_GUARD)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "check is %d, most is %d", options->check,
                         TIDE_CHECK_GUARD);
    if (options->device == NULL && options->buffers == NULL && options->stream != NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "a stream was given, but no device");
    if ((options->memory == NULL) != (options->memory_bytes == 0))
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "%zu bytes of memory at %p",
                         options->memory_bytes, options->memory);
    bool elsewhere = options->buffers != NULL ||
                     (options->device != NULL && options->device != &tide_device_host);
    if (options->memory != NULL && elsewhere)
        return tide_fail(TIDE_ERROR_ARGUMENT, call,
                         "memory was given, and a device or buffers to take it from");
    return TIDE_OK;
}

/* Holds the buffers that a new pool draws from; NULL if none. Finds the pool's device. */
static tide_status pool_hold_buffers(const tide_pool_options *options, tide_device **device)
{
    const char *call = "tide_pool_create";
    *device = options->device != NULL ? options->device : &tide_device_host;
    if (options->buffers == NULL)
        return TIDE_OK;
    if (tide_lend == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "this library was built without buffers");
    TIDE_FORWARD(tide_lend->hold(options->buffers, call));
    tide_device *theirs = options->buffers->device;
    tide_assert(theirs != NULL);
    if (options->device == NULL || options->device == theirs) {
        *device = theirs;
        return TIDE_OK;
    }
    tide_lend->drop(options->buffers);
    return tide_fail(TIDE_ERROR_ARGUMENT, call, "the buffers '%s' are of device %s, not %s",
                     options->buffers->name, theirs->name, options->device->name);
}

static void pool_drop_buffers(tide_buffers *buffers)
{
    if (buffers != NULL)
        tide_lend->drop(buffers);
}

/* Which stream the pool has. One that is checked asks the driver, and remembers what it says. */
static tide_status pool_find_stream(tide_device *device, const tide_pool_options *options,
                                    tide_pool_streams *streams)
{
    const char *call = "tide_pool_create";
    *streams = (tide_pool_streams){.own = options->stream};
    TIDE_FORWARD(tide_device_find_stream(device, options->stream, call, &streams->own_number));
    return tide_streams_ask(device, options->stream, pool_check_level(options->check), call,
                            &streams->own_checked);
}

/* The device of a new pool, held for it, and its stream. */
static tide_device *pool_hold_device(const tide_pool_options *options, tide_pool_streams *streams)
{
    const char *call = "tide_pool_create";
    tide_device *device = NULL;
    *streams = (tide_pool_streams){.own_number = 1}; /* the host has one */
    if (options->memory != NULL)
        return tide_region_create(options->memory, options->memory_bytes, call);
    if (pool_hold_buffers(options, &device) != TIDE_OK)
        return NULL;
    if (tide_device_hold(device, call) != TIDE_OK) {
        pool_drop_buffers(options->buffers);
        return NULL;
    }
    tide_assert(device->methods != NULL); /* a device that is held is open */
    if (pool_find_stream(device, options, streams) == TIDE_OK)
        return device;
    tide_device_drop(device);
    pool_drop_buffers(options->buffers);
    return NULL;
}

static void pool_set_options(tide_pool_core *core, const tide_pool_options *options)
{
    const char *name = options->name != NULL ? options->name : "pool";
    memcpy(core->name, name, strnlen(name, sizeof core->name - 1));
    core->hook = options->hook;
    core->user = options->user;
    core->buffers = options->buffers;
    core->memory.limit_bytes = pool_limit_bytes(options->limit_bytes);
    if (options->memory != NULL && tide_region_bytes(core->device) < core->memory.limit_bytes)
        core->memory.limit_bytes = tide_region_bytes(core->device);
    core->check = pool_check_level(options->check);
    core->disabled = options->disabled || tide_setting_get(TIDE_SETTING_disable) != 0;
    tide_assert(core->check != TIDE_CHECK_DEFAULT && core->check <= TIDE_CHECK_GUARD);
    core->careful = core->disabled || core->check >= TIDE_CHECK_POISON;
    if (core->check >= TIDE_CHECK_GUARD && core->device == &tide_device_host)
        core->guards.every = (uint32_t)tide_setting_get(TIDE_SETTING_guard_sample);
    core->attended = core->careful;
    core->levels.reported_of = core->check >= TIDE_CHECK_POISON ? core->name : NULL;
    core->poison = core->check >= TIDE_CHECK_POISON && core->guards.every <= 1;
}

void tide_pools_prepare(void)
{
    tide_fork_register(TIDE_FORK_POOLS, &pool_around_fork);
}

/* Tells whoever wants to know that there is one more. */
static void pool_tell_of(tide_pool *pool)
{
    tide_pool_enlist(pool);
    TIDE_RINGS_CALL(made);
    if (pool->core->check >= TIDE_CHECK_POISON)
        __atomic_add_fetch(&tide_checked_pools, 1, __ATOMIC_RELAXED);
    if (pool->core->guards.every != 0)
        tide_guard_prepare();
}

tide_pool *tide_pool_create(const tide_pool_options *options)
{
    const tide_pool_options defaults = {0};
    options = options != NULL ? options : &defaults;
    tide_attach();
    if (pool_validate_options(options) != TIDE_OK)
        return NULL;
    tide_pool_streams streams;
    tide_device *device = pool_hold_device(options, &streams);
    if (device == NULL)
        return NULL;
    tide_pool *pool = tide_shell_take();
    if (pool == NULL) {
        tide_device_drop(device);
        pool_drop_buffers(options->buffers);
        tide_fail(TIDE_ERROR_MEMORY, "tide_pool_create", "no address space for a pool");
        return NULL;
    }
    tide_pool_core *core = pool->core;
    tide_error_prepare();
    core->device = device;
    core->streams = streams;
    pool_set_options(core, options);
    pool->copy = tide_pool_copy(core->check >= TIDE_CHECK_POISON);
    tide_pool_own(core);
    tide_assert(tide_shelf_real(pool, pool->shelves) && !tide_shelf_real(pool, core->log.undo));
    pool->tag = TIDE_LEVEL_ROOT;
    pool->log_top = core->log.start;
    pool->log_room = core->careful ? core->log.start : core->log.end;
    pool_tell_of(pool);
    return pool;
}

/* ---- rewind everything ------------------------------------------------------------------ */

static void pool_reset_row(tide_pool *pool, tide_row *row)
{
    tide_assert(tide_row_live(row) <= row->count);
    if (pool->core->careful)
        tide_row_retire(pool, row, row->slots);
    row->shelf->next = row->slots;
}

/* The log first, for its entries undo more than shelves. Then arrays of the root,
 * which no entry has. */
static void pool_rewind_all(tide_pool *pool, tide_place caller)
{
    tide_levels_clear(&pool->core->levels);
    pool->core->levels.closing = caller;
    tide_log_rewind(pool, pool->core->log.start);
    tide_assert(pool->core->streams.foreign_count == 0); /* each had its entry in the log */
    for (uint32_t i = 0; i < pool->core->rows.used_count; i++)
        pool_reset_row(pool, pool->core->rows.used[i]);
    pool->tag = tide_tag_at(pool, TIDE_LEVEL_ROOT);
    pool->saved = pool->core->rows.bits;
    tide_assert_valid(pool);
}

/* As a call of the program, whose scopes and marks may be open. */
static tide_status pool_abandon_all(tide_pool *pool, const char *call, tide_place caller)
{
    bool open = !tide_at_root(pool);
    if (open)
        TIDE_FORWARD(tide_abandon_admit(pool, TIDE_LEVEL_ROOT, call));
    pool_rewind_all(pool, caller);
    if (open)
        tide_abandon(pool);
    return TIDE_OK;
}

tide_status tide_pool_reset(tide_pool *pool)
{
    const char *call = "tide_pool_reset";
    TIDE_FORWARD(tide_pool_use(pool, call));
    return pool_abandon_all(pool, call, (tide_place){TIDE_CALLER});
}

tide_status tide_pool_empty(tide_pool *pool)
{
    const char *call = "tide_pool_empty";
    TIDE_FORWARD(tide_pool_use(pool, call));
    TIDE_FORWARD(tide_trim_admit(pool, call));
    TIDE_FORWARD(pool_abandon_all(pool, call, (tide_place){TIDE_CALLER}));
    tide_pool_trim_slots(pool);
    TIDE_RINGS_CALL(end_pool, pool, false);
    tide_assert(pool->core->memory.bytes_held == 0);
    return TIDE_OK;
}

/* ---- destroy ---------------------------------------------------------------------------- */

void tide_pool_discard(tide_pool *pool, tide_place caller)
{
    tide_pool_core *core = pool->core;
    tide_pool_delist(pool);
    if (core->check >= TIDE_CHECK_POISON)
        __atomic_sub_fetch(&tide_checked_pools, 1, __ATOMIC_RELAXED);
    if (tide_pool_owner(core) != tide_os_thread())
        tide_pool_own(core); /* a thread's pool may be discarded by whoever ends the process */
    pool_rewind_all(pool, caller);
    tide_pool_trim_slots(pool);
    TIDE_RINGS_CALL(end_pool, pool, true);
    tide_assert(core->memory.bytes_held == 0 &&
                core->capture == NULL); /* an ending has dropped it */
    for (uint32_t i = 0; i < core->rows.used_count; i++)
        tide_os_free(core->rows.used[i]->records);
    tide_levels_free(&core->levels);
    tide_device *device = core->device;
    tide_buffers *buffers = core->buffers;
    tide_shell_give(pool);
    tide_device_drop(device);
    pool_drop_buffers(buffers);
}

tide_status tide_pool_destroy(tide_pool *pool)
{
    if (pool == NULL)
        return TIDE_OK;
    const char *call = "tide_pool_destroy";
    TIDE_FORWARD(tide_pool_use(pool, call));
    if (!tide_at_root(pool))
        return tide_fail(TIDE_ERROR_STATE, call, "pool '%s' has %zu open scopes or marks",
                         pool->core->name, tide_depth(pool));
    if (pool->core->owner.local)
        return tide_fail(TIDE_ERROR_STATE, call, "pool '%s' ends with its thread, '%s'",
                         pool->core->name, pool->core->owner.name);
    tide_pool_discard(pool, (tide_place){TIDE_CALLER});
    return TIDE_OK;
}
