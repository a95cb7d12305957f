/* SPDX-License-Identifier: MIT */
/* A text that is made in memory, by C's own way of writing numbers, and then written at once: while it
 * is made locks may be held, while it is written none is. */
#ifndef TIDEPOOL_RUNTIME_BASE_DOCUMENT_H
#define TIDEPOOL_RUNTIME_BASE_DOCUMENT_H

#include <locale.h>
#include <stdio.h>

#include <tidepool/status.h>

typedef struct tide_document {
    FILE *page; /* where to write */
    char *text;
    size_t length;
    locale_t before;
} tide_document;

/* The thread has the locale "C" until the end. TIDE_ERROR_MEMORY: there is no document. */
tide_status tide_document_begin(tide_document *document, const char *call);

/* Ends it: text and length are the caller's, of malloc. TIDE_ERROR_MEMORY: it did not fit, there is no
 * text. */
tide_status tide_document_take(tide_document *document, const char *call);

/* Ends it, writes it all and flushes. TIDE_ERROR_MEMORY: it did not fit, nothing is written;
 * TIDE_ERROR_FILE. */
tide_status tide_document_end(tide_document *document, FILE *out, const char *call);

/* The document is not wanted after all. */
void tide_document_drop(tide_document *document);

/* Writes a text of malloc's, flushes, and frees it. TIDE_ERROR_FILE with the system's message. */
tide_status tide_document_put(char *text, size_t length, FILE *out, const char *call);

#endif
