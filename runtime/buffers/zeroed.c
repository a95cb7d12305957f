/* SPDX-License-Identifier: MIT */
/* Buffers that start with zeros: cleared, or given new pages where these cost less. */
#include <stdio.h>
#include <string.h>

#include "runtime/buffers/buffer.h"

/* Bytes: new pages cost no more than to clear the old ones, and nothing where they stay
 * untouched. */
enum { RENEW_FROM = 4 << 20 };

/* Host memory that was used before, or may have been. Valgrind takes for written only what is
 * written. */
static void zeroed_clear_host(const tide_buffers *buffers, const tide_buffer_record *record,
                              size_t asked, bool hit)
{
    size_t bytes = tide_handle_bytes(record);
    bool mapped = tide_host_maps(bytes) && !buffers->careful;
    if (mapped && !hit)
        return;
    if (!mapped || asked < RENEW_FROM || !tide_host_renew(record->data, bytes))
        memset(record->data, 0, asked);
}

tide_buffer tide_buffer_acquire_zeroed(tide_buffers *buffers, size_t bytes)
{
    const char *call = "tide_buffer_acquire_zeroed";
    tide_want want;
    bool hit;
    if (!tide_buffer_want_own(buffers, bytes, call, &want))
        return tide_buffer_none;
    tide_buffer b = tide_buffer_acquire_wanted(buffers, &want, &hit);
    if (b.generation == 0 || bytes == 0)
        return b;
    tide_device *device = buffers->device;
    const tide_buffer_record *record = tide_handle_at(buffers, (uint32_t)b.slot);
    if (device == &tide_device_host || tide_buffer_kind(want.key) == TIDE_BUFFER_HOST) {
        zeroed_clear_host(buffers, record, bytes, hit);
        return b;
    }
    if (tide_buffer_kind(want.key) == TIDE_BUFFER_PINNED) {
        memset(record->data, 0, bytes); /* what used it is over */
        return b;
    }
    if (device->methods->fill(device, buffers->stream, record->data, &(unsigned char){0}, 1,
                              bytes) == TIDE_OK)
        return b;
    tide_status status = tide_error_status();
    char why[128];
    snprintf(why, sizeof why, "%s", tide_error_message());
    tide_buffer_give_back(buffers, b, buffers->stream);
    tide_fail(status, call, "%s", why);
    return tide_buffer_none;
}
