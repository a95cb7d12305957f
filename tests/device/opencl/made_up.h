/* SPDX-License-Identifier: MIT */
/* OpenCL with two platforms that are made up: the linker's functions and the driver's are replaced,
 * so a test with these needs no OpenCL, and runs under Valgrind, too. A driver registers its handler
 * of exit when its first context is made. Whoever calls any of them after such a handler has run
 * ends the process. Where the library waits at exit (usleep), the test is asked instead. */
#ifndef TIDEPOOL_TESTS_OPENCL_MADE_UP_H
#define TIDEPOOL_TESTS_OPENCL_MADE_UP_H

#include "runtime/device/opencl/opencl.h"

enum { MADE_UP_PLATFORMS = 2 };    /* each has one device */
enum { MADE_UP_CALLED_LATE = 99 }; /* exit status         */

/* In place of the OpenCL loader; before any device is opened. */
tide_status made_up_load(void);

/* After so many calls that a driver may be long at the next one stops there, until it is let go.
 * Atomic: one is there. */
void made_up_stop_after(unsigned calls);
void made_up_wait_stopped(void);
void made_up_let_go(void);
extern bool made_up_inside;

/* Or it stops where the library has just been told that the driver may be called. */
void made_up_stop_after_question(void);

/* Or all of these call this, as a driver calls a function of the program. */
extern void (*made_up_callback)(void);

extern bool made_up_no_room;     /* the library's atexit fails         */
extern bool made_up_buffers;     /* devices have no shared virtual memory */
extern unsigned made_up_waits;   /* for a whole queue; atomic          */
extern unsigned made_up_ends;    /* handlers of drivers that have come */
extern unsigned made_up_objects; /* contexts and queues that exist     */

/* The test's own: in a driver's handler, and where the library waits at exit. */
void made_up_at_end(void);
void made_up_at_sleep(void);

#endif
