/* SPDX-License-Identifier: MIT */
/* Memory of a CUDA device by the page: one range of addresses, in which physical memory is mapped where it is
 * needed and unmapped where it is free. So any free memory serves any request, what stands before
 * free addresses grows where it is, and a trim gives back what is free in the middle.
 *
 * The range is cut in units of the driver's granularity, and a block is some of them. What is smaller than
 * a unit is the driver's pool's. A block that is given back leaves behind its stream (deferred.h),
 * so nothing queued uses a unit that is not in use: it is ready for any stream, a captured one
 * too, and may be unmapped. The driver is called under the lock, which nobody takes around fork. */
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/deferred.h"

enum { RANGE_TIMES = 8 }; /* the device's memory: addresses cost nothing, and holes must be found */

#define NOWHERE SIZE_MAX

typedef struct unit {
    tide_deferred deferred; /* first; of the first unit of a block that leaves */
    unsigned long long handle;
    size_t count; /* of the first unit of a block: the units that it has */
    bool mapped, used;
} unit;

typedef struct tide_cuda_pages {
    tide_lock lock;
    tide_cu_page_properties properties; /* of what is mapped */
    tide_cu_address base;
    unit *units;
    size_t count, bytes; /* of units; of each of them */
    size_t top, last;    /* from this unit on nothing was ever used; the size of the block before */
    size_t mapped, mapped_peak, used, used_peak; /* units */
} tide_cuda_pages;

static size_t pages_units(const tide_cuda_pages *pages, size_t bytes)
{
    return bytes / pages->bytes + (bytes % pages->bytes != 0);
}

static tide_cu_address pages_address(const tide_cuda_pages *pages, size_t at)
{
    tide_assert(at < pages->count);
    return pages->base + at * pages->bytes;
}

/* ---- what is mapped ----------------------------------------------------------------------- */

/* Made, mapped and open to the device; or none of it. */
static tide_cu_result pages_map_unit(const tide_cuda *cuda, size_t at)
{
    tide_cuda_pages *pages = cuda->pages;
    const tide_cu_access access = {.location = {TIDE_CU_LOCATION_DEVICE, cuda->ordinal},
                                   .flags = TIDE_CU_ACCESS_READ_WRITE};
    const tide_cu_address address = pages_address(pages, at);
    unit *one = &pages->units[at];
    tide_assert(!one->mapped && one->used);
    tide_cu_result result = tide_cu.cuMemCreate(&one->handle, pages->bytes, &pages->properties, 0);
    if (result != TIDE_CU_SUCCESS)
        return result;
    result = tide_cu.cuMemMap(address, pages->bytes, 0, one->handle, 0);
    if (result == TIDE_CU_SUCCESS) {
        result = tide_cu.cuMemSetAccess(address, pages->bytes, &access, 1);
        if (result != TIDE_CU_SUCCESS)
            (void)tide_cu.cuMemUnmap(address, pages->bytes);
    }
    if (result != TIDE_CU_SUCCESS) {
        (void)tide_cu.cuMemRelease(one->handle);
        return result;
    }
    one->mapped = true;
    pages->mapped++;
    pages->mapped_peak = pages->mapped > pages->mapped_peak ? pages->mapped : pages->mapped_peak;
    return TIDE_CU_SUCCESS;
}

/* Nothing uses it any more. */
static tide_cu_result pages_unmap_unit(tide_cuda_pages *pages, size_t at)
{
    unit *one = &pages->units[at];
    tide_assert(one->mapped && pages->mapped > 0);
    tide_cu_result result = tide_cu.cuMemUnmap(pages_address(pages, at), pages->bytes);
    if (result != TIDE_CU_SUCCESS)
        return result;
    one->mapped = false;
    pages->mapped--;
    return tide_cu.cuMemRelease(one->handle);
}

/* Until no more than so many units are mapped and not in use. */
static tide_cu_result pages_unmap_unused(tide_cuda_pages *pages, size_t keep)
{
    tide_cu_result result = TIDE_CU_SUCCESS;
    for (size_t i = 0; i < pages->top && result == TIDE_CU_SUCCESS; i++)
        if (pages->units[i].mapped && !pages->units[i].used && pages->mapped > pages->used + keep)
            result = pages_unmap_unit(pages, i);
    return result;
}

/* Units that are in use. Where there is no more memory, what is free goes back first: here, and
 * that of the driver's pool. */
static tide_cu_result pages_map(const tide_cuda *cuda, size_t at, size_t count)
{
    tide_cu_result result = TIDE_CU_SUCCESS;
    for (size_t i = at; i < at + count && result == TIDE_CU_SUCCESS; i++) {
        if (cuda->pages->units[i].mapped)
            continue;
        result = pages_map_unit(cuda, i);
        if (result != TIDE_CU_OUT_OF_MEMORY)
            continue;
        if (cuda->pool != NULL)
            (void)tide_cu.cuMemPoolTrimTo(cuda->pool, 0);
        if (pages_unmap_unused(cuda->pages, 0) == TIDE_CU_SUCCESS)
            result = pages_map_unit(cuda, i);
    }
    return result;
}

/* ---- where a request goes ----------------------------------------------------------------- */

/* The first so many units in a row that are not in use; `mapped`: and have memory already. */
static size_t pages_find(const tide_cuda_pages *pages, size_t end, size_t count, bool mapped)
{
    size_t row = 0;
    for (size_t i = 0; i < end; i++) {
        const unit *one = &pages->units[i];
        row = !one->used && (one->mapped || !mapped) ? row + 1 : 0;
        if (row == count)
            return i + 1 - count;
        i += one->used ? one->count - 1 : 0;
    }
    return NOWHERE;
}

/* Where nothing was ever used, as many addresses are left free behind the block before as it has: it may
 * grow. */
static size_t pages_search(const tide_cuda_pages *pages, size_t count)
{
    size_t at = pages_find(pages, pages->top, count, true);
    if (at == NOWHERE)
        at = pages_find(pages, pages->top, count, false);
    if (at == NOWHERE && pages->top + pages->last + count <= pages->count)
        return pages->top + pages->last;
    return at != NOWHERE ? at : pages_find(pages, pages->count, count, false);
}

/* ---- taken and given back ----------------------------------------------------------------- */

static void pages_set_used(tide_cuda_pages *pages, size_t at, size_t count, bool used)
{
    for (size_t i = at; i < at + count; i++) {
        tide_assert(pages->units[i].used != used);
        pages->units[i].used = used;
    }
}

/* Work on it is over. In a forked child whoever had the lock may not be there. */
static void pages_go(tide_device *device, tide_deferred *deferred)
{
    tide_cuda_pages *pages = tide_cuda_of(device)->pages;
    const unit *first = (unit *)(void *)deferred;
    if (tide_driver_forked(TIDE_DRIVER_CUDA))
        return;
    tide_lock_take(&pages->lock);
    pages_set_used(pages, (size_t)(first - pages->units), first->count, false);
    pages->used -= first->count;
    tide_lock_let_go(&pages->lock);
}

static tide_status pages_status(tide_device *device, const char *entry, tide_cu_result result)
{
    return result == TIDE_CU_SUCCESS         ? TIDE_OK
           : result == TIDE_CU_OUT_OF_MEMORY ? TIDE_ERROR_MEMORY
                                             : tide_cuda_fail(device, entry, result);
}

/* These units, which nothing uses, with memory. */
static tide_cu_result pages_use(const tide_cuda *cuda, size_t at, size_t count)
{
    tide_cuda_pages *pages = cuda->pages;
    pages_set_used(pages, at, count, true);
    pages->last = at + count > pages->top ? count : pages->last;
    pages->top = at + count > pages->top ? at + count : pages->top;
    tide_cu_result result = pages_map(cuda, at, count);
    if (result != TIDE_CU_SUCCESS) {
        pages_set_used(pages, at, count, false);
        return result;
    }
    pages->used += count;
    pages->used_peak = pages->used > pages->used_peak ? pages->used : pages->used_peak;
    return TIDE_CU_SUCCESS;
}

bool tide_cuda_pages_serve(const tide_cuda *cuda, size_t bytes, size_t align)
{
    const tide_cuda_pages *pages = cuda->pages;
    return pages != NULL && bytes >= pages->bytes && align <= pages->bytes;
}

/* Before anything is mapped, what the device has come past serves again. */
tide_status tide_cuda_pages_take(tide_device *device, size_t bytes, void **data)
{
    const tide_cuda *cuda = tide_cuda_of(device);
    tide_cuda_pages *pages = cuda->pages;
    const size_t count = pages_units(pages, bytes);
    tide_lock_take(&pages->lock);
    if (tide_deferred_any(device) && pages_find(pages, pages->top, count, true) == NOWHERE) {
        tide_lock_let_go(&pages->lock);
        tide_deferred_settle_of(device, pages_go);
        tide_lock_take(&pages->lock);
    }
    const size_t at = pages_search(pages, count);
    tide_cu_result result = at != NOWHERE ? pages_use(cuda, at, count) : TIDE_CU_OUT_OF_MEMORY;
    if (result == TIDE_CU_SUCCESS) {
        pages->units[at].count = count;
        *data = (void *)(uintptr_t)pages_address(pages, at);
    }
    tide_lock_let_go(&pages->lock);
    return pages_status(device, "cuMemMap", result);
}

/* The first unit of the block; NULL: it is the driver's pool's. */
static unit *pages_block_of(const tide_cuda_pages *pages, const void *data)
{
    if (pages == NULL || (tide_cu_address)(uintptr_t)data < pages->base)
        return NULL;
    const size_t at = (size_t)((tide_cu_address)(uintptr_t)data - pages->base) / pages->bytes;
    tide_assert(at >= pages->count || pages->units[at].count > 0);
    return at < pages->count ? &pages->units[at] : NULL;
}

bool tide_cuda_pages_give(tide_device *device, void *stream, const void *data)
{
    unit *first = pages_block_of(tide_cuda_of(device)->pages, data);
    if (first != NULL)
        tide_deferred_put(device, stream, &first->deferred, pages_go);
    return first != NULL;
}

/* By what lies behind the block, if nothing uses that. */
static tide_cu_result pages_extend(const tide_cuda *cuda, unit *first, size_t count)
{
    const tide_cuda_pages *pages = cuda->pages;
    const size_t end = (size_t)(first - pages->units) + first->count;
    const size_t more = count > first->count ? count - first->count : 0;
    if (more > pages->count - end)
        return TIDE_CU_OUT_OF_MEMORY;
    for (size_t i = end; i < end + more; i++)
        if (pages->units[i].used)
            return TIDE_CU_OUT_OF_MEMORY;
    tide_cu_result result = pages_use(cuda, end, more);
    if (result == TIDE_CU_SUCCESS)
        first->count += more;
    return result;
}

tide_status tide_cuda_extend(tide_device *device, void *data, size_t bytes)
{
    const tide_cuda *cuda = tide_cuda_of(device);
    unit *first = pages_block_of(cuda->pages, data);
    tide_cuda_entered entered;
    if (first == NULL)
        return TIDE_ERROR_MEMORY;
    TIDE_FORWARD(tide_cuda_enter(device, &entered));
    tide_lock_take(&cuda->pages->lock);
    tide_cu_result result = pages_extend(cuda, first, pages_units(cuda->pages, bytes));
    tide_lock_let_go(&cuda->pages->lock);
    tide_cuda_leave(entered);
    return pages_status(device, "cuMemMap", result);
}

/* ---- all of it ---------------------------------------------------------------------------- */

tide_status tide_cuda_pages_trim(tide_device *device, size_t keep)
{
    tide_cuda_pages *pages = tide_cuda_of(device)->pages;
    if (pages == NULL)
        return TIDE_OK;
    tide_deferred_settle_of(device, pages_go);
    tide_lock_take(&pages->lock);
    tide_cu_result result = pages_unmap_unused(pages, keep / pages->bytes);
    tide_lock_let_go(&pages->lock);
    return pages_status(device, "cuMemUnmap", result);
}

void tide_cuda_pages_reserved(tide_device *device, tide_reserved *out)
{
    tide_cuda_pages *pages = tide_cuda_of(device)->pages;
    if (pages == NULL)
        return;
    tide_lock_take(&pages->lock);
    out->known = true;
    out->reserved += pages->mapped * pages->bytes;
    out->reserved_peak += pages->mapped_peak * pages->bytes;
    out->used += pages->used * pages->bytes;
    out->used_peak += pages->used_peak * pages->bytes;
    tide_lock_let_go(&pages->lock);
}

static tide_status pages_reserve(tide_device *device, tide_cuda_pages *pages)
{
    int direct = 0, ordinal = tide_cuda_of(device)->ordinal;
    TIDE_CUDA_TRY(device, cuDeviceGetAttribute, &direct, TIDE_CU_DEVICE_DIRECT, ordinal);
    pages->properties = (tide_cu_page_properties){.allocation = TIDE_CU_ALLOCATION_PINNED,
                                                  .location = {TIDE_CU_LOCATION_DEVICE, ordinal},
                                                  .direct = direct != 0};
    TIDE_CUDA_TRY(device, cuMemGetAllocationGranularity, &pages->bytes, &pages->properties, 0);
    tide_assert(pages->bytes > 0);
    pages->count = pages_units(pages, device->bytes) * RANGE_TIMES;
    pages->units = tide_os_reserve(pages->count * sizeof *pages->units);
    if (pages->units == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, "tide_device_open", "no memory for device %s",
                         device->name);
    TIDE_CUDA_TRY(device, cuMemAddressReserve, &pages->base, pages->count * pages->bytes,
                  pages->bytes, 0, 0);
    return TIDE_OK;
}

static void pages_forget(tide_cuda_pages *pages)
{
    if (pages->units != NULL)
        tide_os_unreserve(pages->units, pages->count * sizeof *pages->units);
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
        if (pages->units[i].mapped)
            (void)pages_unmap_unit(pages, i);
    if (reachable)
        (void)tide_cu.cuMemAddressFree(pages->base, pages->count * pages->bytes);
    pages_forget(pages);
    cuda->pages = NULL;
}
