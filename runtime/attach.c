/* SPDX-License-Identifier: MIT */
/* Fills in the tables of the runtime's lower rooms with what its higher rooms do. */
#include "runtime/attach.h"

#include "runtime/array/import.h"
#include "runtime/base/registry.h"
#include "runtime/buffers/buffers.h"
#include "runtime/buffers/store/depot.h"
#include "runtime/device/budget.h"
#include "runtime/device/cuda/backend.h"
#include "runtime/device/device.h"
#include "runtime/device/opencl/backend.h"
#include "runtime/graph/capture.h"
#include "runtime/pool/level.h"
#include "runtime/pool/pool.h"
#include "runtime/pool/press.h"
#include "runtime/transfer/pinned_ring.h"

/* Before any of their locks is taken: runtime/base/fork.h. */
static void attach_fork_handlers(void)
{
    tide_registry_lock(); /* whose handlers its first lock registers */
    tide_registry_unlock();
    tide_pools_prepare();
    tide_buffers_prepare();
    tide_cuda_prepare();
    tide_opencl_prepare();
}

void tide_runtime_attach(void)
{
    attach_fork_handlers();
    tide_device_add_backend((tide_backend){"cuda:", tide_cuda_open});
    tide_device_add_backend((tide_backend){"opencl:", tide_opencl_open});

    tide_level_set_undo(TIDE_UNDO_IMPORT, tide_import_undo);

    tide_press_add((tide_keeper_of_memory){tide_pools_press, tide_pools_tell});
    tide_press_add((tide_keeper_of_memory){tide_depot_press, tide_depot_tell});

    /* Foreign tensors outlive a pool that is only emptied: their owners still read them. */
    tide_pool_add_ending((tide_pool_ending){.destroy = tide_capture_finish});
    tide_pool_add_ending((tide_pool_ending){.empty = tide_ring_end, .destroy = tide_ring_end});
}
