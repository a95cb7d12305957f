/* SPDX-License-Identifier: MIT */
/* The driver's entry points of memory: pools, plain and managed memory, what is mapped, fills and copies. */
#include "arena.h"
#include "entry.h"

/* ---- memory ------------------------------------------------------------------------------- */

ENTRY(cuMemPoolCreate, tide_cu_pool *out, const tide_cu_pool_properties *properties)
{
    START(cuMemPoolCreate);
    if (properties->allocation != 1 || properties->location.type != 1 ||
        (unsigned)properties->location.id >= fake.devices)
        return control_leave(TIDE_CU_INVALID_VALUE);
    result = !fake_has(FAKE_POOLS) ? NOT_SUPPORTED : control_unsafe("cuMemPoolCreate");
    if (result != 0)
        return control_leave(result);
    reserve *made = fake.pools;
    while (made < fake.pools + POOLS && (made->live || made->used != 0))
        made++;
    if (made == fake.pools + POOLS)
        return control_leave(TIDE_CU_OUT_OF_MEMORY);
    *made = (reserve){.live = true, .context = &fake.contexts[properties->location.id]};
    *out = (tide_cu_pool)(void *)made;
    return control_leave(0);
}

static reserve *pool_of(tide_cu_pool handle)
{
    reserve *found = (reserve *)(void *)handle;
    if (found < fake.pools || found >= fake.pools + POOLS || !found->live)
        control_fault("the memory pool", handle);
    return found;
}

ENTRY(cuMemPoolDestroy, tide_cu_pool pool)
{
    START(cuMemPoolDestroy);
    reserve *of = pool_of(pool);
    result = control_unsafe("cuMemPoolDestroy");
    if (result == 0)
        memory_end_pool(of);
    return control_leave(result);
}

ENTRY(cuMemPoolSetAttribute, tide_cu_pool pool, int attribute, void *value)
{
    START(cuMemPoolSetAttribute);
    bool right = pool_of(pool)->live && attribute == 4 && *(uint64_t *)value == UINT64_MAX;
    result = control_unsafe("cuMemPoolSetAttribute");
    if (result != 0)
        return control_leave(result);
    return control_leave(right ? 0 : TIDE_CU_INVALID_VALUE);
}

ENTRY(cuMemPoolGetAttribute, tide_cu_pool pool, int attribute, void *value)
{
    START(cuMemPoolGetAttribute);
    const reserve *of = pool_of(pool);
    const uint64_t values[] = {of->reserved, of->reserved_peak, of->used, of->used_peak};
    if (attribute < TIDE_CU_POOL_RESERVED || attribute > TIDE_CU_POOL_USED_PEAK)
        return control_leave(TIDE_CU_INVALID_VALUE);
    *(uint64_t *)value = values[attribute - TIDE_CU_POOL_RESERVED];
    return control_leave(control_unsafe("cuMemPoolGetAttribute"));
}

/* What is in use, and what work may still use, stays. */
ENTRY(cuMemPoolTrimTo, tide_cu_pool pool, size_t keep)
{
    START(cuMemPoolTrimTo);
    reserve *of = pool_of(pool);
    result = control_unsafe("cuMemPoolTrimTo");
    if (result == 0)
        memory_trim(of, keep);
    return control_leave(result);
}

ENTRY(cuMemAlloc, tide_cu_address *out, size_t bytes)
{
    START_SAFE(cuMemAlloc);
    *out = memory_take_plain(bytes);
    return control_leave(*out != 0 ? 0 : TIDE_CU_OUT_OF_MEMORY);
}

ENTRY(cuMemAllocManaged, tide_cu_address *out, size_t bytes, unsigned flags)
{
    START_CURRENT(cuMemAllocManaged);
    if (bytes == 0 || flags != TIDE_CU_ATTACH_GLOBAL)
        return control_leave(TIDE_CU_INVALID_VALUE);
    result = !fake_has(FAKE_MANAGED) ? NOT_SUPPORTED : control_unsafe("cuMemAllocManaged");
    if (result != 0)
        return control_leave(result);
    *out = memory_take_managed(bytes);
    return control_leave(*out != 0 ? 0 : TIDE_CU_OUT_OF_MEMORY);
}

/* Nothing orders it: what uses the memory must be over, and the host have seen that. */
ENTRY(cuMemFree, tide_cu_address address)
{
    START_SAFE(cuMemFree);
    if (memory_give_plain(address))
        return control_leave(0);
    fake_complain("cuMemFree of %#llx, which is not allocated", address);
    return control_leave(TIDE_CU_INVALID_VALUE);
}

/* ---- memory by the page (pages.c) ----------------------------------------------------------- */

#define PAGES(name, parameters, result_of)                                       \
    tide_cu_result fake_##name parameters                                        \
    {                                                                            \
        START(name);                                                             \
        return control_leave(!fake_has(FAKE_PAGES) ? NOT_SUPPORTED : result_of); \
    }
PAGES(cuMemGetAllocationGranularity,
      (size_t * out, const tide_cu_page_properties *properties, int option),
      option == 0 ? pages_granularity(out, properties) : TIDE_CU_INVALID_VALUE)
PAGES(cuMemAddressReserve,
      (tide_cu_address * out, size_t bytes, size_t align, tide_cu_address hint,
       unsigned long long flags),
      hint == 0 ? pages_reserve(out, bytes, align, flags) : TIDE_CU_INVALID_VALUE)
PAGES(cuMemAddressFree, (tide_cu_address at, size_t bytes), pages_unreserve(at, bytes))
PAGES(cuMemCreate,
      (unsigned long long *out, size_t bytes, const tide_cu_page_properties *properties,
       unsigned long long flags),
      pages_create(out, bytes, properties, flags))
PAGES(cuMemRelease, (unsigned long long handle), pages_release(handle))
PAGES(cuMemMap,
      (tide_cu_address at, size_t bytes, size_t offset, unsigned long long handle,
       unsigned long long flags),
      pages_map(at, bytes, offset, handle, flags))
PAGES(cuMemUnmap, (tide_cu_address at, size_t bytes), pages_unmap(at, bytes))
PAGES(cuMemSetAccess,
      (tide_cu_address at, size_t bytes, const tide_cu_access *access, size_t count),
      pages_set_access(at, bytes, access, count))

/* Memory that the driver does not know has no type, and nothing else. */
enum { NO_DEVICE = -2 }; /* CUDA's CU_DEVICE_INVALID */

ENTRY(cuPointerGetAttributes, unsigned count, int *asked, void **values, tide_cu_address address)
{
    START_CURRENT(cuPointerGetAttributes);
    const block *one = arena_at(address);
    const context *owner = memory_owner(address);
    for (unsigned i = 0; i < count; i++) {
        if (asked[i] == TIDE_CU_POINTER_MEMORY_TYPE)
            *(unsigned *)values[i] = one == NULL ? 0 : one->pinned ? TIDE_CU_MEMORY_HOST : 2;
        else if (asked[i] == TIDE_CU_POINTER_IS_MANAGED)
            *(int *)values[i] = one != NULL && one->managed;
        else if (asked[i] == TIDE_CU_POINTER_DEVICE_ORDINAL)
            *(int *)values[i] = owner != NULL ? (int)owner->device : NO_DEVICE;
        else if (asked[i] == TIDE_CU_POINTER_RANGE_START)
            *(tide_cu_address *)values[i] = one != NULL ? one->address : 0;
        else if (asked[i] == TIDE_CU_POINTER_RANGE_BYTES)
            *(size_t *)values[i] = one != NULL ? one->used : 0;
        else
            return control_leave(TIDE_CU_INVALID_VALUE);
    }
    return control_leave(0);
}

/* On a captured stream it is a node of the graph; elsewhere a call that a capture may forbid. */
static int may_allocate(const lane *on, const char *what)
{
    int result = capture_implicit(on, what);
    return result != 0 || on->capture != NULL ? result : control_unsafe(what);
}

ENTRY(cuMemAllocFromPoolAsync, tide_cu_address *out, size_t bytes, tide_cu_pool pool,
      tide_cu_stream handle)
{
    START_CURRENT(cuMemAllocFromPoolAsync);
    lane *on = entry_stream(handle);
    if (on == NULL || on->context != pool_of(pool)->context)
        return control_leave(INVALID_HANDLE);
    result = may_allocate(on, "cuMemAllocFromPoolAsync");
    if (result != 0)
        return control_leave(result);
    *out = memory_take(bytes, on, pool_of(pool));
    return control_leave(*out != 0 ? 0 : TIDE_CU_OUT_OF_MEMORY);
}

ENTRY(cuMemFreeAsync, tide_cu_address address, tide_cu_stream handle)
{
    START_CURRENT(cuMemFreeAsync);
    lane *on = entry_stream(handle);
    if (on == NULL)
        return control_leave(INVALID_HANDLE);
    result = may_allocate(on, "cuMemFreeAsync");
    if (result == 0 && on->capture != NULL) /* what the graph has not allocated it cannot free */
        result = TIDE_CU_INVALID_VALUE;
    if (result != 0)
        return control_leave(result);
    if (memory_give(address, on))
        return control_leave(0);
    fake_complain("cuMemFreeAsync of %#llx, which is not allocated", address);
    return control_leave(TIDE_CU_INVALID_VALUE);
}

ENTRY(cuMemHostAlloc, void **out, size_t bytes, unsigned flags)
{
    START_CURRENT(cuMemHostAlloc);
    (void)flags;
    result = control_unsafe("cuMemHostAlloc");
    if (result != 0)
        return control_leave(result);
    *out = bytes <= fake.limit ? memory_pinned(bytes) : NULL;
    return control_leave(*out != NULL ? 0 : TIDE_CU_OUT_OF_MEMORY);
}

ENTRY(cuMemFreeHost, void *data)
{
    START_SAFE(cuMemFreeHost);
    if (memory_unpin(data))
        return control_leave(0);
    fake_complain("cuMemFreeHost of %p, which is not pinned", data);
    return control_leave(TIDE_CU_INVALID_VALUE);
}

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

#define FILL(bits, type)                                                                        \
    ENTRY(cuMemsetD##bits##Async, tide_cu_address to, type value, size_t count,                 \
          tide_cu_stream stream)                                                                \
    {                                                                                           \
        START_CURRENT(cuMemsetD##bits##Async);                                                  \
        return control_leave(fill(to, 0, bits / 8, value, count, 1, stream));                   \
    }                                                                                           \
    ENTRY(cuMemsetD2D##bits##Async, tide_cu_address to, size_t pitch, type value, size_t width, \
          size_t height, tide_cu_stream stream)                                                 \
    {                                                                                           \
        START_CURRENT(cuMemsetD2D##bits##Async);                                                \
        return control_leave(fill(to, pitch, bits / 8, value, width, height, stream));          \
    }
FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned)

static int copy(tide_cu_address to, tide_cu_address from, size_t bytes, tide_cu_stream stream,
                bool between)
{
    const work one = {
        .run = memory_copy,
        .to = to,
        .from = from,
        .width = bytes,
        .ranges = {{(void *)(uintptr_t)to, bytes, true}, {(void *)(uintptr_t)from, bytes, false}},
        .range_count = 2,
        .between = between,
        .what = between ? "a copy between devices" : "a copy"};
    return entry_queue(stream, &one);
}

ENTRY(cuMemcpyAsync, tide_cu_address to, tide_cu_address from, size_t bytes, tide_cu_stream stream)
{
    START_CURRENT(cuMemcpyAsync);
    return control_leave(copy(to, from, bytes, stream, false));
}

/* Each side lies where the caller says. */
ENTRY(cuMemcpyPeerAsync, tide_cu_address to, tide_cu_context to_context, tide_cu_address from,
      tide_cu_context from_context, size_t bytes, tide_cu_stream stream)
{
    START_CURRENT(cuMemcpyPeerAsync);
    if (memory_owner(to) != (context *)(void *)to_context ||
        memory_owner(from) != (context *)(void *)from_context)
        return control_leave(TIDE_CU_INVALID_VALUE);
    return control_leave(copy(to, from, bytes, stream, true));
}

ENTRY(cuMemPoolSetAccess, tide_cu_pool pool, const tide_cu_access *access, size_t count)
{
    START(cuMemPoolSetAccess);
    reserve *of = pool_of(pool);
    if (!fake_has(FAKE_PEERS))
        return control_leave(INVALID_DEVICE);
    for (size_t i = 0; i < count; i++) {
        if (access[i].location.type != TIDE_CU_LOCATION_DEVICE ||
            (unsigned)access[i].location.id >= fake.devices)
            return control_leave(TIDE_CU_INVALID_VALUE);
        of->reached[access[i].location.id] = access[i].flags == TIDE_CU_ACCESS_READ_WRITE;
    }
    return control_leave(0);
}
