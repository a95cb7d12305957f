/* SPDX-License-Identifier: MIT */
/* The driver's entry points of memory: pools, plain and managed memory, what is mapped, fills and copies. */
#include "arena.h"
#include "entry.h"

/* ---- memory ------------------------------------------------------------------------------- */

ENTRY(cuMemPoolCreate, UNCAPTURED, (tide_cu_pool * out, const tide_cu_pool_properties *properties),
      (out, properties))
{
    if (properties->allocation != 1 || properties->location.type != 1 ||
        (unsigned)properties->location.id >= fake.devices)
        return TIDE_CU_INVALID_VALUE;
    if (!fake_has(FAKE_POOLS))
        return NOT_SUPPORTED;
    reserve *made = fake.pools;
    while (made < fake.pools + POOLS && (made->live || made->used != 0))
        made++;
    if (made == fake.pools + POOLS)
        return TIDE_CU_OUT_OF_MEMORY;
    *made = (reserve){.live = true, .context = &fake.contexts[properties->location.id]};
    *out = (tide_cu_pool)(void *)made;
    return 0;
}

static reserve *pool_of(tide_cu_pool handle)
{
    reserve *found = (reserve *)(void *)handle;
    if (found < fake.pools || found >= fake.pools + POOLS || !found->live)
        control_fault("the memory pool", handle);
    return found;
}

GIVES(cuMemPoolDestroy, UNCAPTURED, (tide_cu_pool pool), (pool), memory_end_pool(pool_of(pool)))

ENTRY(cuMemPoolSetAttribute, UNCAPTURED, (tide_cu_pool pool, int attribute, void *value),
      (pool, attribute, value))
{
    bool right = pool_of(pool)->live && attribute == 4 && *(uint64_t *)value == UINT64_MAX;
    return right ? 0 : TIDE_CU_INVALID_VALUE;
}

ENTRY(cuMemPoolGetAttribute, UNCAPTURED, (tide_cu_pool pool, int attribute, void *value),
      (pool, attribute, value))
{
    const reserve *of = pool_of(pool);
    const uint64_t values[] = {of->reserved, of->reserved_peak, of->used, of->used_peak};
    if (attribute < TIDE_CU_POOL_RESERVED || attribute > TIDE_CU_POOL_USED_PEAK)
        return TIDE_CU_INVALID_VALUE;
    *(uint64_t *)value = values[attribute - TIDE_CU_POOL_RESERVED];
    return 0;
}

/* What is in use, and what work may still use, stays. */
GIVES(cuMemPoolTrimTo, UNCAPTURED, (tide_cu_pool pool, size_t keep), (pool, keep),
      memory_trim(pool_of(pool), keep))

static int given(tide_cu_address *out, uint64_t address)
{
    *out = address;
    return address != 0 ? 0 : TIDE_CU_OUT_OF_MEMORY;
}

static int freed(bool was_there, const char *what, uint64_t address)
{
    if (!was_there)
        fake_complain("%s of %#llx, which is not allocated", what, (unsigned long long)address);
    return was_there ? 0 : TIDE_CU_INVALID_VALUE;
}

RETURNS(cuMemAlloc, SAFE, (tide_cu_address * out, size_t bytes), (out, bytes),
        given(out, memory_take_plain(bytes)))

ENTRY(cuMemAllocManaged, SAFE, (tide_cu_address * out, size_t bytes, unsigned flags),
      (out, bytes, flags))
{
    if (bytes == 0 || flags != TIDE_CU_ATTACH_GLOBAL)
        return TIDE_CU_INVALID_VALUE;
    if (!fake_has(FAKE_MANAGED))
        return NOT_SUPPORTED;
    return given(out, memory_take_managed(bytes));
}

/* Nothing orders it: what uses the memory must be over, and the host have seen that. */
RETURNS(cuMemFree, SAFE, (tide_cu_address address), (address),
        freed(memory_give_plain(address), "cuMemFree", address))

/* ---- memory by the page (pages.c) ----------------------------------------------------------- */

#define PAGES(name, parameters, arguments, result_of) \
    RETURNS(name, ANY, parameters, arguments, fake_has(FAKE_PAGES) ? result_of : NOT_SUPPORTED)
PAGES(cuMemGetAllocationGranularity, (size_t * out, const tide_cu_page_properties *of, int option),
      (out, of, option), option == 0 ? pages_granularity(out, of) : TIDE_CU_INVALID_VALUE)
PAGES(cuMemAddressReserve,
      (tide_cu_address * out, size_t bytes, size_t align, tide_cu_address hint,
       unsigned long long flags),
      (out, bytes, align, hint, flags),
      hint == 0 ? pages_reserve(out, bytes, align, flags) : TIDE_CU_INVALID_VALUE)
PAGES(cuMemAddressFree, (tide_cu_address at, size_t bytes), (at, bytes), pages_unreserve(at, bytes))
PAGES(cuMemCreate,
      (unsigned long long *out, size_t bytes, const tide_cu_page_properties *of,
       unsigned long long flags),
      (out, bytes, of, flags), pages_create(out, bytes, of, flags))
PAGES(cuMemRelease, (unsigned long long handle), (handle), pages_release(handle))
PAGES(cuMemMap,
      (tide_cu_address at, size_t bytes, size_t offset, unsigned long long of,
       unsigned long long flags),
      (at, bytes, offset, of, flags), pages_map(at, bytes, offset, of, flags))
PAGES(cuMemUnmap, (tide_cu_address at, size_t bytes), (at, bytes), pages_unmap(at, bytes))
PAGES(cuMemSetAccess, (tide_cu_address at, size_t bytes, const tide_cu_access *to, size_t count),
      (at, bytes, to, count), pages_set_access(at, bytes, to, count))

/* Memory that the driver does not know has no type, and nothing else. */
enum { NO_DEVICE = -2 }; /* CUDA's CU_DEVICE_INVALID */

ENTRY(cuPointerGetAttributes, CURRENT,
      (unsigned count, int *asked, void **values, tide_cu_address address),
      (count, asked, values, address))
{
    const block *one = arena_at(address);
    const context *owner = memory_owner(address);
    for (unsigned i = 0; i < count; i++) {
        if (asked[i] == TIDE_CU_POINTER_MEMORY_TYPE)
            *(unsigned *)values[i] = one == NULL ? 0 : one->pinned ? 1 : TIDE_CU_MEMORY_DEVICE;
        else if (asked[i] == TIDE_CU_POINTER_IS_MANAGED)
            *(int *)values[i] = one != NULL && one->managed;
        else if (asked[i] == TIDE_CU_POINTER_DEVICE_ORDINAL)
            *(int *)values[i] = owner != NULL ? (int)owner->device : NO_DEVICE;
        else
            return TIDE_CU_INVALID_VALUE;
    }
    return 0;
}

/* On a captured stream it is a node of the graph; elsewhere a call that a capture may forbid. */
static int may_allocate(const lane *on, const char *what)
{
    int result = capture_implicit(on, what);
    return result != 0 || on->capture != NULL ? result : control_unsafe(what);
}

ENTRY(cuMemAllocFromPoolAsync, CURRENT,
      (tide_cu_address * out, size_t bytes, tide_cu_pool pool, tide_cu_stream handle),
      (out, bytes, pool, handle))
{
    lane *on = entry_stream(handle);
    if (on->context != pool_of(pool)->context)
        return INVALID_HANDLE;
    int result = may_allocate(on, "cuMemAllocFromPoolAsync");
    return result != 0 ? result : given(out, memory_take(bytes, on, pool_of(pool)));
}

ENTRY(cuMemFreeAsync, CURRENT, (tide_cu_address address, tide_cu_stream handle), (address, handle))
{
    lane *on = entry_stream(handle);
    int result = may_allocate(on, "cuMemFreeAsync");
    if (result == 0 && on->capture != NULL) /* what the graph has not allocated it cannot free */
        result = TIDE_CU_INVALID_VALUE;
    return result != 0 ? result : freed(memory_give(address, on), "cuMemFreeAsync", address);
}

ENTRY(cuMemHostAlloc, SAFE, (void **out, size_t bytes, unsigned flags), (out, bytes, flags))
{
    (void)flags;
    *out = bytes <= fake.limit ? memory_pinned(bytes) : NULL;
    return *out != NULL ? 0 : TIDE_CU_OUT_OF_MEMORY;
}

RETURNS(cuMemFreeHost, SAFE, (void *data), (data),
        freed(memory_unpin(data), "cuMemFreeHost", (uint64_t)(uintptr_t)data))

/* The range of a strided fill is that of its elements, gaps included: nobody else uses those then.
 */
static int fill(uint64_t to, uint64_t pitch, unsigned unit, unsigned value, uint64_t width,
                uint64_t height, void *stream)
{
    if (to % unit != 0 || pitch % unit != 0)
        return TIDE_CU_INVALID_VALUE;
    if (width == 1 && height > fake.highest)
        fake.highest = height;
    const work one = {
        .run = memory_write,
        .to = to,
        .pitch = pitch,
        .unit = unit,
        .value = value,
        .width = width,
        .height = height,
        .ranges = {{(void *)(uintptr_t)to, (height - 1) * pitch + width * unit, true}},
        .range_count = 1,
        .what = "a fill"};
    return entry_queue(stream, &one);
}

#define FILL(bits, type)                                                              \
    ENTRY(cuMemsetD##bits##Async, CURRENT,                                            \
          (tide_cu_address to, type value, size_t count, tide_cu_stream stream),      \
          (to, value, count, stream))                                                 \
    {                                                                                 \
        return fill(to, 0, bits / 8, value, count, 1, stream);                        \
    }                                                                                 \
    ENTRY(cuMemsetD2D##bits##Async, CURRENT,                                          \
          (tide_cu_address to, size_t pitch, type value, size_t width, size_t height, \
           tide_cu_stream stream),                                                    \
          (to, pitch, value, width, height, stream))                                  \
    {                                                                                 \
        return fill(to, pitch, bits / 8, value, width, height, stream);               \
    }
FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned)

/* Memory of the host that the driver does not know is nobody's business: who uses it too early sees that. */
static void add_side(work *one, tide_cu_address at, size_t bytes, bool writes)
{
    if (memory_known(at))
        one->ranges[one->range_count++] = (fake_range){(void *)(uintptr_t)at, bytes, writes};
}

static int copy(tide_cu_address to, tide_cu_address from, size_t bytes, tide_cu_stream stream,
                bool between)
{
    work one = {.run = memory_copy,
                .to = to,
                .from = from,
                .width = bytes,
                .between = between,
                .what = between ? "a copy between devices" : "a copy"};
    add_side(&one, to, bytes, true);
    add_side(&one, from, bytes, false);
    return entry_queue(stream, &one);
}

RETURNS(cuMemcpyAsync, CURRENT,
        (tide_cu_address to, tide_cu_address from, size_t bytes, tide_cu_stream stream),
        (to, from, bytes, stream), copy(to, from, bytes, stream, false))

/* Each side lies where the caller says. */
ENTRY(cuMemcpyPeerAsync, CURRENT,
      (tide_cu_address to, tide_cu_context to_context, tide_cu_address from,
       tide_cu_context from_context, size_t bytes, tide_cu_stream stream),
      (to, to_context, from, from_context, bytes, stream))
{
    if (memory_owner(to) != (context *)(void *)to_context ||
        memory_owner(from) != (context *)(void *)from_context)
        return TIDE_CU_INVALID_VALUE;
    return copy(to, from, bytes, stream, true);
}
