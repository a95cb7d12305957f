/* SPDX-License-Identifier: MIT */
/* Kernels that help with frames, for each device: wanted by the first frame, ordered and loaded by
 * the keeper (or tide_step), used by every frame from then on. Nobody waits: until they are there,
 * and where they cannot be had, the runtime has its plain ways, and that is said once.
 *
 * CUDA's are compiled by the stager; OpenCL's by the driver, in the round, without its lock. */
#ifndef TIDEPOOL_JIT_KERNELS_MODULES_H
#define TIDEPOOL_JIT_KERNELS_MODULES_H

#include "jit/stager/stager.h"
#include "runtime/base/hooks.h"

/* Told, by any thread and with no lock held, that kernels are wanted. Set while attaching. */
extern void (*tide_modules_wanted)(void);

/* Sets the callbacks of the runtime. */
void tide_modules_attach(void);

/* The parts of a round. With the round lock held: orders what is wanted; takes an answer, if it is
 * one to such an order; are there orders out? Without it: loads and builds; is anything on its way?
 */
void tide_modules_order(void);
bool tide_modules_answer(const tide_stager_answer *answer);
bool tide_modules_ordered(void);
void tide_modules_build(void);
bool tide_modules_pending(void);

/* After a fork, in the child. */
void tide_modules_forget(void);

/* Are the device's kernels loaded? "" or why they cannot be had. Any thread. */
bool tide_modules_ready(const tide_device *device);
void tide_modules_why(const tide_device *device, char *out, size_t room);

#endif
