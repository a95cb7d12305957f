/* SPDX-License-Identifier: MIT */
/* The calling thread's last failure: its message and its status. The end of a
 * failed assertion, too. */
#include "runtime/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/assert.h"

static _Thread_local char error_message[512];
static _Thread_local tide_status error_status;

tide_status tide_fail(tide_status status, const char *call, const char *format, ...)
{
    tide_assert(status != TIDE_OK && call != NULL && format != NULL);
    char text[sizeof error_message]; /* an argument may be the last message */
    int used = snprintf(text, sizeof text, "%s: ", call);
    tide_assert(used > 0 && (size_t)used < sizeof text); /* the name of a call is short */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, arguments);
    va_end(arguments);
    memcpy(error_message, text, sizeof error_message);
    error_status = status;
    return status;
}

_Static_assert(sizeof error_message == sizeof((tide_failure *)0)->message,
               "a failure is kept whole");

void tide_failure_keep(tide_failure *failure)
{
    tide_assert(failure != NULL);
    memcpy(failure->message, error_message, sizeof error_message);
    failure->status = error_status;
}

void tide_failure_restore(const tide_failure *failure)
{
    tide_assert(failure != NULL);
    memcpy(error_message, failure->message, sizeof error_message);
    error_status = failure->status;
}

const char *tide_error_message(void)
{
    return error_message;
}

tide_status tide_error_status(void)
{
    return error_status;
}

const char *tide_status_name(tide_status status)
{
    static const char *const names[] = {"ok",     "argument", "type",  "size", "memory", "limit",
                                        "thread", "stale",    "state", "name", "device", "file"};
    _Static_assert(sizeof names / sizeof *names == TIDE_ERROR_FILE + 1, "each status has a name");
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "unknown";
}

void tide_assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "tidepool: %s:%d: assertion failed: %s\n", file, line, what);
    abort();
}
