/* SPDX-License-Identifier: MIT */
/* A frame's work, done by a kernel that is loaded: one launch for each table of segments. */
#ifndef TIDEPOOL_JIT_KERNELS_LAUNCH_H
#define TIDEPOOL_JIT_KERNELS_LAUNCH_H

#include "jit/kernels/kernels.h"

/* Queues it on the work's stream. `kernel` is the one of its kind and of its device, in that
 * language. Any thread. */
tide_status tide_launch(tide_kernels_language language, void *kernel, const tide_frame_work *work);

#endif
