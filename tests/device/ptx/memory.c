/* SPDX-License-Identifier: MIT */
/* Loads, stores and atomics: where an address lies, whether it may be used, and how it is
 * aligned. */
#include <stdlib.h>
#include <string.h>

#include "warp.h"

/* ---- where ---------------------------------------------------------------------------------- */

static ptx_range *find_range(group *g, uint64_t address, size_t bytes)
{
    ptx_launch *l = g->launch;
    ptx_range *last = g->last;
    if (last != NULL && address - last->address < last->bytes &&
        bytes <= last->bytes - (address - last->address))
        return last;
    for (size_t i = 0; i < l->range_count; i++) {
        ptx_range *one = &l->ranges[i];
        uint64_t in = address - one->address;
        if (in < one->bytes && bytes <= one->bytes - in)
            return g->last = one;
    }
    return NULL;
}

static void mark_used(const ptx_range *of, uint8_t **bits, uint64_t from, size_t bytes)
{
    if (*bits == NULL && (*bits = calloc(1, of->bytes / 8 + 8)) == NULL)
        abort();
    for (uint64_t i = from; i < from + bytes; i++)
        (*bits)[i / 8] |= (uint8_t)(1 << i % 8);
}

static unsigned char *see_global(warp *w, uint64_t address, size_t bytes, bool reads, bool writes)
{
    ptx_range *found = find_range(w->of, address, bytes);
    if (found == NULL)
        return NULL;
    uint64_t in = address - found->address;
    if (reads && found->tracked)
        mark_used(found, &found->reads, in, bytes);
    if (writes && found->tracked)
        mark_used(found, &found->writes, in, bytes);
    return (unsigned char *)found->host + in;
}

/* A generic address names its space itself. */
static ptx_space find_space(const instruction *one, uint64_t *address)
{
    if (one->space != SPACE_GENERIC)
        return (ptx_space)one->space;
    uint64_t window = *address & PTX_WINDOW;
    ptx_space space = window == PTX_WINDOW_SHARED  ? SPACE_SHARED
                      : window == PTX_WINDOW_LOCAL ? SPACE_LOCAL
                      : window == PTX_WINDOW_PARAM ? SPACE_PARAM
                                                   : SPACE_GLOBAL;
    *address &= space == SPACE_GLOBAL ? UINT64_MAX : ~PTX_WINDOW;
    return space;
}

/* NULL: outside. Parameters are read only. */
static unsigned char *see_memory(warp *w, unsigned lane, ptx_space space, uint64_t at, size_t bytes,
                                 bool reads, bool writes)
{
    const ptx_launch *l = w->of->launch;
    const ptx_kernel *k = l->kernel;
    if (space == SPACE_GLOBAL)
        return see_global(w, at, bytes, reads, writes);
    size_t room = space == SPACE_SHARED             ? k->shared_bytes
                  : space == SPACE_LOCAL            ? k->local_bytes
                  : space == SPACE_PARAM && !writes ? k->parameter_bytes
                                                    : 0;
    if (at > room || bytes > room - at)
        return NULL;
    return space == SPACE_SHARED  ? w->of->shared + at
           : space == SPACE_LOCAL ? w->local + lane * k->local_bytes + at
                                  : (unsigned char *)(uintptr_t)l->parameters + at;
}

static const char *space_name(ptx_space space)
{
    static const char *const names[] = {"generic", "global",    "shared",
                                        "local",   "parameter", "constant"};
    return names[space];
}

/* NULL: a fault has been told. */
static unsigned char *touch_memory(warp *w, const instruction *one, unsigned lane, size_t bytes,
                                   bool reads, bool writes)
{
    uint64_t address = warp_read(w, &one->in[0], lane), at = address;
    ptx_space space = find_space(one, &at);
    const char *what = writes ? reads ? "changes" : "writes" : "reads";
    if (at % bytes != 0) {
        warp_fault(w, one, PTX_MISALIGNED,
                   "lane %u %s %zu bytes of %s memory at %#llx, which is not aligned", lane, what,
                   bytes, space_name(space), (unsigned long long)address);
        return NULL;
    }
    unsigned char *seen = see_memory(w, lane, space, at, bytes, reads, writes);
    if (seen == NULL)
        warp_fault(w, one, PTX_ILLEGAL_ADDRESS,
                   "lane %u %s %zu bytes of %s memory at %#llx, which are not its own", lane, what,
                   bytes, space_name(space), (unsigned long long)address);
    return seen;
}

/* ---- loads and stores ----------------------------------------------------------------------- */

static size_t vector_of(const instruction *one)
{
    return one->vector != 0 ? one->vector : 1;
}

bool memory_load(warp *w, const instruction *one, uint32_t lanes)
{
    size_t size = one->type.bits / 8, all = size * vector_of(one);
    for (; lanes != 0; lanes &= lanes - 1) {
        unsigned lane = (unsigned)__builtin_ctz(lanes);
        const unsigned char *from = touch_memory(w, one, lane, all, true, false);
        if (from == NULL)
            return false;
        for (unsigned i = 0; i < one->out_count; i++) {
            uint64_t value = 0;
            memcpy(&value, from + i * size, size);
            warp_write(w, &one->out[i], lane, type_extend(value, one->type));
        }
    }
    return true;
}

bool memory_store(warp *w, const instruction *one, uint32_t lanes)
{
    size_t size = one->type.bits / 8, all = size * vector_of(one);
    for (; lanes != 0; lanes &= lanes - 1) {
        unsigned lane = (unsigned)__builtin_ctz(lanes);
        unsigned char *to = touch_memory(w, one, lane, all, false, true);
        if (to == NULL)
            return false;
        for (unsigned i = 1; i < one->in_count; i++) {
            uint64_t value = warp_read(w, &one->in[i], lane);
            memcpy(to + (i - 1) * size, &value, size);
        }
    }
    return true;
}

/* ---- atomics -------------------------------------------------------------------------------- */

static bool is_less(ptx_type type, uint64_t a, uint64_t b)
{
    return type.kind == KIND_SIGNED ? (int64_t)a < (int64_t)b : a < b;
}

static uint64_t atomic_result(const instruction *one, uint64_t old, uint64_t b, uint64_t c)
{
    bool less = is_less(one->type, old, b);
    switch (one->atomic) {
    case ATOMIC_ADD: return one->type.kind == KIND_FLOAT ? real_binary(one, old, b, '+') : old + b;
    case ATOMIC_MIN: return less ? old : b;
    case ATOMIC_MAX: return less ? b : old;
    case ATOMIC_AND: return old & b;
    case ATOMIC_OR: return old | b;
    case ATOMIC_XOR: return old ^ b;
    case ATOMIC_CAS: return old == b ? c : old;
    case ATOMIC_INC: return old >= b ? 0 : old + 1;
    case ATOMIC_DEC: return old == 0 || old > b ? b : old - 1;
    default: return b;
    }
}

/* Lane after lane: none comes between another's read and write. */
bool memory_atomic(warp *w, const instruction *one, uint32_t lanes)
{
    size_t size = one->type.bits / 8;
    for (; lanes != 0; lanes &= lanes - 1) {
        unsigned lane = (unsigned)__builtin_ctz(lanes);
        uint64_t old = 0, c = one->in_count > 2 ? warp_read(w, &one->in[2], lane) : 0;
        unsigned char *at = touch_memory(w, one, lane, size, true, true);
        if (at == NULL)
            return false;
        memcpy(&old, at, size);
        old = type_extend(old, one->type);
        uint64_t b = type_extend(warp_read(w, &one->in[1], lane), one->type);
        uint64_t made = atomic_result(one, old, b, type_extend(c, one->type));
        memcpy(at, &made, size);
        if (one->out_count > 0)
            warp_write(w, &one->out[0], lane, old);
    }
    return true;
}
