/* SPDX-License-Identifier: MIT */
/* Text that is written piece by piece. The caller gives the room and knows that it is enough. */
#ifndef TIDEPOOL_JIT_SPEC_TEXT_H
#define TIDEPOOL_JIT_SPEC_TEXT_H

#include <stddef.h>

typedef struct tide_text {
    char *out;
    size_t room, used; /* bytes; a 0 stands at out[used] once something was written */
} tide_text;

/* Appends, and a final 0. */
__attribute__((format(printf, 2, 3))) void tide_text_put(tide_text *text, const char *format, ...);

#endif
