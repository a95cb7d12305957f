/* SPDX-License-Identifier: MIT */
/* Samples are kept in two tables of a fixed size, which cost what of them is used: by place and
 * stack, and by the address of the memory.
 *
 * Whoever gives memory back asks the second without the lock, as in runtime/buffers/store/address.h:
 * its entry, if there is one, stands at the address's place or behind it, before the next that is
 * empty, from before the memory was handed out until now. */
#define _GNU_SOURCE
#include "profiler/samples/samples.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

#include "runtime/base/assert.h"
#include "runtime/base/lock.h"
#include "runtime/base/settings.h"

enum { PLACES = 1024, LIVE = 16384, PROBES = 32, GONE = 1, EMPTY = 0 };

typedef struct sample_live {
    uintptr_t data; /* atomic; EMPTY: never used since it was, GONE */
    uint32_t place;
    double pieces, bytes; /* that it stands for */
} sample_live;

/* Guarded by the lock, but for `data` of those that are live. */
static tide_lock samples_lock = TIDE_LOCK(TIDE_FORK_SAMPLES);
static tide_sampled samples_places[PLACES];
static sample_live samples_live[LIVE];
static uint64_t samples_lost;

/* ---- chance --------------------------------------------------------------------------------- */

/* Each thread's own sequence (xorshift). */
static uint64_t samples_random(void)
{
    static uint64_t threads;
    static _Thread_local uint64_t state;
    if (state == 0)
        state = (__atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED) * 2 + 1) * 0x9E3779B97F4A7C15u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* -ln u for u equally likely between 0 and 1, to five digits: u is m / 2^e, 1 ≤ m < 2, and
 * ln m = 2 artanh((m - 1) / (m + 1)). (The library does without libm.) */
static double samples_exponential(void)
{
    uint64_t drawn = samples_random() | 1;
    int zeros = __builtin_clzll(drawn);
    double m = (double)(drawn << zeros) / 9223372036854775808.0;
    double t = (m - 1) / (m + 1), s = t * t;
    double ln_m = 2 * t * (1 + s * (1.0 / 3 + s * (1.0 / 5 + s * (1.0 / 7 + s / 9))));
    tide_assert(m >= 1 && m <= 2);
    return (zeros + 1) * 0.693147180559945 - ln_m;
}

/* 1 - exp(-x), x ≥ 0: 1 - (1 - r)², ten times over, of the series for x / 1024. */
static double samples_probability(double x)
{
    double y = x / 1024, r = y * (1 - y / 2 * (1 - y / 3));
    if (x > 40)
        return 1;
    for (int i = 0; i < 10; i++)
        r = r * (2 - r);
    return r;
}

/* ---- places ----------------------------------------------------------------------------------- */

typedef struct sample_walk {
    const void **frames;
    int count;
} sample_walk;

/* Is the caller on the stack that the system gave its thread? Those of coroutines and of signal
 * handlers may end in what no unwinder knows. The system is asked once a thread, and not after
 * lock-down. */
static bool samples_on_own_stack(void)
{
    static _Thread_local uintptr_t low, high; /* high 0: not asked */
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    pthread_attr_t attributes;
    void *start;
    size_t bytes;
    if (high == 0 && !tide_locked_down()) {
        high = 1;
        if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
            if (pthread_attr_getstack(&attributes, &start, &bytes) == 0) {
                low = (uintptr_t)start;
                high = low + bytes;
            }
            (void)pthread_attr_destroy(&attributes);
        }
    }
    return low <= here && here < high;
}

static _Unwind_Reason_Code samples_step(struct _Unwind_Context *context, void *user)
{
    sample_walk *walk = user;
    uintptr_t at = _Unwind_GetIP(context);
    if (at == 0 || walk->count == TIDE_SAMPLE_FRAMES)
        return _URC_END_OF_STACK;
    walk->frames[walk->count++] = (const void *)at;
    return _URC_NO_REASON;
}

/* The texts of a place go with the module that it was compiled into: they are copied. */
static void samples_describe(tide_sampled *place, tide_place at)
{
    enum { NAME = 40, PATH = TIDE_SAMPLE_PLACE - NAME - 14 };
    if (at.file == NULL)
        return;
    size_t length = strlen(at.file);
    snprintf(place->place, sizeof place->place, "%.*s:%u %.*s", PATH,
             at.file + (length > PATH ? length - PATH : 0), at.line, NAME,
             at.function != NULL ? at.function : "");
}

static uint64_t samples_mix(uint64_t hash, uint64_t with)
{
    hash = (hash ^ with) * 0xFF51AFD7ED558CCDu;
    return hash ^ hash >> 32;
}

static uint64_t samples_hash(const void *const *frames, tide_type type, tide_place at)
{
    uint64_t hash = samples_mix(type + 1u, (uintptr_t)at.file ^ at.line);
    for (int i = 0; i < TIDE_SAMPLE_FRAMES; i++)
        hash = samples_mix(hash, (uintptr_t)frames[i]);
    return hash | 1;
}

/* The one of that hash, or a new one; PLACES: there is no room. Locked. */
static uint32_t samples_place(const void *const *frames, tide_type type, tide_place at)
{
    uint64_t hash = samples_hash(frames, type, at);
    for (uint32_t i = 0; i < PROBES; i++) {
        uint32_t number = ((uint32_t)(hash >> 8) + i) & (PLACES - 1);
        tide_sampled *place = &samples_places[number];
        if (place->hash == hash)
            return number;
        if (place->hash != 0)
            continue;
        *place = (tide_sampled){.hash = hash, .type = type};
        memcpy(place->frames, frames, sizeof place->frames);
        samples_describe(place, at);
        return number;
    }
    return PLACES;
}

/* ---- live ------------------------------------------------------------------------------------- */

static sample_live *samples_at(uintptr_t data, uint32_t probe)
{
    uint64_t home = (uint64_t)data * 0x9E3779B97F4A7C15u >> 50;
    return &samples_live[(home + probe) & (LIVE - 1)];
}

/* The entry of the memory; NULL: it is no sample. By whoever has the memory, or locked. */
static sample_live *samples_find(uintptr_t data)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        sample_live *live = samples_at(data, i);
        uintptr_t found = __atomic_load_n(&live->data, __ATOMIC_ACQUIRE);
        if (found == data)
            return live;
        if (found == EMPTY)
            return NULL;
    }
    return NULL;
}

/* Locked. */
static void samples_drop(sample_live *live)
{
    tide_sampled *place = &samples_places[live->place];
    place->held -= live->pieces;
    place->held_bytes -= live->bytes;
    __atomic_store_n(&live->data, GONE, __ATOMIC_RELAXED);
    for (size_t i = (size_t)(live - samples_live);
         samples_live[i].data == GONE && samples_live[(i + 1) & (LIVE - 1)].data == EMPTY;
         i = (i - 1) & (LIVE - 1))
        __atomic_store_n(&samples_live[i].data, EMPTY, __ATOMIC_RELAXED);
}

/* Locked. */
static void samples_add_live(uintptr_t data, uint32_t place, double pieces, double bytes)
{
    sample_live *live = samples_find(data);
    if (live != NULL) /* which went some other way than by tide_samples_gave */
        samples_drop(live);
    for (uint32_t i = 0; i < PROBES; i++) {
        live = samples_at(data, i);
        if (live->data > GONE)
            continue;
        live->place = place, live->pieces = pieces, live->bytes = bytes;
        __atomic_store_n(&live->data, data, __ATOMIC_RELEASE);
        samples_places[place].held += pieces;
        samples_places[place].held_bytes += bytes;
        return;
    }
    samples_lost++;
}

static void samples_take(const void *data, size_t bytes, tide_type type, tide_place at)
{
    const void *frames[TIDE_SAMPLE_FRAMES] = {NULL};
    sample_walk walk = {.frames = frames};
    double every = tide_constant_get(TIDE_CONSTANT_sample_bytes);
    double pieces = 1 / samples_probability((double)bytes / every);
    tide_lock_assert_none();
    if (samples_on_own_stack())
        (void)_Unwind_Backtrace(samples_step, &walk);
    else if (at.file == NULL)
        frames[0] = at.function; /* the code that called, if that is known */
    tide_lock_take(&samples_lock);
    uint32_t number = samples_place(frames, type, at);
    if (number == PLACES) {
        samples_lost++;
    } else {
        samples_places[number].taken += pieces;
        samples_places[number].taken_bytes += pieces * (double)bytes;
        samples_add_live((uintptr_t)data, number, pieces, pieces * (double)bytes);
    }
    tide_lock_let_go(&samples_lock);
}

void tide_samples_took(const void *data, size_t bytes, tide_type type, tide_place place)
{
    static _Thread_local double left; /* 0: the thread has not begun */
    double every = tide_constant_get(TIDE_CONSTANT_sample_bytes);
    if (every <= 0 || (uintptr_t)data <= GONE)
        return;
    if (left == 0)
        left = samples_exponential() * every;
    left -= (double)bytes;
    if (left > 0)
        return;
    left = samples_exponential() * every;
    samples_take(data, bytes, type, place);
}

void tide_samples_gave(const void *data)
{
    if (TIDE_LIKELY(samples_find((uintptr_t)data) == NULL) || (uintptr_t)data <= GONE)
        return;
    tide_lock_take(&samples_lock);
    sample_live *live = samples_find((uintptr_t)data);
    if (live != NULL)
        samples_drop(live);
    tide_lock_let_go(&samples_lock);
}

/* ---- told ------------------------------------------------------------------------------------- */

static bool samples_is_before(const tide_sampled *a, const tide_sampled *b)
{
    return a->held_bytes != b->held_bytes ? a->held_bytes > b->held_bytes
                                          : a->taken_bytes > b->taken_bytes;
}

/* Into the list, in order; the last goes where there is no room. */
static size_t samples_insert(tide_sampled *out, size_t count, size_t room,
                             const tide_sampled *place)
{
    size_t at = count;
    if (count == room && (room == 0 || !samples_is_before(place, &out[--at])))
        return count;
    for (; at > 0 && samples_is_before(place, &out[at - 1]); at--)
        out[at] = out[at - 1];
    out[at] = *place;
    return count < room ? count + 1 : room;
}

size_t tide_samples_most(tide_sampled *out, size_t room, uint64_t *lost)
{
    size_t count = 0;
    tide_lock_take(&samples_lock);
    *lost = samples_lost;
    for (size_t i = 0; i < PLACES; i++) {
        tide_sampled place = samples_places[i];
        if (place.held < 0.5) /* what is left over of sums */
            place.held = place.held_bytes = 0;
        if (place.hash != 0)
            count = samples_insert(out, count, room, &place);
    }
    tide_lock_let_go(&samples_lock);
    tide_assert(count <= room);
    return count;
}

void tide_samples_prepare(void)
{
    static const tide_fork_handlers handlers = {.lock = &samples_lock};
    tide_fork_register(TIDE_FORK_SAMPLES, &handlers);
}
