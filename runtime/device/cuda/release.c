/* SPDX-License-Identifier: MIT */
/* Memory of a CUDA device on its way back: released on a stream, deferred while a graph is
 * captured, waited for where there is none, given back to the system.
 *
 * A device with memory pools releases in the order of a stream. The last release on each of some
 * streams is marked, and one mark stands for those of all other streams: who finds no memory waits
 * for these marks. A device without memory pools releases at once, so its memory leaves when a mark
 * behind its last use has been passed.
 *
 * What is deferred goes when its stream is next used, and is not captured. Streams are not asked
 * about otherwise: they may be gone. So a shortage, or a trim, waits for the device and takes it
 * all. */
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/device/cuda/cuda.h"

static tide_cu_address release_address(const void *data)
{
    return (tide_cu_address)(uintptr_t)data;
}

/* ---- kept for later ------------------------------------------------------------------------ */

static void release_keep_deferred(tide_cuda *cuda, tide_cuda_deferred *one)
{
    tide_assert(one->data != NULL);
    tide_lock_take(&cuda->lock);
    one->next = cuda->deferred;
    __atomic_store_n(&cuda->deferred, one, __ATOMIC_RELAXED);
    tide_lock_let_go(&cuda->lock);
}

/* Remembers memory that cannot go now. Without memory for that it is leaked. */
static void release_defer(tide_device *device, void *stream, void *data)
{
    uint64_t number = tide_cuda_stream_number(device, stream);
    tide_cuda_deferred *one = tide_os_resize(NULL, sizeof *one);
    if (one == NULL)
        return;
    *one = (tide_cuda_deferred){.number = number, .data = data};
    release_keep_deferred(tide_cuda_of(device), one);
}

/* ---- without memory pools ----------------------------------------------------------------- */

/* What work may use has been waited for. */
static bool release_plain(tide_device *device, const void *data)
{
    int mode = tide_cuda_relax();
    tide_cu_result result = tide_cu.cuMemFree(release_address(data));
    tide_cuda_relax_end(mode);
    if (result != TIDE_CU_SUCCESS)
        (void)tide_cuda_fail(device, "cuMemFree", result);
    return result == TIDE_CU_SUCCESS;
}

/* Its work is over. On a lost device nothing runs. */
static bool release_is_over(tide_device *device, const tide_cuda_leaving *one)
{
    return tide_cuda_mark_wait(device, one->mark) == TIDE_OK || tide_device_lost(device);
}

/* The memory goes. False: it cannot, and stays where it is. */
static bool release_end_leaving(tide_device *device, tide_cuda_leaving *one)
{
    tide_assert(one->mark != NULL && one->data != NULL);
    if (!release_is_over(device, one) || !release_plain(device, one->data))
        return false;
    tide_cuda_mark_drop(device, one->mark);
    tide_os_free(one);
    return true;
}

static void release_keep_leaving(tide_cuda *cuda, tide_cuda_leaving *one)
{
    tide_lock_take(&cuda->lock);
    one->next = cuda->leaving;
    cuda->leaving = one;
    tide_lock_let_go(&cuda->lock);
}

/* What has been passed goes; all of it if the host is to wait. True: something went. */
static bool release_settle_leaving(tide_device *device, tide_cuda_leaving *list, bool wait)
{
    bool any = false;
    for (tide_cuda_leaving *one = list, *next; one != NULL; one = next) {
        next = one->next;
        if ((wait || tide_cuda_mark_done(device, one->mark)) && release_end_leaving(device, one))
            any = true;
        else
            release_keep_leaving(tide_cuda_of(device), one);
    }
    return any;
}

/* Without memory or an event for that, the host waits. */
static bool release_later(tide_device *device, void *stream, void *data)
{
    tide_cuda_leaving *one = tide_os_resize(NULL, sizeof *one);
    void *mark = one != NULL ? tide_cuda_mark_make(device, stream) : NULL;
    if (mark == NULL) {
        tide_os_free(one);
        return tide_cuda_wait(device, stream) == TIDE_OK && release_plain(device, data);
    }
    *one = (tide_cuda_leaving){.data = data, .mark = mark};
    release_keep_leaving(tide_cuda_of(device), one);
    return true;
}

/* ---- with them ---------------------------------------------------------------------------- */

/* The stream's own place, or the next one to be used again. Lock held. */
static tide_cuda_released *release_place_of(tide_cuda *cuda, uint64_t number)
{
    for (size_t i = 0; i < TIDE_CUDA_RELEASED_MAX; i++)
        if (cuda->released[i].number == number)
            return &cuda->released[i];
    return &cuda->released[cuda->released_next++ % TIDE_CUDA_RELEASED_MAX];
}

/* A mark in the stream, behind what has been released there so far. */
static tide_cuda_released release_mark_stream(tide_device *device, void *stream, uint64_t number)
{
    tide_cuda *cuda = tide_cuda_of(device);
    tide_cuda_released now = {.number = number};
    now.ticket = __atomic_add_fetch(&cuda->released_tickets, 1, __ATOMIC_SEQ_CST);
    now.mark = tide_cuda_mark_make(device, stream);
    return now;
}

/* Into its stream's place, or that of the rest. Returns what is in no place any more: a mark of the
 * same stream is not needed, a mark of another still is. */
static tide_cuda_released release_put(tide_cuda *cuda, tide_cuda_released now, bool rest)
{
    tide_assert(now.mark != NULL);
    tide_lock_take(&cuda->lock);
    tide_cuda_released *place =
        rest ? &cuda->released[TIDE_CUDA_RELEASED_REST] : release_place_of(cuda, now.number);
    bool late = place->mark != NULL && place->number == now.number && place->ticket > now.ticket;
    tide_cuda_released left = late ? now : *place;
    if (!late)
        *place = now;
    tide_lock_let_go(&cuda->lock);
    return left;
}

/* What left its place is not forgotten: the service stream comes after it, and one mark there
 * stands for all that left. Where that fails the host waits. */
static void release_merge(tide_device *device, tide_cuda_released left)
{
    enum { SERVICE = 1 }; /* all marks of the rest are of one stream */
    tide_cuda *cuda = tide_cuda_of(device);
    bool over = tide_cuda_mark_done(device, left.mark);
    if (!over && tide_cuda_mark_follow(device, left.mark, cuda->service) == TIDE_OK) {
        tide_cuda_released now = release_mark_stream(device, cuda->service, SERVICE);
        over = now.mark != NULL;
        tide_cuda_released before = {0};
        if (over)
            before = release_put(cuda, now, true);
        if (before.mark != NULL)
            tide_cuda_mark_drop(device, before.mark);
    }
    if (!over)
        (void)tide_cuda_mark_wait(device, left.mark);
    tide_cuda_mark_drop(device, left.mark);
}

/* Marks the last release on the stream. Without an event nobody can wait for it. */
static void release_mark(tide_device *device, void *stream)
{
    tide_cuda_released now =
        release_mark_stream(device, stream, tide_cuda_stream_number(device, stream));
    if (now.mark == NULL)
        return;
    tide_cuda_released left = release_put(tide_cuda_of(device), now, false);
    if (left.mark != NULL && left.number == now.number)
        tide_cuda_mark_drop(device, left.mark);
    else if (left.mark != NULL)
        release_merge(device, left);
}

/* Behind the work that is queued on the stream. False: the driver refuses. */
static bool release_try(tide_device *device, void *stream, void *data)
{
    if (tide_cuda_of(device)->pool == NULL)
        return release_later(device, stream, data);
    tide_cu_result result = tide_cu.cuMemFreeAsync(release_address(data), stream);
    if (result == TIDE_CU_SUCCESS)
        release_mark(device, stream);
    else
        (void)tide_cuda_fail(device, "cuMemFreeAsync", result);
    return result == TIDE_CU_SUCCESS;
}

void tide_cuda_give_back(tide_device *device, void *stream, void *data)
{
    if (!release_try(device, stream, data))
        release_defer(device, stream, data);
}

/* ---- where there is no memory ------------------------------------------------------------- */

/* What a thread has in hand that was on its way back. */
typedef struct release_hand {
    tide_cuda_released released[TIDE_CUDA_RELEASED_MAX + 1];
    tide_cuda_leaving *leaving;
} release_hand;

/* Lock held. */
static bool release_is_any(const tide_cuda *cuda)
{
    bool any = cuda->leaving != NULL;
    for (size_t i = 0; i <= TIDE_CUDA_RELEASED_MAX && !any; i++)
        any = cuda->released[i].mark != NULL;
    return any;
}

/* Takes all of it. Where another thread has it in hand, that is waited for: it may put some back.
 * False: there is none, or a wait has ended that `seen` did not count. */
static bool release_take(tide_cuda *cuda, uint64_t seen, release_hand *hand)
{
    tide_lock_take(&cuda->lock);
    while (!release_is_any(cuda) && cuda->waiting != 0 && cuda->waits == seen)
        tide_lock_wait(&cuda->lock, &cuda->wait_over);
    bool any = release_is_any(cuda);
    if (any) {
        memcpy(hand->released, cuda->released, sizeof hand->released);
        memset(cuda->released, 0, sizeof cuda->released);
        hand->leaving = cuda->leaving;
        cuda->leaving = NULL;
        cuda->waiting++;
    }
    tide_lock_let_go(&cuda->lock);
    return any;
}

/* The thread has nothing in hand any more. `waited`: some of it is the driver's again. */
static void release_end_hand(tide_cuda *cuda, bool waited)
{
    tide_lock_take(&cuda->lock);
    tide_assert(cuda->waiting > 0);
    cuda->waiting--;
    cuda->waits += waited;
    pthread_cond_broadcast(&cuda->wait_over);
    tide_lock_let_go(&cuda->lock);
}

uint64_t tide_cuda_waits(tide_device *device)
{
    tide_cuda *cuda = tide_cuda_of(device);
    tide_lock_take(&cuda->lock);
    uint64_t waits = cuda->waits;
    tide_lock_let_go(&cuda->lock);
    return waits;
}

bool tide_cuda_wait_released(tide_device *device, uint64_t seen)
{
    tide_cuda *cuda = tide_cuda_of(device);
    release_hand hand;
    if (!release_take(cuda, seen, &hand))
        return tide_cuda_waits(device) != seen;
    bool waited = false;
    for (size_t i = 0; i <= TIDE_CUDA_RELEASED_MAX; i++) {
        if (hand.released[i].mark == NULL)
            continue;
        (void)tide_cuda_mark_wait(device, hand.released[i].mark);
        tide_cuda_mark_drop(device, hand.released[i].mark);
        waited = true;
    }
    waited = release_settle_leaving(device, hand.leaving, true) || waited;
    release_end_hand(cuda, waited);
    return waited;
}

/* What leaves and is over goes; nobody waits for the device. */
static void release_settle(tide_device *device)
{
    tide_cuda *cuda = tide_cuda_of(device);
    tide_lock_take(&cuda->lock);
    tide_cuda_leaving *leaving = cuda->leaving;
    cuda->leaving = NULL;
    cuda->waiting += leaving != NULL;
    tide_lock_let_go(&cuda->lock);
    if (leaving != NULL)
        release_end_hand(cuda, release_settle_leaving(device, leaving, false));
}

/* ---- deferred ----------------------------------------------------------------------------- */

/* Takes one that was given up on this stream; NULL: none. */
static tide_cuda_deferred *release_take_deferred(tide_cuda *cuda, uint64_t number)
{
    tide_lock_take(&cuda->lock);
    tide_cuda_deferred **place = &cuda->deferred, *one;
    while ((one = *place) != NULL && one->number != number)
        place = &one->next;
    if (one != NULL)
        __atomic_store_n(place, one->next, __ATOMIC_RELAXED);
    tide_lock_let_go(&cuda->lock);
    return one;
}

/* One that the driver refuses stays, and ends the search: the next may fare no better. */
void tide_cuda_release_deferred_on(tide_device *device, void *stream)
{
    tide_cuda *cuda = tide_cuda_of(device);
    if (cuda->pool == NULL)
        release_settle(device);
    if (__atomic_load_n(&cuda->deferred, __ATOMIC_RELAXED) == NULL)
        return;
    uint64_t number = tide_cuda_stream_number(device, stream);
    for (tide_cuda_deferred *one; (one = release_take_deferred(cuda, number)) != NULL;) {
        if (!release_try(device, stream, one->data)) {
            release_keep_deferred(cuda, one);
            return;
        }
        tide_os_free(one);
    }
}

/* Taken before the wait: what is deferred meanwhile is not covered by it. */
static tide_cuda_deferred *release_take_all_deferred(tide_cuda *cuda)
{
    if (__atomic_load_n(&cuda->deferred, __ATOMIC_RELAXED) == NULL)
        return NULL;
    tide_lock_take(&cuda->lock);
    tide_cuda_deferred *all = cuda->deferred;
    __atomic_store_n(&cuda->deferred, NULL, __ATOMIC_RELAXED);
    tide_lock_let_go(&cuda->lock);
    return all;
}

bool tide_cuda_wait_deferred(tide_device *device)
{
    tide_cuda *cuda = tide_cuda_of(device);
    tide_cuda_deferred *all = release_take_all_deferred(cuda), *next;
    bool idle = all != NULL && tide_cuda_wait_all(device) == TIDE_OK, any = false;
    for (tide_cuda_deferred *one = all; one != NULL; one = next) {
        next = one->next;
        if (idle && release_try(device, cuda->service, one->data)) {
            tide_os_free(one);
            any = true;
        } else {
            release_keep_deferred(cuda, one);
        }
    }
    return any && tide_cuda_wait_released(device, tide_cuda_waits(device));
}

/* ---- release ------------------------------------------------------------------------------ */

static void release_device(tide_device *device, void *stream, void *data)
{
    if (tide_cuda_capturing(device, stream)) {
        release_defer(device, stream, data);
        return;
    }
    tide_cuda_release_deferred_on(device, stream);
    tide_cuda_give_back(device, stream, data);
}

static void release_pinned(tide_device *device, void *data)
{
    int mode = tide_cuda_relax();
    tide_cu_result result = tide_cu.cuMemFreeHost(data);
    tide_cuda_relax_end(mode);
    if (result != TIDE_CU_SUCCESS)
        (void)tide_cuda_fail(device, "cuMemFreeHost", result);
}

void tide_cuda_release(tide_device *device, void *stream, int memory, void *data, size_t bytes)
{
    (void)bytes;
    tide_cuda_entered entered;
    tide_assert(data != NULL);
    tide_assert(memory >= TIDE_MEMORY_DEVICE && memory <= TIDE_MEMORY_IPC);
    if (tide_cuda_enter(device, &entered) != TIDE_OK)
        return; /* exiting, or lost: the memory stays the driver's */
    if (memory == TIDE_MEMORY_PINNED)
        release_pinned(device, data);
    else if (memory != TIDE_MEMORY_DEVICE)
        release_plain(device, data); /* what used it is over */
    else
        release_device(device, stream, data);
    tide_cuda_leave(entered);
    tide_device_count(&device->releases);
}

/* ---- the system --------------------------------------------------------------------------- */

tide_status tide_cuda_trim(tide_device *device, size_t keep, bool wait)
{
    tide_cu_pool pool = tide_cuda_of(device)->pool;
    tide_cuda_entered entered;
    TIDE_FORWARD(tide_cuda_enter(device, &entered));
    if (wait && !tide_cuda_wait_deferred(device))
        (void)tide_cuda_wait_released(device, tide_cuda_waits(device));
    int mode = tide_cuda_relax();
    tide_cu_result result = pool != NULL ? tide_cu.cuMemPoolTrimTo(pool, keep) : TIDE_CU_SUCCESS;
    tide_cuda_relax_end(mode);
    tide_cuda_leave(entered);
    return result == TIDE_CU_SUCCESS ? TIDE_OK : tide_cuda_fail(device, "cuMemPoolTrimTo", result);
}

tide_status tide_cuda_reserved(tide_device *device, tide_reserved *out)
{
    tide_cu_pool pool = tide_cuda_of(device)->pool;
    uint64_t values[TIDE_CU_POOL_USED_PEAK - TIDE_CU_POOL_RESERVED + 1] = {0};
    tide_cu_result result = TIDE_CU_SUCCESS;
    tide_cuda_entered entered;
    TIDE_FORWARD(tide_cuda_enter(device, &entered));
    for (int i = 0; pool != NULL && result == TIDE_CU_SUCCESS && i < 4; i++)
        result = tide_cu.cuMemPoolGetAttribute(pool, TIDE_CU_POOL_RESERVED + i, &values[i]);
    tide_cuda_leave(entered);
    if (result != TIDE_CU_SUCCESS)
        return tide_cuda_fail(device, "cuMemPoolGetAttribute", result);
    *out = (tide_reserved){.known = pool != NULL,
                           .pool = pool,
                           .reserved = values[0],
                           .reserved_peak = values[1],
                           .used = values[2],
                           .used_peak = values[3]};
    return TIDE_OK;
}

/* ---- end ---------------------------------------------------------------------------------- */

void tide_cuda_release_end(tide_device *device, bool reachable)
{
    tide_cuda *cuda = tide_cuda_of(device);
    for (size_t i = 0; i <= TIDE_CUDA_RELEASED_MAX; i++)
        if (cuda->released[i].mark != NULL)
            tide_cuda_mark_drop(device, cuda->released[i].mark);
    memset(cuda->released, 0, sizeof cuda->released);
    for (tide_cuda_leaving *one = cuda->leaving; one != NULL; one = cuda->leaving) {
        cuda->leaving = one->next;
        /* nobody asks again, and an error may pass */
        if (reachable && (release_is_over(device, one) || release_is_over(device, one)))
            (void)release_plain(device, one->data);
        tide_cuda_mark_drop(device, one->mark);
        tide_os_free(one);
    }
}

void tide_cuda_release_deferred(tide_device *device, bool reachable)
{
    tide_cuda *cuda = tide_cuda_of(device);
    for (tide_cuda_deferred *one = cuda->deferred; one != NULL; one = cuda->deferred) {
        cuda->deferred = one->next;
        tide_assert(one->data != NULL);
        if (reachable)
            (void)release_try(device, cuda->service, one->data);
        tide_os_free(one);
    }
}
