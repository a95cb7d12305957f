/* SPDX-License-Identifier: MIT */
/* What the two halves of the parser share: where it is, and what it sees there.
 *
 * Recursive descent, a function for each line of the grammar in query.h. Each parse_ function
 * returns NULL (or false) after the first error, which is reported. */
#ifndef COLUMNS_PARSER_H
#define COLUMNS_PARSER_H

#include "lexer.h"

typedef struct parser {
    query *q;
    columns_error *error;
    token now;
    size_t last_end; /* of the token before */
    unsigned depth;  /* of recursion */
} parser;

bool advance(parser *p);
bool at_symbol(const parser *p, const char *symbol);
bool at_keyword(const parser *p, const char *keyword);
bool at_reserved(const parser *p); /* a keyword that cannot name a column without quotes */
bool expect_symbol(parser *p, const char *symbol);
bool expect_keyword(parser *p, const char *keyword);

/* "EXPECTED expected, not …". Always false. */
bool fail_here(parser *p, const char *expected);

/* A node from `start` to the last token read. */
node *make_node(parser *p, node_kind kind, operation op, size_t start);

node *parse_expression(parser *p);

#endif
