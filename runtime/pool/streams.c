/* SPDX-License-Identifier: MIT */
/* A pool's stream and those declared beside it: how each is ordered after the others, and what is
 * asked of them. The proof is in runtime/pool/streams.h. */
#include "runtime/pool/streams.h"

#include <tidepool/device.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/pool/change.h"
#include "runtime/pool/header.h"
#include "runtime/pool/log.h"
#include "runtime/pool/request.h"
#include "runtime/pool/row.h"

/* ---- order -------------------------------------------------------------------------------- */

/* Is the handle still of the stream that was declared? */
static bool streams_is_known(const tide_pool_core *core, const tide_foreign *foreign)
{
    return core->device->methods->stream_number(core->device, foreign->stream) == foreign->number;
}

/* Every acquire comes by cold code from now on. */
static void streams_hide_limits(tide_pool *pool)
{
    tide_assert(pool->core->streams.unordered);
    for (uint32_t i = 0; i < pool->core->rows.used_count; i++) {
        const tide_row *row = pool->core->rows.used[i];
        for (tide_slot *slot = row->slots; slot < row->slots + row->count; slot++)
            tide_slot_admit(slot, 0);
    }
}

/* Is the pool's stream what it was when the pool was made? */
static bool streams_has_own(const tide_pool_core *core)
{
    return core->device->methods->stream_number(core->device, core->streams.own) ==
           core->streams.own_number;
}

/* Also if the handle means another stream now, or the driver does not tell. */
static bool streams_is_captured(const tide_pool_core *core, const tide_foreign *foreign)
{
    return core->device->methods->capturing(core->device, foreign->stream);
}

static bool streams_is_noted(const tide_pool_core *core, const tide_foreign *foreign)
{
    for (uint32_t i = 0; i < core->streams.apart_count; i++)
        if (core->streams.apart[i].number == foreign->number)
            return true;
    return false;
}

/* All declared streams that are captured, for their declarations may end with this rewind. An
 * unordered pool takes no new declarations, so there is room. */
static void streams_note_captured(tide_pool_core *core)
{
    for (uint32_t i = 0; i < core->streams.foreign_count; i++) {
        const tide_foreign *foreign = &core->streams.foreign[i];
        if (!streams_is_captured(core, foreign) || streams_is_noted(core, foreign))
            continue;
        tide_assert(core->streams.apart_count < TIDE_FOREIGN_MAX);
        core->streams.apart[core->streams.apart_count++] = *foreign;
    }
}

/* Would a wait for the device end a capture of one of the pool's streams? Of its own handle, too,
 * if that means another stream now. */
static bool streams_would_end_capture(const tide_pool_core *core)
{
    const tide_pool_streams *streams = &core->streams;
    for (uint32_t i = 0; i < streams->apart_count; i++)
        if (streams_is_captured(core, &streams->apart[i]))
            return true;
    for (uint32_t i = 0; i < streams->foreign_count; i++)
        if (streams_is_captured(core, &streams->foreign[i]))
            return true;
    return core->device->methods->capturing(core->device, streams->own);
}

/* Where events failed the host waits for all work. If it cannot, the pool is unordered. */
static void streams_wait_instead(tide_pool *pool)
{
    tide_pool_streams *streams = &pool->core->streams;
    tide_device *device = pool->core->device;
    streams_note_captured(pool->core);
    streams->unordered =
        streams_would_end_capture(pool->core) || device->methods->wait_all(device) != TIDE_OK;
    if (!streams->unordered)
        streams->apart_count = 0;
}

void tide_streams_settle(tide_pool *pool)
{
    if (TIDE_UNLIKELY(pool->core->streams.unordered))
        streams_wait_instead(pool);
}

/* May the other stream go on without waiting for what the pool's stream queues now? Where the
 * pool's is captured, that becomes a part of a graph, or of nothing if the capture has failed;
 * tide_capture_begin has ordered what was before. On the legacy stream beside a capture everything
 * runs. What the other stream does in a capture of its own can never be ordered. */
static bool streams_stands_apart(const tide_pool_core *core, const tide_foreign *foreign)
{
    tide_device *device = core->device;
    void *own = core->streams.own;
    tide_assert(device->methods->capture_number != NULL); /* else no two streams are apart */
    uint64_t number = device->methods->capture_number(device, own);
    if (number == TIDE_CAPTURE_FAILED || number == TIDE_CAPTURE_BESIDE)
        return number == TIDE_CAPTURE_FAILED;
    return device->methods->capturing(device, own) && !streams_is_captured(core, foreign);
}

/* One of the two streams is captured and the other is not, or each in a capture of its own: an
 * event between them would end the capture, and in the graph's launches it would order nothing. If
 * only the pool's is captured the host waits for the declared one, so that what is captured after a
 * join comes after it. If the declared one is, what it did before its capture can be neither
 * ordered nor waited for, and what it does after that comes after nothing: both are refused. So is
 * a part where neither is captured any more: the host can wait then. */
static tide_status streams_order_apart(const tide_pool_core *core, const tide_foreign *foreign,
                                       bool join)
{
    tide_device *device = core->device;
    if (join)
        return device->methods->wait(device, foreign->stream);
    return streams_stands_apart(core, foreign) ? TIDE_OK : TIDE_ERROR_STATE;
}

static bool streams_are_apart(const tide_pool_core *core, const tide_foreign *foreign)
{
    tide_device *device = core->device;
    return !tide_device_captured_alike(device, core->streams.own, device, foreign->stream);
}

/* Fails for a stream that is gone: it may have had work, and no event can be queued behind that. */
static tide_status streams_order(const tide_pool_core *core, const tide_foreign *foreign, bool join)
{
    tide_assert(foreign->number != 0 && foreign->number != core->streams.own_number);
    void *before = join ? foreign->stream : core->streams.own;
    void *after = join ? core->streams.own : foreign->stream;
    if (!streams_is_known(core, foreign))
        return TIDE_ERROR_STATE;
    return streams_are_apart(core, foreign)
               ? streams_order_apart(core, foreign, join)
               : core->device->methods->order(core->device, before, after);
}

/* One wait for the device is a wait for all of them, so the first failure ends the loop. */
static void streams_order_all(tide_pool *pool, bool join)
{
    tide_pool_core *core = pool->core;
    tide_assert(core->streams.foreign_count <= TIDE_FOREIGN_MAX);
    for (uint32_t i = 0; i < core->streams.foreign_count; i++)
        if (streams_order(core, &core->streams.foreign[i], join) != TIDE_OK) {
            streams_wait_instead(pool);
            return;
        }
}

/* ---- rewinds ------------------------------------------------------------------------------ */

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
            streams_order_all(pool, true);
            return true;
        }
    return false;
}

void tide_streams_part(tide_pool *pool)
{
    streams_order_all(pool, false);
    if (TIDE_UNLIKELY(pool->core->streams.unordered))
        streams_hide_limits(pool);
}

void tide_streams_undo(tide_pool *pool, const tide_entry *entry)
{
    (void)entry;
    tide_assert(entry->shelf == &pool->core->log.undo[TIDE_UNDO_STREAM]);
    tide_pool_streams *streams = &pool->core->streams;
    tide_assert(streams->foreign_count > 0 && pool->core->attended);
    tide_device_keep_stream(pool->core->device, streams->foreign[--streams->foreign_count].number,
                            false);
    if (streams->foreign_count == 0) {
        pool->core->attended = pool->core->careful;
        tide_log_reopen(pool);
    }
}

void tide_streams_follow(tide_pool *pool)
{
    if (TIDE_UNLIKELY(pool->core->streams.foreign_count != 0))
        tide_streams_part(pool);
}

tide_status tide_streams_finish(tide_pool *pool, tide_status status, const char *call)
{
    if (TIDE_LIKELY(status == TIDE_OK)) {
        tide_streams_follow(pool);
        return tide_streams_ordered(pool, call);
    }
    tide_failure first;
    tide_failure_keep(&first);
    tide_streams_follow(pool);
    tide_failure_restore(&first);
    return status;
}

tide_status tide_streams_gather(tide_pool *pool, const char *call)
{
    if (TIDE_UNLIKELY(pool->core->streams.foreign_count != 0))
        streams_order_all(pool, true);
    if (TIDE_UNLIKELY(pool->core->streams.unordered))
        streams_hide_limits(pool);
    return tide_streams_ordered(pool, call);
}

tide_status tide_streams_own(const tide_pool *pool, const char *call)
{
    const tide_pool_core *core = pool->core;
    uint64_t number = core->device->methods->stream_number(core->device, core->streams.own);
    if (number == core->streams.own_number)
        return TIDE_OK;
    if (number == 0 && tide_error_status() != TIDE_ERROR_ARGUMENT)
        return tide_device_no_number(call);
    TIDE_FORWARD(tide_device_answers(core->device, call));
    return tide_fail(TIDE_ERROR_STATE, call, "the stream of pool '%s', %p, was destroyed",
                     core->name, core->streams.own);
}

/* The handle means another stream now, and the old one has no handle here: no event orders them.
 * Where the device does not tell (it is lost, or the process exits) the owner's calls will fail. */
tide_status tide_streams_adopt(tide_pool *pool, const char *call)
{
    tide_pool_core *core = pool->core;
    tide_device *device = core->device;
    if (!tide_device_own_stream(device, core->streams.own))
        return TIDE_OK;
    uint64_t number = device->methods->stream_number(device, core->streams.own);
    if (number == 0 || number == core->streams.own_number)
        return TIDE_OK;
    if (device->methods->wait_all(device) != TIDE_OK)
        return tide_fail(TIDE_ERROR_STATE, call,
                         "pool '%s' is on its owner's default stream, which could not be waited "
                         "for: %s",
                         core->name, tide_error_message());
    core->streams.own_number = number;
    return TIDE_OK;
}

bool tide_streams_last(const tide_pool *pool, void **stream)
{
    const tide_pool_core *core = pool->core;
    bool own = streams_has_own(core), ordered = own && !core->streams.unordered;
    *stream = own ? core->streams.own : core->device->service;
    return ordered || tide_streams_all_over(pool);
}

bool tide_streams_all_over(const tide_pool *pool)
{
    return !streams_would_end_capture(pool->core) && tide_device_all_over(pool->core->device);
}

bool tide_streams_over(const tide_pool *pool, void *stream)
{
    return tide_device_stream_over(pool->core->device, stream);
}

tide_status tide_streams_quiet(const tide_pool *pool, const char *call)
{
    const tide_pool_core *core = pool->core;
    if (!core->device->methods->capturing(core->device, core->streams.own))
        return TIDE_OK;
    return tide_fail(TIDE_ERROR_STATE, call,
                     "pool '%s' can neither grow nor give back while a graph is captured on its "
                     "stream: warm it up before",
                     core->name);
}

tide_status tide_streams_let_go(const tide_pool *pool, const char *call)
{
    TIDE_FORWARD(tide_streams_quiet(pool, call));
    if (pool->core->capture == NULL)
        return TIDE_OK;
    return tide_fail(TIDE_ERROR_STATE, call,
                     "pool '%s' notes what a capture uses: tide_capture_end comes before its "
                     "memory may go",
                     pool->core->name);
}

tide_status tide_streams_ordered(const tide_pool *pool, const char *call)
{
    if (TIDE_LIKELY(!pool->core->streams.unordered))
        return TIDE_OK;
    TIDE_FORWARD(tide_device_answers(pool->core->device, call)); /* else a reset would help */
    return tide_fail(TIDE_ERROR_DEVICE, call,
                     "the streams of pool '%s' could be neither ordered nor waited for: reset it",
                     pool->core->name);
}

/* ---- declare ------------------------------------------------------------------------------ */

static bool streams_is_declared(const tide_pool_core *core, const tide_foreign *foreign)
{
    for (uint32_t i = 0; i < core->streams.foreign_count; i++)
        if (core->streams.foreign[i].number == foreign->number)
            return true;
    return false;
}

/* A captured stream that waits for work outside of its capture loses the capture. */
static tide_status streams_check_capture(const tide_pool_core *core, const char *call,
                                         const tide_foreign *foreign)
{
    if (!core->device->methods->capturing(core->device, foreign->stream) ||
        !streams_are_apart(core, foreign))
        return TIDE_OK;
    return tide_fail(TIDE_ERROR_STATE, call,
                     "a graph is captured on stream %p that is not captured on that of pool '%s'",
                     foreign->stream, core->name);
}

static tide_status streams_check_declaration(const tide_pool *pool, const char *call,
                                             const tide_foreign *foreign)
{
    const tide_pool_core *core = pool->core;
    TIDE_FORWARD(tide_streams_own(pool, call));
    TIDE_FORWARD(tide_streams_ordered(pool, call));
    return streams_check_capture(core, call, foreign);
}

/* Orders the stream after the pool's, and remembers it for as long as the open level lasts. */
static tide_status streams_declare(tide_pool *pool, const char *call, const tide_foreign *foreign)
{
    tide_pool_core *core = pool->core;
    if (core->streams.foreign_count == TIDE_FOREIGN_MAX)
        return tide_fail(TIDE_ERROR_LIMIT, call, "pool '%s' is used on %d other streams already",
                         core->name, TIDE_FOREIGN_MAX);
    if (!tide_log_room(pool, 1, call))
        return TIDE_ERROR_LIMIT;
    TIDE_FORWARD(core->device->methods->order(core->device, core->streams.own, foreign->stream));
    tide_assert(foreign->number != 0 && !tide_at_root(pool));
    uintptr_t before = tide_change_begin(core);
    core->streams.foreign[core->streams.foreign_count++] = *foreign;
    tide_device_keep_stream(core->device, foreign->number, true);
    core->attended = true;
    tide_log_push(pool, &core->log.undo[TIDE_UNDO_STREAM], NULL, 0);
    tide_change_end(core, before);
    tide_log_reopen(pool); /* which closes it now that a stream is declared */
    return TIDE_OK;
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
    TIDE_FORWARD(streams_check_declaration(pool, call, &foreign));
    if (foreign.number == core->streams.own_number)
        return TIDE_OK;
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
    return pool->core->device->methods->buffer(pool->core->device, data, offset);
}

tide_status tide_pool_wait(tide_pool *pool)
{
    const char *call = "tide_pool_wait";
    TIDE_FORWARD(tide_pool_use(pool, call));
    TIDE_FORWARD(tide_streams_own(pool, call));
    return pool->core->device->methods->wait(pool->core->device, pool->core->streams.own);
}
