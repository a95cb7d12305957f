/* SPDX-License-Identifier: MIT */
/* What goes to a helper and comes from it, as lines: "order ID BYTES", followed by so many bytes of
 * specs, and at last "bye" go; "hello VERSION", then "ok ID PATH" or "error ID TEXT" for each order
 * come. All else that comes is garbage, and whoever sent it is killed. */
#ifndef TIDEPOOL_JIT_STAGER_PROTOCOL_H
#define TIDEPOOL_JIT_STAGER_PROTOCOL_H

#include "jit/stager/workers.h"

/* Sends what there is to send, in order; false: the system takes no more now. */
bool tide_protocol_send(tide_worker *member);

/* Hears all that it has said so far. That may be how it is lost. */
void tide_protocol_listen(tide_worker *member);

/* What the last helper that said hello calls itself; "" while none has. */
const char *tide_protocol_version(void);

#endif
