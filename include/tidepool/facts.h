/* SPDX-License-Identifier: MIT */
/* The facts of a process: its pools, its buffers, and all that is known as one JSON document.
 *
 * All of it may be asked by any thread while others work. Nothing on a hot path is counted for it:
 * what is here is counted anyway, or is added up when it is asked for. */
#ifndef TIDEPOOL_FACTS_H
#define TIDEPOOL_FACTS_H

#include <stdio.h>
#include <tidepool/buffers.h>
#include <tidepool/learn.h>
#include <tidepool/pool.h>

TIDE_BEGIN_DECLS

enum { TIDE_NAME_BYTES = 32, TIDE_THREAD_NAME_BYTES = 16 }; /* of the copies below, with their 0 */

/* A pool as another thread sees it. Figures are right each by itself, of moments a little apart;
 * `bytes_live`, `slots`, `slots_live`, `log_entries` and `depth` may be off by the arrays that the owner
 * just then acquires or rewinds. */
typedef struct tide_pool_information {
    uint64_t id;                              /* number of the pool in its process, from 1      */
    char name[TIDE_NAME_BYTES];               /* as tide_pool_options.name, cut off             */
    char device[TIDE_NAME_BYTES];             /* "host", "cuda:0"                               */
    char thread_name[TIDE_THREAD_NAME_BYTES]; /* of the owner, when it became that              */
    int thread;                               /* the owner as the system knows it (gettid)      */
    int check;                                /* check level: 0 to 2                            */
    bool local;                               /* the pool of tide_pool_local                    */
    bool disabled;                            /* each acquire is an allocation                  */
    tide_pool_statistics statistics;
    TIDE_GROWTH;
} tide_pool_information;

/* Calls `visit` for every live pool of this copy of the library, the oldest first, until it returns
 * false. The pools are copied first: no lock is held, and a pool may be gone by then. TIDE_ERROR_MEMORY,
 * nothing called; TIDE_ERROR_ARGUMENT for a NULL function. Any thread. */
TIDE_API tide_status tide_pool_each(bool (*visit)(const tide_pool_information *pool, void *user),
                                    void *user);

/* tide_pool_request for the pool of this id. TIDE_ERROR_NAME if no live pool has it. Any thread. */
TIDE_API tide_status tide_pool_request_by_id(uint64_t id, uint32_t requests);

/* An instance of buffers. */
typedef struct tide_buffers_information {
    uint64_t id;                  /* number of the instance in its process, from 1 */
    char name[TIDE_NAME_BYTES];   /* as tide_buffers_options.name, cut off         */
    char device[TIDE_NAME_BYTES]; /* "host", "cuda:0"                              */
    tide_buffers_statistics statistics;
} tide_buffers_information;

/* Calls `visit` for every instance of buffers, the youngest first, until it returns false. The statistics of
 * each are of one moment (tide_buffers_stats). The function may make instances, which are not visited.
 * It ends none (TIDE_ERROR_STATE), and waits for nothing that another thread holds while it destroys
 * one. TIDE_ERROR_ARGUMENT for a NULL function. Not from a hook of buffers. Any thread. */
TIDE_API tide_status tide_buffers_each(bool (*visit)(const tide_buffers_information *buffers,
                                                     void *user),
                                       void *user);

/* Writes one line, a JSON document in UTF-8 (other bytes of names are U+FFFD): pools, call sites,
 * buffers, learning, the process and its settings. All numbers are finite, none above 2^63 - 1. The line
 * is made in memory and written at once, with no lock held; the stream is flushed. TIDE_ERROR_MEMORY,
 * nothing written; TIDE_ERROR_FILE with the system's message; TIDE_ERROR_ARGUMENT. Any thread.
 *
 * "format" is "tidepool-facts", "format_version" 1. The members are listed in include/learning.md: new ones
 * may come, none changes, and until version 1.0 of the library members may go. */
TIDE_API tide_status tide_facts_write(FILE *out);

/* Writes an event as such a line: "format" "tidepool-event", serial time_ns kind site (its id; 0:
 * none) name tier reason reason_code detail round. From an event handler, or of a copy of an event
 * whose texts are still there. Errors as above. Any thread. */
TIDE_API tide_status tide_event_write(FILE *out, const tide_event *event);

TIDE_END_DECLS

#endif
