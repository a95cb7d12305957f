/* SPDX-License-Identifier: MIT */
/* Buffers that start with zeros: cleared, or given new pages where these cost less. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/os.h"
#include "runtime/buffers/buffer.h"

/* Bytes: new pages cost no more than to clear the old ones, and nothing where they stay
 * untouched. */
enum { RENEW_FROM = 4 << 20 };

/* Host memory that was used before, or may have been. */
static void zeroed_clear_host(const tide_buffers *buffers, void *data, size_t asked, bool hit)
{
    if (buffers->careful) { /* Valgrind takes for written only what is written */
        memset(data, 0, asked);
        return;
    }
    bool mapped = tide_bucket_bytes(tide_bucket_of(asked)) >= TIDE_HOST_MAPPED_FROM;
    if (mapped && !hit)
        return;
    if (!mapped || asked < RENEW_FROM || !tide_os_renew(data, asked))
        memset(data, 0, asked);
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
    void *data = tide_handle_at(buffers, (uint32_t)b.slot)->data;
    if (device == &tide_device_host || tide_buffer_kind(want.key) == TIDE_BUFFER_HOST) {
        zeroed_clear_host(buffers, data, bytes, hit);
        return b;
    }
    if (tide_buffer_kind(want.key) == TIDE_BUFFER_PINNED) {
        memset(data, 0, bytes); /* what used it is over */
        return b;
    }
    if (device->methods->fill(device, buffers->stream, data, &(unsigned char){0}, 1, bytes) ==
        TIDE_OK)
        return b;
    tide_status status = tide_error_status();
    char why[128];
    snprintf(why, sizeof why, "%s", tide_error_message());
    tide_buffer_give_up(buffers, b);
    tide_fail(status, call, "%s", why);
    return tide_buffer_none;
}
