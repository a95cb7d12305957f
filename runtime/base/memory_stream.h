/* SPDX-License-Identifier: MIT */
/* A stream whose text lies in memory (open_memstream). Header only: components use it, too. */
#ifndef TIDEPOOL_RUNTIME_BASE_MEMORY_STREAM_H
#define TIDEPOOL_RUNTIME_BASE_MEMORY_STREAM_H

#include <stdbool.h>
#include <stdio.h>

/* Closes the stream, which may be NULL: there was no memory for it. True: the text is whole. What
 * fclose returns does not say so: the C library has it say 0 where there was no memory for the last
 * copy, and leaves NULL. The text is the caller's in either case. */
static inline bool tide_memory_stream_close(FILE *stream, char *const *text)
{
    if (stream == NULL)
        return false;
    bool whole = ferror(stream) == 0;
    return fclose(stream) == 0 && whole && *text != NULL;
}

#endif
