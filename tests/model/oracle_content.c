/* SPDX-License-Identifier: MIT */
/* What arrays hold: the witness of what was written, and what a free place must hold still. */
#include "oracle_parts.h"

#include <stdlib.h>
#include <string.h>

#include "tests/random.h"

/* Small arrays are witnessed whole, large ones in ten windows: both ends and eight between, far
 * enough apart that none overlaps the next. */
enum { WHOLE = 2048, WINDOWS = 10, WINDOW_END = 128, WINDOW_INNER = 16 };

struct window {
    size_t offset, size;
};

static unsigned window_count(size_t bytes)
{
    return bytes <= WHOLE ? 1 : WINDOWS;
}

static struct window window_at(size_t bytes, unsigned i)
{
    if (bytes <= WHOLE)
        return (struct window){0, bytes};
    if (i == 0)
        return (struct window){0, WINDOW_END};
    if (i == WINDOWS - 1)
        return (struct window){bytes - WINDOW_END, WINDOW_END};
    return (struct window){bytes / (WINDOWS - 1) * i, WINDOW_INNER};
}

static size_t witness_bytes(size_t bytes)
{
    return bytes <= WHOLE ? bytes : 2 * WINDOW_END + (WINDOWS - 2) * WINDOW_INNER;
}

void place_write(const struct place *place)
{
    const unsigned char *from = place->copy;
    for (unsigned i = 0; i < window_count(place->bytes); i++) {
        struct window window = window_at(place->bytes, i);
        memcpy(place->data + window.offset, from, window.size);
        from += window.size;
    }
}

bool place_intact(const struct place *place)
{
    const unsigned char *expected = place->copy;
    for (unsigned i = 0; i < window_count(place->bytes); i++) {
        struct window window = window_at(place->bytes, i);
        if (memcmp(place->data + window.offset, expected, window.size) != 0)
            return false;
        expected += window.size;
    }
    return true;
}

/* A pattern that no other array of the program has. `copy` has room for a word more. */
void place_scramble(struct place *place, uint64_t seed)
{
    rng random = {seed};
    for (size_t i = 0; i < witness_bytes(place->bytes); i += sizeof(uint64_t)) {
        uint64_t word = rng_next(&random);
        memcpy(place->copy + i, &word, sizeof word);
    }
    place_write(place);
}

void place_witness(struct place *place, uint64_t seed)
{
    free(place->copy);
    place->copy = malloc(witness_bytes(place->bytes) + sizeof(uint64_t));
    place_scramble(place, seed);
}

unsigned char *place_copy_of(const struct place *place, size_t byte)
{
    size_t before = 0;
    for (unsigned i = 0; i < window_count(place->bytes); i++) {
        struct window window = window_at(place->bytes, i);
        if (byte >= window.offset && byte < window.offset + window.size)
            return place->copy + before + (byte - window.offset);
        before += window.size;
    }
    return NULL;
}

static bool all_ones(const unsigned char *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != 0xff)
            return false;
    return true;
}

static bool is_poisoned(const struct place *place, size_t bytes)
{
    size_t stained = place->stained < bytes ? place->stained : bytes;
    for (unsigned i = 0; i < window_count(bytes); i++) {
        struct window window = window_at(bytes, i);
        if (window.offset >= stained)
            return true;
        size_t size = stained - window.offset;
        if (!all_ones(place->data + window.offset, size < window.size ? size : window.size))
            return false;
    }
    return true;
}

/* What a free place must still hold when it is taken again for `bytes`. */
void place_check_left(struct oracle *oracle, const struct place *place, size_t bytes, unsigned type)
{
    bool careful = oracle->checked || oracle->disabled;
    if (careful && oracle->blind)
        return;
    if (oracle->poison) {
        if (!is_poisoned(place, bytes))
            oracle_wrong(oracle, "re-used %s lacks its poison", model_types[type].name);
        return;
    }
    size_t both = place->bytes < bytes ? place->bytes : bytes;
    bool known = place->copy != NULL && place->bytes <= WHOLE;
    if (known && memcmp(place->data, place->copy, both) != 0)
        oracle_wrong(oracle, "a free %s was written to before it was used again",
                     model_types[type].name);
}

/* A few elements of a view; else all of an array. Headers are not the user's to write. */
void oracle_write(struct oracle *oracle, unsigned which, unsigned salt)
{
    if (oracle->live_count == 0)
        return;
    const struct live *live = &oracle->live[which % oracle->live_count];
    uint64_t seed = oracle->step * 64 + salt % 64;
    if (live->nd == NULL || (salt % 2 == 0 && live->type != MODEL_HEADER)) {
        place_scramble(&oracle->rows[live->type].places[live->place], seed);
        return;
    }
    size_t length = shape_length(&live->nd->shape);
    enum { ELEMENTS = 9 };
    for (size_t i = 0; i < ELEMENTS && length > 0; i++)
        oracle_write_element(oracle, live->nd, i == 0 ? length - 1 : seed * i * i % length,
                             seed * ELEMENTS + i);
}
