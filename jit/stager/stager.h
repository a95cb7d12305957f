/* SPDX-License-Identifier: MIT */
/* The stager as a service: a worker process that is started when first needed, takes requests, and
 * answers in its own time. It is recycled, killed and replaced, and the program does not notice.
 *
 * Not thread-safe: whoever holds the round lock (jit/learn/round.h) calls it. Nothing here blocks
 * longer than it is told to.
 *
 * A request whose worker is lost through no fault of its own is given to another one once. At exit,
 * after all else that the library does there, the worker is ended and the directory removed. A
 * forked child has neither, and makes its own when it needs them. */
#ifndef TIDEPOOL_JIT_STAGER_STAGER_H
#define TIDEPOOL_JIT_STAGER_STAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tide_stager_result {
    TIDE_STAGER_OK = 0,
    TIDE_STAGER_MISSING, /* there is no stager program, or it cannot be executed       */
    TIDE_STAGER_SHORT,   /* processes, descriptors or memory are short just now        */
    TIDE_STAGER_FAILED,  /* it answered with an error: the spec cannot be compiled     */
    TIDE_STAGER_LATE,    /* no answer within the deadline: it was killed               */
    TIDE_STAGER_DIED,    /* it went away with the request                              */
    TIDE_STAGER_GARBAGE, /* it answered something that is no answer: it was killed     */
    TIDE_STAGER_REFUSED  /* the artefact directory cannot be had, raised privileges …  */
} tide_stager_result;

typedef struct tide_stager_answer {
    uint64_t request;
    uint64_t spent_us; /* of the processor, by the stager and what it ran; 0: it did not tell */
    tide_stager_result result;
    char path[512];  /* of the artefact, in the process's private directory; if OK */
    char error[256]; /* one line for a person; if not OK                           */
} tide_stager_answer;

/* Hands over a request: specs with their head. The text is copied. False: there is no memory for
 * it, and it will have no answer. Whatever else goes wrong at once comes back as an answer, like
 * anything else. */
bool tide_stager_submit(uint64_t request, const char *specs, size_t bytes);

/* The next answer, waiting at most so long for one; false: none. */
bool tide_stager_poll(tide_stager_answer *out, int timeout_ms);

/* Requests whose answer has not been fetched yet. */
size_t tide_stager_pending(void);

/* Looks after workers without waiting for anything: one that is idle may go, one that may do more
 * than the program may by now must. Nothing is done where there is none, nor within ten
 * milliseconds of the last such look, unless the program's user or group has changed. */
void tide_stager_tend(void);

/* Ends the worker, kindly and then not, forgets all requests, and removes the private directory if
 * `directory` says so. */
void tide_stager_stop(bool directory);

typedef struct tide_stager_figures {
    uint64_t started, requests, answers, failed, late, died, garbage, recycled, idle;
} tide_stager_figures;

/* started: processes; late, died, garbage, recycled, idle: why they went; failed: errors as
 * answers. */
void tide_stager_figures_get(tide_stager_figures *out);

/* What the last stager that said hello calls itself; "" while none has. */
const char *tide_stager_version(void);

/* The worker that takes new requests, as a process; 0: none. For tests and reports. */
int tide_stager_process(void);

#endif
