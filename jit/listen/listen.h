/* SPDX-License-Identifier: MIT */
/* The thread that serves the socket: when it starts, and how it ends. */
#ifndef TIDEPOOL_JIT_LISTEN_LISTEN_H
#define TIDEPOOL_JIT_LISTEN_LISTEN_H

/* Some thread is at work: has the process listen if the setting asks for it. Quick: a thread of its
 * own does all of it. */
void tide_listen_passed(void);

/* Registers what is done around fork and at exit. While the library is attached. */
void tide_listen_prepare(void);

#endif
