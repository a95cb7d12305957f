/* SPDX-License-Identifier: MIT */
/* Records as lines of a profile. A candidate's line belongs to the record read last. */
#include "jit/tune/records_text.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/base/assert.h"

/* ---- reading ------------------------------------------------------------------------------ */

static bool records_read_name(tide_tokens *tokens, tide_record *record)
{
    return tide_tokens_string(tokens, "the name", TIDE_TUNABLE_NAME_MAX, record->name) &&
           tide_tokens_string(tokens, "the file", TIDE_RECORD_FILE_MAX, record->file) &&
           tide_tokens_nothing_more(tokens);
}

/* A record that is there already would be added to by its candidates' lines: once is enough. */
static bool records_read_new(tide_tuned_set **set, tide_tokens *tokens, const tide_record *record)
{
    if (*set != NULL && tide_records_find(*set, record) != NULL)
        return tide_tokens_bad(tokens, "the tunable was named before");
    if (*set != NULL && (*set)->count == TIDE_RECORDS_MAX)
        return tide_tokens_bad(tokens, "more than %d tunables", TIDE_RECORDS_MAX);
    return tide_records_add(set, record, tokens->call) == TIDE_OK || tide_tokens_failed(tokens);
}

static bool records_read_knob(tide_tuned_set **set, tide_tokens *tokens)
{
    uint64_t value;
    tide_record record = {.state = TIDE_RECORD_KNOB};
    if (!tide_tokens_number(tokens, "the value", 0, (uint64_t)TIDE_TUNABLE_LIMIT - 1, &value) ||
        !records_read_name(tokens, &record))
        return false;
    record.value = (int64_t)value;
    return records_read_new(set, tokens, &record);
}

static bool records_read_tuned(tide_tuned_set **set, tide_tokens *tokens)
{
    uint64_t state;
    tide_record record = {.value = 0};
    if (!tide_tokens_number(tokens, "the key", 0, UINT64_MAX, &record.key) ||
        !tide_tokens_number(tokens, "the state", 0, TIDE_RECORD_PINNED, &state) ||
        !records_read_name(tokens, &record))
        return false;
    /* Until its chosen candidate has come nothing is chosen. */
    record.state = TIDE_RECORD_MEASURED;
    record.value = (int64_t)state;
    return records_read_new(set, tokens, &record);
}

static bool records_read_candidate(tide_tuned_set **set, tide_tokens *tokens)
{
    uint64_t chosen;
    tide_record_candidate one = {.uses = 0};
    tide_record *to =
        *set != NULL && (*set)->count != 0 ? (*set)->records[(*set)->count - 1] : NULL;
    if (to == NULL || to->state == TIDE_RECORD_KNOB)
        return tide_tokens_bad(tokens, "a candidate of no tunable with variants");
    if (to->candidate_count == TIDE_VARIANTS_MAX)
        return tide_tokens_bad(tokens, "more than %d candidates", TIDE_VARIANTS_MAX);
    if (!tide_tokens_number(tokens, "the count of uses", 0, TIDE_TEXT_COUNT_MAX, &one.uses) ||
        !tide_tokens_number(tokens, "the time", 0, TIDE_RECORD_PS_MAX, &one.ps) ||
        !tide_tokens_number(tokens, "the error", 0, one.ps, &one.error_ps) ||
        !tide_tokens_number(tokens, "the choice", 0, to->state == TIDE_RECORD_MEASURED, &chosen) ||
        !tide_tokens_string(tokens, "the variant", TIDE_TUNABLE_NAME_MAX, one.name))
        return false;
    for (uint32_t i = 0; i < to->candidate_count; i++)
        if (strcmp(to->candidates[i].name, one.name) == 0)
            return tide_tokens_bad(tokens, "the variant was named before");
    if (chosen != 0) {
        to->state = (tide_record_state)to->value;
        to->choice = to->candidate_count;
    }
    to->candidates[to->candidate_count++] = one;
    return tide_tokens_nothing_more(tokens);
}

bool tide_records_read(tide_tuned_set **set, tide_tokens *tokens)
{
    if (tide_tokens_starts(tokens, "knob"))
        return records_read_knob(set, tokens);
    if (tide_tokens_starts(tokens, "tuned"))
        return records_read_tuned(set, tokens);
    if (tide_tokens_starts(tokens, "candidate"))
        return records_read_candidate(set, tokens);
    return tide_tokens_bad(tokens, "does not start with a word that is known");
}

/* ---- writing ------------------------------------------------------------------------------ */

static void records_write_one(const tide_record *record, FILE *out)
{
    if (record->state == TIDE_RECORD_KNOB)
        fprintf(out, "knob %" PRId64, record->value);
    else
        fprintf(out, "tuned %" PRIu64 " %d", record->key, (int)record->state);
    tide_text_string(out, record->name);
    tide_text_string(out, record->file);
    fputc('\n', out);
    tide_assert(record->state != TIDE_RECORD_KNOB || record->candidate_count == 0);
    for (uint32_t i = 0; i < record->candidate_count; i++) {
        const tide_record_candidate *one = &record->candidates[i];
        bool chosen = record->state != TIDE_RECORD_MEASURED && i == record->choice;
        fprintf(out, "candidate %" PRIu64 " %" PRIu64 " %" PRIu64 " %d", one->uses, one->ps,
                one->error_ps, chosen);
        tide_text_string(out, one->name);
        fputc('\n', out);
    }
}

void tide_records_write(const tide_tuned_set *set, FILE *out)
{
    for (uint32_t i = 0; i < set->count; i++)
        records_write_one(set->records[i], out);
}
