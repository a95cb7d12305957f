/* SPDX-License-Identifier: MIT */
/* A frame's work, done by kernels that are loaded: one launch for each table of segments. */
#ifndef TIDEPOOL_JIT_KERNELS_LAUNCH_H
#define TIDEPOOL_JIT_KERNELS_LAUNCH_H

#include <stdbool.h>

#include "jit/kernels/kernels.h"
#include "runtime/base/hooks.h"

/* Is the work one that tables can describe? Else the runtime does it part by part. */
bool tide_launch_possible(const tide_frame_work *work);

/* Queues it on the work's stream. `kernels` are those of its device, one for each tide_kernel, in
 * that language. Any thread. */
tide_status tide_launch(tide_kernels_language language, void *const *kernels,
                        const tide_frame_work *work);

#endif
