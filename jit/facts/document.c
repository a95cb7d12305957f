/* SPDX-License-Identifier: MIT */
/* Texts made in memory: while one is made locks may be held, while it is written none is. */
#define _GNU_SOURCE
#include "jit/facts/document.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/memory_stream.h"
#include "runtime/base/os.h"

bool tide_document_begin(tide_document *document)
{
    *document = (tide_document){0};
    document->page =
        tide_os_faulted(1) ? NULL : tide_memory_stream_open(&document->text, &document->length);
    if (document->page == NULL)
        return false;
    document->before = uselocale(newlocale(LC_ALL_MASK, "C", NULL)); /* which allocates nothing */
    return true;
}

void tide_document_drop(tide_document *document)
{
    tide_assert(document->page != NULL);
    uselocale(document->before);
    (void)fclose(document->page);
    free(document->text); /* the C library's */
}

tide_status tide_document_end(tide_document *document, FILE *out, const char *call)
{
    tide_assert(document->page != NULL && out != NULL);
    uselocale(document->before);
    bool whole = tide_memory_stream_close(document->page, &document->text);
    bool written =
        !whole ||
        (fwrite(document->text, 1, document->length, out) == document->length && fflush(out) == 0);
    int error = errno;
    free(document->text); /* the C library's */
    if (!whole)
        return tide_fail(TIDE_ERROR_MEMORY, call, "no memory for the document");
    return written ? TIDE_OK : tide_fail(TIDE_ERROR_FILE, call, "%s", strerror(error));
}
