/* SPDX-License-Identifier: MIT */
/* Foreign tensors in a scope: an entry of the undo log that gives them back.
 *
 * On a device, work that uses a tensor may be in flight when its scope ends. Nobody waits: a mark
 * is left in the pool's stream. Once the mark has been passed, the tensor is given back when the
 * pool next takes in or gives back a tensor. (A pool that ends waits for the mark.) While a graph
 * is captured no mark can be left; it is left afterwards. A pool that ends meanwhile puts the
 * tensor off (runtime/device/later.h). */
#ifndef TIDEPOOL_RUNTIME_ARRAY_IMPORT_H
#define TIDEPOOL_RUNTIME_ARRAY_IMPORT_H

#include <tidepool/dlpack.h>

#include "runtime/pool/core.h"

/* Remembers the tensor until its scope ends. There must be room in the log. False when
 * memory is short. */
bool tide_import_remember(tide_pool *pool, tide_dl_managed *managed);

/* The scope of the tensor that the entry stands for has ended. */
void tide_import_undo(tide_pool *pool, const tide_entry *entry);

/* Gives back all that is waiting; the host waits for their marks. What it cannot wait for is put
 * off. */
void tide_import_finish(tide_pool *pool);

#endif
