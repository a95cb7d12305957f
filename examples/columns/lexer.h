/* SPDX-License-Identifier: MIT */
/* Tokens of a query, one at a time. */
#ifndef COLUMNS_LEXER_H
#define COLUMNS_LEXER_H

#include "query.h"

typedef enum token_kind {
    TOKEN_END,
    TOKEN_WORD,    /* name, keyword or function: text */
    TOKEN_NAME,    /* "name" or [name]: text, unquoted */
    TOKEN_TEXT,    /* 'text': text, unquoted           */
    TOKEN_INTEGER, /* integer                          */
    TOKEN_REAL,    /* real                             */
    TOKEN_SYMBOL   /* text, one or two characters      */
} token_kind;

typedef struct token {
    token_kind kind;
    size_t start, end; /* in the query */
    const char *text;
    int64_t integer;
    double real;
} token;

/* The token at or after `offset`. False with a message that shows the place. */
bool lexer_next(query *q, size_t offset, token *out, columns_error *error);

#endif
