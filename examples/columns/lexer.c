/* SPDX-License-Identifier: MIT */
/* Cutting a query into tokens. */
#include "lexer.h"

#include "error.h"
#include "number.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Letters of any alphabet: what is not ASCII is taken for one. */
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

static bool finish(query *q, token *t, token_kind kind, size_t end, columns_error *error)
{
    t->kind = kind;
    t->end = end;
    t->text = query_text(q, q->text + t->start, end - t->start);
    return t->text != NULL || columns_no_memory(error);
}

/* 'text', "name" or [name]; the closing quote is doubled inside (a bracket cannot be). */
static bool quoted(query *q, token *t, columns_error *error)
{
    char close = q->text[t->start] == '[' ? ']' : q->text[t->start];
    const char *at = q->text + t->start + 1;
    char *copy = query_memory(q, strlen(at) + 1);
    if (copy == NULL)
        return columns_no_memory(error);
    t->text = copy;
    for (;; at++) {
        if (*at == '\0')
            return columns_query_fail(error, q->text, t->start, "this %c is never closed",
                                      q->text[t->start]);
        if (*at == close) {
            if (close == ']' || at[1] != close)
                break;
            at++;
        }
        *copy++ = *at;
    }
    t->kind = close == '\'' ? TOKEN_TEXT : TOKEN_NAME;
    t->end = (size_t)(at + 1 - q->text);
    return true;
}

static bool number(query *q, token *t, columns_error *error)
{
    const char *at = q->text + t->start;
    while (is_digit(*at))
        at++;
    if (*at == '.')
        at++;
    while (is_digit(*at))
        at++;
    if (*at == 'e' || *at == 'E') {
        const char *exponent = at + 1 + (at[1] == '+' || at[1] == '-');
        if (is_digit(*exponent))
            at = exponent;
        while (is_digit(*at))
            at++;
    }
    size_t end = (size_t)(at - q->text);
    if (is_letter(*at) || *at == '.')
        return columns_query_fail(error, q->text, end, "unexpected character in a number");
    if (read_integer(q->text + t->start, end - t->start, &t->integer))
        return finish(q, t, TOKEN_INTEGER, end, error);
    if (read_real(q->text + t->start, end - t->start, &t->real))
        return finish(q, t, TOKEN_REAL, end, error);
    return columns_query_fail(error, q->text, t->start, "this number is too long");
}

bool lexer_next(query *q, size_t offset, token *out, columns_error *error)
{
    const char *text = q->text;
    offset += strspn(text + offset, " \t\r\n");
    *out = (token){.kind = TOKEN_END, .start = offset, .end = offset, .text = ""};
    char c = text[offset], next = c == '\0' ? '\0' : text[offset + 1];
    if (c == '\0')
        return true;
    if (c == '\'' || c == '"' || c == '[')
        return quoted(q, out, error);
    if (is_digit(c) || (c == '.' && is_digit(next)))
        return number(q, out, error);
    if (is_letter(c)) {
        size_t end = offset;
        while (is_letter(text[end]) || is_digit(text[end]))
            end++;
        return finish(q, out, TOKEN_WORD, end, error);
    }
    if ((c == '<' && (next == '=' || next == '>')) || (next == '=' && strchr(">!=", c) != NULL))
        return finish(q, out, TOKEN_SYMBOL, offset + 2, error);
    if (strchr("+-*/%=<>(),", c) != NULL)
        return finish(q, out, TOKEN_SYMBOL, offset + 1, error);
    return columns_query_fail(error, text, offset, "unexpected character");
}
