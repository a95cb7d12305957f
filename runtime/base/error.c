/* SPDX-License-Identifier: MIT */
/* The calling thread's last failure. */
#include "runtime/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/assert.h"

static _Thread_local char message[512];
static _Thread_local tide_status last;

tide_status tide_fail(tide_status status, const char *call, const char *format, ...)
{
    char text[sizeof message]; /* an argument may be the last message */
    int used = snprintf(text, sizeof text, "%s: ", call);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, arguments);
    va_end(arguments);
    memcpy(message, text, sizeof message);
    last = status;
    return status;
}

_Static_assert(sizeof message == sizeof((tide_failure *)0)->message, "a failure is kept whole");

void tide_failure_keep(tide_failure *failure)
{
    memcpy(failure->message, message, sizeof message);
    failure->status = last;
}

void tide_failure_restore(const tide_failure *failure)
{
    memcpy(message, failure->message, sizeof message);
    last = failure->status;
}

const char *tide_error_message(void)
{
    return message;
}

tide_status tide_error_status(void)
{
    return last;
}

const char *tide_status_name(tide_status status)
{
    static const char *const names[] = {"ok",     "argument", "type",  "size", "memory", "limit",
                                        "thread", "stale",    "state", "name", "device", "file"};
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "unknown";
}

void tide_assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "tidepool: %s:%d: assertion failed: %s\n", file, line, what);
    abort();
}
