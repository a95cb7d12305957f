/* SPDX-License-Identifier: MIT */
/* A tokenizer for text that may be anything: takes it line by line and word by word. text.h shows
 * which lines and words there are.
 *
 * What cannot be taken is refused: the call returns false and sets the status and a message with
 * the file, the line and the reason. `what` names the word in such a message. */
#ifndef TIDEPOOL_PROFILER_FILES_TOKENIZER_H
#define TIDEPOOL_PROFILER_FILES_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tidepool/status.h>

typedef struct tide_tokens {
    const char *call, *path;     /* for messages                       */
    const char *at, *end;        /* of the line: what is not taken yet */
    const char *next, *text_end; /* the same of the text               */
    unsigned line;
    tide_status status;
} tide_tokens;

/* Refuses, and returns false, for the caller to return. */
__attribute__((format(printf, 2, 3))) bool tide_tokens_bad(tide_tokens *tokens, const char *format,
                                                           ...);

/* The same after another call has failed and set the message. */
bool tide_tokens_failed(tide_tokens *tokens);

/* Goes on to the next line. */
bool tide_tokens_line(tide_tokens *tokens);

/* Takes the line's first word, if it is this one; else false, and nothing is refused. */
bool tide_tokens_starts(tide_tokens *tokens, const char *word);

/* One blank; `what` comes after it. */
bool tide_tokens_blank(tide_tokens *tokens, const char *what);

/* A blank and a number from `least` to `most`. */
bool tide_tokens_number(tide_tokens *tokens, const char *what, uint64_t least, uint64_t most,
                        uint64_t *out);

/* A blank and a string; `out` has room for `most` bytes and the end. */
bool tide_tokens_string(tide_tokens *tokens, const char *what, size_t most, char *out);

/* Has the line been taken whole? Else refuses. */
bool tide_tokens_nothing_more(tide_tokens *tokens);

#endif
