/* SPDX-License-Identifier: MIT */
/* The processors that the process was given.
 *
 * What the library starts, threads and processes, must not share the one processor that a hot
 * thread has bound itself to. But it must not leave those either that the process was bound to as a
 * whole (taskset, a launcher). The two are told apart by time: a process is bound before it runs, a
 * thread binds itself later. So what counts is what the main thread had when this copy of the
 * library was loaded. */
#ifndef TIDEPOOL_JIT_STAGER_PROCESSORS_H
#define TIDEPOOL_JIT_STAGER_PROCESSORS_H

enum { TIDE_PROCESSORS_BYTES = 1024 };

/* A set as sched_setaffinity takes it, of TIDE_PROCESSORS_BYTES. All of them where the system did
 * not say. */
extern unsigned char tide_processors[TIDE_PROCESSORS_BYTES] __attribute__((visibility("hidden")));

#endif
