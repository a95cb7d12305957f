/* SPDX-License-Identifier: MIT */
#include "runtime/report.h"

#include <stdarg.h>
#include <stdio.h>

#include "runtime/os.h"

static struct {
    tide_report_function function;
    void *user;
} target;

void tide_report_to(tide_report_function function, void *user)
{
    __atomic_store_n(&target.user, user, __ATOMIC_RELAXED);
    __atomic_store_n(&target.function, function, __ATOMIC_RELEASE);
}

void tide_report(tide_report_kind kind, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t bytes = length < (int)sizeof text ? (size_t)length : sizeof text - 1;
    tide_report_function function = __atomic_load_n(&target.function, __ATOMIC_ACQUIRE);
    if (function != NULL && !function(kind, text, __atomic_load_n(&target.user, __ATOMIC_RELAXED)))
        return;
    tide_os_write_error("tidepool: ", 10);
    tide_os_write_error(text, bytes);
    tide_os_write_error("\n", 1);
}

const char *tide_place_text(tide_place place)
{
    static _Thread_local char buffers[4][256];
    static _Thread_local unsigned turn;
    if (place.file == NULL)
        return "an unnamed place";
    char *buffer = buffers[turn++ % 4];
    snprintf(buffer, sizeof buffers[0], "%s:%u in %s", place.file, place.line, place.function);
    return buffer;
}
