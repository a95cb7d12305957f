/* SPDX-License-Identifier: MIT */
/* Tells each room below what stands above it, in this one place. The one upward arrow of the
 * library leads here: runtime/base/hooks.c calls tide_attach_all, once, before anything is made. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "jit/events/event.h"
#include "jit/facts/stats.h"
#include "jit/gdb_script.h"
#include "jit/kernels/modules.h"
#include "jit/kernels/nvrtc.h"
#include "jit/learn/adapt.h"
#include "jit/learn/background.h"
#include "jit/learn/learner.h"
#include "jit/learn/round.h"
#include "jit/learn/tune.h"
#include "jit/listen/listen.h"
#include "jit/stager/locate.h"
#include "jit/tune/fleet.h"
#include "jit/tune/keep.h"
#include "jit/tune/records.h"
#include "profiler/window.h"
#include "runtime/attach.h"
#include "runtime/base/hooks.h"
#include "runtime/device/cuda/cuda.h"

/* Another driver than the system's, and another compiler: those of a container, say, or of a test. */
static void attach_drivers(void)
{
    const char *path = secure_getenv("TIDEPOOL_CUDA_DRIVER");
    if (path != NULL)
        tide_cuda_driver_set(path);
    tide_nvrtc_set(secure_getenv("TIDEPOOL_NVRTC"));
}

/* Before any of their locks is taken: runtime/base/fork.h. */
static void attach_fork_handlers(void)
{
    tide_round_prepare();
    tide_background_prepare();
    tide_events_prepare();
    tide_listen_prepare();
}

static void attach_pool_made(void)
{
    tide_keep_begin();
    tide_fleet_begin();
    tide_listen_passed();
    (void)tide_event_deliver();
}

void tide_attach_all(void)
{
    (void)tide_locate_environment_get(); /* read here, before other threads may change it */
    attach_drivers();
    tide_runtime_attach();
    attach_fork_handlers();
    tide_learners_attach();
    tide_profile_attach();
    tide_records_attach();
    tide_modules_attach();
    tide_window_filled = tide_adapt_filled;
    tide_hooks_policy.made = attach_pool_made;
    tide_hooks_policy.missed = tide_adapt_missed;
    tide_hooks_policy.need = tide_background_need;
    tide_tune_read_environment();
    tide_stats_prepare();
}
