/* SPDX-License-Identifier: MIT */
/* Reading and writing numbers, strictly: no hexadecimal, no "inf", no trailing letters. */
#include "number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void trim(const char **text, size_t *length)
{
    while (*length > 0 && (**text == ' ' || **text == '\t')) {
        (*text)++;
        (*length)--;
    }
    while (*length > 0 && ((*text)[*length - 1] == ' ' || (*text)[*length - 1] == '\t'))
        (*length)--;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t digits(const char *text, size_t at, size_t length)
{
    size_t start = at;
    while (at < length && is_digit(text[at]))
        at++;
    return at - start;
}

bool read_integer(const char *text, size_t length, int64_t *out)
{
    trim(&text, &length);
    size_t at = length > 0 && (text[0] == '+' || text[0] == '-');
    if (at == length || digits(text, at, length) != length - at)
        return false;
    int64_t value = 0;
    for (; at < length; at++) {
        int64_t digit = text[0] == '-' ? '0' - text[at] : text[at] - '0';
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *out = value;
    return true;
}

/* [+-] digits [. digits] [e [+-] digits] */
static bool looks_real(const char *text, size_t length)
{
    size_t at = length > 0 && (text[0] == '+' || text[0] == '-');
    size_t whole = digits(text, at, length), fraction = 0;
    at += whole;
    if (at < length && text[at] == '.') {
        fraction = digits(text, at + 1, length);
        at += 1 + fraction;
    }
    if (whole + fraction == 0)
        return false;
    if (at < length && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        at += at < length && (text[at] == '+' || text[at] == '-');
        size_t exponent = digits(text, at, length);
        if (exponent == 0)
            return false;
        at += exponent;
    }
    return at == length;
}

bool read_real(const char *text, size_t length, double *out)
{
    char copy[512]; /* strtod wants an end; no number anyone writes is longer */
    trim(&text, &length);
    if (length >= sizeof copy || !looks_real(text, length))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *out = strtod(copy, NULL);
    return true;
}

bool read_boolean(const char *text, size_t length, bool *out)
{
    trim(&text, &length);
    *out = length == 4;
    return (length == 4 && strncasecmp(text, "true", 4) == 0) ||
           (length == 5 && strncasecmp(text, "false", 5) == 0);
}

void write_real(char *out, double value, bool exact)
{
    snprintf(out, 30, exact ? "%.17g" : "%.15g", value);
    if (out[strcspn(out, ".eni")] == '\0') /* neither point, exponent, nan nor inf */
        strcat(out, ".0");
}
