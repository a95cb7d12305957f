/* SPDX-License-Identifier: MIT */
/* What the lower rooms of the runtime are told of the higher ones. A room never names a room above
 * it: it keeps a table. This file stands above all rooms of the runtime and fills the tables in. */
#ifndef TIDEPOOL_RUNTIME_ATTACH_H
#define TIDEPOOL_RUNTIME_ATTACH_H

/* Called once, before the first pool, device or site, by jit/attach.c, which attaches
 * everything. */
void tide_runtime_attach(void);

#endif
