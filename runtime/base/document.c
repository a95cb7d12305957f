/* SPDX-License-Identifier: MIT */
/* Texts made in memory, and written. */
#define _GNU_SOURCE
#include "runtime/base/document.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/memory_stream.h"
#include "runtime/base/os.h"

static tide_status document_no_memory(const char *call)
{
    return tide_fail(TIDE_ERROR_MEMORY, call, "no memory for the text");
}

tide_status tide_document_begin(tide_document *document, const char *call)
{
    *document = (tide_document){0};
    document->page =
        tide_os_faulted(1) ? NULL : tide_memory_stream_open(&document->text, &document->length);
    if (document->page == NULL)
        return document_no_memory(call);
    document->before = uselocale(newlocale(LC_ALL_MASK, "C", NULL)); /* which allocates nothing */
    return TIDE_OK;
}

void tide_document_drop(tide_document *document)
{
    tide_assert(document->page != NULL);
    uselocale(document->before);
    (void)fclose(document->page);
    free(document->text); /* the C library's */
}

tide_status tide_document_take(tide_document *document, const char *call)
{
    tide_assert(document->page != NULL);
    uselocale(document->before);
    if (!tide_memory_stream_close(document->page, &document->text))
        return document_no_memory(call);
    return TIDE_OK;
}

tide_status tide_document_end(tide_document *document, FILE *out, const char *call)
{
    tide_assert(out != NULL);
    TIDE_FORWARD(tide_document_take(document, call));
    return tide_document_put(document->text, document->length, out, call);
}

tide_status tide_document_put(char *text, size_t length, FILE *out, const char *call)
{
    tide_assert(text != NULL);
    bool written = fwrite(text, 1, length, out) == length && fflush(out) == 0;
    int error = errno;
    free(text); /* the C library's */
    return written ? TIDE_OK
                   : tide_fail(TIDE_ERROR_FILE, call, "cannot write to the stream: %s",
                               strerror(error));
}
