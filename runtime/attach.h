/* SPDX-License-Identifier: MIT */
/* What the lower rooms of the runtime are told of the higher ones. A room never names one above it:
 * it keeps a table, and this file, which stands above them all, fills it in. */
#ifndef TIDEPOOL_RUNTIME_ATTACH_H
#define TIDEPOOL_RUNTIME_ATTACH_H

/* Once, before the first pool, device or site: by who attaches everything (jit/attach.c). */
void tide_runtime_attach(void);

#endif
