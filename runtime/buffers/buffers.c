/* SPDX-License-Identifier: MIT */
/* The life of an instance of buffers: created, shared, held, aged, forked, destroyed. */
#include "runtime/buffers/buffers.h"

#include <stdio.h>
#include <string.h>

#include <tidepool/device.h>

#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/node.h"
#include "runtime/base/os.h"
#include "runtime/base/process.h"
#include "runtime/base/registry.h"
#include "runtime/base/ring.h"
#include "runtime/base/settings.h"
#include "runtime/buffers/store/address.h"
#include "runtime/buffers/store/depot.h"
#include "runtime/device/budget.h"
#include "runtime/device/deferred.h"

#define RECORDS_BYTES (TIDE_BUFFER_MAX * sizeof(tide_buffer_record))

/* ---- held ----------------------------------------------------------------------------------- */

tide_status tide_buffers_hold(tide_buffers *buffers, const char *call)
{
    tide_registry_lock();
    tide_buffers *known = tide_buffers_first();
    while (known != NULL && (known != buffers || known->ending))
        known = known->next;
    if (known != NULL)
        known->users++;
    tide_registry_unlock();
    return known != NULL
               ? TIDE_OK
               : tide_fail(TIDE_ERROR_ARGUMENT, call, "%p are no buffers", (void *)buffers);
}

void tide_buffers_hold_again(tide_buffers *buffers)
{
    tide_registry_lock();
    tide_assert(buffers->users > 0); /* the caller's hold */
    buffers->users++;
    tide_registry_unlock();
}

void tide_buffers_drop(tide_buffers *buffers)
{
    tide_registry_lock();
    tide_assert(buffers->users > 0);
    buffers->users--;
    tide_registry_unlock();
}

/* ---- fork ----------------------------------------------------------------------------------- */

/* The child finds every instance whole: nobody was in its depot or in a magazine. */
static void buffers_before_fork(void)
{
    for (tide_buffers *b = tide_buffers_first(); b != NULL; b = b->next) {
        tide_lock_take_with_others(&b->mutex);
        tide_magazines_stop(b);
    }
}

static void buffers_after_fork(void)
{
    for (tide_buffers *b = tide_buffers_first(); b != NULL; b = b->next) {
        tide_magazines_resume(b);
        tide_lock_let_go_with_others(&b->mutex);
    }
}

static void buffers_after_fork_in_child(void)
{
    for (tide_buffers *b = tide_buffers_first(); b != NULL; b = b->next) {
        tide_magazines_inherit(b);
        b->inherited = true;
        b->visitors = 0;
    }
    buffers_after_fork();
}

static const tide_fork_handlers buffers_around_fork = {.prepare = buffers_before_fork,
                                                       .parent = buffers_after_fork,
                                                       .child = buffers_after_fork_in_child};

/* ---- create --------------------------------------------------------------------------------- */

static tide_status buffers_validate_options(const tide_buffers_options *options)
{
    const char *call = "tide_buffers_create";
    TIDE_FORWARD(tide_growth_check(options->growth_, call));
    if (tide_buffer_key(options->flags) == TIDE_BUFFER_KEYS)
        return tide_buffer_refuse_flags(options->flags, call);
    return TIDE_OK;
}

static void buffers_set_bounds(tide_buffers *buffers, const tide_buffers_options *options)
{
    buffers->bytes_max = options->bytes_max != 0
                             ? options->bytes_max
                             : (size_t)(tide_setting_get(TIDE_SETTING_buffers_bytes) * 1048576);
    buffers->count_max = options->count_max != 0 ? options->count_max : TIDE_BUFFER_MAX;
    buffers->age_max = options->age_max != 0
                           ? options->age_max
                           : (uint32_t)tide_constant_get(TIDE_CONSTANT_buffers_age);
    if (options->kept) {
        buffers->bytes_max = SIZE_MAX;
        buffers->count_max = TIDE_BUFFER_MAX;
    } else if (tide_setting_get(TIDE_SETTING_disable) != 0) {
        buffers->count_max = 0; /* nothing is cached */
    }
}

static void buffers_set_options(tide_buffers *buffers, tide_device *device,
                                const tide_buffers_options *options)
{
    snprintf(buffers->name, sizeof buffers->name, "%s",
             options->name != NULL ? options->name : "buffers");
    buffers->flags = options->flags;
    buffers->key = tide_buffer_key(options->flags);
    buffers->copy = &tide_copy_own;
    buffers->device = device;
    buffers->stream = options->stream;
    buffers->hook = options->hook;
    buffers->user = options->user;
    buffers->immediate = device == &tide_device_host;
    buffers->careful = tide_setting_get(TIDE_SETTING_check) >= 1;
    buffers->kept = options->kept;
    buffers->quick =
        buffers->immediate && !buffers->careful && !buffers->kept && options->hook == NULL;
    buffers->record_free = TIDE_NO_RECORD;
    buffers->nodes = tide_nodes();
    tide_lock_create(&buffers->mutex, TIDE_FORK_BUFFERS);
    buffers_set_bounds(buffers, options);
}

static tide_status buffers_find_stream(tide_buffers *buffers)
{
    const char *call = "tide_buffers_create";
    return tide_device_find_stream(buffers->device, buffers->stream, call, &buffers->stream_number);
}

/* An instance that is in no list yet, and whose stream has not been checked. */
static tide_buffers *buffers_make(tide_device *device, const tide_buffers_options *options)
{
    tide_assert(tide_buffer_key(options->flags) < TIDE_BUFFER_KEYS);
    tide_buffers *buffers = tide_os_aligned(sizeof *buffers, 64);
    tide_buffer_record *records = buffers != NULL ? tide_os_reserve(RECORDS_BYTES) : NULL;
    if (records == NULL) {
        tide_fail(TIDE_ERROR_MEMORY, "tide_buffers_create", "no %zu bytes of address space",
                  (size_t)RECORDS_BYTES);
        tide_os_free(buffers);
        return NULL;
    }
    tide_assert((uintptr_t)records % sizeof *records == 0);
    memset(buffers, 0, sizeof *buffers);
    buffers->records = records;
    buffers_set_options(buffers, device, options);
    for (size_t i = 0; i < sizeof buffers->small; i++)
        buffers->small[i] = (uint8_t)tide_bucket_of(i * TIDE_BUCKET_MIN);
    _Static_assert(TIDE_BUCKETS <= UINT8_MAX, "a byte holds any bucket");
    return buffers;
}

static void buffers_unmake(tide_buffers *buffers)
{
    tide_assert(buffers->magazines == NULL);
    tide_assert(buffers->bytes_held == 0 || buffers->inherited);
    for (unsigned i = 0; i < TIDE_BUFFER_KEYS; i++) {
        for (unsigned b = 0; buffers->depot[i] != NULL && b < TIDE_BUCKETS * buffers->nodes; b++)
            tide_os_free(buffers->depot[i][b].slots);
        tide_os_free(buffers->depot[i]);
    }
    tide_os_unreserve(buffers->records, RECORDS_BYTES);
    tide_address_end(buffers);
    tide_lock_destroy(&buffers->mutex);
    tide_os_free(buffers);
}

void tide_buffers_prepare(void)
{
    tide_fork_register(TIDE_FORK_BUFFERS, &buffers_around_fork);
}

/* An instance that is in no list yet: nobody else knows it. The driver is asked, so the registry is
 * not locked. */
static tide_buffers *buffers_open(tide_device *device, const tide_buffers_options *options)
{
    if (tide_device_hold(device, "tide_buffers_create") != TIDE_OK)
        return NULL;
    tide_buffers *buffers = NULL;
    if (tide_hand_over_has(device, options->flags, "tide_buffers_create") == TIDE_OK)
        buffers = buffers_make(device, options);
    if (buffers != NULL && buffers_find_stream(buffers) != TIDE_OK) {
        buffers_unmake(buffers);
        buffers = NULL;
    }
    if (buffers == NULL)
        tide_device_drop(device);
    return buffers;
}

/* Gives back what buffers_open took, of an instance that is in no list (any more). */
static void buffers_close(tide_buffers *buffers)
{
    tide_device *device = buffers->device;
    buffers_unmake(buffers);
    tide_device_drop(device);
}

tide_buffers *tide_buffers_create(tide_device *device, const tide_buffers_options *options)
{
    const tide_buffers_options defaults = {0};
    options = options != NULL ? options : &defaults;
    tide_attach();
    if (buffers_validate_options(options) != TIDE_OK)
        return NULL;
    tide_buffers *buffers = buffers_open(device != NULL ? device : &tide_device_host, options);
    if (buffers == NULL)
        return NULL;
    tide_registry_lock();
    tide_buffers_enlist(buffers);
    tide_registry_unlock();
    TIDE_RINGS_CALL(made);
    return buffers;
}

/* ---- shared --------------------------------------------------------------------------------- */

/* Pinned memory belongs to a context, which devices may have in common; all other memory belongs to
 * one device. */
static bool buffers_shared_serves(const tide_buffers *buffers, tide_device *device, uint32_t kind)
{
    if (buffers->shares == 0 || buffers->shared_kind != kind || buffers->ending)
        return false;
    return buffers->device == device || (kind == TIDE_BUFFER_PINNED && device->context != NULL &&
                                         buffers->device->context == device->context);
}

/* The one of all who ask for it, now with one sharer more, or NULL. Registry locked. */
static tide_buffers *buffers_find_shared(tide_device *device, uint32_t kind)
{
    tide_buffers *buffers = tide_buffers_first();
    while (buffers != NULL && !buffers_shared_serves(buffers, device, kind))
        buffers = buffers->next;
    if (buffers != NULL)
        buffers->shares++;
    return buffers;
}

/* It becomes the shared one, unless another thread has been first: then that one's is. */
static tide_buffers *buffers_share(tide_buffers *buffers, uint32_t kind)
{
    tide_registry_lock();
    tide_buffers *shared = buffers_find_shared(buffers->device, kind);
    if (shared == NULL) {
        shared = buffers;
        buffers->shares = 1;
        buffers->shared_kind = kind;
        tide_buffers_enlist(buffers);
    }
    tide_registry_unlock();
    if (shared != buffers)
        buffers_close(buffers);
    return shared;
}

static tide_buffers *buffers_open_shared(tide_device *device, uint32_t kind)
{
    static const char *const kinds[] = {"", " pinned", " host", " managed", " ipc"};
    _Static_assert(sizeof kinds / sizeof *kinds == TIDE_BUFFER_KINDS, "each kind has a name");
    char name[sizeof((tide_buffers){0}.name)];
    snprintf(name, sizeof name, "%.20s%s", device->name, kinds[kind]);
    tide_buffers *buffers =
        buffers_open(device, &(tide_buffers_options){.name = name, .flags = kind});
    return buffers != NULL ? buffers_share(buffers, kind) : NULL;
}

tide_buffers *tide_buffers_shared(tide_device *device, uint32_t kind)
{
    const char *call = "tide_buffers_shared";
    device = device != NULL ? device : &tide_device_host;
    if (kind >= TIDE_BUFFER_KINDS) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "kind is %u, most is %d", kind, TIDE_BUFFER_KINDS - 1);
        return NULL;
    }
    tide_attach(); /* which asks the linker: before the registry is locked */
    if (tide_device_hold(device, call) != TIDE_OK)
        return NULL;
    tide_registry_lock();
    tide_buffers *buffers = buffers_find_shared(device, kind);
    tide_registry_unlock();
    if (buffers == NULL)
        buffers = buffers_open_shared(device, kind);
    tide_device_drop(device);
    return buffers;
}

/* ---- destroy -------------------------------------------------------------------------------- */

/* May the instance end? Registry locked. */
static tide_status buffers_check_unused(tide_buffers *buffers)
{
    const char *call = "tide_buffers_destroy";
    tide_buffers_statistics now;
    TIDE_FORWARD(tide_buffers_stats(buffers, &now, NULL, 0));
    if (buffers->users != 0)
        return tide_fail(TIDE_ERROR_STATE, call, "%u pools draw from '%s'", buffers->users,
                         buffers->name);
    if (now.live != 0)
        return tide_fail(TIDE_ERROR_STATE, call, "%zu buffers of '%s' are live", now.live,
                         buffers->name);
    return TIDE_OK;
}

/* What is cached goes back; then the instance goes. Registry not locked: hooks are called, here and
 * by those who visit it. It stays in the list until nobody is in it, so that a fork finds it
 * whole. */
static void buffers_end(tide_buffers *buffers)
{
    tide_assert(buffers->users == 0 && buffers->shares <= 1);
    tide_buffers_wait_for_visitors(buffers);
    tide_depot_trim(buffers, NULL, 0, true);
    tide_assert(buffers->bytes_held == 0 || buffers->inherited);
    tide_registry_lock();
    tide_buffers_delist(buffers);
    tide_lock_take(&buffers->mutex);
    tide_magazines_end(buffers);
    tide_lock_let_go(&buffers->mutex);
    tide_registry_unlock();
    buffers_close(buffers);
}

/* One sharer less. `last`: the instance is unused, and ends. */
static tide_status buffers_let_go(tide_buffers *buffers, bool *last)
{
    tide_status status = TIDE_OK;
    tide_registry_lock();
    *last = buffers->shares <= 1;
    if (*last)
        status = buffers_check_unused(buffers);
    else
        buffers->shares--;
    if (*last && status == TIDE_OK)
        __atomic_store_n(&buffers->ending, true, __ATOMIC_RELAXED);
    tide_registry_unlock();
    return status;
}

/* What is live, or draws, may be what waits for work on the device. */
tide_status tide_buffers_destroy(tide_buffers *buffers)
{
    if (buffers == NULL)
        return TIDE_OK;
    const char *call = "tide_buffers_destroy";
    TIDE_FORWARD(tide_buffers_of_ours(buffers, call));
    TIDE_FORWARD(tide_registry_admit(call)); /* it may have to wait for threads */
    TIDE_FORWARD(tide_buffers_visit_admit(buffers, call));
    bool last = false;
    tide_status status = buffers_let_go(buffers, &last);
    if (status == TIDE_ERROR_STATE && tide_deferred_settle(buffers->device, true))
        status = buffers_let_go(buffers, &last);
    if (last && status == TIDE_OK)
        buffers_end(buffers);
    return status;
}

/* ---- age ------------------------------------------------------------------------------------ */

typedef struct buffers_aging {
    bool quietly, cached;
} buffers_aging;

static void buffers_trim_aged(tide_buffers *buffers, void *user)
{
    buffers_aging *aging = user;
    bool quiet = tide_buffers_age_themselves(buffers);
    if (quiet || !aging->quietly)
        tide_depot_age(buffers);
    aging->cached |= quiet && __atomic_load_n(&buffers->watched, __ATOMIC_RELAXED);
}

bool tide_buffers_age(uint64_t rounds, bool quietly)
{
    buffers_aging aging = {.quietly = quietly};
    __atomic_fetch_add(&tide_buffers_ticks, rounds, __ATOMIC_RELAXED);
    tide_buffers_visit(buffers_trim_aged, &aging);
    return aging.cached;
}

static void buffers_trim_quietly(tide_buffers *buffers, void *user)
{
    (void)user;
    if (tide_buffers_age_themselves(buffers))
        (void)tide_depot_trim(buffers, NULL, 0, false);
}

void tide_buffers_trim_quietly(void)
{
    tide_buffers_visit(buffers_trim_quietly, NULL);
}

tide_trim_summary tide_buffers_trim(tide_buffers *buffers, uint32_t at_min)
{
    const char *call = "tide_buffers_trim";
    if (buffers == NULL)
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the buffers are NULL");
    if (buffers == NULL || tide_buffers_of_ours(buffers, call) != TIDE_OK)
        return (tide_trim_summary){0};
    tide_trim_summary summary = tide_depot_trim(buffers, NULL, at_min, false);
    if (summary.slots != 0)
        tide_budget_trimmed(buffers->device);
    return summary;
}
