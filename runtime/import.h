/* SPDX-License-Identifier: MIT */
/* Foreign tensors in a scope: an entry of the undo log that gives them back. */
#ifndef TIDEPOOL_RUNTIME_IMPORT_H
#define TIDEPOOL_RUNTIME_IMPORT_H

#include "runtime/pool.h"

/* Runs the deleter of the tensor that the entry stands for. */
void tide_import_undo(const tide_entry *entry);

#endif
