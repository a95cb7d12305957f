/* SPDX-License-Identifier: MIT */
/* What may be copied: the check that all copies of arrays have in common. */
#ifndef TIDEPOOL_RUNTIME_TRANSFER_COPY_H
#define TIDEPOOL_RUNTIME_TRANSFER_COPY_H

#include "runtime/pool/core.h"

/* May so many bytes be copied to or from there? Refuses NULL and what exceeds the address space; in
 * a careful pool also what is in a slot, but not in a live array. */
tide_status tide_copy_check(const tide_pool *pool, const void *data, size_t bytes,
                            const char *call);

/* Is that memory of the host? A careful pool refuses what only a device has. */
tide_status tide_copy_check_host(const tide_pool *pool, const void *host, const char *call);

/* TIDE_ERROR_STATE while a graph is captured on the pool's stream: a copy with the host would become part of it. */
tide_status tide_copy_check_capture(const tide_pool *pool, const char *call);

#endif
