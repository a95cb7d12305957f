/* SPDX-License-Identifier: MIT */
/* Failing: one function makes the message, one macro passes a failure on. */
#ifndef TIDEPOOL_RUNTIME_BASE_ERROR_H
#define TIDEPOOL_RUNTIME_BASE_ERROR_H

#include <tidepool/status.h>

/* Sets the thread's message to "call: …" and its status; returns the status. */
__attribute__((format(printf, 3, 4), cold)) tide_status
tide_fail(tide_status status, const char *call, const char *format, ...);

/* Was it this call that failed last on this thread? */
bool tide_failed_last(const char *call);

/* The message of the last failure, without the name of this call. */
const char *tide_failed_words(const char *call);

/* Makes room for the calling thread's messages beforehand, so that those about a shortage of memory
 * have some. Without room each message is a static text that says so; the status is right. */
void tide_error_prepare(void);

/* The thread's last failure, for calls that fail inside and then succeed another way: those leave
 * it alone. */
typedef struct tide_failure {
    char message[512];  /* what the thread's own text was */
    const char *before; /* what the message was: that text, or a static one; NULL: none */
    tide_status status;
} tide_failure;

void tide_failure_keep(tide_failure *failure);
void tide_failure_restore(const tide_failure *failure);

#define TIDE_FORWARD(call)               \
    do {                                 \
        tide_status forwarded_ = (call); \
        if (forwarded_ != TIDE_OK)       \
            return forwarded_;           \
    } while (0)

/* Refuses options with members of a later version (TIDE_GROWTH). */
tide_status tide_growth_check(const uint64_t growth[8], const char *call);

#endif
