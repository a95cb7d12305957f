/* SPDX-License-Identifier: MIT */
/* Facts on paper. */
#include "profiler/tool/print.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"

static const char *print_scaled(double value, double step, const char *const units[7], char *out)
{
    size_t unit = 0;
    value = value > 0 ? fmin(value, 1e21) : 0;
    for (; unit < 6 && value >= step * 0.9995; unit++)
        value /= step;
    const char *format = unit == 0 && value == floor(value) ? "%.0f%s"
                         : value < 10                       ? "%.2f%s"
                         : value < 100                      ? "%.1f%s"
                                                            : "%.0f%s";
    int length = snprintf(out, TOOL_BYTES_TEXT, format, value, units[unit]);
    tide_assert(length > 0 && length < TOOL_BYTES_TEXT);
    (void)length;
    return out;
}

const char *tool_bytes(double bytes, char out[TOOL_BYTES_TEXT])
{
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
    return print_scaled(bytes, 1024, units, out);
}

const char *tool_time(double ns, char out[TOOL_TIME_TEXT])
{
    static const char *const units[] = {" ns", " us", " ms", " s", " ks", " Ms", " Gs"};
    return print_scaled(ns, 1000, units, out);
}

const char *tool_count(double count, char out[TOOL_COUNT_TEXT])
{
    static const char *const units[] = {"", " k", " M", " G", " T", " P", " E"};
    return print_scaled(count, 1000, units, out);
}

double tool_sum(const json_t *list, const char *member)
{
    double sum = 0;
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) sum += tide_value_number(one, member);
    return sum;
}

void tool_print_json(const json_t *value)
{
    (void)json_dumpf(value, stdout, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    (void)putchar('\n');
}

const char *tool_words(const json_t *list, char *out, size_t room)
{
    static const char more[] = " ...";
    size_t i, length = 0, count = json_array_size(list);
    json_t *one;
    tide_assert(room > sizeof more);
    out[0] = '\0';
    json_array_foreach(list, i, one)
    {
        const char *word = json_string_value(one);
        char clean[64];
        size_t left = room - length - (i + 1 < count ? sizeof more - 1 : 0);
        tool_clean(word != NULL ? word : "?", clean, sizeof clean);
        if (strlen(clean) + (i > 0) >= left) {
            memcpy(out + length, i > 0 ? more : more + 1, sizeof more - (i == 0));
            break;
        }
        length += (size_t)snprintf(out + length, room - length, "%s%s", i > 0 ? " " : "", clean);
    }
    tide_assert(strlen(out) < room);
    return out;
}
