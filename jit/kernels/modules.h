/* SPDX-License-Identifier: MIT */
/* The kernels of each device: the first frame wants them, the keeper (or tide_step) has them made
 * and loads them, and frames use them from then on. Nobody waits. Until they are READY, or where
 * they cannot be had, the runtime fills and copies part by part; the second is said once on stderr.
 *
 * The stager compiles CUDA's kernels. The driver compiles OpenCL's, in a round but
 * without its lock. */
#ifndef TIDEPOOL_JIT_KERNELS_MODULES_H
#define TIDEPOOL_JIT_KERNELS_MODULES_H

#include "jit/stager/stager.h"
#include "runtime/base/hooks.h"

/* Told, by any thread and with no lock held, that kernels are wanted. Set while attaching. */
extern void (*tide_modules_wanted)(void);

/* Sets the callbacks of the runtime. */
void tide_modules_attach(void);

/* The parts of a round. With the round lock held: order sends orders for what is wanted; answer
 * takes an answer if it is to such an order; ordered says whether any has no answer yet. Without
 * the round lock: build loads and builds; pending says whether anything is on its way. */
void tide_modules_order(void);
bool tide_modules_answer(const tide_stager_answer *answer);
bool tide_modules_ordered(void);
void tide_modules_build(void);
bool tide_modules_pending(void);

/* The process ends: from now on nothing is built, on no thread, because drivers destroy their own
 * objects. Waits for the drivers that other threads are in, as long as a close of a device does;
 * when called again, not for those that it has waited for in vain. */
void tide_modules_end(void);

/* That a close of the device, and an exit of the process, wait for a driver that builds: long,
 * since one that is torn down meanwhile may crash, and not for ever, since it may be waiting for
 * what the closing thread has. Tests shorten it. */
extern double tide_modules_patience_ms;

/* Are the device's kernels loaded? "" or why they cannot be had. Any thread. */
bool tide_modules_ready(const tide_device *device);
void tide_modules_why(const tide_device *device, char *out, size_t room);

/* Registers what is done around fork. While the library is attached. */
void tide_modules_prepare(void);

#endif
