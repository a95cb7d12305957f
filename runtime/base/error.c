/* SPDX-License-Identifier: MIT */
/* The calling thread's last failure: its message and its status. The end of a
 * failed assertion, too.
 *
 * The text lies in memory of its own, taken at the thread's first failure and left when the thread
 * ends: thread-local memory is scarce in plugins, where several copies of the library may load. */
#include "runtime/base/error.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/base/thread.h"

enum { ERROR_BYTES = sizeof((tide_failure *)0)->message };

static _Thread_local char *error_text;          /* of ERROR_BYTES; NULL: none yet, or no memory */
static _Thread_local const char *error_message; /* NULL: none yet */
static _Thread_local tide_status error_status;

/* ---- the text --------------------------------------------------------------------------- */

/* A place for a text. All that were ever made stay in the list, and serve one thread after the
 * other. So in the child of a fork those of threads that are not there can still be reached: they
 * are no leak, though nobody takes them again. */
typedef struct error_place {
    struct error_place *next;
    bool taken; /* atomic */
    char text[ERROR_BYTES];
} error_place;

static error_place *error_places; /* atomic; the youngest */

static char *error_take_place(void)
{
    error_place *place = __atomic_load_n(&error_places, __ATOMIC_ACQUIRE);
    for (; place != NULL; place = place->next)
        if (!__atomic_exchange_n(&place->taken, true, __ATOMIC_ACQUIRE))
            return place->text;
    place = tide_os_resize(NULL, sizeof *place);
    if (place == NULL)
        return NULL;
    *place = (error_place){.taken = true};
    place->next = __atomic_load_n(&error_places, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&error_places, &place->next, place, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        continue;
    return place->text;
}

static void error_leave_place(char *text)
{
    error_place *place = (error_place *)(void *)(text - offsetof(error_place, text));
    tide_assert(__atomic_load_n(&place->taken, __ATOMIC_RELAXED));
    __atomic_store_n(&place->taken, false, __ATOMIC_RELEASE);
}

static void error_end_thread(void)
{
    if (error_text != NULL)
        error_leave_place(error_text);
    error_text = NULL;
    error_message = NULL;
}

/* TIDE_OK, or why the thread can have no text. */
static tide_status error_make_text(void)
{
    if (error_text != NULL)
        return TIDE_OK;
    TIDE_FORWARD(tide_thread_keep(TIDE_THREAD_MESSAGE, error_end_thread));
    error_text = error_take_place();
    if (error_text != NULL)
        return TIDE_OK;
    tide_thread_forget(TIDE_THREAD_MESSAGE);
    return TIDE_ERROR_MEMORY;
}

void tide_error_prepare(void)
{
    (void)error_make_text();
}

/* Stands for a message that has no place. */
static const char *error_substitute(tide_status why)
{
    switch (why) {
    case TIDE_ERROR_LIMIT: return "no text of this failure: the process has no thread key left";
    case TIDE_ERROR_STATE: return "no text of this failure: the library may be unloaded";
    default: return "no text of this failure: no memory for it";
    }
}

static void error_set(const char *text, tide_status status)
{
    tide_status why = error_make_text();
    if (why == TIDE_OK)
        memcpy(error_text, text, ERROR_BYTES);
    error_message = why == TIDE_OK ? error_text : error_substitute(why);
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
