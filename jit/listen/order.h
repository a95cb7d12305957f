/* SPDX-License-Identifier: MIT */
/* What a client wants done, or written, to one site, pool or setting. */
#ifndef TIDEPOOL_JIT_LISTEN_ORDER_H
#define TIDEPOOL_JIT_LISTEN_ORDER_H

#include "jit/listen/component.h"

/* The status and message of what it calls; TIDE_ERROR_NAME for what is not there,
 * TIDE_ERROR_ARGUMENT for a name that several kinds of site have. */
tide_status tide_listen_obey(const tide_listen_order *order);

/* Writes the spec of the site's learned plan: what was or would be compiled for it.
 * TIDE_ERROR_STATE: it has none. */
tide_status tide_listen_write_spec(const tide_listen_order *site, FILE *out);

#endif
