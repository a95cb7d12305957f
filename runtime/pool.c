/* SPDX-License-Identifier: MIT */
/* A pool's beginning and end, its owner, and the two ways to rewind all of it. */
#include "runtime/pool.h"

#include <stdio.h>
#include <string.h>

#include "runtime/assert.h"
#include "runtime/check.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/seam.h"
#include "runtime/settings.h"
#include "runtime/shelf.h"

enum { PAGE = 4096 };

#define PAGES(bytes) (((bytes) + PAGE - 1) / PAGE * PAGE)

/* The reservation, part by part; see runtime/pool.h. */
enum {
    CORE_AT = PAGES(sizeof(tide_pool) + TIDE_TYPE_LIMIT * sizeof(tide_shelf)),
    USED_AT = PAGES(CORE_AT + sizeof(tide_pool_core)),
    LOG_AT = PAGES(USED_AT + TIDE_TYPE_LIMIT * sizeof(tide_shelf *)),
    ROWS_AT = PAGES(LOG_AT + TIDE_LOG_ENTRIES * sizeof(tide_entry)),
    RESERVED = PAGES(ROWS_AT + TIDE_EXTENT_BYTES)
};

/* ---- create ----------------------------------------------------------------------------- */

static tide_check check_level(tide_check asked)
{
    if (asked != TIDE_CHECK_DEFAULT)
        return asked;
    return (tide_check)(TIDE_CHECK_NONE + (int)tide_setting_get(TIDE_SETTING_check));
}

static size_t limit_bytes(size_t asked)
{
    if (asked != 0)
        return asked;
    double mebibytes = tide_setting_get(TIDE_SETTING_limit);
    return mebibytes > 0 ? (size_t)(mebibytes * 1048576) : SIZE_MAX;
}

static tide_status validate(const tide_pool_options *options)
{
    const char *call = "tide_pool_create";
    if ((unsigned)options->check > TIDE_CHECK_POISON)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "check is %d, most is %d", options->check,
                         TIDE_CHECK_POISON);
    if (options->device == NULL && options->stream != NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "a stream was given, but no device");
    return TIDE_OK;
}

static void own(tide_pool_core *core)
{
    core->owner = tide_os_thread();
    tide_os_thread_name(core->owner_name);
}

static void set_options(tide_pool_core *core, const tide_pool_options *options)
{
    snprintf(core->name, sizeof core->name, "%s", options->name != NULL ? options->name : "pool");
    core->device = options->device != NULL ? options->device : &tide_device_host;
    core->stream = options->stream;
    core->limit_bytes = limit_bytes(options->limit_bytes);
    core->check = check_level(options->check);
    core->disabled = options->disabled || tide_setting_get(TIDE_SETTING_disable) != 0;
    core->careful = core->disabled || core->check >= TIDE_CHECK_POISON;
}

tide_pool *tide_pool_create(const tide_pool_options *options)
{
    const tide_pool_options defaults = {0};
    options = options != NULL ? options : &defaults;
    tide_seam_attach();
    if (validate(options) != TIDE_OK)
        return NULL;
    char *start = tide_os_reserve(RESERVED);
    if (start == NULL) {
        tide_fail(TIDE_ERROR_MEMORY, "tide_pool_create", "no %zu bytes of address space",
                  (size_t)RESERVED);
        return NULL;
    }
    tide_pool *pool = (tide_pool *)(void *)start;
    tide_pool_core *core = pool->core = (tide_pool_core *)(void *)(start + CORE_AT);
    core->used = (tide_shelf **)(void *)(start + USED_AT);
    core->log = (tide_entry *)(void *)(start + LOG_AT);
    core->log_end = core->log + TIDE_LOG_ENTRIES;
    core->extents[0] = start + ROWS_AT;
    core->extent_count = 1;
    set_options(core, options);
    own(core);
    pool->tag = TIDE_TAG_ROOT;
    pool->log_top = core->log;
    pool->log_room = core->careful ? core->log : core->log_end;
    return pool;
}

/* ---- ownership -------------------------------------------------------------------------- */

tide_status tide_pool_use(const tide_pool *pool, const char *call)
{
    if (TIDE_UNLIKELY(pool == NULL))
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the pool is NULL");
    const tide_pool_core *core = pool->core;
    if (core->check < TIDE_CHECK_POISON || core->owner == tide_os_thread())
        return TIDE_OK;
    char name[TIDE_OS_NAME_BYTES];
    tide_os_thread_name(name);
    return tide_fail(TIDE_ERROR_THREAD, call,
                     "pool '%s' belongs to thread '%s' (%#zx), not to thread '%s' (%#zx)",
                     core->name, core->owner_name, (size_t)core->owner, name,
                     (size_t)tide_os_thread());
}

tide_status tide_pool_adopt(tide_pool *pool)
{
    if (pool == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_pool_adopt", "the pool is NULL");
    own(pool->core);
    return TIDE_OK;
}

/* ---- rewind everything ------------------------------------------------------------------ */

static void reset_shelf(tide_pool *pool, tide_shelf *shelf)
{
    if (pool->core->careful)
        tide_shelf_retire(pool, shelf, shelf->row);
    shelf->next = shelf->row;
    shelf->saved_at = TIDE_TAG_ROOT;
}

static void reset(tide_pool *pool)
{
    tide_log_rewind(pool, pool->core->log);
    for (uint32_t i = 0; i < pool->core->used_count; i++)
        reset_shelf(pool, pool->core->used[i]);
    if (pool->tag != TIDE_TAG_ROOT)
        tide_abandon(pool, tide_level(TIDE_TAG_ROOT));
    pool->tag = TIDE_TAG_ROOT;
    tide_assert_valid(pool);
}

tide_status tide_pool_reset(tide_pool *pool)
{
    TIDE_FORWARD(tide_pool_use(pool, "tide_pool_reset"));
    reset(pool);
    return TIDE_OK;
}

tide_status tide_pool_empty(tide_pool *pool)
{
    TIDE_FORWARD(tide_pool_use(pool, "tide_pool_empty"));
    reset(pool);
    tide_pool_trim(pool, TIDE_ALL_TYPES);
    tide_assert(pool->core->bytes_held == 0);
    return TIDE_OK;
}

/* ---- destroy ---------------------------------------------------------------------------- */

void tide_pool_discard(tide_pool *pool)
{
    tide_pool_core *core = pool->core;
    own(core); /* a thread's pool may be discarded by whoever ends the process */
    reset(pool);
    tide_pool_trim(pool, TIDE_ALL_TYPES);
    for (uint32_t i = 0; i < core->used_count; i++)
        tide_os_free(core->used[i]->records);
    for (uint32_t i = 1; i < core->extent_count; i++)
        tide_os_unreserve(core->extents[i], TIDE_EXTENT_BYTES);
    tide_os_unreserve(pool, RESERVED);
}

tide_status tide_pool_destroy(tide_pool *pool)
{
    if (pool == NULL)
        return TIDE_OK;
    TIDE_FORWARD(tide_pool_use(pool, "tide_pool_destroy"));
    if (pool->tag != TIDE_TAG_ROOT)
        return tide_fail(TIDE_ERROR_STATE, "tide_pool_destroy",
                         "pool '%s' has %zu open scopes or marks", pool->core->name,
                         tide_pool_depth(pool));
    tide_pool_discard(pool);
    return TIDE_OK;
}
