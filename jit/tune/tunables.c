/* SPDX-License-Identifier: MIT */
/* The list of tunables, their rows, and what programs ask of them. */
#include <string.h>

#include "jit/tune/fleet.h"
#include "jit/tune/keep.h"
#include "jit/tune/records.h"
#include "jit/tune/tunables.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/base/os.h"
#include "runtime/base/process.h"
#include "runtime/base/registry.h"
#include "runtime/base/ring.h"

static tide_tunable *tunables_list; /* guarded by the registry */

tide_tunable *tide_tunables_first(void)
{
    return tunables_list;
}

/* ---- modules ------------------------------------------------------------------------------ */

/* Each unit of a C module hands over the module's whole list; what is listed stays. */
void tide_tunable_enter(tide_tunable *const *first, tide_tunable *const *last)
{
    if (first == last)
        return;
    tide_keep_begin();
    tide_fleet_begin();
    tide_registry_lock();
    for (tide_tunable *const *at = first; at != last; at++) {
        tide_tunable *one = *at;
        if (one->listed != 0)
            continue;
        one->listed = TIDE_TUNABLE_LISTED;
        one->next = tunables_list;
        tunables_list = one;
        tide_records_apply(one);
    }
    tide_registry_unlock();
}

static void tunables_delist(tide_tunable *one)
{
    tide_tunable **link = &tunables_list;
    while (*link != NULL && *link != one)
        link = &(*link)->next;
    if (*link == NULL)
        return;
    tide_records_keep(one);
    *link = one->next;
    one->listed = 0;
    for (size_t i = 0; i < sizeof one->rows / sizeof *one->rows; i++) {
        tide_os_free(one->rows[i]);
        one->rows[i] = NULL;
    }
}

/* When the process ends other threads may be in a use. */
void tide_tunable_leave(tide_tunable *const *first, tide_tunable *const *last)
{
    if (tide_exit_begun() || first == last)
        return;
    tide_registry_lock();
    for (tide_tunable *const *at = first; at != last; at++)
        tunables_delist(*at);
    tide_registry_unlock();
}

/* ---- rows --------------------------------------------------------------------------------- */

/* Where a key's row is or will be: the last place is that of all keys for which there is none. */
static tide_tuned **tunables_place(tide_tunable *tunable, uint64_t key)
{
    uint64_t at = tide_hash_bytes(&key, sizeof key);
    for (uint32_t i = 0; key < TIDE_TUNABLE_OTHER && i < TIDE_TUNABLE_KEYS; i++) {
        tide_tuned **place = &tunable->rows[(at + i) % TIDE_TUNABLE_KEYS];
        tide_tuned *row = __atomic_load_n(place, __ATOMIC_ACQUIRE);
        if (row == NULL || row->key == key)
            return place;
    }
    return &tunable->rows[TIDE_TUNABLE_KEYS];
}

/* A row begins with what was loaded of it. Registry locked. */
static tide_tuned *tunables_make_row(tide_tunable *tunable, uint64_t key)
{
    size_t bytes = sizeof(tide_tuned) + tunable->variant_count * sizeof(tide_tuned_variant);
    tide_tuned *row = tide_os_resize(NULL, bytes);
    if (row == NULL)
        return NULL;
    memset(row, 0, bytes);
    row->of = tunable;
    row->key = key;
    tide_tuned_begin(row);
    const tide_record *known = tide_records_known(tunable, key);
    if (known == NULL || known->state == TIDE_RECORD_MEASURED)
        return row;
    for (uint32_t i = 0; i < tunable->variant_count; i++)
        if (strncmp(tunable->variants[i], known->candidates[known->choice].name,
                    TIDE_TUNABLE_NAME_MAX) == 0) {
            tide_tuned_choose(row, i, known->state == TIDE_RECORD_PINNED);
            row->loaded = true;
        }
    return row;
}

tide_tuned *tide_tuned_row(tide_tunable *tunable, uint64_t key, bool waits)
{
    tide_tuned **place = tunables_place(tunable, key);
    tide_tuned *row = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    tide_assert(tunable->variant_count >= 1);
    if (TIDE_LIKELY(row != NULL))
        return row;
    if (waits)
        tide_registry_lock();
    else if (!tide_registry_try_lock())
        return NULL;
    place = tunables_place(tunable, key);
    row = *place;
    if (row == NULL) {
        bool other = place == &tunable->rows[TIDE_TUNABLE_KEYS];
        row = tunables_make_row(tunable, other ? TIDE_TUNABLE_OTHER : key);
        __atomic_store_n(place, row, __ATOMIC_RELEASE);
    }
    tide_registry_unlock();
    return row;
}

/* ---- asking ------------------------------------------------------------------------------- */

void tide_tunable_each(bool (*visit)(tide_tunable *tunable, void *user), void *user)
{
    tide_registry_lock();
    for (tide_tunable *at = tunables_list, *next; at != NULL; at = next) {
        next = at->next;
        if (!visit(at, user))
            break;
    }
    tide_registry_unlock();
}

tide_tunable *tide_tunable_find(const char *name)
{
    static const char call[] = "tide_tunable_find";
    tide_registry_lock();
    tide_tunable *found = name != NULL ? tunables_list : NULL;
    while (found != NULL && strcmp(found->name, name) != 0)
        found = found->next;
    tide_registry_unlock();
    if (name == NULL)
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the name is NULL");
    else if (found == NULL)
        tide_fail(TIDE_ERROR_NAME, call, "no tunable has the name '%.200s'", name);
    return found;
}

/* A candidate's figures: what this process measured, else what was loaded. */
static tide_candidate tunables_candidate(const tide_tuned *row, uint32_t variant)
{
    const tide_series *taken = &row->variants[variant].taken;
    tide_candidate out = {row->of->variants[variant], taken->count, taken->mean,
                          tide_series_error(taken), false};
    const tide_record *known = tide_records_known(row->of, row->key);
    for (uint32_t i = 0; out.uses == 0 && known != NULL && i < known->candidate_count; i++) {
        const tide_record_candidate *one = &known->candidates[i];
        if (strncmp(one->name, out.name, TIDE_TUNABLE_NAME_MAX) == 0)
            out = (tide_candidate){out.name, one->uses, (double)one->ps / 1000,
                                   (double)one->error_ps / 1000, true};
    }
    return out;
}

static void tunables_describe(const tide_tuned *row, tide_tunable_row *out)
{
    memset(out, 0, sizeof *out);
    out->key = row->key;
    out->uses = __atomic_load_n(&row->uses, __ATOMIC_RELAXED);
    out->choice = tide_tuned_choice(row);
    out->settled = row->active == 1;
    out->pinned = row->pinned;
    out->candidate_count = row->of->variant_count;
    for (uint32_t i = 0; i < out->candidate_count; i++)
        out->candidates[i] = tunables_candidate(row, i);
}

bool tide_tunable_row_get(const tide_tunable *tunable, uint32_t index, tide_tunable_row *out)
{
    bool found = false;
    if (tunable == NULL || out == NULL)
        return false;
    tide_registry_lock();
    for (uint32_t i = 0; !found && i <= TIDE_TUNABLE_KEYS; i++) {
        const tide_tuned *row = tunable->rows[i];
        if (row == NULL || index-- != 0)
            continue;
        tunables_describe(row, out);
        found = true;
    }
    tide_registry_unlock();
    return found;
}

/* ---- steering ----------------------------------------------------------------------------- */

tide_status tide_tunable_set(tide_tunable *tunable, int64_t value)
{
    static const char call[] = "tide_tunable_set";
    if (tunable == NULL || tunable->variants != NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "it is %s",
                         tunable == NULL ? "NULL" : "no knob");
    if (value < tunable->low || value > tunable->high)
        return tide_fail(TIDE_ERROR_SIZE, call, "%s = %lld is not within %lld to %lld",
                         tunable->name, (long long)value, (long long)tunable->low,
                         (long long)tunable->high);
    __atomic_store_n(&tunable->value, value, __ATOMIC_RELAXED);
    return TIDE_OK;
}

tide_status tide_tunable_pin(tide_tunable *tunable, uint64_t key, const char *variant)
{
    static const char call[] = "tide_tunable_pin";
    uint32_t number = 0;
    if (tunable == NULL || tunable->variants == NULL || variant == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "a NULL, or a knob");
    while (number < tunable->variant_count && strcmp(tunable->variants[number], variant) != 0)
        number++;
    if (number == tunable->variant_count)
        return tide_fail(TIDE_ERROR_NAME, call, "%.63s has no variant '%.63s'", tunable->name,
                         variant);
    tide_registry_lock();
    tide_tuned *row = tide_tuned_row(tunable, key, true);
    if (row != NULL)
        tide_tuned_choose(row, number, true);
    tide_registry_unlock();
    return row != NULL ? TIDE_OK : tide_fail(TIDE_ERROR_MEMORY, call, "no memory for the key");
}

tide_status tide_tunable_reset(tide_tunable *tunable)
{
    if (tunable == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_tunable_reset", "it is NULL");
    tide_registry_lock();
    tunable->listed |= TIDE_TUNABLE_ANEW;
    tide_records_forget(tunable);
    __atomic_store_n(&tunable->value, tunable->initial, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i <= TIDE_TUNABLE_KEYS; i++)
        if (tunable->rows[i] != NULL)
            tide_tuned_begin(tunable->rows[i]);
    tide_registry_unlock();
    return TIDE_OK;
}
