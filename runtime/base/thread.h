/* SPDX-License-Identifier: MIT */
/* What a thread leaves behind, ended when the thread ends: one thread key for all of the
 * library. */
#ifndef TIDEPOOL_RUNTIME_BASE_THREAD_H
#define TIDEPOOL_RUNTIME_BASE_THREAD_H

#include <tidepool/status.h>

/* In this order. What is ended may use what comes later. */
typedef enum tide_thread_rank {
    TIDE_THREAD_POOL,      /* its own pool                 */
    TIDE_THREAD_MAGAZINES, /* its cached buffers           */
    TIDE_THREAD_MESSAGE,   /* the text of its last failure */
    TIDE_THREAD_RANKS
} tide_thread_rank;

/* Has `end` called when the calling thread ends; it takes what the thread has from a thread-local
 * variable of its own. Each rank has one `end`. What another destructor of the thread makes anew is
 * ended in the next round of destructors. TIDE_ERROR_LIMIT when the process has no thread key left,
 * TIDE_ERROR_MEMORY; no message is set. */
tide_status tide_thread_keep(tide_thread_rank rank, void (*end)(void));

/* Nothing is left of this rank. */
void tide_thread_forget(tide_thread_rank rank);

#endif
