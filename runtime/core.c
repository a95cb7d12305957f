/* SPDX-License-Identifier: MIT */
/* The core as the innermost ring: what its lower rooms are told of its higher ones. */
#include "runtime/array/import.h"
#include "runtime/base/registry.h"
#include "runtime/base/ring.h"
#include "runtime/pool/pool.h"
#include "runtime/pool/press.h"

static void core_attach(void)
{
    tide_registry_lock(); /* whose handlers its first lock registers: runtime/base/fork.h */
    tide_registry_unlock();
    tide_pools_prepare();
}

const tide_ring tide_ring_core = {.attach = core_attach,
                                  .press = tide_pools_press,
                                  .tell = tide_pools_tell,
                                  .undo = tide_import_undo};
