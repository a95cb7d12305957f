/* SPDX-License-Identifier: MIT */
/* A child that opens devices whose platforms are made up, and calls exit: its status is 0 when all
 * was in order. Shared by the tests of what exit waits for (exit.c) and of what holds from then on
 * (ended.c). */
#ifndef TIDEPOOL_TESTS_OPENCL_ENDING_H
#define TIDEPOOL_TESTS_OPENCL_ENDING_H

#include <pthread.h>

#include <tidepool/device.h>
#include <tidepool/tidepool.h>

#include "made_up.h"
#include "tests/device/late.h"
#include "tests/support.h"

enum { BYTES = 4096, SLEEPS_MAX = 2000 };

extern tide_device *devices[MADE_UP_PLATFORMS]; /* that are open at the end */
extern void *array, *mark;                      /* on the first; NULL: none */

/* The child runs this, and exits. */
void expect_end(void (*child)(void));

/* What it wants then: sleeps while the library waits for threads, and drivers that end. */
extern unsigned wanted_sleeps, wanted_ends;
extern bool may_be_inside; /* a thread, at the end; the test is about something else */

void open_device(unsigned ordinal);
void make_array(void);

/* Of threads. */
void *open_first(void *unused);
void *give_back_array(void *unused);
void *close_device(void *unused);

/* Starts a thread, which is in the driver when this returns. */
extern unsigned calls_before; /* that do not stop in the driver */
void start_inside(void *(*work)(void *));
extern pthread_t comes_out;    /* this thread */
extern bool anybody_comes_out; /* once somebody waits for it */
extern void (*at_last_sleep)(void);

#endif
