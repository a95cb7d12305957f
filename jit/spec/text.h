/* SPDX-License-Identifier: MIT */
/* Text written bit by bit into room that whoever gives it knows to be enough. */
#ifndef TIDEPOOL_JIT_SPEC_TEXT_H
#define TIDEPOOL_JIT_SPEC_TEXT_H

#include <stddef.h>

typedef struct tide_text {
    char *out;
    size_t room, used; /* bytes; a 0 stands at out[used] once something was written */
} tide_text;

__attribute__((format(printf, 2, 3))) void tide_text_put(tide_text *text, const char *format, ...);

#endif
