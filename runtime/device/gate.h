/* SPDX-License-Identifier: MIT */
/* When drivers may be called: not once exit has begun, for they are torn down in no particular order,
 * and not in a child of fork whose parent had used them, for their threads stayed there. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_GATE_H
#define TIDEPOOL_RUNTIME_DEVICE_GATE_H

#include <tidepool/status.h>

typedef enum tide_driver { TIDE_DRIVER_NONE, TIDE_DRIVER_CUDA, TIDE_DRIVER_OPENCL } tide_driver;

/* Registers what is done around fork: `child` runs in the child, once that does without what its parent
 * had used, with all locked. While the library is attached. */
void tide_driver_prepare(void (*child)(void));

/* It is about to be called: from now on a child does without. */
void tide_driver_use(tide_driver driver);

/* Exit is noticed from now on. Called when the driver has registered its own handlers, so that this
 * comes before those. (Not before those of another platform of OpenCL that is used later.)
 * TIDE_ERROR_MEMORY: it cannot. One thread at a time. */
tide_status tide_driver_watch_exit(tide_driver driver, const char *call);

/* May it be called? Asked at the head of a method: none that begins once exit has begun calls the driver.
 * A thread that is in a method then has what the driver makes of that, as in a program without this
 * library. If not, what is given back stays with the driver. */
bool tide_driver_alive(tide_driver driver);

/* Is this a child that does without? */
bool tide_driver_forked(tide_driver driver);

/* Has exit begun, and is this not such a child? Then a thread that is in the driver may never come
 * out, or may come back at any time: what it can reach is not freed. */
bool tide_driver_exiting(tide_driver driver);

/* Fails with the reason for which it is not alive. `whose`: the call, or a device's name. */
tide_status tide_driver_refuse(tide_driver driver, const char *whose);

/* Why it does not work in the child. */
const char *tide_driver_words_forked(tide_driver driver);

#endif
