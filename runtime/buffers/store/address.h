/* SPDX-License-Identifier: MIT */
/* From the address of a buffer's memory to its record: a table that anybody reads without a lock,
 * and that changes with the mutex held.
 *
 *  1. An address hashes to a place; its entry stands there or behind it, before the next empty
 *     place (linear probing). An entry is a record's number and some bits of the hash.
 *  2. An entry is there before its buffer is live for the first time, and until its memory is about
 *     to be given back. So whoever holds the buffer finds it: what others add fills places that
 *     were empty or gone, what others remove leaves a `gone` behind. A place becomes empty only if
 *     the one behind it is: no entry stands further on then.
 *  3. A table that is half full is copied to a larger one. Readers may be in the old one, which has
 *     all that was there when they began: so it stays as it is until the instance ends. All old
 *     ones together are no larger than the last. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_STORE_ADDRESS_H
#define TIDEPOOL_RUNTIME_BUFFERS_STORE_ADDRESS_H

#include "runtime/buffers/store/handle.h"

struct tide_address_table {
    unsigned shift;                   /* 64 less the bits of a place                  */
    uint32_t count;                   /* places; a power of two                       */
    uint32_t used;                    /* places that are not empty; guarded by the mutex */
    struct tide_address_table *older; /* NULL: it is the first                        */
    uint32_t entries[];               /* atomic                                       */
};

/* The record has got memory. False: no memory for the table. Mutex held, as for the next. */
bool tide_address_add(tide_buffers *buffers, uint32_t slot);

/* The record's memory is about to go. */
void tide_address_remove(tide_buffers *buffers, uint32_t slot);

/* All tables, when the instance ends. */
void tide_address_end(tide_buffers *buffers);

#endif
