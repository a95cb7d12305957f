/* SPDX-License-Identifier: MIT */
/* Appends formatted text to a buffer whose owner has made it large enough. */
#include "jit/spec/text.h"

#include <stdarg.h>
#include <stdio.h>

#include "runtime/base/assert.h"

void tide_text_put(tide_text *text, const char *format, ...)
{
    tide_assert(text->out != NULL && text->used < text->room);
    va_list args;
    va_start(args, format);
    int wrote = vsnprintf(text->out + text->used, text->room - text->used, format, args);
    va_end(args);
    tide_assert(wrote >= 0 && (size_t)wrote < text->room - text->used);
    text->used += (size_t)wrote;
}
