/* SPDX-License-Identifier: MIT */
/* What profiles say of tunables: a record for each knob, and for each key of variants. */
#ifndef TIDEPOOL_JIT_TUNE_RECORDS_H
#define TIDEPOOL_JIT_TUNE_RECORDS_H

#include <tidepool/tunable.h>

enum { TIDE_RECORDS_MAX = 4096, TIDE_RECORD_FILE_MAX = 255 };

typedef enum tide_record_state {
    TIDE_RECORD_MEASURED, /* nothing is chosen yet */
    TIDE_RECORD_SETTLED,
    TIDE_RECORD_PINNED,
    TIDE_RECORD_KNOB
} tide_record_state;

typedef struct tide_record_candidate {
    char name[TIDE_TUNABLE_NAME_MAX + 1];
    uint64_t uses, ps, error_ps; /* timed; picoseconds of one; standard error of that, at most */
} tide_record_candidate;

typedef struct tide_record {
    char name[TIDE_TUNABLE_NAME_MAX + 1], file[TIDE_RECORD_FILE_MAX + 1]; /* its last part */
    tide_record_state state;
    int64_t value; /* of a knob */
    uint64_t key;
    uint32_t choice; /* number of a candidate */
    uint32_t candidate_count;
    tide_record_candidate candidates[TIDE_VARIANTS_MAX];
} tide_record;

typedef struct tide_tuned_set {
    tide_record **records;
    uint32_t count, room;
} tide_tuned_set;

/* An empty record for a tunable and key. */
void tide_record_begin(tide_record *record, const tide_tunable *tunable, uint64_t key);

/* The record of the same tunable and key as `like`. NULL: there is none. */
tide_record *tide_records_find(const tide_tuned_set *set, const tide_record *like);

/* Adds a copy, to what the set (made if it is NULL) has of it: figures are weighed by uses. A full
 * set takes no new ones. TIDE_ERROR_MEMORY. */
tide_status tide_records_add(tide_tuned_set **set, const tide_record *record, const char *call);
void tide_records_destroy(tide_tuned_set *set);

/* What was loaded, or left behind by an unloaded module, of the tunable and key; NULL: nothing.
 * Registry locked, as for the next. */
const tide_record *tide_records_known(const tide_tunable *tunable, uint64_t key);

/* The tunable leaves: what it knows is kept for when it comes again. */
void tide_records_keep(const tide_tunable *tunable);

/* It was reset: what this process found of it before it left counts no longer. */
void tide_records_forget(const tide_tunable *tunable);

/* A knob that nobody has set takes the value that was loaded. */
void tide_records_apply(tide_tunable *tunable);

/* Sets what profiles read and write; once, while the library is attached. */
void tide_records_attach(void);

#endif
