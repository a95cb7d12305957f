/* SPDX-License-Identifier: MIT */
/* Values of a JSON document that may be anything: what is missing or of another type reads as 0, as
 * "" or as nothing. So a reader needs no test of its own, and a hostile document harms nobody. */
#ifndef TIDEPOOL_PROFILER_METRICS_VALUE_H
#define TIDEPOOL_PROFILER_METRICS_VALUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* A number, or 0. */
double tide_value_number(const json_t *object, const char *key);

/* A number that is no count (negative, huge) reads as 0; a fraction is cut off. */
uint64_t tide_value_count(const json_t *object, const char *key);

/* Text of the document's own, or "". */
const char *tide_value_text(const json_t *object, const char *key);

/* What a person may read in a terminal: control characters become '?'. */
void tide_value_plain(char *out, size_t size, const char *text);

/* The members "id" of a list's objects, ascending, so that asking for one costs little however many
 * a document has. The caller frees `each`, which is NULL without memory. */
typedef struct tide_value_ids {
    uint64_t *each;
    size_t count;
} tide_value_ids;

tide_value_ids tide_value_ids_of(const json_t *list);
bool tide_value_ids_have(const tide_value_ids *ids, uint64_t id);

#endif
