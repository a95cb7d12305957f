/* SPDX-License-Identifier: MIT */
/* A CUDA driver on host memory, for tests: devices, contexts, streams, events, captured graphs and stream-ordered
 * memory. What it is for, and how work and its order are kept: ../README.md. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Everything as new: so many devices, this seed, nothing allocated, counted, failing or reported.
 */
void fake_reset(unsigned devices, uint32_t seed);

/* ---- what is asked of it ------------------------------------------------------------------- */

/* The `nth` call of this entry point from now on (1: the next) fails so, once or from there on. A failed launch
 * (719) loses the device, too. */
void fake_fail(const char *entry, unsigned nth, int result, bool for_ever);
unsigned fake_failures(void); /* that have happened since */

/* Calls of this entry point do not return until the next fake_hold_up (NULL: none any more); how
 * many wait. */
void fake_hold_up(const char *entry);
unsigned fake_held_up(void);

/* Calls since the last reset or fake_count_anew; NULL: of all entry points. */
unsigned fake_calls(const char *entry);
void fake_count_anew(void);

/* The entry points there are: the i-th, NULL after the last. */
const char *fake_entry(unsigned i);

/* What the hazard check found first, or what else was done that may not be; NULL: nothing. */
const char *fake_hazard(void);
const char *fake_violation(void);

/* Every call that concerns the device fails from now on, as after a kernel's illegal access. */
void fake_lose(unsigned device);

/* Most memory that a device gives, managed memory included. */
void fake_limit(size_t bytes);
size_t fake_live_bytes(void);

/* What devices lack from now on. */
enum {
    FAKE_POOLS = 1,      /* of memory, as virtual devices of some hosts */
    FAKE_PAGES = 2,      /* memory that is mapped where one likes       */
    FAKE_MANAGED = 4,    /* memory of both                              */
    FAKE_CONCURRENT = 8, /* use of that: only told                      */
    FAKE_IPC = 16        /* memory for other processes                  */
};
void fake_without(unsigned what);

/* Rows of the highest fill that was one unit wide, which is slow; streams that there are. */
uint64_t fake_highest_fill(void);
unsigned fake_streams(void);

/* Work that has been queued and not yet run. */
unsigned fake_pending(void);

/* ---- kernels (../kernels) --------------------------------------------------------------------
 *
 * Modules of code for this processor are run; all memory of devices that they use is checked, each
 * byte they read or write takes part in the hazard check, and a fault loses the device and is told
 * by fake_violation. Cubins are refused. What the devices say they are the environment says:
 * FAKE_CUDA_ARCHITECTURE, 90 for compute capability 9.0; without it 0.0, for which nothing compiles. */

/* Runs of the kernels of this name since the last reset. */
unsigned fake_kernel_runs(const char *name);

/* ---- what a program does with the driver beside the library -------------------------------- */

/* Makes a device's context current for the calling thread (-1: none), as a program would that
 * works with several; the device that is current. */
void fake_use_device(int device);
int fake_current_device(void);

/* A stream that is not ordered with the legacy stream; one that is. A handle that is gone faults
 * wherever it is used (SIGABRT). */
void *fake_stream_create(unsigned device);
void *fake_stream_create_blocking(unsigned device);
void fake_stream_destroy(void *stream);

/* A range that work uses. */
typedef struct fake_range {
    void *data;
    size_t bytes;
    bool writes;
} fake_range;

/* A kernel: `run` is called with a copy of its arguments when its turn has come; device memory is
 * seen through fake_see. */
enum { FAKE_RANGES = 8, FAKE_ARGUMENTS = 64 };
typedef void fake_kernel(const void *arguments);
void fake_launch(void *stream, fake_kernel *run, const void *arguments, size_t bytes,
                 const fake_range *ranges, unsigned count);
void *fake_see(const void *device_memory);

/* The host itself reads or writes memory now: pinned memory that a copy may still be using, say. */
void fake_host_uses(void *data, size_t bytes, bool writes);

/* This has just been handed out for use on the stream: a hazard if work uses it that the stream
 * does not come after. Not for a stream that is captured. */
void fake_handed_out(void *stream, void *data, size_t bytes);

void fake_order(void *before, void *after); /* as a program orders two streams */
void fake_synchronise(void *stream);
void fake_synchronise_all(void);

/* ---- graphs -------------------------------------------------------------------------------- */

enum { FAKE_GLOBAL, FAKE_THREAD, FAKE_RELAXED }; /* modes of captures, as the driver's */
void fake_capture_begin(void *stream);           /* FAKE_GLOBAL */
/* All with the driver's result; none but the second fails. */
int fake_capture_begin_mode(void *stream, int mode);
int fake_capture_end(void *stream, void **graph);
int fake_graph_launch(void *graph, void *stream);
int fake_graph_destroy(void *graph);

#endif
