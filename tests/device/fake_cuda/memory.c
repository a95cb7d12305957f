/* SPDX-License-Identifier: MIT */
/* Device memory: addresses that the host cannot touch, and a second view of the same pages through
 * which work sees them. Pinned memory is ordinary memory that is known. */
#include "arena.h"
#include "host_code.h"
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LEAST = 512, STRAY = 1 << 20 };
static const size_t arena_bytes = ARENA_BYTES;

struct arena arena;

static void map_arena(void)
{
    int file = memfd_create("fake_cuda", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)arena_bytes) != 0)
        abort();
    const int none = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *all = mmap(NULL, ADDRESSES + RANGE_BYTES, PROT_NONE, none, -1, 0);
    if (all == MAP_FAILED)
        abort();
    all += (size_t) - (uintptr_t)all % RANGE_BYTES;
    arena.device = mmap(all, arena_bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file, 0);
    arena.host = mmap(NULL, arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (arena.device == MAP_FAILED || arena.host == MAP_FAILED)
        abort();
}

/* What blocks lie in. */
static size_t bytes_used(void)
{
    return (arena.top + PAGE - 1) / PAGE * PAGE;
}

/* And what a kernel may stray to without a crash. Not all of the arena: Valgrind takes milliseconds to hide it. */
static size_t bytes_shown(void)
{
    const size_t bytes = bytes_used() + STRAY;
    return bytes < arena_bytes ? bytes : arena_bytes;
}

void memory_reset(void)
{
    if (arena.device == NULL)
        map_arena();
    EACH_BLOCK(one)
    if (one->pinned)
        free((void *)(uintptr_t)one->address);
    memory_show(arena.device, bytes_shown(), false);
    memset(arena.blocks, 0, arena.count * sizeof *arena.blocks);
    arena.top = arena.count = 0;
}

void *fake_see(const void *device_memory)
{
    const char *at = device_memory;
    void *mapped = pages_see(at);
    if (mapped != NULL)
        return mapped;
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
    const uint64_t at = (uint64_t)(uintptr_t)data;
    const block *one = arena_at(at);
    return one != NULL ? at + bytes <= one->address + one->used : pages_live(data, bytes);
}

bool memory_known(uint64_t address)
{
    const uint64_t first = (uint64_t)(uintptr_t)arena.device;
    return (address >= first && address - first < ADDRESSES) || arena_at(address) != NULL;
}

extent *memory_extents(size_t *count)
{
    extent *all = calloc(arena.count + pages_extents(NULL) + 1, sizeof *all);
    if (all == NULL)
        abort();
    *count = pages_extents(all);
    EACH_BLOCK(one)
    if (one->live)
        all[(*count)++] = (extent){.address = one->address, .bytes = one->used};
    return all;
}

void memory_show(void *from, size_t bytes, bool shown)
{
    if (bytes != 0 && mprotect(from, bytes, shown ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
        abort();
}

/* For kernels, which use memory where it is. Managed memory stays as it is, for the host may be using it;
 * blocks lie in the order of their addresses. */
void memory_show_all(bool shown)
{
    char *from = arena.device;
    EACH_BLOCK(one)
    {
        char *managed = (char *)(uintptr_t)one->address;
        if (!one->live || !one->managed)
            continue;
        memory_show(from, (size_t)(managed - from), shown);
        from = managed + one->bytes;
    }
    memory_show(from, (size_t)(arena.device + bytes_shown() - from), shown);
    pages_show_all(shown);
}

static block *new_block(void)
{
    return arena.count < BLOCKS ? &arena.blocks[arena.count++] : NULL;
}

/* Memory that a stream gave back is another's only when that stream's work is over, or is before
 * the other's; the host's (no pool) when it knows that. */
static bool is_free_for(const block *one, const reserve *by, const set *tail)
{
    return !one->live && !one->pinned && (one->backed == NULL || one->backed == by) &&
           ((by != NULL && model_done(&one->before)) || set_within(&one->before, tail));
}

static size_t bytes_that_wait(const reserve *by, const set *tail)
{
    size_t bytes = 0;
    EACH_BLOCK(one)
    if (!one->live && !one->pinned && !is_free_for(one, by, tail))
        bytes += one->bytes;
    return bytes;
}

/* What other pools keep and nobody uses the driver takes before it has none to give. */
static void trim_others(const reserve *by)
{
    for (reserve *other = fake.pools; other < fake.pools + POOLS; other++)
        if (other->live && other != by)
            memory_trim(other, 0);
}

/* The best that is free, or a new one. */
static block *find_block(size_t bytes, const reserve *by, const set *tail)
{
    block *best = NULL;
    EACH_BLOCK(one)
    if (is_free_for(one, by, tail) && one->bytes >= bytes &&
        (best == NULL || one->bytes < best->bytes))
        best = one;
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

static size_t round_up(size_t bytes)
{
    return (bytes + LEAST - 1) / LEAST * LEAST;
}

/* NULL: there is none. Live, and counted. */
static block *take_block(size_t bytes, reserve *by, const set *tail)
{
    size_t rounded = round_up(bytes);
    if (bytes != 0 && fake.live_bytes + bytes_that_wait(by, tail) + rounded > fake.limit)
        trim_others(by);
    if (bytes == 0 || fake.live_bytes + bytes_that_wait(by, tail) + rounded > fake.limit)
        return NULL;
    block *one = find_block(rounded, by, tail);
    if (one == NULL)
        return NULL;
    one->live = true;
    one->used = bytes;
    fake.live_bytes += one->bytes;
    return one;
}

static void raise(uint64_t *peak, uint64_t to)
{
    *peak = to > *peak ? to : *peak;
}

uint64_t memory_take(size_t bytes, lane *on, reserve *from)
{
    const set tail = model_tail(on);
    block *one = take_block(bytes, from, &tail);
    if (one == NULL)
        return 0;
    from->reserved += one->backed == NULL ? one->bytes : 0;
    from->used += one->bytes;
    raise(&from->reserved_peak, from->reserved);
    raise(&from->used_peak, from->used);
    one->backed = from;
    set_join(&on->tail, &one->before); /* as the driver does by itself */
    work first = use_of(one, "cuMemAllocFromPoolAsync");
    model_queue(on, &first);
    return one->address;
}

uint64_t memory_take_plain(size_t bytes)
{
    block *one = take_block(bytes, NULL, &fake.known);
    if (one == NULL)
        return 0;
    one->plain = control_current();
    return one->address;
}

/* Pages of its own. What was queued before has nothing to do with it. */
uint64_t memory_take_managed(size_t bytes)
{
    size_t start = bytes_used(), whole = (bytes + PAGE - 1) / PAGE * PAGE;
    block *one = NULL;
    if (fake.live_bytes + whole <= fake.limit && start + whole <= arena_bytes)
        one = new_block();
    if (one == NULL)
        return 0;
    *one = (block){.address = (uint64_t)(uintptr_t)(arena.device + start),
                   .bytes = whole,
                   .used = bytes,
                   .live = true,
                   .managed = true};
    arena.top = start + whole;
    fake.live_bytes += whole;
    memset(see(one->address), 0xA5, whole);
    memory_show((void *)(uintptr_t)one->address, whole, true);
    return one->address;
}

const block *arena_at(uint64_t address)
{
    EACH_BLOCK(one)
    if (one->live && address >= one->address && address < one->address + one->used)
        return one;
    return NULL;
}

/* Live device memory that begins here, of a pool or plain. */
static block *live_block(uint64_t address, bool of_pool)
{
    block *one = (block *)(uintptr_t)arena_at(address);
    bool right = one != NULL && !one->pinned && one->address == address;
    return right && (one->backed != NULL) == of_pool ? one : NULL;
}

static void end_block(block *one, const set *before)
{
    one->live = false;
    one->before = *before;
    fake.live_bytes -= one->bytes;
}

bool memory_give(uint64_t address, lane *on)
{
    block *one = live_block(address, true);
    if (one == NULL)
        return false;
    work last = use_of(one, "cuMemFreeAsync");
    model_queue(on, &last);
    end_block(one, &on->tail);
    one->backed->used -= one->bytes;
    if (!one->backed->live)
        one->backed = NULL;
    return true;
}

bool memory_give_plain(uint64_t address)
{
    block *one = live_block(address, false);
    if (one == NULL)
        return false;
    const work last = use_of(one, "cuMemFree");
    model_check(&last, &fake.known, "the host");
    end_block(one, &fake.known);
    if (one->managed) /* the host saw it, too */
        memory_show((void *)(uintptr_t)address, one->bytes, false);
    one->managed = false;
    return true;
}

void memory_trim(reserve *of, uint64_t keep)
{
    EACH_BLOCK(one)
    if (of->reserved > keep && !one->live && one->backed == of && model_done(&one->before)) {
        one->backed = NULL;
        of->reserved -= one->bytes;
    }
}

size_t memory_kept(void)
{
    size_t bytes = 0;
    EACH_BLOCK(one)
    bytes += one->live || one->backed == NULL ? 0 : one->bytes;
    return bytes;
}

/* What is in use goes when it is given back. */
void memory_end_pool(reserve *of)
{
    of->live = false;
    of->reserved = 0;
    EACH_BLOCK(one)
    if (one->backed == of && !one->live)
        one->backed = NULL;
}

const context *memory_owner(uint64_t address)
{
    const block *one = arena_at(address);
    return one == NULL           ? pages_owner((const void *)(uintptr_t)address)
           : one->backed != NULL ? one->backed->context
                                 : one->plain;
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
    EACH_BLOCK(one)
    if (one->live && one->pinned && one->address == (uint64_t)(uintptr_t)data) {
        const work last = use_of(one, "cuMemFreeHost");
        model_check(&last, &fake.known, "the host");
        free(data);
        *one = (block){.bytes = 0};
        return true;
    }
    return false;
}

void memory_settle(void)
{
    EACH_BLOCK(one)
    one->before = (set){{0}};
}
