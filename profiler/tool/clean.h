/* SPDX-License-Identifier: MIT */
/* Texts of other processes and of files, made harmless: the one way by which any of them reaches a
 * terminal. */
#ifndef TIDEPOOL_PROFILER_TOOL_CLEAN_H
#define TIDEPOOL_PROFILER_TOOL_CLEAN_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character at `text`, 1 where it is none. *shown: it is one, and a terminal does
 * nothing with it but show it: no control character, neither of ASCII nor of C1, nothing that ends
 * a line or turns the direction of writing round. Not at the end of the text. */
size_t tool_character(const char *text, bool *shown);

/* The text with "?" for what is not shown; of bytes that are no UTF-8, one for each. Whole
 * characters, as far as there is room; "..." stands for the rest, unless there is hardly any room.
 * Returns `out`. */
const char *tool_clean(const char *text, char *out, size_t room);

/* One line of the standard output: the format with its values, made harmless as a whole, and a line
 * feed. */
__attribute__((format(printf, 1, 2))) void tool_say(const char *format, ...);

#endif
