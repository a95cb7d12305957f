/* SPDX-License-Identifier: MIT */
/* A pool's stream and those declared beside it: how each is ordered after the others, and what is
 * asked of them. The proof is in runtime/pool/streams.h. */
#include "runtime/pool/streams.h"

#include <tidepool/device.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/pool/header.h"
#include "runtime/pool/level.h"
#include "runtime/pool/request.h"
#include "runtime/pool/row.h"

/* ---- order -------------------------------------------------------------------------------- */

/* Where an event is refused the host waits for what is to come before. */
static tide_status streams_order(const tide_pool_core *core, const tide_foreign *foreign, bool join)
{
    tide_device *device = core->device;
    void *before = join ? foreign->stream : core->streams.own;
    void *after = join ? core->streams.own : foreign->stream;
    tide_assert(foreign->number != 0 && foreign->number != core->streams.own_number);
    tide_status status = device->methods->order(device, before, after);
    return TIDE_LIKELY(status == TIDE_OK) || !tide_device_stream_over(device, before)
               ? status
               : tide_device_answers(device, "tide_pool_use_on");
}

/* The first failure is returned, and keeps none from being ordered. */
static tide_status streams_order_all(const tide_pool *pool, bool join)
{
    const tide_pool_core *core = pool->core;
    tide_status failed = TIDE_OK;
    tide_assert(core->streams.foreign_count <= TIDE_FOREIGN_MAX);
    for (uint32_t i = 0; i < core->streams.foreign_count; i++) {
        tide_status status = streams_order(core, &core->streams.foreign[i], join);
        failed = failed == TIDE_OK ? status : failed;
    }
    return failed;
}

static tide_status streams_refuse(const tide_pool *pool, tide_status failed, const char *call)
{
    TIDE_FORWARD(tide_device_answers(pool->core->device, call));
    return failed == TIDE_OK
               ? TIDE_OK
               : tide_fail(TIDE_ERROR_DEVICE, call,
                           "the streams of pool '%s' could be neither ordered nor waited for",
                           pool->core->name);
}

/* ---- rewinds ------------------------------------------------------------------------------ */

/* Does the rewind put back shelves and nothing else, so that the one stream declared is ordered with the
 * pool's both ways at once? */
static bool streams_only_frees(const tide_pool *pool, const tide_entry *base)
{
    if (pool->core->streams.foreign_count != 1 || pool->core->careful ||
        pool->core->device->methods->order_both == NULL)
        return false;
    for (const tide_entry *entry = base; entry != pool->log_top; entry++)
        if (!tide_shelf_real(pool, entry->shelf))
            return false;
    return true;
}

/* False: one of the orders was refused. */
static bool streams_order_both(const tide_pool_core *core)
{
    return core->device->methods->order_both(core->device, core->streams.own,
                                             core->streams.foreign[0].stream) == TIDE_OK;
}

/* Does undoing the entry free memory or end a declaration? A shelf that is where it was frees
 * nothing. An import gives its tensor back. */
static bool streams_entry_matters(const tide_pool *pool, const tide_entry *entry)
{
    if (tide_shelf_real(pool, entry->shelf))
        return entry->shelf->next > entry->next;
    return entry->shelf == &pool->core->log.undo[TIDE_UNDO_STREAM] ||
           entry->shelf == &pool->core->log.undo[TIDE_UNDO_IMPORT];
}

bool tide_streams_join(tide_pool *pool, const tide_entry *base)
{
    tide_assert(base >= pool->core->log.start && base <= pool->log_top);
    if (pool->core->streams.foreign_count == 0)
        return false;
    tide_assert(pool->core->attended);
    for (const tide_entry *entry = base; entry != pool->log_top; entry++)
        if (streams_entry_matters(pool, entry)) {
            if (streams_only_frees(pool, base) && streams_order_both(pool->core))
                return false;
            (void)streams_order_all(pool, true);
            return true;
        }
    return false;
}

void tide_streams_part(tide_pool *pool)
{
    (void)streams_order_all(pool, false);
}

void tide_streams_undo(tide_pool *pool, const tide_entry *entry)
{
    (void)entry;
    tide_assert(entry->shelf == &pool->core->log.undo[TIDE_UNDO_STREAM]);
    tide_pool_streams *streams = &pool->core->streams;
    tide_assert(streams->foreign_count > 0 && pool->core->attended);
    streams->foreign_count--;
    if (streams->foreign_count == 0) {
        pool->core->attended = pool->core->careful;
        tide_log_reopen(pool);
    }
}

tide_status tide_streams_finish(tide_pool *pool, tide_status status, const char *call)
{
    if (TIDE_LIKELY(pool->core->streams.foreign_count == 0))
        return status;
    if (status == TIDE_OK)
        return streams_refuse(pool, streams_order_all(pool, false), call);
    tide_failure first;
    tide_failure_keep(&first);
    (void)streams_order_all(pool, false);
    tide_failure_restore(&first);
    return status;
}

tide_status tide_streams_gather(tide_pool *pool, const char *call)
{
    return TIDE_LIKELY(pool->core->streams.foreign_count == 0)
               ? TIDE_OK
               : streams_refuse(pool, streams_order_all(pool, true), call);
}

/* ---- the pool's own ------------------------------------------------------------------------- */

tide_status tide_streams_ask(tide_device *device, void *stream, tide_check check, const char *call,
                             uint64_t *said)
{
    tide_assert(check != TIDE_CHECK_DEFAULT);
    *said = TIDE_STREAM_UNASKED;
    if (check < TIDE_CHECK_POISON || device->methods->stream_check == NULL ||
        tide_device_own_stream(device, stream))
        return TIDE_OK;
    *said = device->methods->stream_check(device, stream);
    return *said != 0
               ? TIDE_OK
               : tide_fail(tide_error_status(), call, "%s", tide_failed_words("tide_device"));
}

/* Is the pool's stream what it was when the pool was made? Only a checked pool asks. */
static bool streams_has_own(const tide_pool_core *core)
{
    const tide_pool_streams *streams = &core->streams;
    if (TIDE_LIKELY(streams->own_checked <= TIDE_STREAM_UNASKED))
        return true;
    uint64_t now = core->device->methods->stream_check(core->device, streams->own);
    return now == streams->own_checked || now == TIDE_STREAM_UNASKED;
}

tide_status tide_streams_own(const tide_pool *pool, const char *call)
{
    const tide_pool_core *core = pool->core;
    TIDE_FORWARD(tide_device_answers(core->device, call));
    if (TIDE_LIKELY(streams_has_own(core)))
        return TIDE_OK;
    TIDE_FORWARD(tide_device_answers(core->device, call));
    return tide_fail(TIDE_ERROR_STATE, call, "the stream of pool '%s', %p, was destroyed",
                     core->name, core->streams.own);
}

void *tide_streams_last(const tide_pool *pool)
{
    tide_device *device = pool->core->device;
    if (TIDE_LIKELY(streams_has_own(pool->core)) || tide_device_lost(device))
        return pool->core->streams.own;
    tide_failure first;
    tide_failure_keep(&first);
    (void)device->methods->wait_all(device);
    tide_failure_restore(&first);
    return device->service;
}

/* The handle means another stream in another thread. */
tide_status tide_streams_adopt(const tide_pool *pool, const char *call)
{
    const tide_pool_core *core = pool->core;
    tide_device *device = core->device;
    if (!tide_device_own_stream(device, core->streams.own) ||
        device->methods->stream_number(device, core->streams.own) == core->streams.own_number)
        return TIDE_OK;
    return tide_fail(TIDE_ERROR_STATE, call,
                     "pool '%s' is on the default stream of its owner's thread, and cannot have "
                     "another owner",
                     core->name);
}

/* ---- declare ------------------------------------------------------------------------------ */

static bool streams_is_declared(const tide_pool_core *core, const tide_foreign *foreign)
{
    for (uint32_t i = 0; i < core->streams.foreign_count; i++)
        if (core->streams.foreign[i].number == foreign->number)
            return true;
    return false;
}

/* Orders the stream after the pool's, and remembers it for as long as the open level lasts. */
static tide_status streams_declare(tide_pool *pool, const char *call, const tide_foreign *foreign)
{
    tide_pool_core *core = pool->core;
    if (core->streams.foreign_count == TIDE_FOREIGN_MAX)
        return tide_fail(TIDE_ERROR_LIMIT, call, "pool '%s' is used on %d other streams already",
                         core->name, TIDE_FOREIGN_MAX);
    uint64_t said = 0; /* a stream is asked about when it is declared first */
    TIDE_FORWARD(tide_streams_ask(core->device, foreign->stream, core->check, call, &said));
    if (!tide_log_room(pool, 1, call))
        return TIDE_ERROR_LIMIT;
    TIDE_FORWARD(core->device->methods->order(core->device, core->streams.own, foreign->stream));
    tide_assert(foreign->number != 0 && !tide_at_root(pool));
    core->streams.foreign[core->streams.foreign_count++] = *foreign;
    core->attended = true;
    tide_log_push(pool, &core->log.undo[TIDE_UNDO_STREAM], NULL, 0);
    tide_log_reopen(pool); /* which closes it now that a stream is declared */
    return TIDE_OK;
}

/* A stream that waits for work of a captured one joins the capture; a captured one that waits for
 * work from outside loses it. */
static tide_status streams_check_capture(const tide_pool_core *core, void *stream, const char *call)
{
    tide_device *device = core->device;
    if (!tide_device_capturing(device, stream) || tide_device_capturing(device, core->streams.own))
        return TIDE_OK;
    return tide_fail(TIDE_ERROR_STATE, call,
                     "a graph is captured on stream %p that is not captured on that of pool '%s'",
                     stream, core->name);
}

tide_status tide_pool_use_on(tide_pool *pool, void *stream)
{
    const char *call = "tide_pool_use_on";
    TIDE_FORWARD(tide_pool_use(pool, call));
    tide_pool_core *core = pool->core;
    tide_foreign foreign = {.stream = stream};
    if (tide_at_root(pool)) /* no rewind would end the declaration */
        return tide_fail(TIDE_ERROR_STATE, call, "pool '%s' has no open scope or mark", core->name);
    TIDE_FORWARD(tide_device_find_stream(core->device, stream, call, &foreign.number));
    TIDE_FORWARD(tide_streams_own(pool, call));
    if (foreign.number == core->streams.own_number)
        return TIDE_OK;
    TIDE_FORWARD(streams_check_capture(core, stream, call));
    if (streams_is_declared(core, &foreign))
        return core->device->methods->order(core->device, core->streams.own, stream);
    return streams_declare(pool, call, &foreign);
}

/* ---- what a user asks of a pool's device -------------------------------------------------- */

void *tide_device_buffer(tide_pool *pool, const void *data, size_t *offset)
{
    const char *call = "tide_device_buffer";
    if (tide_pool_use_or_report(pool, call) != TIDE_OK)
        return NULL;
    if (data == NULL || offset == NULL) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the %s is NULL", data == NULL ? "pointer" : "offset");
        return NULL;
    }
    tide_device *device = pool->core->device;
    return device->methods->buffer != NULL ? device->methods->buffer(device, data, offset) : NULL;
}

tide_status tide_pool_wait(tide_pool *pool)
{
    const char *call = "tide_pool_wait";
    TIDE_FORWARD(tide_pool_use(pool, call));
    TIDE_FORWARD(tide_streams_own(pool, call));
    return pool->core->device->methods->wait(pool->core->device, pool->core->streams.own);
}
