/* SPDX-License-Identifier: MIT */
/* Words taken from a line, one after the other. */
#include "profiler/tokenizer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "profiler/key.h"
#include "profiler/text.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"

bool tide_tokens_bad(tide_tokens *w, const char *format, ...)
{
    char reason[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    w->status =
        tide_fail(TIDE_ERROR_FILE, w->call, "'%.200s', line %u: %s", w->path, w->line, reason);
    return false;
}

bool tide_tokens_failed(tide_tokens *w)
{
    w->status = tide_error_status();
    return false;
}

bool tide_tokens_at_end(const tide_tokens *w)
{
    return w->at == w->end;
}

bool tide_tokens_blank(tide_tokens *w, const char *what)
{
    if (tide_tokens_at_end(w) || *w->at != ' ')
        return tide_tokens_bad(w, "a blank and %s are missing", what);
    w->at++;
    return true;
}

bool tide_tokens_starts(tide_tokens *w, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(w->end - w->at) < length || memcmp(w->at, word, length) != 0 ||
        (w->at + length != w->end && w->at[length] != ' '))
        return false;
    w->at += length;
    return true;
}

bool tide_tokens_number(tide_tokens *w, const char *what, uint64_t least, uint64_t most,
                       uint64_t *out)
{
    uint64_t value = 0;
    if (!tide_tokens_blank(w, what))
        return false;
    const char *start = w->at;
    for (; !tide_tokens_at_end(w) && *w->at >= '0' && *w->at <= '9'; w->at++) {
        uint64_t digit = (uint64_t)(*w->at - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return tide_tokens_bad(w, "%s does not fit 64 bits", what);
        value = value * 10 + digit;
    }
    if (w->at == start || (!tide_tokens_at_end(w) && *w->at != ' '))
        return tide_tokens_bad(w, "%s is not a number", what);
    if (value < least || value > most)
        return tide_tokens_bad(w, "%s is %" PRIu64 ", must be from %" PRIu64 " to %" PRIu64, what,
                              value, least, most);
    *out = value;
    return true;
}

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *found = c != '\0' ? strchr(digits, c) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

/* What follows a backslash. 0: nothing that can be. */
static char unescape(tide_tokens *w)
{
    if (tide_tokens_at_end(w))
        return '\0';
    char c = *w->at++;
    if (c == 'n' || c == 't')
        return c == 'n' ? '\n' : '\t';
    if (c == '\\' || c == '"')
        return c;
    if (c != 'x' || w->end - w->at < 2)
        return '\0';
    int high = hex_digit(w->at[0]), low = hex_digit(w->at[1]);
    w->at += 2;
    return high >= 0 && low >= 0 ? (char)(high * 16 + low) : '\0';
}

bool tide_tokens_string(tide_tokens *w, const char *what, char *out)
{
    size_t length = 0;
    if (!tide_tokens_blank(w, what))
        return false;
    if (tide_tokens_at_end(w) || *w->at++ != '"')
        return tide_tokens_bad(w, "%s does not start with a quote", what);
    while (!tide_tokens_at_end(w) && *w->at != '"') {
        char c = *w->at++;
        if (c == '\\' && (c = unescape(w)) == '\0')
            return tide_tokens_bad(w, "%s has an escape that is none", what);
        else if (c == '\0')
            return tide_tokens_bad(w, "%s has a byte 0", what);
        tide_assert(length <= TIDE_KEY_STRING_MAX);
        if (length == TIDE_KEY_STRING_MAX)
            return tide_tokens_bad(w, "%s is longer than %d bytes", what, TIDE_KEY_STRING_MAX);
        out[length++] = c;
    }
    if (tide_tokens_at_end(w))
        return tide_tokens_bad(w, "%s does not end with a quote", what);
    w->at++;
    out[length] = '\0';
    return true;
}

bool tide_tokens_nothing_more(tide_tokens *w)
{
    return tide_tokens_at_end(w) || tide_tokens_bad(w, "more on the line than belongs there");
}

bool tide_tokens_line(tide_tokens *w)
{
    tide_assert(w->next <= w->text_end);
    w->line++;
    size_t left = (size_t)(w->text_end - w->next);
    const char *end = left != 0 ? memchr(w->next, '\n', left) : NULL;
    if (end == NULL)
        return tide_tokens_bad(w, left == 0 ? "the end is missing" : "the line does not end");
    if ((size_t)(end - w->next) > TIDE_TEXT_LINE)
        return tide_tokens_bad(w, "longer than %zu bytes", TIDE_TEXT_LINE);
    w->at = w->next;
    w->end = end;
    w->next = end + 1;
    return true;
}
