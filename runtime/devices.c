/* SPDX-License-Identifier: MIT */
/* The ring of devices: back ends, and what they keep in pools. */
#include "runtime/base/ring.h"
#include "runtime/device/backends.h"
#include "runtime/device/device.h"
#include "runtime/device/gate.h"
#include "runtime/graph/capture.h"
#include "runtime/pool/pool.h"
#include "runtime/transfer/pinned_ring.h"

static void devices_attach(void)
{
    tide_driver_prepare();
#define TIDE_X(prefix, open) tide_device_add_backend((tide_backend){prefix, open});
    TIDE_BACKENDS_EACH(TIDE_X)
#undef TIDE_X

    /* Foreign tensors outlive a pool that is only emptied: their owners still read them. */
    tide_pool_add_ending((tide_pool_ending){.destroy = tide_capture_finish});
    tide_pool_add_ending((tide_pool_ending){.empty = tide_ring_end, .destroy = tide_ring_end});
}

const tide_ring tide_ring_devices = {.attach = devices_attach};
