/* SPDX-License-Identifier: MIT */
/* Values of a JSON document that may be anything. */
#include "profiler/metrics/value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/assert.h"

double tide_value_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    double number = json_is_number(value) ? json_number_value(value) : 0;
    return isfinite(number) ? number : 0;
}

uint64_t tide_value_count(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_integer(value))
        return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
    double number = tide_value_number(object, key);
    return number > 0 && number < 1e18 ? (uint64_t)number : 0;
}

const char *tide_value_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

void tide_value_plain(char *out, size_t size, const char *text)
{
    size_t i = 0;
    tide_assert(size > 0);
    for (; text[i] != 0 && i + 1 < size; i++)
        out[i] = (unsigned char)text[i] < ' ' || text[i] == 127 ? '?' : text[i];
    while (text[i] != 0 && i > 0 && ((unsigned char)text[i] & 0xC0) == 0x80)
        i--; /* not within a character */
    out[i] = 0;
}

/* ---- ids ---- */

static int value_compare_ids(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

tide_value_ids tide_value_ids_of(const json_t *list)
{
    size_t count = json_array_size(list);
    tide_value_ids ids = {.each = malloc((count + 1) * sizeof *ids.each), .count = count};
    for (size_t i = 0; ids.each != NULL && i < count; i++)
        ids.each[i] = tide_value_count(json_array_get(list, i), "id");
    if (ids.each != NULL)
        qsort(ids.each, count, sizeof *ids.each, value_compare_ids);
    return ids;
}

bool tide_value_ids_have(const tide_value_ids *ids, uint64_t id)
{
    tide_assert(ids->each != NULL);
    return bsearch(&id, ids->each, ids->count, sizeof id, value_compare_ids) != NULL;
}
