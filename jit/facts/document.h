/* SPDX-License-Identifier: MIT */
/* A text that is made in memory, by C's own way of writing numbers, and then written at once. */
#ifndef TIDEPOOL_JIT_FACTS_DOCUMENT_H
#define TIDEPOOL_JIT_FACTS_DOCUMENT_H

#include <locale.h>

#include <tidepool/status.h>

#include "jit/facts/json.h"

typedef struct tide_document {
    FILE *page; /* where to write; NULL: there is no memory */
    char *text;
    size_t length;
    locale_t before;
} tide_document;

/* The thread has the locale "C" until the end. */
bool tide_document_begin(tide_document *document);

/* Writes it all and flushes. TIDE_ERROR_MEMORY: it did not fit, nothing is written;
 * TIDE_ERROR_FILE. */
tide_status tide_document_end(tide_document *document, FILE *out, const char *call);

/* The document is not wanted after all. */
void tide_document_drop(tide_document *document);

#endif
