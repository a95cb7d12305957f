/* SPDX-License-Identifier: MIT */
/* A set of profiles as text, and back.
 *
 *   tidepool profile 3                        the version: no other one is read
 *   type 8 8 "f64"                            size, alignment; numbered from 1 in this order
 *   scope 12 300 0 "" "work.c" "step"         line, uses, touches of other types; name, file,
 *                                             function
 *   uses 1 300 600 2                          of the last scope: type, uses, slots, most slots
 *   knob 32 "tile" "work.c"                   a tunable's value, name, file
 *   tuned 7 1 "product" "work.c"              of variants: key, 0 measured, 1 settled, 2 pinned;
 *                                             name, file
 *   candidate 60 8812 31 1 "8x8"              of the last of these: timed uses, picoseconds of one,
 *                                             standard error; 1: it is chosen; the variant's name
 *   end 1                                     how many scopes there were
 *
 * The lines of tunables are those of the room jit/tune. Dispatches are not written: no text can name
 * their functions.
 *
 * One blank between words, a line feed at each line's end, nothing after the last. In strings
 * backslashes, quotes, control characters and bytes that are no UTF-8 are written \\, \", \n, \t or
 * \xHH; so what is written is UTF-8, whatever the names are. */
#ifndef TIDEPOOL_PROFILER_FILES_TEXT_H
#define TIDEPOOL_PROFILER_FILES_TEXT_H

#include <stdio.h>

#include "profiler/files/profile_set.h"

enum { TIDE_TEXT_VERSION = 3 };

/* Largest text, longest line, longest name of a type, in bytes; largest count. Products of such a
 * count with the slots of a row do not overflow. */
#define TIDE_TEXT_BYTES     ((size_t)32 << 20)
#define TIDE_TEXT_LINE      ((size_t)64 << 10)
#define TIDE_TEXT_TYPE_NAME ((size_t)16000)
#define TIDE_TEXT_COUNT_MAX UINT64_C(100000000000000)

_Static_assert(3 * 4 * TIDE_KEY_STRING_MAX + 1024 <= TIDE_TEXT_LINE,
               "a scope fits a line even if each byte of its three strings is escaped");
_Static_assert(4 * TIDE_TEXT_TYPE_NAME + 1024 <= TIDE_TEXT_LINE, "so does a type");

/* Writes a blank and the string in quotes. */
void tide_text_string(FILE *out, const char *text);

/* Writes the set into memory of malloc, which is the caller's to free. TIDE_ERROR_MEMORY, or
 * TIDE_ERROR_LIMIT if the text would be too large: it is NULL then. */
tide_status tide_profile_text_write(const tide_profile_set *set, char **text, size_t *length,
                                    const char *call);

/* Puts what the text says into the set, which is empty and whose table becomes that of the text.
 * TIDE_ERROR_FILE with line and reason (the message names `path`), TIDE_ERROR_MEMORY,
 * TIDE_ERROR_LIMIT; the set is then fit to be destroyed only. */
tide_status tide_profile_text_read(const char *bytes, size_t length, tide_profile_set *set,
                                   const char *path, const char *call);

#endif
