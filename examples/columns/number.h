/* SPDX-License-Identifier: MIT */
/* Numbers and booleans in text: the one place that says what looks like one. */
#ifndef COLUMNS_NUMBER_H
#define COLUMNS_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each reads the whole text, blanks around it allowed, and is false if it is something else.
 *   integer   [+-] digits, within 64 bits
 *   real      [+-] digits [. digits] [e [+-] digits]; digits on one side of the point suffice
 *   boolean   true or false, in any case */
bool read_integer(const char *text, size_t length, int64_t *out);
bool read_real(const char *text, size_t length, double *out);
bool read_boolean(const char *text, size_t length, bool *out);

/* A real as people read it: 15 digits, and never without a point or exponent, so that it shows
 * as a real; all 17 when `exact`. Writes at most 32 bytes. */
void write_real(char *out, double value, bool exact);

#endif
