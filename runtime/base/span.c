/* SPDX-License-Identifier: MIT */
/* Where spans begin, and how they are mapped. */
#define _GNU_SOURCE
#include "runtime/base/span.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/base/shim.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define ZONE_LEAST ((uintptr_t)1 << 36)

enum {
    PLACES = 1 << 16, /* a power of two: 2 TiB of addresses for spans */
    TRIES = 64,       /* of places that may be taken                  */
    SPREAD = 40503    /* odd: places tried in turn lie far from each other */
};

static uint32_t span_placed; /* atomic: how many there are */
static uintptr_t span_zone;  /* atomic; 0: not chosen yet               */
static uint32_t span_turn;   /* atomic: the next place to try           */
static bool span_impossible; /* atomic: the system gives no such places */

/* Half-way between nothing and a stack, if that is far from both and from the heap: a coroutine's
 * stack may lie low. 0: it is not. Two threads choose places of one grid, at worst two zones. */
static uintptr_t span_choose_zone(void)
{
    uintptr_t zone = __atomic_load_n(&span_zone, __ATOMIC_RELAXED);
    if (zone != 0)
        return zone;
    zone = (uintptr_t)__builtin_frame_address(0) / 2 / TIDE_SPAN_MAX * TIDE_SPAN_MAX;
    if (zone < ZONE_LEAST)
        return 0;
    __atomic_store_n(&span_zone, zone, __ATOMIC_RELAXED);
    return zone;
}

typedef enum span_answer { SPAN_DONE, SPAN_TAKEN, SPAN_REFUSED, SPAN_ELSEWHERE } span_answer;

/* An old kernel takes the address for a wish. */
static span_answer span_map(uintptr_t at, size_t bytes)
{
    void *wanted = (void *)at; /* NOLINT(performance-no-int-to-ptr) */
    char *start = mmap(wanted, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (start == MAP_FAILED)
        return errno == EEXIST                     ? SPAN_TAKEN
               : errno == EINVAL || errno == EPERM ? SPAN_ELSEWHERE
                                                   : SPAN_REFUSED;
    if (start != wanted) {
        (void)munmap(start, bytes);
        return SPAN_ELSEWHERE;
    }
    (void)madvise(start, bytes, MADV_NOHUGEPAGE);
    return SPAN_DONE;
}

/* The first part at a free place. The first try is the place after the last one's, so that spans
 * share tables of pages; others are far away. */
static span_answer span_find_place(tide_span *span, size_t first)
{
    uintptr_t zone = span_choose_zone();
    uint32_t turn = __atomic_fetch_add(&span_turn, 1, __ATOMIC_RELAXED);
    if (zone == 0)
        return SPAN_TAKEN; /* this span is mapped whole, wherever the system likes */
    for (uint32_t i = 0; i < TRIES; i++, turn += SPREAD) {
        uintptr_t at = zone + (uintptr_t)(turn % PLACES) * TIDE_SPAN_MAX;
        span_answer answer = span_map(at, first);
        if (answer == SPAN_DONE)
            span->start = (char *)at; /* NOLINT(performance-no-int-to-ptr) */
        if (answer != SPAN_TAKEN)
            return answer;
    }
    return SPAN_TAKEN;
}

static bool span_map_whole(tide_span *span)
{
    span->start = tide_os_reserve(span->bytes);
    span->mapped = span->bytes;
    return span->start != NULL;
}

/* May there be one more with a place of its own? Then it is counted. */
static bool span_admit(void)
{
    if (__atomic_load_n(&span_impossible, __ATOMIC_RELAXED) || tide_shim_chooses_addresses())
        return false;
    if (__atomic_fetch_add(&span_placed, 1, __ATOMIC_RELAXED) < TIDE_SPANS_PLACED)
        return true;
    __atomic_sub_fetch(&span_placed, 1, __ATOMIC_RELAXED);
    return false;
}

bool tide_span_make(tide_span *span, size_t bytes, size_t first)
{
    tide_assert(0 < first && first <= bytes && bytes <= TIDE_SPAN_MAX);
    *span = (tide_span){.bytes = bytes, .mapped = first};
    if (!span_admit())
        return span_map_whole(span);
    span_answer answer = tide_os_faulted(first) ? SPAN_REFUSED : span_find_place(span, first);
    if (answer == SPAN_DONE) {
        span->placed = true;
        tide_shim_root(span->start, bytes);
        return true;
    }
    __atomic_sub_fetch(&span_placed, 1, __ATOMIC_RELAXED);
    if (answer == SPAN_ELSEWHERE)
        __atomic_store_n(&span_impossible, true, __ATOMIC_RELAXED);
    return answer != SPAN_REFUSED && span_map_whole(span);
}

bool tide_span_grow(tide_span *span, size_t mapped)
{
    tide_assert(span->start != NULL && mapped > span->mapped && mapped <= span->bytes);
    size_t more = mapped - span->mapped;
    if (tide_os_faulted(more) || span_map((uintptr_t)span->start + span->mapped, more) != SPAN_DONE)
        return false;
    span->mapped = mapped;
    return true;
}

void tide_span_end(tide_span *span)
{
    tide_assert(span->start != NULL && span->mapped <= span->bytes);
    tide_shim_unroot(span->start, span->bytes);
    (void)munmap(span->start, span->mapped);
    if (span->placed)
        __atomic_sub_fetch(&span_placed, 1, __ATOMIC_RELAXED);
    *span = (tide_span){0};
}
