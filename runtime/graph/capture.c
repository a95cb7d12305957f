/* SPDX-License-Identifier: MIT */
/* What a graph uses, taken out of the pool for as long as the graph may be launched
 * (runtime/pool/streams.h, 7). A slot was handed out since the capture began if it has a peak:
 * beginning takes the peaks, and the limits with them, away. */
#include "runtime/graph/capture.h"

#include <tidepool/device.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/device/deferred.h"
#include "runtime/pool/export.h"
#include "runtime/pool/header.h"
#include "runtime/pool/row.h"
#include "runtime/pool/shut.h"
#include "runtime/pool/streams.h"

/* ---- begin ---------------------------------------------------------------------------------- */

/* The next use of each free slot comes by cold code, which notes a peak. */
static void capture_begin_row(tide_row *row)
{
    for (tide_slot *slot = row->shelf->next; slot < row->slots + row->count; slot++) {
        tide_slot_note_peak(tide_slot_record_of(row, slot));
        tide_slot_admit(slot, 0);
    }
}

static tide_status capture_check_begin(const tide_pool *pool, const char *call)
{
    const tide_pool_core *core = pool->core;
    if (core->device->host)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "pool '%s' is of the host: nothing is captured",
                         core->name);
    if (core->capture != NULL)
        return tide_fail(TIDE_ERROR_STATE, call, "a capture of pool '%s' has begun and not ended",
                         core->name);
    return tide_device_answers(core->device, call);
}

tide_status tide_capture_begin(tide_pool *pool)
{
    const char *call = "tide_capture_begin";
    TIDE_FORWARD(tide_pool_use(pool, call));
    TIDE_FORWARD(capture_check_begin(pool, call));
    tide_pool_core *core = pool->core;
    /* What rewinds queue inside of the capture becomes edges of the graph, so what was queued before it is put in
     * order now: all of it before whatever the pool's stream and declared ones do next. */
    TIDE_FORWARD(tide_streams_gather(pool, call));
    TIDE_FORWARD(tide_streams_finish(pool, TIDE_OK, call));
    tide_capture *capture = tide_os_resize(NULL, sizeof *capture);
    if (capture == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, call, "no memory for a capture of '%s'", core->name);
    *capture = (tide_capture){.device = core->device};
    for (uint32_t i = 0; i < core->rows.used_count; i++)
        if (!core->rows.used[i]->device->host)
            capture_begin_row(core->rows.used[i]);
    core->capture = capture;
    tide_assert_valid(pool);
    __atomic_fetch_add(&core->device->graphs, 1, __ATOMIC_RELAXED);
    return TIDE_OK;
}

/* ---- those that have ended and are not dropped ---------------------------------------------- */

static tide_lock capture_lock = TIDE_LOCK(TIDE_FORK_CAPTURES);
static tide_capture *captures_ended;

static void capture_take_lock(void)
{
    static const tide_fork_handlers handlers = {.lock = &capture_lock};
    tide_fork_register(TIDE_FORK_CAPTURES, &handlers);
    tide_lock_take(&capture_lock);
}

static void capture_enlist(tide_capture *capture)
{
    capture_take_lock();
    capture->next = captures_ended;
    captures_ended = capture;
    tide_lock_let_go(&capture_lock);
}

/* The link to it. Locked. */
static tide_capture **capture_find(const tide_capture *capture)
{
    tide_capture **link = &captures_ended;
    while (*link != NULL && *link != capture)
        link = &(*link)->next;
    return link;
}

static tide_status capture_refuse(const char *call)
{
    return tide_fail(TIDE_ERROR_STALE, call,
                     "the memory of these graphs was given back by tide_capture_drop: no graph is "
                     "launched after that");
}

/* ---- end ------------------------------------------------------------------------------------ */

static bool capture_uses(const tide_row *row, const tide_slot *slot)
{
    const tide_slot_record *record = tide_slot_record_of(row, slot);
    bool live = slot < row->shelf->next;
    return (slot->data != NULL || record->exported != NULL) && (live || record->peak != 0);
}

/* The position of a live slot lets go when the array is no more. Without memory for the descriptor
 * false; what was taken stays taken. */
static bool capture_take(tide_pool *pool, tide_capture *capture, tide_row *row, tide_slot *slot)
{
    tide_export *exported =
        tide_capture_make_room(capture, 1) ? tide_export_slot(pool, row, slot) : NULL;
    if (exported == NULL)
        return false;
    exported->captured = true;
    (void)tide_capture_keep(capture, exported);
    if (slot >= row->shelf->next)
        tide_export_settle(pool, row, slot);
    return true;
}

static bool capture_take_row(tide_pool *pool, tide_capture *capture, tide_row *row)
{
    for (tide_slot *slot = row->slots; slot < row->slots + row->count; slot++)
        if (capture_uses(row, slot) && !capture_take(pool, capture, row, slot))
            return false;
    return true;
}

static bool capture_take_all(tide_pool *pool, tide_capture *capture)
{
    tide_pool_core *core = pool->core;
    bool all = true;
    for (uint32_t i = 0; i < core->rows.used_count && all; i++)
        if (!core->rows.used[i]->device->host)
            all = capture_take_row(pool, capture, core->rows.used[i]);
    tide_assert_valid(pool);
    return all;
}

static void capture_ended(tide_pool_core *core)
{
    uint32_t before = __atomic_fetch_sub(&core->device->graphs, 1, __ATOMIC_RELAXED);
    tide_assert(before > 0 && core->capture != NULL);
    (void)before;
    tide_device_hold_again(core->device);
    core->capture = NULL;
}

tide_capture *tide_capture_end(tide_pool *pool)
{
    const char *call = "tide_capture_end";
    if (tide_pool_use_or_report(pool, call) != TIDE_OK)
        return NULL;
    tide_pool_core *core = pool->core;
    tide_capture *capture = core->capture;
    if (capture == NULL) {
        tide_fail(TIDE_ERROR_STATE, call, "no capture of pool '%s' has begun", core->name);
        return NULL;
    }
    if (!capture_take_all(pool, capture)) {
        tide_fail(TIDE_ERROR_MEMORY, call, "no memory to note the arrays of a graph of pool '%s'",
                  core->name);
        return NULL;
    }
    capture_ended(core);
    capture_enlist(capture);
    return capture;
}

/* ---- launches -------------------------------------------------------------------------------- */

static bool capture_is_live(const tide_capture *capture)
{
    capture_take_lock();
    bool live = *capture_find(capture) != NULL;
    tide_lock_let_go(&capture_lock);
    return live;
}

/* What is queued on the stream from now on comes after the last launch that was told. */
static tide_status capture_follow(const tide_capture *capture, void *stream, const char *call)
{
    tide_device *device = capture->device;
    if (!capture->launched || capture->last == stream || tide_device_lost(device))
        return TIDE_OK;
    TIDE_FORWARD(tide_device_check_captures(device, capture->last, device, stream, call));
    return device->methods->order(device, capture->last, stream);
}

tide_status tide_capture_use_on(tide_capture *capture, void *stream)
{
    const char *call = "tide_capture_use_on";
    if (!capture_is_live(capture))
        return capture_refuse(call);
    TIDE_FORWARD(capture_follow(capture, stream, call));
    capture->last = stream;
    capture->launched = true;
    return TIDE_OK;
}

/* ---- drop ----------------------------------------------------------------------------------- */

static void capture_go(tide_device *device, tide_deferred *deferred)
{
    tide_capture *capture = (tide_capture *)(void *)deferred;
    for (size_t i = 0; i < capture->count; i++)
        tide_export_drop(capture->held[i]);
    tide_os_free(capture->held);
    tide_os_free(capture);
    tide_device_drop(device);
}

void tide_capture_finish(tide_pool *pool)
{
    tide_capture *capture = pool->core->capture;
    if (capture == NULL)
        return;
    capture_ended(pool->core);
    tide_deferred_put(capture->device, tide_streams_last(pool), &capture->deferred, capture_go);
}

/* False: another thread has dropped it. */
static bool capture_forget(const tide_capture *capture)
{
    capture_take_lock();
    tide_capture **link = capture_find(capture);
    bool live = *link != NULL;
    if (live)
        *link = capture->next;
    tide_lock_let_go(&capture_lock);
    return live;
}

tide_status tide_capture_drop(tide_capture *capture, void *stream)
{
    const char *call = "tide_capture_drop";
    if (capture == NULL)
        return TIDE_OK;
    if (!capture_is_live(capture))
        return capture_refuse(call);
    tide_device *device = capture->device;
    if (!tide_device_lost(device) && tide_device_capturing(device, stream))
        return tide_fail(TIDE_ERROR_STATE, call, "a graph is captured on stream %p of device %s",
                         stream, device->name);
    if (tide_device_exiting(device) && !tide_device_lost(device))
        return tide_device_answers(device, call);
    TIDE_FORWARD(capture_follow(capture, stream, call));
    if (!capture_forget(capture))
        return capture_refuse(call);
    tide_device_hold_again(device); /* the capture's own goes */
    tide_deferred_put(device, stream, &capture->deferred, capture_go);
    (void)tide_deferred_settle(device, false);
    tide_device_drop(device);
    return TIDE_OK;
}
