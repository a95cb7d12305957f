/* SPDX-License-Identifier: MIT */
/* Two pools with declared streams at work on their arrays, and each call of a pool that queues work
 * beside them. Of the tests of the order that a call leaves (in_order.c), of captures on declared
 * streams (declared_captures.c) and of what a call says that fails (first_failure.c). */
#ifndef CUDA_DECLARED_H
#define CUDA_DECLARED_H

#include "support.h"

#include <tidepool/device.h>
#include <tidepool/device_bump.h>

enum { BYTES = 4096, TRANSIENT = 2 /* out of memory: it passes */ };

typedef struct work {
    bench b;
    tide_pool *source; /* a second pool, on a stream of its own */
    void *apart, *other, *third;
    uint8_t *x, *y, *z; /* z is the source's */
    uint8_t bytes[2 * BYTES];
    tide_part parts[2];
    tide_mark mark, of_source;
    tide_bump_scope bump;
} work;

/* Both pools have arrays that a declared stream is at work on. */
void work_begin(work *w);
void work_end(work *w);

/* The declared streams use the arrays again. */
void use_declared(const work *w);

/* A call that fails leaves no level open; one that enters a bump scope opens one. */
void expect_depth(const work *w, tide_status status);

/* ---- the calls ------------------------------------------------------------------------------ */

tide_status do_wrap(work *w);
tide_status do_import(work *w);
tide_status do_upload(work *w);
tide_status do_download(work *w);
tide_status do_copy(work *w);
tide_status do_copy_from(work *w);
tide_status do_fill(work *w);
tide_status do_acquire(work *w);
tide_status do_bump(work *w);

/* Frames by kernels of ours. Where help_fails, the last kernel is refused, and before that this is
 * called unless it is NULL. */
extern bool help_fails;
extern void (*before_help_fails)(void);
tide_status do_helped_fill(work *w);

typedef struct method {
    const char *name;
    tide_status (*call)(work *w);
    unsigned follows;   /* its event from the end is what declared streams wait for; 0: none is */
    const char *queues; /* its work, by this entry point; NULL: none */
    const char *says;   /* what it says when that fails     */
} method;

extern const method methods[];
extern const size_t method_count;

/* ---- what fails: the next event, and the next wait for the device, or all ------------------- */

void fail_wait(void);
void fail_event_and_wait(void);
void fail_event_and_waits(void);

#endif
