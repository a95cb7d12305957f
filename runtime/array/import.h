/* SPDX-License-Identifier: MIT */
/* Foreign tensors in a scope: an entry of the undo log that gives them back.
 *
 * On a device, work that uses a tensor may be in flight when its scope ends. Nobody waits: the
 * deleter is a deferred release of the device (runtime/device/deferred.h), behind the pool's
 * stream. It is looked for when any pool of the device takes in or gives back a tensor. */
#ifndef TIDEPOOL_RUNTIME_ARRAY_IMPORT_H
#define TIDEPOOL_RUNTIME_ARRAY_IMPORT_H

#include <tidepool/dlpack.h>

#include "runtime/pool/core.h"

/* Remembers the tensor until its scope ends. There must be room in the log. False when
 * memory is short. */
bool tide_import_remember(tide_pool *pool, tide_dl_managed *managed);

/* The scope of the tensor that the entry stands for has ended. */
void tide_import_undo(tide_pool *pool, const tide_entry *entry);

#endif
