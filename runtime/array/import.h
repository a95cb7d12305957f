/* SPDX-License-Identifier: MIT */
/* Foreign tensors in a scope: an entry of the undo log that gives them back.
 *
 * On a device, work that uses a tensor may be in flight when its scope ends. Nobody waits: the
 * deleter is a deferred release of the device (runtime/device/deferred.h), behind the pool's
 * stream. It is looked for when any pool of the device takes in or gives back a tensor. */
#ifndef TIDEPOOL_RUNTIME_ARRAY_IMPORT_H
#define TIDEPOOL_RUNTIME_ARRAY_IMPORT_H

#include <tidepool/array.h>

#include "runtime/pool/core.h"

/* Makes the tensor an array of the pool for the rest of the scope, unless its check failed (`checked`,
 * with a message). It is owned from now on: the deleter runs when the scope ends, or at once where the
 * result is NULL. */
tide_array *tide_import_take(tide_pool *pool, tide_dl_managed *managed, tide_type type,
                             size_t length, tide_status checked, const char *call, TIDE_PLACE);

/* The scope of the tensor that the entry stands for has ended. */
void tide_import_undo(tide_pool *pool, const tide_entry *entry);

#endif
