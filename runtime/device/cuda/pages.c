/* SPDX-License-Identifier: MIT */
/* Memory of a CUDA device by the page: one range of addresses, in which physical memory is mapped where it is
 * needed and unmapped where it is free. So any free memory serves any request, what stands before
 * free addresses grows where it is, and a trim gives back what is free in the middle.
 *
 * The range is cut in blocks, kept in the order of addresses: taken, leaving or idle. Idle
 * neighbours are joined; whether anything is mapped there stands in a table, by the granule. A block
 * that is given back leaves behind its stream (deferred.h), so nothing queued uses what is idle: it
 * is ready for any stream, a captured one too, and may be unmapped. The driver is called under the
 * lock, which nobody takes around fork. */
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/deferred.h"

enum {
    BLOCK_ALIGN = 512,
    RANGE_TIMES = 8,     /* the device's memory: addresses cost nothing, and holes must be found */
    CHUNK_GRANULES = 16, /* the most that is mapped, and unmapped, as one */
};

typedef enum block_state { IDLE, TAKEN, LEAVING } block_state;

typedef struct block {
    tide_deferred deferred; /* first */
    struct block *before, *next;
    size_t at, bytes; /* in the range */
    block_state state;
} block;

/* What is mapped as one stands at its first granule; the others of it are only mapped. */
typedef struct granule {
    unsigned long long handle;
    uint32_t count;
    bool mapped;
} granule;

typedef struct tide_cuda_pages {
    tide_lock lock;
    tide_cu_page_properties properties; /* of what is mapped */
    tide_cu_address base;
    size_t bytes, granule, top; /* top: nothing from this granule on is mapped */
    granule *granules;
    block *first;
    size_t mapped, mapped_peak, used, used_peak;
} tide_cuda_pages;

static size_t pages_round(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

/* ---- what is mapped ----------------------------------------------------------------------- */

static tide_cu_address pages_address(const tide_cuda_pages *pages, size_t at)
{
    tide_assert(at <= pages->bytes);
    return pages->base + at;
}

/* Made, mapped and open to the device; or none of it. */
static tide_cu_result pages_map_chunk(const tide_cuda *cuda, size_t first, size_t count)
{
    tide_cuda_pages *pages = cuda->pages;
    const tide_cu_access access = {.location = {TIDE_CU_LOCATION_DEVICE, cuda->ordinal},
                                   .flags = TIDE_CU_ACCESS_READ_WRITE};
    const tide_cu_address address = pages_address(pages, first * pages->granule);
    const size_t bytes = count * pages->granule;
    unsigned long long handle = 0;
    tide_cu_result result = tide_cu.cuMemCreate(&handle, bytes, &pages->properties, 0);
    if (result != TIDE_CU_SUCCESS)
        return result;
    result = tide_cu.cuMemMap(address, bytes, 0, handle, 0);
    if (result == TIDE_CU_SUCCESS) {
        result = tide_cu.cuMemSetAccess(address, bytes, &access, 1);
        if (result != TIDE_CU_SUCCESS)
            (void)tide_cu.cuMemUnmap(address, bytes);
    }
    if (result != TIDE_CU_SUCCESS) {
        (void)tide_cu.cuMemRelease(handle);
        return result;
    }
    for (size_t i = 0; i < count; i++)
        pages->granules[first + i] = (granule){.mapped = true};
    pages->granules[first] = (granule){handle, (uint32_t)count, true};
    pages->top = first + count > pages->top ? first + count : pages->top;
    pages->mapped += bytes;
    pages->mapped_peak = pages->mapped > pages->mapped_peak ? pages->mapped : pages->mapped_peak;
    return TIDE_CU_SUCCESS;
}

/* Nothing uses it any more. */
static tide_cu_result pages_unmap_chunk(tide_cuda_pages *pages, size_t first)
{
    const granule chunk = pages->granules[first];
    const size_t bytes = chunk.count * pages->granule;
    tide_assert(chunk.count != 0 && chunk.mapped);
    tide_cu_result result = tide_cu.cuMemUnmap(pages_address(pages, first * pages->granule), bytes);
    if (result != TIDE_CU_SUCCESS)
        return result;
    for (size_t i = 0; i < chunk.count; i++)
        pages->granules[first + i] = (granule){.mapped = false};
    tide_assert(pages->mapped >= bytes);
    pages->mapped -= bytes;
    return tide_cu.cuMemRelease(chunk.handle);
}

/* Unmaps what lies whole in idle blocks, until no more than `keep` bytes are mapped and not in use. */
static tide_cu_result pages_unmap_idle(tide_cuda_pages *pages, size_t keep)
{
    tide_cu_result result = TIDE_CU_SUCCESS;
    for (const block *one = pages->first; one != NULL; one = one->next) {
        size_t end = (one->at + one->bytes) / pages->granule;
        end = end < pages->top ? end : pages->top;
        for (size_t i = pages_round(one->at, pages->granule) / pages->granule;
             one->state == IDLE && i < end && pages->mapped - pages->used > keep; i++) {
            const size_t count = pages->granules[i].count;
            if (count != 0 && i + count <= end && result == TIDE_CU_SUCCESS)
                result = pages_unmap_chunk(pages, i);
        }
    }
    return result;
}

/* All of a block that is taken. Where there is no more, what is free elsewhere is unmapped first. */
static tide_cu_result pages_map(const tide_cuda *cuda, size_t at, size_t bytes)
{
    tide_cuda_pages *pages = cuda->pages;
    const size_t end = pages_round(at + bytes, pages->granule) / pages->granule;
    tide_cu_result result = TIDE_CU_SUCCESS;
    for (size_t i = at / pages->granule, count; i < end && result == TIDE_CU_SUCCESS; i += count) {
        count = 1;
        if (pages->granules[i].mapped)
            continue;
        while (i + count < end && count < CHUNK_GRANULES && !pages->granules[i + count].mapped)
            count++;
        result = pages_map_chunk(cuda, i, count);
        if (result == TIDE_CU_OUT_OF_MEMORY && pages_unmap_idle(pages, 0) == TIDE_CU_SUCCESS)
            result = pages_map_chunk(cuda, i, count);
    }
    return result;
}

/* ---- blocks ------------------------------------------------------------------------------- */

/* The second part of the block, which ends where that begins. NULL: no memory for it. */
static block *pages_split(block *one, size_t bytes)
{
    tide_assert(bytes > 0 && bytes < one->bytes && one->state == IDLE);
    block *second = tide_os_resize(NULL, sizeof *second);
    if (second == NULL)
        return NULL;
    *second = (block){
        .before = one, .next = one->next, .at = one->at + bytes, .bytes = one->bytes - bytes};
    if (second->next != NULL)
        second->next->before = second;
    one->next = second;
    one->bytes = bytes;
    return second;
}

/* The block behind is a part of it from now on. */
static void pages_join(block *one)
{
    block *second = one->next;
    tide_assert(second->at == one->at + one->bytes);
    one->bytes += second->bytes;
    one->next = second->next;
    if (one->next != NULL)
        one->next->before = one;
    tide_os_free(second);
}

static void pages_make_idle(block *one)
{
    one->state = IDLE;
    if (one->next != NULL && one->next->state == IDLE)
        pages_join(one);
    if (one->before != NULL && one->before->state == IDLE)
        pages_join(one->before);
}

/* This part of an idle block. NULL: no memory to remember it. */
static block *pages_cut(block *from, size_t at, size_t bytes)
{
    block *one = at > from->at ? pages_split(from, at - from->at) : from;
    if (one == NULL)
        return NULL;
    if (one->bytes > bytes && pages_split(one, bytes) == NULL) {
        pages_make_idle(one);
        return NULL;
    }
    tide_assert(one->at == at && one->bytes == bytes);
    one->state = TAKEN;
    return one;
}

static block *pages_find(const tide_cuda_pages *pages, const void *data)
{
    const size_t at = (size_t)((tide_cu_address)(uintptr_t)data - pages->base);
    block *one = pages->first;
    while (one->at != at) {
        one = one->next;
        tide_assert(one != NULL);
    }
    tide_assert(one->state == TAKEN);
    return one;
}

/* ---- where a request goes ----------------------------------------------------------------- */

/* The place found so far: `missing` bytes of it are to be mapped, so many mapped ones are left over. */
typedef struct place {
    block *in;
    size_t at, missing, over;
} place;

static void pages_consider(const tide_cuda_pages *pages, block *in, size_t at, size_t mapped_end,
                           size_t bytes, size_t align, place *best)
{
    const size_t address = (size_t)pages->base + at, end = in->at + in->bytes;
    at += pages_round(address, align) - address;
    if (at > end || end - at < bytes)
        return;
    const size_t mapped = mapped_end > at ? mapped_end - at : 0;
    const size_t missing = mapped < bytes ? bytes - mapped : 0;
    const size_t over = mapped > bytes ? mapped - bytes : 0;
    if (best->in == NULL || missing < best->missing ||
        (missing == best->missing && over < best->over))
        *best = (place){in, at, missing, over};
}

/* Where nothing is mapped, as many addresses are left free behind the block before as it has: it may
 * grow. */
static size_t pages_leave_room(const tide_cuda_pages *pages, const block *in, size_t bytes)
{
    const size_t room = in->before != NULL ? pages_round(in->before->bytes, pages->granule) : 0;
    const bool large = bytes >= pages->granule && room > pages->granule;
    return large && room < in->bytes / 2 && bytes < in->bytes / 2 ? room : 0;
}

/* The beginning of an idle block, and of what is mapped in it. */
static void pages_search_block(const tide_cuda_pages *pages, block *in, size_t bytes, size_t align,
                               place *best)
{
    const size_t unit = pages->granule, end = in->at + in->bytes;
    size_t i = in->at / unit;
    if (i >= pages->top || !pages->granules[i].mapped)
        pages_consider(pages, in, in->at + pages_leave_room(pages, in, bytes), 0, bytes, align,
                       best);
    for (size_t next; i < pages->top && i * unit < end; i = next) {
        const bool mapped = pages->granules[i].mapped;
        for (next = i + 1; mapped && next < pages->top && pages->granules[next].mapped;)
            next++;
        const size_t at = i * unit > in->at ? i * unit : in->at, until = next * unit;
        if (mapped)
            pages_consider(pages, in, at, until < end ? until : end, bytes, align, best);
    }
}

static place pages_search(const tide_cuda_pages *pages, size_t bytes, size_t align)
{
    place best = {.in = NULL};
    for (block *one = pages->first; one != NULL; one = one->next)
        if (one->state == IDLE && one->bytes >= bytes)
            pages_search_block(pages, one, bytes, align, &best);
    return best;
}

/* ---- taken and given back ----------------------------------------------------------------- */

/* Work on it is over. In a forked child whoever had the lock may not be there. */
static void pages_go(tide_device *device, tide_deferred *deferred)
{
    tide_cuda_pages *pages = tide_cuda_of(device)->pages;
    block *one = (block *)(void *)deferred;
    if (tide_driver_forked(TIDE_DRIVER_CUDA))
        return;
    tide_lock_take(&pages->lock);
    tide_assert(one->state == LEAVING && pages->used >= one->bytes);
    pages->used -= one->bytes;
    pages_make_idle(one);
    tide_lock_let_go(&pages->lock);
}

static tide_status pages_status(tide_device *device, const char *entry, tide_cu_result result)
{
    return result == TIDE_CU_SUCCESS         ? TIDE_OK
           : result == TIDE_CU_OUT_OF_MEMORY ? TIDE_ERROR_MEMORY
                                             : tide_cuda_fail(device, entry, result);
}

static tide_cu_result pages_take(const tide_cuda *cuda, const place *found, size_t bytes,
                                 void **data)
{
    tide_cuda_pages *pages = cuda->pages;
    block *one = found->in != NULL ? pages_cut(found->in, found->at, bytes) : NULL;
    if (one == NULL)
        return TIDE_CU_OUT_OF_MEMORY;
    tide_cu_result result = pages_map(cuda, one->at, bytes);
    if (result != TIDE_CU_SUCCESS) {
        pages_make_idle(one);
        return result;
    }
    pages->used += bytes;
    pages->used_peak = pages->used > pages->used_peak ? pages->used : pages->used_peak;
    *data = (void *)(uintptr_t)pages_address(pages, one->at);
    return TIDE_CU_SUCCESS;
}

/* Before anything is mapped, what the device has come past serves again. */
tide_status tide_cuda_pages_take(tide_device *device, size_t bytes, size_t align, void **data)
{
    const tide_cuda *cuda = tide_cuda_of(device);
    tide_cuda_pages *pages = cuda->pages;
    tide_assert(bytes > 0 && data != NULL);
    if (bytes > pages->bytes)
        return TIDE_ERROR_MEMORY;
    bytes = pages_round(bytes, BLOCK_ALIGN);
    align = align > BLOCK_ALIGN ? align : BLOCK_ALIGN;
    tide_lock_take(&pages->lock);
    place found = pages_search(pages, bytes, align);
    if ((found.in == NULL || found.missing != 0) && tide_deferred_any(device)) {
        tide_lock_let_go(&pages->lock);
        tide_deferred_settle_of(device, pages_go);
        tide_lock_take(&pages->lock);
        found = pages_search(pages, bytes, align);
    }
    tide_cu_result result = pages_take(cuda, &found, bytes, data);
    tide_lock_let_go(&pages->lock);
    return pages_status(device, "cuMemMap", result);
}

void tide_cuda_pages_give(tide_device *device, void *stream, void *data)
{
    tide_cuda_pages *pages = tide_cuda_of(device)->pages;
    tide_lock_take(&pages->lock);
    block *one = pages_find(pages, data);
    one->state = LEAVING;
    tide_lock_let_go(&pages->lock);
    tide_deferred_put(device, stream, &one->deferred, pages_go);
}

/* By what lies behind the block, if that is idle. */
static tide_cu_result pages_extend(const tide_cuda *cuda, block *one, size_t bytes)
{
    if (bytes <= one->bytes)
        return TIDE_CU_SUCCESS;
    block *behind = one->next;
    const size_t more = bytes - one->bytes;
    if (behind == NULL || behind->state != IDLE || behind->bytes < more)
        return TIDE_CU_OUT_OF_MEMORY;
    void *data = NULL;
    tide_cu_result result = pages_take(cuda, &(place){.in = behind, .at = behind->at}, more, &data);
    if (result == TIDE_CU_SUCCESS)
        pages_join(one);
    return result;
}

tide_status tide_cuda_extend(tide_device *device, void *data, size_t bytes)
{
    const tide_cuda *cuda = tide_cuda_of(device);
    tide_cuda_pages *pages = cuda->pages;
    tide_cuda_entered entered;
    if (pages == NULL || bytes > pages->bytes)
        return TIDE_ERROR_MEMORY;
    TIDE_FORWARD(tide_cuda_enter(device, &entered));
    tide_lock_take(&pages->lock);
    tide_cu_result result =
        pages_extend(cuda, pages_find(pages, data), pages_round(bytes, BLOCK_ALIGN));
    tide_lock_let_go(&pages->lock);
    tide_cuda_leave(entered);
    return pages_status(device, "cuMemMap", result);
}

/* ---- all of it ---------------------------------------------------------------------------- */

tide_status tide_cuda_pages_trim(tide_device *device, size_t keep)
{
    tide_cuda_pages *pages = tide_cuda_of(device)->pages;
    tide_deferred_settle_of(device, pages_go);
    tide_lock_take(&pages->lock);
    tide_cu_result result = pages_unmap_idle(pages, keep);
    tide_lock_let_go(&pages->lock);
    return pages_status(device, "cuMemUnmap", result);
}

tide_reserved tide_cuda_pages_reserved(tide_device *device)
{
    tide_cuda_pages *pages = tide_cuda_of(device)->pages;
    tide_lock_take(&pages->lock);
    const tide_reserved out = {.known = true,
                               .reserved = pages->mapped,
                               .reserved_peak = pages->mapped_peak,
                               .used = pages->used,
                               .used_peak = pages->used_peak};
    tide_lock_let_go(&pages->lock);
    return out;
}

/* The range, with one idle block of all of it. */
static tide_status pages_reserve(tide_device *device, tide_cuda_pages *pages)
{
    int direct = 0, ordinal = tide_cuda_of(device)->ordinal;
    TIDE_CUDA_TRY(device, cuDeviceGetAttribute, &direct, TIDE_CU_DEVICE_DIRECT, ordinal);
    pages->properties = (tide_cu_page_properties){.allocation = TIDE_CU_ALLOCATION_PINNED,
                                                  .location = {TIDE_CU_LOCATION_DEVICE, ordinal},
                                                  .direct = direct != 0};
    TIDE_CUDA_TRY(device, cuMemGetAllocationGranularity, &pages->granule, &pages->properties, 0);
    tide_assert(pages->granule > 0 && pages->granule % BLOCK_ALIGN == 0);
    pages->bytes = pages_round(device->bytes, pages->granule) * RANGE_TIMES;
    const size_t table = pages->bytes / pages->granule * sizeof *pages->granules;
    pages->granules = tide_os_reserve(table);
    pages->first = pages->granules != NULL ? tide_os_resize(NULL, sizeof *pages->first) : NULL;
    if (pages->first == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, "tide_device_open", "no memory for device %s",
                         device->name);
    *pages->first = (block){.bytes = pages->bytes};
    TIDE_CUDA_TRY(device, cuMemAddressReserve, &pages->base, pages->bytes, pages->granule, 0, 0);
    return TIDE_OK;
}

static void pages_forget(tide_cuda_pages *pages)
{
    while (pages->first != NULL && pages->first->next != NULL)
        pages_join(pages->first);
    tide_os_free(pages->first);
    if (pages->granules != NULL)
        tide_os_unreserve(pages->granules, pages->bytes / pages->granule * sizeof *pages->granules);
    tide_lock_destroy(&pages->lock);
    tide_os_free(pages);
}

tide_status tide_cuda_pages_begin(tide_device *device)
{
    tide_cuda *cuda = tide_cuda_of(device);
    int able = 0;
    TIDE_CUDA_TRY(device, cuDeviceGetAttribute, &able, TIDE_CU_DEVICE_PAGES, cuda->ordinal);
    if (able == 0)
        return TIDE_OK;
    tide_cuda_pages *pages = tide_os_resize(NULL, sizeof *pages);
    if (pages == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, "tide_device_open", "no memory for device %s",
                         device->name);
    *pages = (tide_cuda_pages){.lock = TIDE_LOCK(TIDE_FORK_MEMORY)};
    tide_status status = pages_reserve(device, pages);
    if (status == TIDE_OK)
        cuda->pages = pages;
    else
        pages_forget(pages);
    return status;
}

/* What cannot be unmapped goes with the context. */
void tide_cuda_pages_end(tide_device *device, bool reachable)
{
    tide_cuda *cuda = tide_cuda_of(device);
    tide_cuda_pages *pages = cuda->pages;
    if (pages == NULL)
        return;
    for (size_t i = 0; reachable && i < pages->top; i++)
        if (pages->granules[i].count != 0)
            (void)pages_unmap_chunk(pages, i);
    if (reachable)
        (void)tide_cu.cuMemAddressFree(pages->base, pages->bytes);
    pages_forget(pages);
    cuda->pages = NULL;
}
