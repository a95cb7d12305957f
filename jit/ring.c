/* SPDX-License-Identifier: MIT */
/* The ring of learning, the outermost: what the rings within call of it, and what it tells the rooms
 * below. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "jit/events/event.h"
#include "jit/facts/stats.h"
#include "jit/gdb_script.h"
#include "jit/kernels/modules.h"
#include "jit/kernels/nvrtc.h"
#include "jit/learn/background.h"
#include "jit/learn/learner.h"
#include "jit/learn/misses.h"
#include "jit/learn/round.h"
#include "jit/learn/tune.h"
#include "jit/listen/listen.h"
#include "jit/stager/locate.h"
#include "jit/tune/fleet.h"
#include "jit/tune/keep.h"
#include "jit/tune/records.h"
#include "profiler/window.h"
#include "runtime/base/ring.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/group.h"

/* Another driver than the system's, and another compiler: those of a container, say, or of a test. */
static void ring_set_drivers(void)
{
    const char *path = secure_getenv("TIDEPOOL_CUDA_DRIVER");
    if (path != NULL)
        tide_cuda_driver_set(path);
    tide_nvrtc_set(secure_getenv("TIDEPOOL_NVRTC"));
}

static void ring_attach(void)
{
    (void)tide_locate_environment_get(); /* read here, before other threads may change it */
    ring_set_drivers();
    tide_round_prepare();
    tide_background_prepare();
    tide_events_prepare();
    tide_listen_prepare();
    tide_records_attach();
    tide_modules_attach();
    tide_window_filled = tide_adapt_filled;
    tide_tune_read_environment();
    tide_group_look_first();
    tide_stats_prepare();
}

static void ring_pool_made(void)
{
    tide_keep_begin();
    tide_fleet_begin();
    tide_listen_passed();
    (void)tide_event_deliver();
}

const tide_ring tide_ring_learning = {.attach = ring_attach,
                                      .close = tide_modules_close,
                                      .need = tide_background_need,
                                      .made = ring_pool_made,
                                      .missed = tide_adapt_missed,
                                      .publish = tide_learner_publish,
                                      .forget = tide_learner_forget,
                                      .describe = tide_learner_describe};
