/* SPDX-License-Identifier: MIT */
/* Takes words from a line of text, one after the other, and refuses what is not as it should be. */
#include "profiler/files/tokenizer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "profiler/files/profile_set.h"
#include "profiler/files/text.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"

bool tide_tokens_bad(tide_tokens *t, const char *format, ...)
{
    char reason[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    t->status =
        tide_fail(TIDE_ERROR_FILE, t->call, "'%.200s', line %u: %s", t->path, t->line, reason);
    tide_assert(t->status != TIDE_OK);
    return false;
}

bool tide_tokens_failed(tide_tokens *t)
{
    t->status = tide_error_status();
    tide_assert(t->status != TIDE_OK);
    return false;
}

static bool tokens_at_end(const tide_tokens *t)
{
    tide_assert(t->at <= t->end);
    return t->at == t->end;
}

bool tide_tokens_blank(tide_tokens *t, const char *what)
{
    if (tokens_at_end(t) || *t->at != ' ')
        return tide_tokens_bad(t, "a blank and %s are missing", what);
    t->at++;
    return true;
}

bool tide_tokens_starts(tide_tokens *t, const char *word)
{
    size_t length = strlen(word);
    tide_assert(length != 0 && t->at <= t->end);
    if ((size_t)(t->end - t->at) < length || memcmp(t->at, word, length) != 0 ||
        (t->at + length != t->end && t->at[length] != ' '))
        return false;
    t->at += length;
    return true;
}

bool tide_tokens_number(tide_tokens *t, const char *what, uint64_t least, uint64_t most,
                        uint64_t *out)
{
    uint64_t value = 0;
    if (!tide_tokens_blank(t, what))
        return false;
    const char *start = t->at;
    tide_assert(start <= t->end);
    for (; !tokens_at_end(t) && *t->at >= '0' && *t->at <= '9'; t->at++) {
        uint64_t digit = (uint64_t)(*t->at - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return tide_tokens_bad(t, "%s does not fit 64 bits", what);
        value = value * 10 + digit;
    }
    if (t->at == start || (!tokens_at_end(t) && *t->at != ' '))
        return tide_tokens_bad(t, "%s is not a number", what);
    if (value < least || value > most)
        return tide_tokens_bad(t, "%s is %" PRIu64 ", must be from %" PRIu64 " to %" PRIu64, what,
                               value, least, most);
    tide_assert(t->at > start && t->at <= t->end);
    *out = value;
    return true;
}

static int tokens_hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *found = c != '\0' ? strchr(digits, c) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

/* The byte that an escape stands for; *at is behind the backslash. 0: there is no such escape. */
static char tokens_unescape(tide_tokens *t)
{
    if (tokens_at_end(t))
        return '\0';
    char c = *t->at++;
    if (c == 'n' || c == 't')
        return c == 'n' ? '\n' : '\t';
    if (c == '\\' || c == '"')
        return c;
    if (c != 'x' || t->end - t->at < 2)
        return '\0';
    int high = tokens_hex_digit(t->at[0]), low = tokens_hex_digit(t->at[1]);
    t->at += 2;
    tide_assert(t->at <= t->end && high < 16 && low < 16);
    return high >= 0 && low >= 0 ? (char)(high * 16 + low) : '\0';
}

bool tide_tokens_string(tide_tokens *t, const char *what, size_t most, char *out)
{
    size_t length = 0;
    if (!tide_tokens_blank(t, what))
        return false;
    if (tokens_at_end(t) || *t->at++ != '"')
        return tide_tokens_bad(t, "%s does not start with a quote", what);
    while (!tokens_at_end(t) && *t->at != '"') {
        char c = *t->at++;
        if (c == '\\' && (c = tokens_unescape(t)) == '\0')
            return tide_tokens_bad(t, "%s has an escape that is none", what);
        else if (c == '\0')
            return tide_tokens_bad(t, "%s has a byte 0", what);
        tide_assert(length <= most);
        if (length == most)
            return tide_tokens_bad(t, "%s is longer than %zu bytes", what, most);
        out[length++] = c;
    }
    if (tokens_at_end(t))
        return tide_tokens_bad(t, "%s does not end with a quote", what);
    t->at++;
    out[length] = '\0';
    return true;
}

bool tide_tokens_nothing_more(tide_tokens *t)
{
    return tokens_at_end(t) || tide_tokens_bad(t, "more on the line than belongs there");
}

bool tide_tokens_line(tide_tokens *t)
{
    tide_assert(t->next <= t->text_end);
    t->line++;
    size_t left = (size_t)(t->text_end - t->next);
    const char *end = left != 0 ? memchr(t->next, '\n', left) : NULL;
    if (end == NULL)
        return tide_tokens_bad(t, left == 0 ? "the end is missing" : "the line does not end");
    if ((size_t)(end - t->next) > TIDE_TEXT_LINE)
        return tide_tokens_bad(t, "longer than %zu bytes", TIDE_TEXT_LINE);
    t->at = t->next;
    t->end = end;
    t->next = end + 1;
    tide_assert(t->at <= t->end && t->next <= t->text_end);
    return true;
}
