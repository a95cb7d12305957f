/* SPDX-License-Identifier: MIT */
/* Foreign tensors in a scope: an entry of the undo log that gives them back.
 *
 * On a device work that uses a tensor may be in flight when its scope ends. Nobody waits: a mark
 * is left in the pool's stream, and the tensor is given back once that has been passed, when the
 * pool next takes in or gives back one (or ends, which waits). While a graph is captured no mark
 * can be left; it is left afterwards. */
#ifndef TIDEPOOL_RUNTIME_ARRAY_IMPORT_H
#define TIDEPOOL_RUNTIME_ARRAY_IMPORT_H

#include <tidepool/dlpack.h>

#include "runtime/pool/core.h"

/* Remembers the tensor until its scope ends; there must be room in the log. False when there is no
 * memory to. */
bool tide_import_remember(tide_pool *pool, tide_dl_managed *managed);

/* The scope of the tensor that the entry stands for has ended. */
void tide_import_undo(tide_pool *pool, const tide_entry *entry);

/* Gives back what is waiting; the host waits for the marks. */
void tide_import_finish(tide_pool *pool);

#endif
