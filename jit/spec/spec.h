/* SPDX-License-Identifier: MIT */
/* A spec: what is to be compiled for one scope, as a short text. The same text goes to the stager,
 * and is what a person reads to learn what a site became.
 *
 *   tidepool-spec 1                     once, first
 *   layout 9f3c1a0d55aa0b17             what tide_compiled_layout() says, in hex
 *   site scope tide_scope_i32_f64_9c1e  the stem of its symbols
 *   count                               only if executions shall be counted (plan->counts->runs)
 *   type i32 1                          name and number, each once, ascending
 *   type f64 3
 *   end                                 of this site; more may follow
 *
 * Names of types are for the reader only; what is not a letter, a digit or one of "_.-*" is written
 * as "_". This file knows text only; the library writes specs, the stager reads them. */
#ifndef TIDEPOOL_JIT_SPEC_SPEC_H
#define TIDEPOOL_JIT_SPEC_SPEC_H

#include <stdbool.h>
#include <stddef.h>

#include <tidepool/inline/type.h>

enum {
    TIDE_SPEC_ITEMS = 4, /* most types: TIDE_SCOPE_SAVED */
    TIDE_SPEC_STEM = 64, /* bytes, the 0 included */
    TIDE_SPEC_NAME = 64,
    TIDE_SPEC_SITE_BYTES = 1024, /* more than any site's text takes */
    TIDE_SPEC_SITES = 64         /* most in one request to the stager */
};

typedef struct tide_spec_item {
    tide_type type;
    char name[TIDE_SPEC_NAME];
} tide_spec_item;

typedef struct tide_spec {
    char stem[TIDE_SPEC_STEM]; /* a C identifier */
    bool count;
    uint32_t item_count;
    tide_spec_item items[TIDE_SPEC_ITEMS];
} tide_spec;

/* May it stand in an identifier? Unlike isalnum, this does not depend on the program's locale. */
bool tide_spec_is_word_byte(char c);

/* Writes the lines that stand before all sites, or those of one site, and a final 0. Returns the
 * bytes written without it; `room` must be TIDE_SPEC_SITE_BYTES at least. */
size_t tide_spec_write_head(char *out, size_t room);
size_t tide_spec_write(const tide_spec *spec, char *out, size_t room);

/* Reads the head, then site after site, moving `text` on. On bad text: false, and one line in
 * `error` that names the line's number and what is wrong with it. At the end of the text
 * tide_spec_read gives true with item_count 0 and an empty stem. */
typedef struct tide_spec_reader {
    const char *text;
    uint32_t line;
    char error[200];
} tide_spec_reader;

bool tide_spec_read_head(tide_spec_reader *reader, uint64_t *layout);
bool tide_spec_read(tide_spec_reader *reader, tide_spec *out);

#endif
