/* SPDX-License-Identifier: MIT */
/* A CUDA driver on host memory, for tests: devices, contexts, streams, events, captured graphs and
 * stream-ordered memory. What it is for:
 *
 *  - Work is delayed, and what no stream and no event orders runs in random order: as late and as
 *    mixed as the driver's rules allow. The same seed gives the same run.
 *  - The hazard check reports any two overlapping uses of memory, one of them a write, that are
 *    not ordered; also use of memory that is not allocated. It goes by the order there is, not by
 *    how a run went.
 *  - Device memory cannot be touched by the host: a program that does stops at once.
 *  - Any entry point can be made to fail at its Nth call, once or for ever; calls are counted.
 *  - Stream handles are used again at once; numbers are not.
 *  - What a capture forbids is noticed; so are calls after the driver was torn down at exit.
 *
 * Order is kept as sets: each piece of work has the set of all that is before it (model.c). */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Everything as new: so many devices, this seed, nothing allocated, counted, failing or reported.
 */
void fake_reset(unsigned devices, uint32_t seed);

/* ---- what is asked of it ------------------------------------------------------------------- */

/* The `nth` call of this entry point from now on (1: the next) fails so, once or from there on. */
void fake_fail(const char *entry, unsigned nth, int result, bool for_ever);
unsigned fake_failures(void); /* that have happened since */

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

/* Most memory that a device gives. */
void fake_limit(size_t bytes);
size_t fake_live_bytes(void);

/* Work that has been queued and not yet run. */
unsigned fake_pending(void);

/* ---- what a program does with the driver beside the library -------------------------------- */

/* Makes a device's context current for the calling thread (-1: none), as a program would that
 * works with several; the device that is current. */
void fake_use_device(int device);
int fake_current_device(void);

void *fake_stream_create(unsigned device);
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

void fake_order(void *before, void *after); /* as a program orders two streams */
void fake_synchronise(void *stream);
void fake_synchronise_all(void);

/* ---- graphs -------------------------------------------------------------------------------- */

void fake_capture_begin(void *stream);
int fake_capture_end(void *stream, void **graph); /* the driver's result */
void fake_graph_launch(void *graph, void *stream);
void fake_graph_destroy(void *graph);

#endif
