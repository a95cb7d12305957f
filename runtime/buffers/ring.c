/* SPDX-License-Identifier: MIT */
/* The ring of buffers: what pools that draw from an instance call. */
#include "runtime/base/ring.h"

#include "runtime/buffers/buffer.h"
#include "runtime/buffers/buffers.h"
#include "runtime/buffers/store/depot.h"
#include "runtime/device/budget.h"
#include "runtime/device/lender.h"

static const tide_lender ring_lender = {.hold = tide_buffers_hold,
                                        .hold_again = tide_buffers_hold_again,
                                        .drop = tide_buffers_drop,
                                        .round_up = tide_buffers_round_up,
                                        .acquire = tide_buffer_acquire_yielding,
                                        .pointer = tide_buffer_pointer,
                                        .give_back = tide_buffer_give_back};

static void ring_attach(void)
{
    tide_buffers_prepare();
    tide_lend = &ring_lender;
}

const tide_ring tide_ring_buffers = {
    .attach = ring_attach, .press = tide_depot_press, .tell = tide_depot_tell};
