/* SPDX-License-Identifier: MIT */
/* The calling thread's last failure: its message and its status. The end of a
 * failed assertion, too.
 *
 * The text lies in memory of its own, from the thread's first failure to its end: thread-local memory
 * is scarce where many libraries load. */
#include "runtime/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/base/shim.h"
#include "runtime/base/thread.h"

enum { ERROR_BYTES = sizeof((tide_failure *)0)->message };

static _Thread_local char *error_text;          /* of ERROR_BYTES; NULL: none yet, or no memory */
static _Thread_local const char *error_message; /* NULL: none yet */
static _Thread_local tide_status error_status;

/* ---- the text --------------------------------------------------------------------------- */

static void error_end_thread(void)
{
    if (error_text != NULL)
        tide_os_free(error_text);
    error_text = NULL;
    error_message = NULL;
}

/* False: the thread can have no text. */
static bool error_make_text(void)
{
    if (error_text != NULL)
        return true;
    if (tide_thread_keep(TIDE_THREAD_MESSAGE, error_end_thread) != TIDE_OK)
        return false;
    error_text = tide_os_resize(NULL, ERROR_BYTES);
    if (error_text == NULL)
        tide_thread_forget(TIDE_THREAD_MESSAGE);
    else
        tide_shim_no_leak(error_text);
    return error_text != NULL;
}

void tide_error_prepare(void)
{
    (void)error_make_text();
}

static void error_set(const char *text, tide_status status)
{
    bool made = error_make_text();
    if (made)
        memcpy(error_text, text, ERROR_BYTES);
    error_message =
        made ? error_text : "no text of this failure: no memory for it, or no thread key left";
    error_status = status;
}

/* ---- failing ---------------------------------------------------------------------------- */

tide_status tide_fail(tide_status status, const char *call, const char *format, ...)
{
    tide_assert(status != TIDE_OK && call != NULL && format != NULL);
    /* An argument may be the last message. All zero: a signal handler that reads while the message
     * is being replaced finds an end, the last byte of both. */
    char text[ERROR_BYTES] = {0};
    int used = snprintf(text, sizeof text, "%s: ", call);
    tide_assert(used > 0 && (size_t)used < sizeof text); /* the name of a call is short */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, arguments);
    va_end(arguments);
    error_set(text, status);
    return status;
}

bool tide_failed_last(const char *call)
{
    const char *last = tide_error_message();
    size_t length = strlen(call);
    return strncmp(last, call, length) == 0 && last[length] == ':';
}

const char *tide_failed_words(const char *call)
{
    return tide_error_message() + (tide_failed_last(call) ? strlen(call) + strlen(": ") : 0);
}

void tide_failure_keep(tide_failure *failure)
{
    tide_assert(failure != NULL);
    failure->before = error_message;
    failure->status = error_status;
    if (error_text != NULL)
        memcpy(failure->message, error_text, sizeof failure->message);
}

/* What stood in the thread's own text was kept; another text is static. */
void tide_failure_restore(const tide_failure *failure)
{
    tide_assert(failure != NULL);
    if (failure->before != NULL && failure->before == error_text)
        memcpy(error_text, failure->message, sizeof failure->message);
    error_message = failure->before;
    error_status = failure->status;
}

const char *tide_error_message(void)
{
    return error_message != NULL ? error_message : "";
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

tide_status tide_growth_check(const uint64_t growth[8], const char *call)
{
    _Static_assert(sizeof(struct { TIDE_GROWTH; }) == 8 * sizeof *growth, "all of it is looked at");
    for (size_t i = 0; i < 8; i++)
        if (growth[i] != 0)
            return tide_fail(
                TIDE_ERROR_ARGUMENT, call,
                "options of a later version, or not set to zero: word %zu beyond their "
                "members is %#llx",
                i, (unsigned long long)growth[i]);
    return TIDE_OK;
}
