/* SPDX-License-Identifier: MIT */
/* Records of tunables: found, added up, kept, and made of what the process knows. */
#define _GNU_SOURCE
#include "jit/tune/records.h"

#include <string.h>

#include "jit/tune/records_text.h"
#include "jit/tune/tunables.h"
#include "profiler/files/profile_set.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"

/* From so many uses on, what is older counts half. */
#define RECORDS_HEAVY (UINT64_C(1) << 20)

/* Guarded by the registry. The second has what this process itself found of tunables that left. */
static tide_tuned_set *records_known, *records_left;

/* ---- one record --------------------------------------------------------------------------- */

static const char *records_last_part(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash != NULL ? slash + 1 : file;
}

static void records_copy_text(char *to, size_t room, const char *text)
{
    size_t length = strnlen(text, room - 1);
    memcpy(to, text, length);
    to[length] = '\0';
}

void tide_record_begin(tide_record *record, const tide_tunable *tunable, uint64_t key)
{
    memset(record, 0, sizeof *record);
    records_copy_text(record->name, sizeof record->name, tunable->name);
    records_copy_text(record->file, sizeof record->file, records_last_part(tunable->file));
    record->state = tunable->variants == NULL ? TIDE_RECORD_KNOB : TIDE_RECORD_MEASURED;
    record->key = tunable->variants == NULL ? 0 : key;
}

static bool records_alike(const tide_record *a, const tide_record *b)
{
    return a->key == b->key && (a->state == TIDE_RECORD_KNOB) == (b->state == TIDE_RECORD_KNOB) &&
           strcmp(a->name, b->name) == 0 && strcmp(a->file, b->file) == 0;
}

tide_record *tide_records_find(const tide_tuned_set *set, const tide_record *like)
{
    for (uint32_t i = 0; set != NULL && i < set->count; i++)
        if (records_alike(set->records[i], like))
            return set->records[i];
    return NULL;
}

/* ---- adding up ---------------------------------------------------------------------------- */

static tide_record_candidate *records_candidate(tide_record *to, const char *name)
{
    for (uint32_t i = 0; i < to->candidate_count; i++)
        if (strcmp(to->candidates[i].name, name) == 0)
            return &to->candidates[i];
    if (to->candidate_count == TIDE_VARIANTS_MAX)
        return NULL;
    tide_record_candidate *made = &to->candidates[to->candidate_count++];
    *made = (tide_record_candidate){.uses = 0};
    records_copy_text(made->name, sizeof made->name, name);
    return made;
}

/* Means by their weights. The error of the sum is no more than the weighed errors. */
static void records_add_candidate(tide_record_candidate *to, const tide_record_candidate *more)
{
    double old = (double)to->uses, new = (double)more->uses, all = old + new;
    if (all == 0)
        return;
    to->ps = (uint64_t)(((double)to->ps * old + (double)more->ps * new) / all);
    to->error_ps = (uint64_t)(((double)to->error_ps * old + (double)more->error_ps * new) / all);
    to->uses += more->uses;
    to->uses = to->uses > RECORDS_HEAVY ? to->uses / 2 : to->uses;
}

/* The choice of the higher state stands. Means tell little of it, since only what is chosen is still
 * timed: the faster choice is taken only where two were settled differently. The newer pin counts. */
static void records_add_to(tide_record *to, const tide_record *more)
{
    if (to->state == TIDE_RECORD_KNOB) {
        to->value = more->value;
        return;
    }
    for (uint32_t i = 0; i < more->candidate_count; i++) {
        tide_record_candidate *one = records_candidate(to, more->candidates[i].name);
        if (one != NULL)
            records_add_candidate(one, &more->candidates[i]);
    }
    if (more->state == TIDE_RECORD_MEASURED || more->state < to->state)
        return;
    tide_assert(more->choice < more->candidate_count);
    const tide_record_candidate *ours = &to->candidates[to->choice];
    const tide_record_candidate *theirs =
        records_candidate(to, more->candidates[more->choice].name);
    if (theirs == NULL)
        return;
    bool faster = theirs->uses != 0 && (ours->uses == 0 || theirs->ps < ours->ps);
    if (more->state > to->state || more->state == TIDE_RECORD_PINNED || faster)
        to->choice = (uint32_t)(theirs - to->candidates);
    to->state = more->state;
}

static tide_status records_append(tide_tuned_set *set, const tide_record *record, const char *call)
{
    if (set->count == TIDE_RECORDS_MAX)
        return TIDE_OK;
    if (set->count == set->room) {
        uint32_t room = set->room == 0 ? 8 : set->room * 2;
        void *made = tide_os_resize(set->records, room * sizeof *set->records);
        if (made == NULL)
            return tide_fail(TIDE_ERROR_MEMORY, call, "no memory for tunables");
        set->records = made;
        set->room = room;
    }
    tide_record *copy = tide_os_resize(NULL, sizeof *copy);
    if (copy == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, call, "no memory for a tunable");
    *copy = *record;
    tide_assert(set->count < set->room);
    set->records[set->count++] = copy;
    return TIDE_OK;
}

tide_status tide_records_add(tide_tuned_set **set, const tide_record *record, const char *call)
{
    if (*set == NULL) {
        *set = tide_os_resize(NULL, sizeof **set);
        if (*set == NULL)
            return tide_fail(TIDE_ERROR_MEMORY, call, "no memory for tunables");
        **set = (tide_tuned_set){NULL, 0, 0};
    }
    tide_record *there = tide_records_find(*set, record);
    if (there == NULL)
        return records_append(*set, record, call);
    records_add_to(there, record);
    return TIDE_OK;
}

void tide_records_destroy(tide_tuned_set *set)
{
    if (set == NULL)
        return;
    for (uint32_t i = 0; i < set->count; i++)
        tide_os_free(set->records[i]);
    tide_os_free(set->records);
    tide_os_free(set);
}

/* ---- what is known ------------------------------------------------------------------------ */

const tide_record *tide_records_known(const tide_tunable *tunable, uint64_t key)
{
    tide_record like;
    if ((tunable->listed & TIDE_TUNABLE_ANEW) != 0 || records_known == NULL)
        return NULL;
    tide_record_begin(&like, tunable, key);
    return tide_records_find(records_known, &like);
}

/* What this process has found of a row. */
static void records_of_row(const tide_tuned *row, tide_record *out)
{
    tide_record_begin(out, row->of, row->key);
    if (row->active == 1 && !row->loaded)
        out->state = row->pinned ? TIDE_RECORD_PINNED : TIDE_RECORD_SETTLED;
    out->choice = tide_tuned_choice(row);
    out->candidate_count = row->of->variant_count;
    for (uint32_t i = 0; i < out->candidate_count; i++) {
        const tide_series *taken = &row->variants[i].taken;
        tide_record_candidate *to = &out->candidates[i];
        records_copy_text(to->name, sizeof to->name, row->of->variants[i]);
        to->uses = taken->count;
        to->ps = (uint64_t)(taken->mean < TIDE_RECORD_PS_MAX / 1e3 ? taken->mean * 1e3
                                                                   : TIDE_RECORD_PS_MAX);
        to->error_ps = (uint64_t)(tide_series_error(taken) * 1e3);
        to->error_ps = to->error_ps < to->ps ? to->error_ps : to->ps;
    }
}

/* Adds what was loaded of the same variants. What this process has chosen stands, except for a pin. */
static void records_add_loaded(tide_record *to, const tide_record *loaded)
{
    tide_assert(records_alike(to, loaded));
    bool higher = loaded->state > to->state;
    for (uint32_t i = 0; i < to->candidate_count; i++)
        for (uint32_t k = 0; k < loaded->candidate_count; k++) {
            if (strcmp(to->candidates[i].name, loaded->candidates[k].name) != 0)
                continue;
            records_add_candidate(&to->candidates[i], &loaded->candidates[k]);
            if (!higher || k != loaded->choice)
                continue;
            to->state = loaded->state;
            to->choice = i;
        }
}

/* A knob counts if it has another value than its own, and among `own` ones than the loaded one. */
static tide_status records_collect_knob(const tide_tunable *tunable, bool own, tide_tuned_set **to,
                                        const char *call)
{
    tide_record record;
    const tide_record *loaded = own ? tide_records_known(tunable, 0) : NULL;
    tide_record_begin(&record, tunable, 0);
    record.value = tide_tunable_value(tunable);
    if (record.value == tunable->initial || (loaded != NULL && record.value == loaded->value))
        return TIDE_OK;
    return tide_records_add(to, &record, call);
}

/* Adds what is known of a tunable, or what this process itself has found of it, if that is anything. */
static tide_status records_collect_one(const tide_tunable *tunable, bool own, tide_tuned_set **to,
                                       const char *call)
{
    tide_status status = TIDE_OK;
    if (tunable->variants == NULL)
        return records_collect_knob(tunable, own, to, call);
    for (uint32_t i = 0; status == TIDE_OK && i <= TIDE_TUNABLE_KEYS; i++) {
        tide_record record;
        const tide_tuned *row = tunable->rows[i];
        if (row == NULL)
            continue;
        records_of_row(row, &record);
        const tide_record *loaded = tide_records_known(tunable, row->key);
        bool found = record.state != TIDE_RECORD_MEASURED;
        for (uint32_t k = 0; k < record.candidate_count; k++)
            found = found || record.candidates[k].uses != 0;
        if (!own && loaded != NULL)
            records_add_loaded(&record, loaded);
        if (!own || found)
            status = tide_records_add(to, &record, call);
    }
    return status;
}

/* Is it a tunable that is listed and has been reset, or set back to its own value? */
static bool records_superseded(const tide_record *record)
{
    for (const tide_tunable *at = tide_tunables_first(); at != NULL; at = at->next) {
        tide_record like;
        tide_record_begin(&like, at, record->key);
        if (records_alike(&like, record))
            return (at->listed & TIDE_TUNABLE_ANEW) != 0 || at->variants == NULL;
    }
    return false;
}

static tide_status records_add_all(tide_tuned_set **to, const tide_tuned_set *from,
                                   const char *call)
{
    tide_status status = TIDE_OK;
    for (uint32_t i = 0; status == TIDE_OK && from != NULL && i < from->count; i++)
        status = tide_records_add(to, from->records[i], call);
    return status;
}

static tide_status records_collect(tide_tuned_set **to, bool own, const char *call)
{
    tide_status status = own ? records_add_all(to, records_left, call) : TIDE_OK;
    for (const tide_tunable *at = tide_tunables_first(); at != NULL && status == TIDE_OK;
         at = at->next)
        status = records_collect_one(at, own, to, call);
    for (uint32_t i = 0;
         !own && status == TIDE_OK && records_known != NULL && i < records_known->count; i++) {
        const tide_record *known = records_known->records[i];
        if (tide_records_find(*to, known) == NULL && !records_superseded(known))
            status = tide_records_add(to, known, call);
    }
    return status;
}

/* In place of what was known: its figures have in them what was loaded. */
void tide_records_keep(const tide_tunable *tunable)
{
    tide_tuned_set *seen = NULL;
    (void)records_collect_one(tunable, true, &records_left, "tide_tunable_leave");
    (void)records_collect_one(tunable, false, &seen, "tide_tunable_leave");
    for (uint32_t i = 0; seen != NULL && i < seen->count; i++) {
        tide_record *there = tide_records_find(records_known, seen->records[i]);
        if (there != NULL)
            *there = *seen->records[i];
        else
            (void)tide_records_add(&records_known, seen->records[i], "tide_tunable_leave");
    }
    tide_records_destroy(seen);
}

void tide_records_forget(const tide_tunable *tunable)
{
    tide_record like;
    for (uint32_t i = records_left != NULL ? records_left->count : 0; i-- > 0;) {
        tide_record *one = records_left->records[i];
        tide_record_begin(&like, tunable, one->key);
        if (!records_alike(&like, one))
            continue;
        records_left->records[i] = records_left->records[--records_left->count];
        tide_os_free(one);
    }
}

void tide_records_apply(tide_tunable *tunable)
{
    const tide_record *known = tunable->variants == NULL ? tide_records_known(tunable, 0) : NULL;
    if (known != NULL && tide_tunable_value(tunable) == tunable->initial)
        (void)tide_tunable_set(tunable, known->value);
}

/* ---- profiles ----------------------------------------------------------------------------- */

/* Rows that are there already go on as they are. */
static void records_load(tide_tuned_set *more)
{
    tide_records_destroy(records_known);
    records_known = more;
    for (tide_tunable *at = tide_tunables_first(); more != NULL && at != NULL; at = at->next)
        tide_records_apply(at);
}

/* Whoever was timed stays so. */
static void records_weigh(tide_tuned_set *set, double weight)
{
    for (uint32_t i = 0; set != NULL && i < set->count; i++)
        for (uint32_t k = 0; k < set->records[i]->candidate_count; k++) {
            uint64_t *uses = &set->records[i]->candidates[k].uses;
            *uses -= (uint64_t)((double)*uses * (1 - weight));
        }
}

static tide_status records_copy(tide_tuned_set **to, const char *call)
{
    return records_add_all(to, records_known, call);
}

void tide_records_attach(void)
{
    tide_profile_more = (tide_profile_additions){.read = tide_records_read,
                                                 .write = tide_records_write,
                                                 .weigh = records_weigh,
                                                 .destroy = tide_records_destroy,
                                                 .loaded = records_load,
                                                 .copy = records_copy,
                                                 .collect = records_collect};
}
