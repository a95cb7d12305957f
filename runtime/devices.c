/* SPDX-License-Identifier: MIT */
/* The ring of devices: back ends, and what they keep in pools. */
#include "runtime/base/ring.h"
#include "runtime/device/backends.h"
#include "runtime/device/device.h"
#include "runtime/device/gate.h"
#include "runtime/graph/capture.h"
#include "runtime/transfer/pinned_ring.h"

static const tide_backend devices_backends[] = {
#define TIDE_X(prefix, open) {prefix, open},
    TIDE_BACKENDS_EACH(TIDE_X)
#undef TIDE_X
        {0}};

static const char devices_names[] = ""
#define TIDE_X(prefix, open) ", " prefix "0 … " prefix "9999"
    TIDE_BACKENDS_EACH(TIDE_X)
#undef TIDE_X
    ;

static void devices_attach(void)
{
    tide_backends = devices_backends;
    tide_backend_names = devices_names;
    tide_driver_prepare(tide_devices_lose_forked);
}

static void devices_end_pool(tide_pool *pool, bool destroyed)
{
    if (destroyed)
        tide_capture_finish(pool);
    tide_ring_end(pool);
}

const tide_ring tide_ring_devices = {.attach = devices_attach, .end_pool = devices_end_pool};
