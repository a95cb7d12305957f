/* SPDX-License-Identifier: MIT */
/* Device memory: addresses that the host cannot touch, and a second view of the same pages through
 * which work sees them. Pinned memory is ordinary memory that is known. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCKS = 4096, LEAST = 512 };
static const size_t arena_bytes = (size_t)512 << 20;

/* A piece of the arena; free ones are used again, after what was queued before they were freed. */
typedef struct block {
    uint64_t address;
    size_t bytes, used;
    bool live, pinned;
    set before; /* of its release */
} block;

static struct {
    char *device, *host; /* the two views */
    size_t top;
    block blocks[BLOCKS];
    unsigned count;
} arena;

static void map_arena(void)
{
    int file = memfd_create("fake_cuda", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)arena_bytes) != 0)
        abort();
    arena.device = mmap(NULL, arena_bytes, PROT_NONE, MAP_SHARED, file, 0);
    arena.host = mmap(NULL, arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (arena.device == MAP_FAILED || arena.host == MAP_FAILED)
        abort();
}

void memory_reset(void)
{
    if (arena.device == NULL)
        map_arena();
    for (unsigned i = 0; i < arena.count; i++)
        if (arena.blocks[i].pinned)
            free((void *)(uintptr_t)arena.blocks[i].address);
    memset(arena.blocks, 0, arena.count * sizeof *arena.blocks);
    arena.top = arena.count = 0;
}

void *fake_see(const void *device_memory)
{
    const char *at = device_memory;
    return at >= arena.device && at < arena.device + arena_bytes ? arena.host + (at - arena.device)
                                                                 : (void *)(uintptr_t)at;
}

static void *see(uint64_t address)
{
    return fake_see((const void *)(uintptr_t)address);
}

/* ---- work on memory ----------------------------------------------------------------------- */

void memory_write(const work *one)
{
    if (one->unit == 1 && one->height == 1) {
        memset(see(one->to), (int)one->value, one->width);
        return;
    }
    for (uint64_t row = 0; row < one->height; row++)
        for (uint64_t i = 0; i < one->width; i++)
            memcpy((char *)see(one->to + row * one->pitch) + i * one->unit, &one->value, one->unit);
}

void memory_copy(const work *one)
{
    memmove(see(one->to), see(one->from), one->width);
}

/* ---- blocks ------------------------------------------------------------------------------- */

bool memory_live(const void *data, size_t bytes)
{
    uint64_t at = (uint64_t)(uintptr_t)data;
    for (unsigned i = 0; i < arena.count; i++) {
        const block *one = &arena.blocks[i];
        if (one->live && at >= one->address && at + bytes <= one->address + one->used)
            return true;
    }
    return false;
}

static block *new_block(void)
{
    return arena.count < BLOCKS ? &arena.blocks[arena.count++] : NULL;
}

/* The best that is free, or a new one. */
static block *find_block(size_t bytes)
{
    block *best = NULL;
    for (unsigned i = 0; i < arena.count; i++) {
        block *one = &arena.blocks[i];
        if (!one->live && !one->pinned && one->bytes >= bytes &&
            (best == NULL || one->bytes < best->bytes))
            best = one;
    }
    if (best != NULL || arena.top + bytes > arena_bytes || (best = new_block()) == NULL)
        return best;
    *best = (block){.address = (uint64_t)(uintptr_t)(arena.device + arena.top), .bytes = bytes};
    arena.top += bytes;
    return best;
}

/* Getting and giving back are uses of the whole block, on their stream: what is not ordered with
 * them is not ordered with the next owner either. What a block then holds is nobody's business:
 * 0xA5. */
static work use_of(const block *one, const char *what)
{
    return (work){.run = memory_write,
                  .to = one->address,
                  .width = one->used,
                  .height = 1,
                  .unit = 1,
                  .value = 0xA5,
                  .ranges = {{(void *)(uintptr_t)one->address, one->used, true}},
                  .range_count = 1,
                  .what = what};
}

uint64_t memory_take(size_t bytes, lane *on)
{
    size_t rounded = (bytes + LEAST - 1) / LEAST * LEAST;
    if (bytes == 0 || fake.live_bytes + rounded > fake.limit)
        return 0;
    block *one = find_block(rounded);
    if (one == NULL)
        return 0;
    one->live = true;
    one->used = bytes;
    fake.live_bytes += one->bytes;
    set_join(&on->tail, &one->before); /* as the driver does by itself */
    work first = use_of(one, "cuMemAllocFromPoolAsync");
    model_queue(on, &first);
    return one->address;
}

bool memory_give(uint64_t address, lane *on)
{
    for (unsigned i = 0; i < arena.count; i++) {
        block *one = &arena.blocks[i];
        if (!one->live || one->pinned || one->address != address)
            continue;
        work last = use_of(one, "cuMemFreeAsync");
        model_queue(on, &last);
        one->live = false;
        one->before = on->tail;
        fake.live_bytes -= one->bytes;
        return true;
    }
    return false;
}

void *memory_pinned(size_t bytes)
{
    block *one = new_block();
    void *data = one != NULL ? aligned_alloc(4096, (bytes + 4095) / 4096 * 4096) : NULL;
    if (data != NULL)
        *one = (block){.address = (uint64_t)(uintptr_t)data,
                       .bytes = bytes,
                       .used = bytes,
                       .live = true,
                       .pinned = true};
    return data;
}

bool memory_unpin(void *data)
{
    for (unsigned i = 0; i < arena.count; i++) {
        block *one = &arena.blocks[i];
        if (!one->live || !one->pinned || one->address != (uint64_t)(uintptr_t)data)
            continue;
        free(data);
        *one = (block){.bytes = 0};
        return true;
    }
    return false;
}

void memory_settle(void)
{
    for (unsigned i = 0; i < arena.count; i++)
        arena.blocks[i].before = (set){{0}};
}

size_t fake_live_bytes(void)
{
    return fake.live_bytes;
}
