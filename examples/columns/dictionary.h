/* SPDX-License-Identifier: MIT */
/* The dictionary: every text once, known by a small number. A text column is an array of codes;
 * equal texts have equal codes, in all columns of a table and of the tables made from it. */
#ifndef COLUMNS_DICTIONARY_H
#define COLUMNS_DICTIONARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct word {
    const char *text; /* ends with a NUL, and may hold others */
    uint32_t bytes;
    uint32_t characters; /* in UTF-8 */
} word;

typedef struct dictionary dictionary;

/* Holds the empty text as code 0, which stands in for null too. NULL: no memory. */
dictionary *dictionary_create(void);
dictionary *dictionary_share(dictionary *words); /* one more owner  */
void dictionary_release(dictionary *words);      /* one owner fewer */

/* The code of a text, found or added. -1: no memory, or no code left. */
int32_t dictionary_code(dictionary *words, const char *text, size_t bytes);

/* Valid until the next text is added. */
const word *dictionary_words(const dictionary *words);

/* By bytes, as memcmp; a text sorts before those it begins. */
int word_compare(const word *a, const word *b);

#endif
