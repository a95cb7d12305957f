/* SPDX-License-Identifier: MIT */
/* How a call reports a failure: a status, and a message for a person. */
#ifndef TIDEPOOL_STATUS_H
#define TIDEPOOL_STATUS_H

#include <tidepool/inline/config.h>

TIDE_BEGIN_DECLS

typedef enum tide_status {
    TIDE_OK = 0,
    TIDE_ERROR_ARGUMENT = 1, /* a NULL or a value that no call could accept            */
    TIDE_ERROR_TYPE = 2,     /* no such element type, or the call cannot handle it     */
    TIDE_ERROR_SIZE = 3,     /* a negative or overflowing count or shape               */
    TIDE_ERROR_MEMORY = 4,   /* the system (or the device) gave no memory              */
    TIDE_ERROR_LIMIT = 5,    /* a limit was reached; the message names it              */
    TIDE_ERROR_THREAD = 6,   /* the pool belongs to another thread                     */
    TIDE_ERROR_STALE = 7,    /* the mark, scope, array or buffer was given back before */
    TIDE_ERROR_STATE = 8,    /* not possible in this state; the message names it       */
    TIDE_ERROR_NAME = 9,     /* nothing has this name                                  */
    TIDE_ERROR_DEVICE = 10,  /* the device refused, is missing, was lost, or exit ends it */
    TIDE_ERROR_FILE = 11     /* a file that cannot be read, written or understood      */
} tide_status;

/* The message of the calling thread's last failed call: the call, the value, the limit; "" before the
 * first. It is the thread's, until its next failing call or its end; it says so itself where there is
 * no memory for it. Never NULL. A signal handler may read it (perhaps of two messages, half and half). */
TIDE_API const char *tide_error_message(void);

/* The status of the calling thread's last failed call (for calls that return NULL). */
TIDE_API tide_status tide_error_status(void);

/* "ok", "argument", "type", … for any status. Static text. */
TIDE_API const char *tide_status_name(tide_status status);

TIDE_END_DECLS

#endif
