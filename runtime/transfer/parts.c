/* SPDX-License-Identifier: MIT */
/* Whole frames: all parts copied in one transfer, or filled in one launch.
 *
 * For one transfer the parts lie packed in a block on the device, itself an array of the pool for
 * as long as the call takes. Kernels for frames pack and unpack it in one launch; where there are
 * none, the frame goes part by part. So does much data, which gains nothing from packing. */
#include <string.h>

#include <tidepool/acquire.h>
#include <tidepool/device.h>
#include <tidepool/mark.h>

#include "runtime/array/fill.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/type.h"
#include "runtime/pool/streams.h"
#include "runtime/scope/mark.h"
#include "runtime/transfer/copy.h"
#include "runtime/transfer/frame_help.h"
#include "runtime/transfer/pinned_ring.h"

enum { PACK_MAX = 16 << 20 }; /* bytes */

_Static_assert(PACK_MAX % TIDE_PACK_ALIGN == 0,
               "a part that ends within the limit is padded within it");
_Static_assert(sizeof(tide_piece) <= sizeof(tide_part),
               "bytes for as many pieces as there are parts in memory do not overflow");

/* ---- what a frame is ------------------------------------------------------------------------ */

/* Sizes have been checked where this is asked. */
static size_t parts_bytes_of(const tide_part *part)
{
    size_t bytes = 0;
    bool fits = tide_type_bytes(tide_type_facts_of(part->type), part->count, &bytes);
    tide_assert(fits);
    (void)fits;
    return bytes;
}

/* `host`: the part's pointer to the host is used. */
static tide_status parts_check_one(const tide_pool *pool, const tide_part *part, size_t index,
                                   bool host, const char *call)
{
    const tide_type_facts *facts = tide_type_facts_of(part->type);
    size_t bytes = 0;
    if (facts == NULL)
        return tide_fail(TIDE_ERROR_TYPE, call, "part %zu: no type %u", index, part->type);
    if (!tide_type_bytes(facts, part->count, &bytes))
        return tide_fail(TIDE_ERROR_SIZE, call, "part %zu: %zu elements of %s overflow size_t",
                         index, part->count, facts->name);
    if (bytes == 0)
        return TIDE_OK;
    if (host && part->host == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "part %zu: the host's pointer is NULL", index);
    tide_status status = tide_copy_check(pool, part->data, bytes, call);
    if (host && status == TIDE_OK)
        status = tide_copy_check_host(pool, part->host, call);
    return status == TIDE_OK
               ? TIDE_OK
               : tide_fail(status, call, "part %zu: %s", index, tide_failed_words(call));
}

static tide_status parts_check(tide_pool *pool, const tide_part *parts, size_t count, bool host,
                               const char *call)
{
    TIDE_FORWARD(tide_pool_use(pool, call));
    if (count != 0 && parts == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the %zu parts are NULL", count);
    for (size_t i = 0; i < count; i++)
        TIDE_FORWARD(parts_check_one(pool, &parts[i], i, host, call));
    return tide_streams_own(pool, call);
}

tide_frame_result (*tide_frame_help)(const tide_frame_work *work);

/* ---- kernels for frames --------------------------------------------------------------------- */

/* One launch for all parts, if there is a kernel for them. */
static tide_frame_result parts_ask_help(const tide_pool *pool, tide_frame_work_kind kind,
                                        const tide_part *parts, size_t count, void *block,
                                        const tide_piece *pieces)
{
    const tide_frame_work work = {.kind = kind,
                                  .device = pool->core->device,
                                  .stream = pool->core->streams.own,
                                  .parts = parts,
                                  .count = count,
                                  .block = block,
                                  .pieces = pieces};
    tide_assert(count >= 1 && (block != NULL) == (kind != TIDE_FRAME_FILL_PARTS));
    tide_assert((pieces != NULL) == (kind != TIDE_FRAME_FILL_PARTS));
    if (tide_frame_help == NULL || pool->core->device->host)
        return TIDE_FRAME_ABSENT;
    return tide_frame_help(&work);
}

/* Work on no elements queues nothing. */
static bool parts_has_kernels(const tide_pool *pool)
{
    const tide_part none = {.type = TIDE_U8};
    return parts_ask_help(pool, TIDE_FRAME_FILL_PARTS, &none, 1, NULL, NULL) != TIDE_FRAME_ABSENT;
}

static tide_status parts_status_of(tide_frame_result helped)
{
    return helped == TIDE_FRAME_FAILED ? tide_error_status() : TIDE_OK;
}

/* ---- part by part --------------------------------------------------------------------------- */

static tide_status parts_move_each(tide_pool *pool, const tide_part *parts, size_t count, bool up)
{
    for (; count > 0; parts++, count--) { /* `parts` may be NULL where there is none */
        const size_t bytes = parts_bytes_of(parts);
        TIDE_FORWARD(up ? tide_upload(pool, parts->data, parts->host, bytes)
                        : tide_download(pool, parts->host, parts->data, bytes));
    }
    return TIDE_OK;
}

/* ---- packing -------------------------------------------------------------------------------- */

/* Where the parts lie in a block, which has so many bytes. NULL: there is too much to be packed, or nothing, or no
 * memory for the list. */
static tide_piece *parts_lay_out(const tide_part *parts, size_t count, size_t *block)
{
    tide_piece *pieces = tide_os_resize(NULL, count * sizeof *pieces);
    *block = 0;
    for (size_t i = 0; pieces != NULL && i < count && *block <= PACK_MAX; i++) {
        const size_t bytes = parts_bytes_of(&parts[i]);
        pieces[i] = (tide_piece){parts[i].host, *block, bytes};
        *block += bytes <= PACK_MAX
                      ? (bytes + TIDE_PACK_ALIGN - 1) / TIDE_PACK_ALIGN * TIDE_PACK_ALIGN
                      : bytes;
    }
    if (*block != 0 && *block <= PACK_MAX)
        return pieces;
    tide_os_free(pieces);
    return NULL;
}

/* The kernels that were there may have been switched off meanwhile. */
static tide_status parts_move_packed(tide_pool *pool, const tide_part *parts, size_t count,
                                     const tide_piece *pieces, void *block, size_t bytes, bool up,
                                     const char *call)
{
    if (up)
        TIDE_FORWARD(tide_ring_copy(pool, block, bytes, pieces, count, true, call));
    const tide_frame_result helped =
        parts_ask_help(pool, up ? TIDE_FRAME_UNPACK : TIDE_FRAME_PACK, parts, count, block, pieces);
    if (helped == TIDE_FRAME_ABSENT)
        return parts_move_each(pool, parts, count, up);
    TIDE_FORWARD(parts_status_of(helped));
    return up ? TIDE_OK : tide_ring_copy(pool, block, bytes, pieces, count, false, call);
}

/* ---- a block for a while -------------------------------------------------------------------- */

/* Device memory from the pool itself, in a level of its own; NULL, and the thread's last failure
 * stays what it was, when there is none. It may be rewound with work in flight, like any array. */
static void *parts_block_begin(tide_pool *pool, size_t bytes, tide_mark *mark)
{
    tide_failure before;
    tide_assert(bytes != 0);
    tide_failure_keep(&before);
    *mark = tide_checkpoint(pool);
    void *block = NULL;
    if (mark->pool != NULL)
        block = tide_acquire_type(pool, TIDE_U64, (bytes + 7) / 8);
    if (block != NULL)
        return block;
    if (mark->pool != NULL)
        (void)tide_rewind(pool, *mark);
    tide_failure_restore(&before);
    return NULL;
}

/* ---- up and down ---------------------------------------------------------------------------- */

static bool parts_have_some(const tide_part *parts, size_t count)
{
    size_t i = 0;
    while (i < count && parts[i].count == 0)
        i++;
    return i < count;
}

/* Packed where kernels do that, if there is little of it and memory for a block; else part by part. */
static tide_status parts_move_frame(tide_pool *pool, const tide_part *parts, size_t count, bool up,
                                    const char *call)
{
    TIDE_FORWARD(parts_check(pool, parts, count, true, call));
    if (!parts_have_some(parts, count))
        return TIDE_OK;
    TIDE_FORWARD(tide_copy_check_capture(pool, call));
    if (pool->core->device->host || count < 2)
        return parts_move_each(pool, parts, count, up);
    tide_mark mark;
    size_t bytes = 0;
    tide_piece *pieces = parts_lay_out(parts, count, &bytes);
    void *block =
        pieces != NULL && parts_has_kernels(pool) ? parts_block_begin(pool, bytes, &mark) : NULL;
    tide_status status = TIDE_OK;
    if (block == NULL) {
        status = parts_move_each(pool, parts, count, up);
    } else {
        status = tide_streams_gather(pool, call);
        if (status == TIDE_OK)
            status = parts_move_packed(pool, parts, count, pieces, block, bytes, up, call);
        status = tide_streams_finish(pool, tide_rewind_after(pool, mark, status), call);
    }
    tide_os_free(pieces);
    return status;
}

tide_status tide_upload_frame(tide_pool *pool, const tide_part *parts, size_t count)
{
    return parts_move_frame(pool, parts, count, true, "tide_upload_frame");
}

tide_status tide_download_frame(tide_pool *pool, const tide_part *parts, size_t count)
{
    return parts_move_frame(pool, parts, count, false, "tide_download_frame");
}

/* ---- fill ----------------------------------------------------------------------------------- */

tide_status tide_fill_frame(tide_pool *pool, const tide_part *parts, size_t count)
{
    const char *call = "tide_fill_frame";
    TIDE_FORWARD(parts_check(pool, parts, count, false, call));
    if (count == 0)
        return TIDE_OK;
    TIDE_FORWARD(tide_streams_gather(pool, call));
    tide_frame_result helped =
        parts_ask_help(pool, TIDE_FRAME_FILL_PARTS, parts, count, NULL, NULL);
    if (helped != TIDE_FRAME_ABSENT)
        return tide_streams_finish(pool, parts_status_of(helped), call);
    for (size_t i = 0; i < count; i++)
        TIDE_FORWARD(
            tide_fill_elements(pool, parts[i].data, parts[i].type, parts[i].count, parts[i].host));
    return TIDE_OK;
}
