/* SPDX-License-Identifier: MIT */
/* The core without its rings (TIDEPOOL_CORE_ONLY): attaches what the core has, and answers for the
 * buffers, of which no pool can have any, because tide_buffers_hold refuses them. */
#include "runtime/array/import.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/hooks.h"
#include "runtime/base/registry.h"
#include "runtime/buffers/buffer.h"
#include "runtime/buffers/buffers.h"
#include "runtime/device/budget.h"
#include "runtime/pool/level.h"
#include "runtime/pool/pool.h"
#include "runtime/pool/press.h"

void tide_attach_all(void)
{
    tide_registry_lock(); /* whose handlers its first lock registers: runtime/base/fork.h */
    tide_registry_unlock();
    tide_pools_prepare();
    tide_level_set_undo(TIDE_UNDO_IMPORT, tide_import_undo);
    tide_press_add((tide_keeper_of_memory){tide_pools_press, tide_pools_tell});
}

tide_status tide_buffers_hold(tide_buffers *buffers, const char *call)
{
    tide_assert(buffers != NULL);
    (void)buffers;
    return tide_fail(TIDE_ERROR_ARGUMENT, call, "this library was built without buffers");
}

/* ---- for pools with buffers: never called ------------------------------------------------- */

void tide_buffers_hold_again(tide_buffers *buffers)
{
    (void)buffers;
    tide_assert(false);
}

void tide_buffers_drop(tide_buffers *buffers)
{
    (void)buffers;
    tide_assert(false);
}

size_t tide_buffers_round_up(const tide_buffers *buffers, size_t bytes)
{
    (void)buffers;
    tide_assert(false);
    return bytes;
}

tide_buffer tide_buffer_acquire_on(tide_buffers *buffers, size_t bytes, uint32_t flags,
                                   void *stream)
{
    (void)buffers, (void)bytes, (void)flags, (void)stream;
    tide_assert(false);
    return (tide_buffer){0};
}

void *tide_buffer_pointer(tide_buffers *buffers, tide_buffer buffer)
{
    (void)buffers, (void)buffer;
    tide_assert(false);
    return NULL;
}

void tide_buffer_give_back(tide_buffers *buffers, tide_buffer handle, void *stream)
{
    (void)buffers, (void)handle, (void)stream;
    tide_assert(false);
}
