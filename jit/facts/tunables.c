/* SPDX-License-Identifier: MIT */
/* Tunables as JSON. */
#include "jit/facts/tunables.h"

#include "runtime/base/assert.h"

static void tunables_write_row(tide_json *json, const tide_tunable_row *row)
{
    tide_assert(row->choice < row->candidate_count);
    tide_json_open(json, NULL, '{');
    tide_json_count(json, "key", row->key);
    tide_json_count(json, "uses", row->uses);
    tide_json_text(json, "choice", row->candidates[row->choice].name);
    tide_json_flag(json, "settled", row->settled);
    tide_json_flag(json, "pinned", row->pinned);
    tide_json_open(json, "candidates", '[');
    for (uint32_t i = 0; i < row->candidate_count; i++) {
        tide_json_open(json, NULL, '{');
        tide_json_text(json, "name", row->candidates[i].name);
        tide_json_count(json, "uses", row->candidates[i].uses);
        tide_json_number(json, "ns", row->candidates[i].ns);
        tide_json_number(json, "error_ns", row->candidates[i].error_ns);
        tide_json_close(json, '}');
    }
    tide_json_close(json, ']');
    tide_json_close(json, '}');
}

void tide_tunable_write(tide_json *json, const char *key, const tide_tunable *tunable)
{
    static const char *const kinds[] = {"knob", "measured", "variants"};
    uint32_t kind = tunable->variant_count < 2 ? tunable->variant_count : 2;
    tide_tunable_row row;
    tide_json_open(json, key, '{');
    tide_json_text(json, "name", tunable->name);
    tide_json_text(json, "kind", kinds[kind]);
    tide_json_text(json, "file", tunable->file);
    tide_json_count(json, "line", tunable->line);
    if (kind == 0) {
        tide_json_count(json, "value", (uint64_t)tide_tunable_value(tunable));
        tide_json_count(json, "low", (uint64_t)tunable->low);
        tide_json_count(json, "high", (uint64_t)tunable->high);
        tide_json_count(json, "initial", (uint64_t)tunable->initial);
    } else {
        tide_json_open(json, "rows", '[');
        for (uint32_t i = 0; tide_tunable_row_get(tunable, i, &row); i++)
            tunables_write_row(json, &row);
        tide_json_close(json, ']');
    }
    tide_json_close(json, '}');
}

static bool tunables_write_next(tide_tunable *tunable, void *user)
{
    tide_tunable_write(user, NULL, tunable);
    return true;
}

void tide_tunables_write(tide_json *json)
{
    tide_json_open(json, "tunables", '[');
    tide_tunable_each(tunables_write_next, json);
    tide_json_close(json, ']');
}
