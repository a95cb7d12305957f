/* SPDX-License-Identifier: MIT */
/* The fake's device memory from the inside. */
#ifndef FAKE_ARENA_H
#define FAKE_ARENA_H

#include "model.h"

enum { BLOCKS = 4096, PAGE = 4096 };
#define ARENA_BYTES ((size_t)256 << 20) /* Valgrind looks through all of it for leaks */

/* Addresses behind the arena, for what is mapped there (pages.c). */
enum { RANGES = 8 };
#define RANGE_BYTES ((size_t)4 << 30)
#define ADDRESSES   (ARENA_BYTES + RANGES * RANGE_BYTES)

/* A piece of the arena; free ones are used again, after what was queued before they were freed. */
typedef struct block {
    uint64_t address;
    size_t bytes, used;
    bool live, pinned;
    bool managed;
    reserve *backed;      /* the memory pool that keeps it, or NULL */
    const context *plain; /* which has it without one               */
    set before;           /* of its release */
} block;

extern struct arena {
    char *device, *host; /* the two views of the file */
    size_t top;
    block blocks[BLOCKS];
    unsigned count;
} arena;

#define EACH_BLOCK(one) for (block *one = arena.blocks; (one) < arena.blocks + arena.count; (one)++)

const block *arena_at(uint64_t address); /* live, with this byte; or NULL */

#endif
