/* SPDX-License-Identifier: MIT */
/* Memory of a CUDA device by the page: one range of addresses, in which physical memory is mapped where it is
 * needed and unmapped where it is free. What that is good for: ../README.md.
 *
 * The range is cut in units of the driver's granularity, and a block is some of them, LEAST or more: of less
 * a unit that is not full would be too large a part, so that is the driver's pool's. Up to RUN units are
 * mapped by one call each of what maps, and unmapped together, when none of them is in use. A block that is given back
 * leaves behind its stream (deferred.h), so nothing queued uses a unit that is not in use: it is ready
 * for any stream, a captured one too, and may be unmapped.
 *
 * Under the lock units are claimed and let go of. Who has claimed them calls the driver for them without
 * it, so memory that is mapped is had meanwhile. One thread at a time maps or unmaps: it first gives back
 * what is free, so what the driver refuses it is not there. */
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/deferred.h"

enum {
    RANGE_TIMES = 8, /* the device's memory: addresses cost nothing, and holes must be found */
    LEAST = 8,
    RUN = 8
};

#define NOWHERE SIZE_MAX

typedef struct unit {
    tide_deferred deferred; /* first; of the first unit of a block that leaves */
    size_t count;           /* of the first of those claimed at once: how many; else 0 */
    size_t run;             /* of the first of those mapped at once: how many; else 0  */
    bool mapped, used;      /* used: claimed */
} unit;

typedef struct tide_cuda_pages {
    tide_lock driving;                  /* held while the driver maps or unmaps (lock.h, 3) */
    tide_lock lock;                     /* of all below; taken after the other              */
    tide_cu_page_properties properties; /* of what is mapped */
    tide_cu_address base;
    unit *units;
    size_t count, bytes;                         /* of units; of each of them */
    size_t top;                                  /* from this unit on nothing was ever used */
    size_t mapped, mapped_peak, used, used_peak; /* units; used: by blocks */
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

/* ---- claimed, and let go of: locked -------------------------------------------------------- */

static bool pages_is_unused(const tide_cuda_pages *pages, size_t at, size_t count)
{
    for (size_t i = at; i < at + count; i++)
        if (pages->units[i].used)
            return false;
    return true;
}

static void pages_set_used(tide_cuda_pages *pages, size_t at, size_t count, bool used)
{
    tide_assert(count > 0 && at + count <= pages->count);
    for (size_t i = at; i < at + count; i++) {
        tide_assert(pages->units[i].used != used);
        pages->units[i].used = used;
    }
    pages->units[at].count = used ? count : 0;
    pages->top = at + count > pages->top ? at + count : pages->top;
}

static void pages_let_go(tide_cuda_pages *pages, size_t at)
{
    pages_set_used(pages, at, pages->units[at].count, false);
}

/* ---- what is mapped ----------------------------------------------------------------------- */

static void pages_set_mapped(tide_cuda_pages *pages, size_t at, size_t count, bool mapped)
{
    tide_lock_take(&pages->lock);
    for (size_t i = at; i < at + count; i++) {
        tide_assert(pages->units[i].used && pages->units[i].mapped != mapped);
        pages->units[i].mapped = mapped;
    }
    pages->units[at].run = mapped ? count : 0;
    pages->mapped = mapped ? pages->mapped + count : pages->mapped - count;
    pages->mapped_peak = pages->mapped > pages->mapped_peak ? pages->mapped : pages->mapped_peak;
    tide_lock_let_go(&pages->lock);
}

/* Made, mapped and open to the device; or none of it. The mapping keeps the memory, so nobody keeps its
 * handle. */
static tide_cu_result pages_map_run(const tide_cuda *cuda, size_t at, size_t count)
{
    tide_cuda_pages *pages = cuda->pages;
    const tide_cu_access access = {.location = {TIDE_CU_LOCATION_DEVICE, cuda->ordinal},
                                   .flags = TIDE_CU_ACCESS_READ_WRITE};
    const tide_cu_address address = pages_address(pages, at);
    const size_t bytes = count * pages->bytes;
    unsigned long long handle = 0;
    tide_cu_result result = tide_cu.cuMemCreate(&handle, bytes, &pages->properties, 0);
    if (result != TIDE_CU_SUCCESS)
        return result;
    result = tide_cu.cuMemMap(address, bytes, 0, handle, 0);
    (void)tide_cu.cuMemRelease(handle);
    if (result != TIDE_CU_SUCCESS)
        return result;
    result = tide_cu.cuMemSetAccess(address, bytes, &access, 1);
    if (result == TIDE_CU_SUCCESS)
        pages_set_mapped(pages, at, count, true);
    else
        (void)tide_cu.cuMemUnmap(address, bytes);
    return result;
}

/* Claims the next run of which nothing is in use, if more units are mapped than blocks use, and so many. */
static size_t pages_claim_unused(tide_cuda_pages *pages, size_t from, size_t keep)
{
    const unit *units = pages->units;
    size_t at = from;
    tide_lock_take(&pages->lock);
    while (at < pages->top && (units[at].run == 0 || !pages_is_unused(pages, at, units[at].run)))
        at++;
    const bool found = at < pages->top && pages->mapped > pages->used + keep;
    if (found)
        pages_set_used(pages, at, units[at].run, true);
    tide_lock_let_go(&pages->lock);
    return found ? at : NOWHERE;
}

/* A run that is claimed. */
static tide_cu_result pages_unmap_run(tide_cuda_pages *pages, size_t at)
{
    const size_t run = pages->units[at].run;
    const tide_cu_result result = tide_cu.cuMemUnmap(pages_address(pages, at), run * pages->bytes);
    if (result == TIDE_CU_SUCCESS)
        pages_set_mapped(pages, at, run, false);
    return result;
}

/* Until no more than so many units are mapped and not in use. `driving` is held. */
static tide_cu_result pages_unmap_unused(tide_cuda_pages *pages, size_t keep)
{
    tide_cu_result result = TIDE_CU_SUCCESS;
    size_t at = 0;
    while (result == TIDE_CU_SUCCESS && (at = pages_claim_unused(pages, at, keep)) != NOWHERE) {
        result = pages_unmap_run(pages, at);
        tide_lock_take(&pages->lock);
        pages_let_go(pages, at);
        tide_lock_let_go(&pages->lock);
    }
    return result;
}

/* Units that are claimed. Where there is no more memory, what is free goes back first: here, and that of
 * the driver's pool. */
static tide_cu_result pages_map(const tide_cuda *cuda, size_t at, size_t count)
{
    const unit *units = cuda->pages->units;
    tide_cu_result result = TIDE_CU_SUCCESS;
    for (size_t i = at, run; i < at + count && result == TIDE_CU_SUCCESS; i += run) {
        for (run = 0; run < RUN && i + run < at + count && !units[i + run].mapped; run++) {
        }
        result = run != 0 ? pages_map_run(cuda, i, run) : TIDE_CU_SUCCESS;
        if (result == TIDE_CU_OUT_OF_MEMORY) {
            if (cuda->pool != NULL)
                (void)tide_cu.cuMemPoolTrimTo(cuda->pool, 0);
            if (pages_unmap_unused(cuda->pages, 0) == TIDE_CU_SUCCESS)
                result = pages_map_run(cuda, i, run);
        }
        run += run == 0; /* one that is mapped */
    }
    return result;
}

/* What was mapped of such units for nothing. */
static void pages_unmap_claimed(tide_cuda_pages *pages, size_t at, size_t count)
{
    const unit *units = pages->units;
    for (size_t i = at; i < at + count; i++)
        if (units[i].run != 0 && i + units[i].run <= at + count)
            (void)pages_unmap_run(pages, i);
}

/* ---- where a request goes: locked ---------------------------------------------------------- */

/* The first so many units in a row that are not in use; `mapped`: and have memory already. */
static size_t pages_find(const tide_cuda_pages *pages, size_t end, size_t count, bool mapped)
{
    size_t row = 0;
    for (size_t i = 0; i < end; i++) {
        const unit *one = &pages->units[i];
        tide_assert(!one->used || one->count > 0);
        row = !one->used && (one->mapped || !mapped) ? row + 1 : 0;
        if (row == count)
            return i + 1 - count;
        i += one->used ? one->count - 1 : 0;
    }
    return NOWHERE;
}

/* Of more than the device has nothing is mapped in vain. */
static bool pages_has(const tide_cuda_pages *pages, size_t count)
{
    const size_t all = pages->count / RANGE_TIMES;
    return pages->used <= all && count <= all - pages->used;
}

static size_t pages_search(const tide_cuda_pages *pages, size_t count)
{
    if (!pages_has(pages, count))
        return NOWHERE;
    const size_t at = pages_find(pages, pages->top, count, true);
    return at != NOWHERE ? at : pages_find(pages, pages->count, count, false);
}

/* ---- taken and given back ----------------------------------------------------------------- */

/* Work on it is over. In a forked child whoever had the lock may not be there. */
static void pages_go(tide_device *device, tide_deferred *deferred)
{
    tide_cuda_pages *pages = tide_cuda_of(device)->pages;
    const unit *first = (unit *)(void *)deferred;
    if (tide_driver_forked(TIDE_DRIVER_CUDA))
        return;
    tide_lock_take(&pages->lock);
    deferred->go = NULL;
    pages->used -= first->count;
    pages_let_go(pages, (size_t)(first - pages->units));
    tide_lock_let_go(&pages->lock);
}

static bool pages_is_mapped(const tide_cuda_pages *pages, size_t at, size_t count)
{
    for (size_t i = at; i < at + count; i++)
        if (!pages->units[i].mapped)
            return false;
    return true;
}

/* These units, which are claimed, with memory; else they are let go of, and what was mapped of them for
 * nothing goes back. */
static tide_cu_result pages_use(const tide_cuda *cuda, size_t at, size_t count)
{
    tide_cuda_pages *pages = cuda->pages;
    tide_cu_result result = TIDE_CU_SUCCESS;
    if (!pages_is_mapped(pages, at, count)) {
        tide_lock_take(&pages->driving);
        result = pages_map(cuda, at, count);
        if (result != TIDE_CU_SUCCESS)
            pages_unmap_claimed(pages, at, count);
        tide_lock_let_go(&pages->driving);
    }
    tide_lock_take(&pages->lock);
    if (result == TIDE_CU_SUCCESS)
        pages->used += count;
    else
        pages_let_go(pages, at);
    pages->used_peak = pages->used > pages->used_peak ? pages->used : pages->used_peak;
    tide_lock_let_go(&pages->lock);
    return result;
}

bool tide_cuda_pages_serve(const tide_cuda *cuda, size_t bytes, size_t align)
{
    const tide_cuda_pages *pages = cuda->pages;
    return pages != NULL && bytes >= LEAST * pages->bytes && align <= pages->bytes;
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
    if (at != NOWHERE)
        pages_set_used(pages, at, count, true);
    tide_lock_let_go(&pages->lock);
    const tide_cu_result result =
        at != NOWHERE ? pages_use(cuda, at, count) : TIDE_CU_OUT_OF_MEMORY;
    if (result == TIDE_CU_SUCCESS)
        *data = (void *)(uintptr_t)pages_address(pages, at);
    return tide_cuda_check_memory(device, "cuMemMap", result);
}

/* The first unit of the block; NULL: it is the driver's pool's. */
static unit *pages_block_of(const tide_cuda_pages *pages, const void *data)
{
    if (pages == NULL || (tide_cu_address)(uintptr_t)data < pages->base)
        return NULL;
    const size_t offset = (size_t)((tide_cu_address)(uintptr_t)data - pages->base);
    if (offset / pages->bytes >= pages->count)
        return NULL;
    unit *first = &pages->units[offset / pages->bytes];
    tide_assert(offset % pages->bytes == 0 && first->used && first->count >= LEAST);
    tide_assert(first->deferred.go == NULL); /* else it was given back already */
    return first;
}

bool tide_cuda_pages_give(tide_device *device, void *stream, const void *data)
{
    unit *first = pages_block_of(tide_cuda_of(device)->pages, data);
    if (first != NULL)
        tide_deferred_put(device, stream, &first->deferred, pages_go);
    return first != NULL;
}

/* Claims what lies behind the block, if nothing uses that. */
static bool pages_claim_behind(tide_cuda_pages *pages, const unit *first, size_t more)
{
    const size_t end = (size_t)(first - pages->units) + first->count;
    tide_lock_take(&pages->lock);
    const bool found =
        pages_has(pages, more) && more <= pages->count - end && pages_is_unused(pages, end, more);
    if (found)
        pages_set_used(pages, end, more, true);
    tide_lock_let_go(&pages->lock);
    return found;
}

static tide_cu_result pages_extend(const tide_cuda *cuda, unit *first, size_t count)
{
    tide_cuda_pages *pages = cuda->pages;
    const size_t end = (size_t)(first - pages->units) + first->count;
    if (count <= first->count)
        return TIDE_CU_SUCCESS;
    const size_t more = count - first->count;
    const tide_cu_result result =
        pages_claim_behind(pages, first, more) ? pages_use(cuda, end, more) : TIDE_CU_OUT_OF_MEMORY;
    if (result != TIDE_CU_SUCCESS)
        return result;
    tide_lock_take(&pages->lock);
    pages->units[end].count = 0;
    first->count = count;
    tide_lock_let_go(&pages->lock);
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
    const tide_cu_result result = pages_extend(cuda, first, pages_units(cuda->pages, bytes));
    return tide_cuda_left(entered, tide_cuda_check_memory(device, "cuMemMap", result));
}

/* ---- all of it ---------------------------------------------------------------------------- */

tide_status tide_cuda_pages_trim(tide_device *device, size_t keep)
{
    tide_cuda_pages *pages = tide_cuda_of(device)->pages;
    if (pages == NULL)
        return TIDE_OK;
    tide_deferred_settle_of(device, pages_go);
    tide_lock_take(&pages->lock);
    const bool any = pages->mapped > pages->used + keep / pages->bytes;
    tide_lock_let_go(&pages->lock);
    if (!any)
        return TIDE_OK;
    tide_lock_take(&pages->driving);
    const tide_cu_result result = pages_unmap_unused(pages, keep / pages->bytes);
    tide_lock_let_go(&pages->driving);
    return tide_cuda_check_memory(device, "cuMemUnmap", result);
}

static size_t pages_most(size_t one, size_t other)
{
    return one > other ? one : other;
}

/* The pool and the pages had their peaks at different times: what is told is had at least. */
void tide_cuda_pages_reserved(tide_device *device, tide_reserved *out)
{
    tide_cuda_pages *pages = tide_cuda_of(device)->pages;
    if (pages == NULL)
        return;
    tide_lock_take(&pages->lock);
    out->known = true;
    out->reserved += pages->mapped * pages->bytes;
    out->used += pages->used * pages->bytes;
    out->reserved_peak = pages_most(pages_most(out->reserved_peak, out->reserved),
                                    pages->mapped_peak * pages->bytes);
    out->used_peak =
        pages_most(pages_most(out->used_peak, out->used), pages->used_peak * pages->bytes);
    tide_lock_let_go(&pages->lock);
}

static tide_status pages_reserve(tide_device *device, tide_cuda_pages *pages)
{
    int direct = 0, files = 0, ordinal = tide_cuda_of(device)->ordinal;
    TIDE_CUDA_TRY(device, cuDeviceGetAttribute, &direct, TIDE_CU_DEVICE_DIRECT, ordinal);
    TIDE_CUDA_TRY(device, cuDeviceGetAttribute, &files, TIDE_CU_DEVICE_FILES, ordinal);
    pages->properties = (tide_cu_page_properties){.allocation = TIDE_CU_ALLOCATION_PINNED,
                                                  .handles = files != 0 ? TIDE_CU_HANDLE_FILE : 0,
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
    tide_lock_destroy(&pages->driving);
    tide_os_free(pages);
}

/* Where there is no range to be had the driver's pool has all memory, as where the device cannot map. */
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
    *pages = (tide_cuda_pages){.lock = TIDE_LOCK(TIDE_FORK_MEMORY),
                               .driving = TIDE_LOCK(TIDE_FORK_PAGES)};
    tide_failure why;
    tide_failure_keep(&why);
    tide_status status = pages_reserve(device, pages);
    if (status == TIDE_OK) {
        cuda->pages = pages;
        return status;
    }
    pages_forget(pages);
    if (tide_device_lost(device))
        return status;
    tide_failure_restore(&why);
    return TIDE_OK;
}

/* What cannot be unmapped goes with the context. */
void tide_cuda_pages_end(tide_device *device, bool reachable)
{
    tide_cuda *cuda = tide_cuda_of(device);
    tide_cuda_pages *pages = cuda->pages;
    if (pages == NULL)
        return;
    for (size_t i = 0; reachable && i < pages->top; i++)
        if (pages->units[i].run != 0)
            (void)tide_cu.cuMemUnmap(pages_address(pages, i), pages->units[i].run * pages->bytes);
    if (reachable)
        (void)tide_cu.cuMemAddressFree(pages->base, pages->count * pages->bytes);
    pages_forget(pages);
    cuda->pages = NULL;
}
