/* SPDX-License-Identifier: MIT */
/* The lines between us and a worker. We send "order ID BYTES" and so many bytes of specs for each
 * request, and "bye" at last. A worker says "hello VERSION", then "ok ID PATH" or "error ID TEXT"
 * to each request; before that it may say "spent ID MICROSECONDS", what it took of the processor.
 * When it was asked nothing for a while it says "idle" and goes; it has not begun what was sent to
 * it meanwhile. Anything else is garbage, and the worker that sent it is killed. */
#ifndef TIDEPOOL_JIT_STAGER_PROTOCOL_H
#define TIDEPOOL_JIT_STAGER_PROTOCOL_H

#include "jit/stager/workers.h"

/* Sends what there is to send, first come, first served; false: the system takes no more now. */
bool tide_protocol_send(tide_worker *worker);

/* Hears all that it has said so far. It may be lost by that. */
void tide_protocol_listen(tide_worker *worker);

/* What the last worker that said hello calls itself; "" while none has. */
const char *tide_protocol_version(void);

#endif
