/* SPDX-License-Identifier: MIT */
/* When the process listens: the component that serves the socket is loaded, begun and ended. And
 * what a client wants done, or written, to one site, pool or setting. */
#ifndef TIDEPOOL_JIT_LISTEN_LISTEN_H
#define TIDEPOOL_JIT_LISTEN_LISTEN_H

#include "jit/listen/component.h"

/* Some thread is at work: the process begins to listen if the setting asks for it. Nothing
 * locked. */
void tide_listen_passed(void);

/* Registers what is done around fork and at exit. While the library is attached. */
void tide_listen_prepare(void);

/* The status and message of what it calls; TIDE_ERROR_NAME for what is not there,
 * TIDE_ERROR_ARGUMENT for a name that several kinds of site have. */
tide_status tide_listen_obey(const tide_listen_order *order);

/* Writes the spec of the site's learned plan: what was or would be compiled for it.
 * TIDE_ERROR_STATE: it has none. */
tide_status tide_listen_write_spec(const tide_listen_order *site, FILE *out);

/* Writes the order's tunable as facts do, in a line. */
tide_status tide_listen_write_tunable(const tide_listen_order *order, FILE *out);

#endif
