/* SPDX-License-Identifier: MIT */
/* A stream whose text lies in memory. The C library has one (open_memstream), which does not say
 * when it had no memory for a part of the text: ferror is 0, fclose returns 0, and the part is
 * missing. This one leaves no text then. Header only: components use it, too. Wants
 * _GNU_SOURCE. */
#ifndef TIDEPOOL_RUNTIME_BASE_MEMORY_STREAM_H
#define TIDEPOOL_RUNTIME_BASE_MEMORY_STREAM_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "runtime/base/assert.h"

typedef struct tide_memory_stream {
    char **text;
    size_t *length;
    char *bytes; /* of malloc; NULL: there was no memory */
    size_t count, room;
} tide_memory_stream;

/* Room for so many bytes more, and a zero. */
static inline bool tide_memory_stream_grow(tide_memory_stream *memory, size_t more)
{
    if (more < memory->room - memory->count)
        return true;
    size_t room = 2 * (memory->count + more);
    char *bytes = (char *)realloc(memory->bytes, room);
    if (bytes == NULL) {
        free(memory->bytes);
        memory->bytes = NULL;
        return false;
    }
    memory->bytes = bytes;
    memory->room = room;
    return true;
}

static inline ssize_t tide_memory_stream_write(void *cookie, const char *bytes, size_t count)
{
    tide_memory_stream *memory = (tide_memory_stream *)cookie;
    if (memory->bytes == NULL || !tide_memory_stream_grow(memory, count))
        return 0; /* an error */
    memcpy(memory->bytes + memory->count, bytes, count);
    memory->count += count;
    tide_assert(memory->count < memory->room);
    return (ssize_t)count;
}

static inline int tide_memory_stream_end(void *cookie)
{
    tide_memory_stream *memory = (tide_memory_stream *)cookie;
    if (memory->bytes != NULL)
        memory->bytes[memory->count] = '\0';
    *memory->text = memory->bytes;
    *memory->length = memory->bytes != NULL ? memory->count : 0;
    free(memory);
    return 0;
}

/* NULL: there is no memory. Sets both when it is closed, not before; the text is NULL until
 * then. */
static inline FILE *tide_memory_stream_open(char **text, size_t *length)
{
    enum { ROOM = 1024 };
    const cookie_io_functions_t functions = {NULL, tide_memory_stream_write, NULL,
                                             tide_memory_stream_end};
    tide_memory_stream *memory = (tide_memory_stream *)malloc(sizeof *memory);
    char *bytes = (char *)malloc(ROOM);
    *text = NULL;
    *length = 0;
    FILE *stream = memory != NULL && bytes != NULL ? fopencookie(memory, "w", functions) : NULL;
    if (stream == NULL) {
        free(bytes);
        free(memory);
        return NULL;
    }
    *memory = (tide_memory_stream){.text = text, .length = length, .bytes = bytes, .room = ROOM};
    return stream;
}

/* Closes the stream, which may be NULL. True: the text is whole, ends with a zero, and is the
 * caller's, to be freed. Else it is NULL. */
static inline bool tide_memory_stream_close(FILE *stream, char *const *text)
{
    if (stream != NULL)
        (void)fclose(stream);
    return *text != NULL;
}

#endif
