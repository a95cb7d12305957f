/* SPDX-License-Identifier: MIT */
/* Uses are timed, and the fastest variant is kept.
 *
 * The variants that are still measured make the uses of a key in turns of four, of which the first
 * is not timed: it pays for the change. After each round of turns those are dropped that are slower
 * than the best by more than four standard errors of the difference. One is chosen when it is alone,
 * or has the least mean once all have been timed often enough. What a use takes may be the machine's
 * doing (an interrupt, another process), so times above four times the least count as so long; if
 * those came before the least, the series begins anew with it.
 *
 * A thread that would have to wait for the registry drops what it has measured. */
#define _GNU_SOURCE

#include "jit/tune/test_hooks.h"
#include "jit/tune/tunables.h"
#include "runtime/base/assert.h"
#include "runtime/base/hash.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"

enum {
    TURN = 4,
    LEAST_TIMED = 6, /* of a variant before it is compared               */
    MOST_TIMED = 60, /* of each: then the least mean is chosen           */
    CLAMP = 4,       /* times the least                                  */
    ERRORS_SQUARED = 16,
    SELDOM = 64,     /* of a chosen one, at most so rarely               */
    WORTH_NS = 20000 /* of a body: a time costs less than a hundredth of it */
};

_Static_assert(TIDE_VARIANTS_MAX <= 16, "a variant's number has four bits in the order");

uint64_t (*tide_tune_clock)(void) = tide_os_now_ns;

/* ---- what is active ----------------------------------------------------------------------- */

static uint32_t measure_at(uint64_t order, uint64_t place)
{
    tide_assert(place < TIDE_VARIANTS_MAX);
    return (uint32_t)(order >> 4 * place & 15);
}

/* Readers may see the new order with the old count: they run a variant that was just dropped. */
static void measure_publish(tide_tuned *row, uint64_t order, uint32_t active)
{
    tide_assert(active >= 1 && active <= row->of->variant_count);
    __atomic_store_n(&row->order, order, __ATOMIC_RELAXED);
    __atomic_store_n(&row->active, active, __ATOMIC_RELAXED);
    row->sampled = 0;
}

void tide_tuned_begin(tide_tuned *row)
{
    uint64_t order = 0;
    for (uint32_t i = 0; i < row->of->variant_count; i++) {
        row->variants[i] = (tide_tuned_variant){{0}, 0};
        order |= (uint64_t)i << 4 * i;
    }
    row->pinned = row->loaded = false;
    __atomic_store_n(&row->every, 1, __ATOMIC_RELAXED);
    measure_publish(row, order, row->of->variant_count);
}

void tide_tuned_choose(tide_tuned *row, uint32_t variant, bool pinned)
{
    tide_assert(variant < row->of->variant_count);
    tide_tuned_begin(row);
    row->pinned = pinned;
    measure_publish(row, variant, 1);
}

uint32_t tide_tuned_choice(const tide_tuned *row)
{
    uint64_t order = __atomic_load_n(&row->order, __ATOMIC_RELAXED);
    uint32_t best = measure_at(order, 0), active = __atomic_load_n(&row->active, __ATOMIC_RELAXED);
    for (uint32_t i = 1; i < active; i++) {
        const tide_series *one = &row->variants[measure_at(order, i)].taken;
        const tide_series *other = &row->variants[best].taken;
        if (one->count != 0 && (other->count == 0 || one->mean < other->mean))
            best = measure_at(order, i);
    }
    return best;
}

/* ---- judging ------------------------------------------------------------------------------ */

static bool measure_is_slower(const tide_series *one, const tide_series *best)
{
    double more = one->mean - best->mean;
    double errors[] = {tide_series_error(one), tide_series_error(best)};
    return one->count >= LEAST_TIMED && best->count >= LEAST_TIMED && more > 0 &&
           more * more > ERRORS_SQUARED * (errors[0] * errors[0] + errors[1] * errors[1]);
}

/* The order of turns is drawn anew, so that a program whose uses have a rhythm favours none. */
static uint64_t measure_shuffle(uint8_t *left, uint32_t count, uint64_t seed)
{
    uint64_t order = 0;
    for (uint32_t i = 0; i < count; i++) {
        seed = tide_hash_bytes(&seed, sizeof seed);
        uint32_t from = i + (uint32_t)(seed % (count - i));
        uint8_t drawn = left[from];
        left[from] = left[i];
        left[i] = drawn;
        order |= (uint64_t)drawn << 4 * i;
    }
    return order;
}

static void measure_judge(tide_tuned *row)
{
    uint64_t order = row->order;
    uint32_t best = tide_tuned_choice(row), count = 0;
    uint8_t left[TIDE_VARIANTS_MAX];
    bool all_timed = true;
    for (uint32_t i = 0; i < row->active; i++) {
        uint32_t variant = measure_at(order, i);
        const tide_series *taken = &row->variants[variant].taken;
        if (variant != best && measure_is_slower(taken, &row->variants[best].taken))
            continue;
        left[count++] = (uint8_t)variant;
        all_timed = all_timed && taken->count >= MOST_TIMED;
    }
    tide_assert(count >= 1 && count <= row->active);
    if (count == 1 || all_timed)
        measure_publish(row, best, 1);
    else
        measure_publish(row, measure_shuffle(left, count, row->uses), count);
}

static void measure_take(tide_tuned *row, uint32_t variant, uint64_t taken)
{
    tide_tuned_variant *one = &row->variants[variant];
    double ns = (double)taken;
    if (one->taken.mean > CLAMP * ns && ns < one->least)
        one->taken = (tide_series){0};
    one->least = one->taken.count == 0 || ns < one->least ? ns : one->least;
    if (one->least > 0 && ns > CLAMP * one->least)
        ns = CLAMP * one->least;
    tide_series_add(&one->taken, ns);
    row->sampled++;
    if (row->active == 1) {
        double every = one->taken.mean > 0 ? WORTH_NS / one->taken.mean : SELDOM;
        every = every < 1 ? 1 : every > SELDOM ? SELDOM : every;
        __atomic_store_n(&row->every, (uint32_t)every, __ATOMIC_RELAXED);
    } else if (row->sampled >= (uint64_t)row->active * (TURN - 1))
        measure_judge(row);
}

/* ---- a use -------------------------------------------------------------------------------- */

void tide_measure_begin(tide_measured_use *use, tide_tunable *tunable, uint64_t key)
{
    *use = (tide_measured_use){NULL, 0, 0, 0};
    tide_tuned *row = tide_tuned_row(tunable, key, false);
    if (TIDE_UNLIKELY(row == NULL))
        return;
    uint64_t turn = __atomic_fetch_add(&row->uses, 1, __ATOMIC_RELAXED);
    uint64_t order = __atomic_load_n(&row->order, __ATOMIC_RELAXED);
    uint32_t active = __atomic_load_n(&row->active, __ATOMIC_RELAXED);
    tide_assert(active >= 1 && active <= tunable->variant_count);
    bool timed;
    if (TIDE_LIKELY(active == 1)) {
        use->variant = measure_at(order, 0);
        timed = turn % __atomic_load_n(&row->every, __ATOMIC_RELAXED) == 0;
    } else {
        use->variant = measure_at(order, turn / TURN % active);
        timed = turn % TURN != 0;
    }
    if (!timed)
        return;
    use->row = row;
    use->started = tide_tune_clock();
}

void tide_measure_end(tide_measured_use *use)
{
    uint64_t taken = use->told != 0 ? use->told : tide_tune_clock() - use->started;
    tide_assert(use->row != NULL && use->variant < use->row->of->variant_count);
    if (!tide_registry_try_lock())
        return;
    measure_take(use->row, use->variant, taken);
    tide_registry_unlock();
}
