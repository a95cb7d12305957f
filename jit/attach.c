/* SPDX-License-Identifier: MIT */
/* Tells each room below what stands above it, in this one place. The one upward arrow of the
 * library leads here: runtime/base/hooks.c calls tide_attach_all, once, before anything is made. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "jit/kernels/modules.h"
#include "jit/learn/keeper.h"
#include "jit/learn/learner.h"
#include "jit/learn/tune.h"
#include "jit/stager/locate.h"
#include "profiler/window.h"
#include "runtime/attach.h"
#include "runtime/base/hooks.h"
#include "runtime/device/cuda/cuda.h"

/* Another driver than the system's: one of a container, say, or of a test. */
static void attach_driver(void)
{
    const char *path = secure_getenv("TIDEPOOL_CUDA_DRIVER");
    if (path != NULL)
        tide_cuda_driver_set(path);
}

void tide_attach_all(void)
{
    (void)tide_locate_environment_get(); /* read here, before other threads may change it */
    attach_driver();
    tide_runtime_attach();
    tide_learners_attach();
    tide_profile_attach();
    tide_modules_attach();
    tide_window_filled = tide_keeper_wanted;
    tide_modules_wanted = tide_keeper_wanted;
    tide_tune_read_environment();
}
