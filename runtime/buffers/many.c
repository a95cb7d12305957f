/* SPDX-License-Identifier: MIT */
/* Many buffers of one size at once. A thread's magazine is entered once for as many as its cell
 * has, or has room for. */
#include <string.h>

#include "runtime/buffers/buffer.h"

/* As many as the thread's cell has, up to a full cell. */
static unsigned many_take_cached(const tide_buffers *buffers, const tide_want *want, size_t count,
                                 uint32_t *slots)
{
    tide_magazine *magazine = tide_magazine_known(buffers);
    if (magazine == NULL || !tide_magazine_enter(buffers, magazine))
        return 0;
    tide_cell *cell = &magazine->cells[want->bucket];
    unsigned taken = count < cell->held ? (unsigned)count : cell->held;
    for (unsigned i = 0; i < taken; i++)
        slots[i] = cell->slots[--cell->held];
    cell->counts.hits += taken;
    cell->counts.asked += taken * want->bytes;
    tide_magazine_leave(magazine);
    return taken;
}

tide_status tide_buffer_acquire_many(tide_buffers *buffers, size_t bytes, size_t count,
                                     tide_buffer *out)
{
    const char *call = "tide_buffer_acquire_many";
    tide_want want;
    bool hit;
    if (out == NULL && count > 0)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the result is NULL");
    if (count > 0)
        memset(out, 0, count * sizeof *out);
    if (!tide_buffer_want_own(buffers, bytes, call, &want))
        return tide_error_status();
    for (size_t done = 0; done < count;) {
        uint32_t slots[TIDE_CELL_SLOTS];
        unsigned taken = many_take_cached(buffers, &want, count - done, slots);
        for (unsigned i = 0; i < taken; i++)
            out[done++] = tide_buffer_hand_out(buffers, slots[i], &want, true);
        if (done == count)
            break;
        out[done] =
            tide_buffer_acquire_wanted(buffers, &want, &hit); /* which fills the cell, if it can */
        if (out[done].generation == 0) {
            tide_status status = tide_error_status();
            tide_buffer_release_many(buffers, out, done);
            memset(out, 0, count * sizeof *out);
            return status;
        }
        done++;
    }
    return TIDE_OK;
}

tide_status tide_buffer_release_many(tide_buffers *buffers, const tide_buffer *handles,
                                     size_t count)
{
    const char *call = "tide_buffer_release_many";
    if (buffers == NULL || (handles == NULL && count > 0))
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the %s NULL",
                         buffers == NULL ? "buffers are" : "handles are");
    tide_status refused = TIDE_OK;
    for (size_t done = 0; done < count;) {
        done += tide_buffer_release_run(buffers, handles + done, count - done);
        tide_status one =
            done < count ? tide_buffer_release_any(buffers, handles[done++], call) : TIDE_OK;
        refused = one != TIDE_OK ? one : refused;
    }
    return refused;
}
