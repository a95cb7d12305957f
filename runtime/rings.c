/* SPDX-License-Identifier: MIT */
/* The rings that this build has, the innermost first. Nothing else names them; this file belongs to
 * no room. */
#include "runtime/base/ring.h"

extern const tide_ring tide_ring_core;
#ifndef TIDEPOOL_CORE_ONLY
extern const tide_ring tide_ring_buffers, tide_ring_devices, tide_ring_adaptor, tide_ring_profile,
    tide_ring_learning;
#endif

const tide_ring *const tide_rings[] = {
    &tide_ring_core,
#ifndef TIDEPOOL_CORE_ONLY
    &tide_ring_buffers, &tide_ring_devices,  &tide_ring_adaptor,
    &tide_ring_profile, &tide_ring_learning,
#endif
};

const size_t tide_ring_count = sizeof tide_rings / sizeof *tide_rings;
