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

/* So many rounds have passed (0: none). What is too old goes, with nothing locked. `quietly`: only of
 * instances that need neither the program nor a driver for that, those of the host without a hook, so
 * that the background thread may call it. (An instance that is in use does it for itself when its
 * depot is needed.) Returns whether something is cached that will go quietly. */
bool tide_buffers_age(uint64_t rounds, bool quietly);

/* All that is cached goes, of the same instances. */
void tide_buffers_trim_quietly(void);

/* Registers what is done around fork. While the library is attached. */
void tide_buffers_prepare(void);

#endif
