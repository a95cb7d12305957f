/* SPDX-License-Identifier: MIT */
/* The compiler process, from the library's side: one child, which is started when it is first
 * needed and works on one request at a time. It may be missing, die, hang or lie: then the request
 * is answered with that, the child is ended, and the next request starts another one. A child that
 * nobody asks anything for a while is ended, too.
 *
 * Not thread-safe: whoever holds the round lock (jit/learn/round.h) calls it. Nothing here waits
 * longer than it is told to, but for the end of a child that was killed. */
#ifndef TIDEPOOL_JIT_STAGER_STAGER_H
#define TIDEPOOL_JIT_STAGER_STAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tide_stager_result {
    TIDE_STAGER_OK = 0,
    TIDE_STAGER_FAILED,  /* it answered with an error: the spec cannot be compiled     */
    TIDE_STAGER_LATE,    /* no answer within the deadline: it was killed               */
    TIDE_STAGER_DIED,    /* it went away with the request                              */
    TIDE_STAGER_GARBAGE, /* it answered something that is no answer: it was killed     */
    TIDE_STAGER_MISSING, /* there is no stager program                                 */
    TIDE_STAGER_SHORT,   /* it could not be started, or memory is short                */
    TIDE_STAGER_REFUSED  /* raised privileges, locked down, or no private directory    */
} tide_stager_result;

typedef struct tide_stager_answer {
    uint64_t request;
    uint64_t spent_us; /* of the processor, by the child and what it ran; if OK  */
    tide_stager_result result;
    char path[512];  /* of the code object, in the private directory; if OK */
    char error[256]; /* one line for a person; if not OK                    */
} tide_stager_answer;

/* Has it a request whose answer was not fetched yet? Then it takes no other. */
bool tide_stager_busy(void);

/* Hands over a request: specs with their head. The text is copied. False: there is no memory for
 * it, and it will have no answer. Whatever else goes wrong at once comes back as an answer. */
bool tide_stager_submit(uint64_t request, const char *specs, size_t bytes);

/* The answer, waiting at most so long for it; false: none. */
bool tide_stager_poll(tide_stager_answer *out, int timeout_ms);

/* Ends the child if it has been idle for long enough. */
void tide_stager_tend(void);

/* Ends the child, forgets the request and removes the private directory. */
void tide_stager_stop(void);

/* The same, but the request that there may be is answered with a refusal. */
void tide_stager_refuse(const char *why);

/* How many processes were started. */
uint64_t tide_stager_started(void);

/* The child's number; 0: there is none. For tests and reports. */
int tide_stager_process(void);

/* In the child of a fork: the compiler process is its parent's. */
void tide_stager_forget_in_child(void);

#endif
