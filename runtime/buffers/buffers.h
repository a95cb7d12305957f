/* SPDX-License-Identifier: MIT */
/* The life of an instance of buffers, for who draws from one: runtime/buffers/buffers.c. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_BUFFERS_H
#define TIDEPOOL_RUNTIME_BUFFERS_BUFFERS_H

#include "runtime/buffers/store/instance.h"

/* Keep an instance from being destroyed. Refused when there is none of that address. Whoever has a
 * hold may take another, which cannot fail. Any thread. */
tide_status tide_buffers_hold(tide_buffers *buffers, const char *call);
void tide_buffers_hold_again(tide_buffers *buffers);
void tide_buffers_drop(tide_buffers *buffers);

/* So many rounds have passed: what is too old is given back. Any thread. */
void tide_buffers_tick(uint64_t rounds);

/* Registers what is done around fork. While the library is attached. */
void tide_buffers_prepare(void);

#endif
