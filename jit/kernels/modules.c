/* SPDX-License-Identifier: MIT */
/* The kernels of each device: wanted, ordered, loaded.
 *
 * A device's kernels are a unit. A unit changes its state under the lock; the change to READY is
 * released, and frames acquire it. Slow work, and all that may reach the dynamic linker (drivers
 * load code with it), is done without the lock by the thread that has made the unit BUSY.
 *
 * The lock is held for moments only, and no other lock is taken under it. A thread that closes a
 * device waits while another has the unit BUSY: most programs end soon after, and a driver that is
 * torn down in the middle of a build crashes. It does not wait for ever: it may be in a destructor
 * of a module, under the linker's lock, for which the driver waits that builds. Then the thread
 * that has made the unit BUSY finds it LEAVING, and ends the device. So a close never fails because
 * of a build, and no device goes while something is built for it. */
#include "jit/kernels/modules.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "jit/kernels/cached.h"
#include "jit/kernels/launch.h"
#include "jit/kernels/source.h"
#include "jit/spec/spec.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/base/settings.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/device.h"

enum { TRIES = 3, CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };

/* In the number of each order for kernels; orders for sites are numbered from 1. */
static const uint64_t order_mark = UINT64_C(1) << 63;

typedef enum state {
    IDLE,    /* no frame has wanted the kernels yet            */
    WANTED,  /* to be looked for, ordered or built             */
    ORDERED, /* CUDA: with the stager                          */
    ARRIVED, /* CUDA: the file is here, to be loaded           */
    LEAVING, /* a close waited long enough while it was BUSY   */
    BUSY,    /* one thread works on it, without the lock       */
    READY,
    FAILED
} state;

_Static_assert(IDLE == 0 && WANTED < ORDERED && ORDERED < ARRIVED && ARRIVED < LEAVING &&
                   LEAVING < BUSY && BUSY < READY,
               "what is on its way lies between WANTED and BUSY");

typedef struct unit {
    struct unit *next;
    tide_device *device;
    state state;      /* atomic */
    bool leaving;     /* BUSY: then it is LEAVING next, whatever comes of the work */
    uintptr_t worker; /* the thread that made it BUSY last */
    tide_kernels_language language;
    tide_kernels_target target; /* CUDA */
    unsigned tries;
    uint64_t order;
    tide_kernels_file file; /* ARRIVED, and BUSY with it */
    void *module;           /* READY and LEAVING, as the next */
    void *kernels[TIDE_KERNEL_COUNT];
    char error[256];
} unit;

double tide_modules_patience_ms = 60000;

static tide_lock modules_lock = TIDE_LOCK(TIDE_FORK_MODULES);
static pthread_cond_t modules_changed;
static unit *modules_units; /* atomic; never freed, as devices are not */
static uint64_t modules_orders;

/* Written under the lock. */
static bool modules_ended;                /* the process ends; atomic */
static unsigned modules_builders;         /* calls of tide_modules_build that are at work    */
static bool modules_given_up;             /* at an end they were not waited for any longer   */
static _Thread_local uint8_t modules_own; /* of these calls, those of this thread */

static state modules_state_of(const unit *u)
{
    return __atomic_load_n(&u->state, __ATOMIC_ACQUIRE);
}

static void modules_move(unit *u, state to)
{
    __atomic_store_n(&u->state, to, __ATOMIC_RELEASE);
}

static bool modules_have_ended(void)
{
    return __atomic_load_n(&modules_ended, __ATOMIC_RELAXED);
}

static unit *modules_first(void)
{
    return __atomic_load_n(&modules_units, __ATOMIC_ACQUIRE);
}

/* ---- the lock, and fork --------------------------------------------------------------------- */

static void modules_before_fork(void)
{
    tide_lock_take(&modules_lock);
}

static void modules_after_fork(void)
{
    tide_lock_let_go(&modules_lock);
}

/* The stager and OpenCL's threads stay with the parent. What was ordered is wanted again; what
 * another thread was building has failed, and the child has no devices anyway. A thread that forks
 * while it builds, in a constructor of what the driver loads, goes on in the child. */
static void modules_in_child(void)
{
    tide_lock_make_condition(&modules_changed);
    __atomic_store_n(&modules_ended, false, __ATOMIC_RELAXED);
    modules_builders = modules_own;
    modules_given_up = false;
    for (unit *u = modules_units; u != NULL; u = u->next) {
        if (u->state == ORDERED)
            modules_move(u, WANTED);
        if (u->state != BUSY || u->worker == tide_os_thread())
            continue;
        modules_move(u, FAILED);
        u->leaving = false;
    }
    modules_after_fork();
}

static void modules_prepare(void)
{
    static const tide_fork_handlers handlers = {modules_before_fork, modules_after_fork,
                                                modules_in_child};
    tide_lock_make_condition(&modules_changed);
    tide_fork_register(TIDE_FORK_MODULES, &handlers);
}

void tide_modules_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, modules_prepare);
}

static void modules_take_lock(void)
{
    tide_modules_prepare();
    tide_lock_take(&modules_lock);
}

/* ---- units ---------------------------------------------------------------------------------- */

static unit *modules_find(const tide_device *device)
{
    unit *u = modules_first();
    while (u != NULL && u->device != device)
        u = u->next;
    return u;
}

/* Makes the unit BUSY if it is still in this state. Its device is open then, because a close makes
 * the unit IDLE first; or it was closed, and ends only with the unit (LEAVING). */
static bool modules_claim(unit *u, state from)
{
    tide_assert(from != BUSY && from != IDLE);
    modules_take_lock();
    bool ours = u->state == from;
    if (ours) {
        modules_move(u, BUSY);
        u->worker = tide_os_thread();
    }
    tide_lock_let_go(&modules_lock);
    return ours;
}

/* The thread that made the unit BUSY is done with it. */
static void modules_let_go(unit *u, state to)
{
    modules_take_lock();
    tide_assert(u->state == BUSY && to != BUSY && to != IDLE);
    modules_move(u, u->leaving ? LEAVING : to);
    pthread_cond_broadcast(&modules_changed);
    tide_lock_let_go(&modules_lock);
}

void (*tide_modules_wanted)(void);

/* ---- wanting -------------------------------------------------------------------------------- */

/* Under the lock. NULL when memory is short. */
static unit *modules_find_or_make(tide_device *device)
{
    unit *u = modules_find(device);
    if (u != NULL)
        return u;
    u = tide_os_resize(NULL, sizeof *u);
    if (u == NULL)
        return NULL;
    *u = (unit){.next = modules_units, .device = device};
    __atomic_store_n(&modules_units, u, __ATOMIC_RELEASE);
    return u;
}

/* A frame wants kernels: has whoever does the rounds started, once for each unit. */
static void modules_want(tide_device *device)
{
    tide_assert(tide_modules_wanted != NULL);
    modules_take_lock();
    unit *u = modules_find_or_make(device);
    bool ours = u != NULL && u->state == IDLE;
    if (ours) {
        tide_assert(u->module == NULL && u->file.bytes == NULL);
        u->language =
            device->dl.device_type == TIDE_DL_CUDA ? TIDE_KERNELS_CUDA : TIDE_KERNELS_OPENCL;
        u->tries = 0;
        u->error[0] = '\0';
        modules_move(u, WANTED);
    }
    tide_lock_let_go(&modules_lock);
    if (ours)
        tide_modules_wanted();
}

/* ---- failing -------------------------------------------------------------------------------- */

/* Says on stderr, once, that frames do without kernels. Not where the process ends: it is no fault
 * of the device that a call is refused then. */
static void modules_say_once(const unit *u)
{
    static bool said;
    char line[480];
    if (tide_device_exiting(u->device) || __atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
        return;
    int length = snprintf(line, sizeof line,
                          "tidepool: frames on %s are filled and copied array by array: %s\n",
                          u->device->name, u->error);
    tide_os_write_error(line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

static void modules_failed(unit *u, const char *why)
{
    snprintf(u->error, sizeof u->error, "%s", why);
    tide_assert(modules_state_of(u) == BUSY && u->module == NULL);
    modules_say_once(u); /* while it is BUSY, the device is there */
    modules_let_go(u, FAILED);
}

/* ---- the stager ----------------------------------------------------------------------------- */

/* In the driver. */
static bool modules_ask_target(unit *u)
{
    int major = 0, minor = 0, version = 0, of = tide_cuda_of(u->device)->ordinal;
    if (tide_cu.cuDeviceGetAttribute(&major, CAPABILITY_MAJOR, of) != TIDE_CU_SUCCESS ||
        tide_cu.cuDeviceGetAttribute(&minor, CAPABILITY_MINOR, of) != TIDE_CU_SUCCESS)
        return false;
    u->target.architecture = (unsigned)(major * 10 + minor);
    u->target.driver =
        tide_cu.cuDriverGetVersion(&version) == TIDE_CU_SUCCESS ? (unsigned)version : 0;
    return major > 0;
}

static tide_status modules_find_target(unit *u)
{
    int cancel;
    if (!tide_cuda_begin(&cancel))
        return tide_cuda_refuse(u->device->name);
    bool found = modules_ask_target(u);
    tide_cuda_end(cancel);
    return found ? TIDE_OK
                 : tide_fail(TIDE_ERROR_DEVICE, u->device->name,
                             "the driver does not tell its compute capability");
}

static void modules_submit(unit *u)
{
    char text[TIDE_SPEC_SITE_BYTES];
    tide_assert(u->language == TIDE_KERNELS_CUDA && u->target.architecture != 0);
    size_t bytes = tide_spec_write_head(text, sizeof text);
    tide_assert(bytes + TIDE_KERNELS_LINE <= sizeof text);
    tide_kernels_order_write(u->target, text + bytes);
    u->order = order_mark | ++modules_orders;
    u->tries++;
    if (tide_stager_submit(u->order, text, strlen(text)))
        modules_let_go(u, ORDERED);
    else if (u->tries < TRIES)
        modules_let_go(u, WANTED); /* the next round tries again */
    else
        modules_failed(u, "no memory for the order");
}

/* Takes the kernels from the cache, or orders them from the stager. */
static void modules_order_unit(unit *u)
{
    tide_assert(modules_state_of(u) == BUSY && u->file.bytes == NULL);
    if (modules_find_target(u) != TIDE_OK) {
        modules_failed(u, tide_error_message());
        return;
    }
    u->file = tide_kernels_cached_find(u->target);
    if (u->file.bytes != NULL)
        modules_let_go(u, ARRIVED);
    else
        modules_submit(u);
}

void tide_modules_order(void)
{
    for (unit *u = modules_first(); u != NULL && !modules_have_ended(); u = u->next)
        if (modules_state_of(u) == WANTED && u->language == TIDE_KERNELS_CUDA &&
            modules_claim(u, WANTED))
            modules_order_unit(u);
}

/* The stager has made a file: reads it, and caches it. */
static void modules_arrived(unit *u, const tide_stager_answer *answer)
{
    tide_assert(answer->result == TIDE_STAGER_OK && u->file.bytes == NULL);
    char error[256];
    u->file = tide_kernels_fetch(answer->path, u->target, error, sizeof error);
    if (u->file.bytes == NULL) {
        modules_failed(u, error);
        return;
    }
    tide_kernels_cached_store(u->target, &u->file);
    modules_let_go(u, ARRIVED);
}

/* An order whose stager was lost is sent again, up to TRIES times. A refusal, or no
 * stager, is final. */
static void modules_answered(unit *u, const tide_stager_answer *answer)
{
    bool lost = answer->result == TIDE_STAGER_LATE || answer->result == TIDE_STAGER_DIED ||
                answer->result == TIDE_STAGER_GARBAGE;
    if (answer->result == TIDE_STAGER_OK)
        modules_arrived(u, answer);
    else if (lost && u->tries < TRIES)
        modules_let_go(u, WANTED);
    else
        modules_failed(u, answer->error);
}

bool tide_modules_answer(const tide_stager_answer *answer)
{
    for (unit *u = modules_first(); u != NULL; u = u->next)
        if (modules_state_of(u) == ORDERED && u->order == answer->request &&
            modules_claim(u, ORDERED))
            modules_answered(u, answer);
    return (answer->request & order_mark) != 0;
}

/* Is a unit in one of these states? */
static bool modules_any_in(state from, state to)
{
    for (const unit *u = modules_first(); u != NULL; u = u->next)
        if (modules_state_of(u) >= from && modules_state_of(u) <= to)
            return true;
    return false;
}

bool tide_modules_ordered(void)
{
    return modules_any_in(ORDERED, ORDERED);
}

bool tide_modules_pending(void)
{
    return !modules_have_ended() && modules_any_in(WANTED, BUSY);
}

/* ---- loading -------------------------------------------------------------------------------- */

static bool modules_find_kernels(unit *u)
{
    bool all = true;
    tide_assert(u->module != NULL);
    for (tide_kernel kernel = 0; all && kernel < TIDE_KERNEL_COUNT; kernel++) {
        char name[32];
        tide_kernels_name(kernel, name, sizeof name);
        u->kernels[kernel] = u->device->methods->kernel(u->device, u->module, name);
        all = u->kernels[kernel] != NULL;
    }
    return all;
}

static void modules_drop_file(unit *u)
{
    tide_os_free(u->file.bytes);
    u->file = (tide_kernels_file){0};
}

/* Loads the unit's code, a cubin or a source, and makes the unit READY or FAILED. The unit has the
 * code while this thread is in the driver: a fork meanwhile would leave it to nobody. */
static void modules_load(unit *u, const char *options)
{
    const tide_device_methods *methods = u->device->methods;
    tide_assert(modules_state_of(u) == BUSY && u->module == NULL && u->file.code.bytes != 0);
    u->module = methods->load(u->device, u->file.code.code, u->file.code.bytes, options);
    modules_drop_file(u);
    if (u->module != NULL && modules_find_kernels(u)) {
        modules_let_go(u, READY);
        return;
    }
    char why[256];
    snprintf(why, sizeof why, "%s", tide_error_message());
    void *module = u->module;
    u->module = NULL; /* before the driver is called: somebody may fork, and close the device */
    if (module != NULL)
        methods->unload(u->device, module);
    modules_failed(u, why);
}

static void modules_build_source(unit *u)
{
    char *text = tide_os_resize(NULL, TIDE_KERNELS_SOURCE_BYTES);
    tide_assert(u->file.bytes == NULL);
    if (text == NULL) {
        modules_failed(u, "no memory for the source of its kernels");
        return;
    }
    u->file.bytes = text;
    u->file.code.code = text;
    u->file.code.bytes = tide_kernels_source(TIDE_KERNELS_OPENCL, text, TIDE_KERNELS_SOURCE_BYTES);
    modules_load(u, "-cl-std=CL1.2");
}

static void modules_build_unit(unit *u)
{
    state now = modules_state_of(u);
    if (now == WANTED && u->language == TIDE_KERNELS_OPENCL && modules_claim(u, WANTED))
        modules_build_source(u);
    else if (now == ARRIVED && modules_claim(u, ARRIVED))
        modules_load(u, NULL);
}

/* ---- closing -------------------------------------------------------------------------------- */

/* Of a device that is closed: no frame can want kernels for it any more, so the unit stays IDLE.
 * Under the lock. What is returned has to be unloaded. */
static void *modules_empty(unit *u)
{
    void *module = u->module;
    tide_assert(u->state != BUSY || u->leaving);
    modules_drop_file(u);
    u->module = NULL;
    u->leaving = false;
    modules_move(u, IDLE);
    return module;
}

/* Under the lock. False: another thread works on it still, or this one does, in whose driver
 * somebody closes the device. */
static bool modules_wait_for_work(const unit *u)
{
    struct timespec until = tide_lock_time_in(tide_modules_patience_ms);
    bool waits = u->worker != tide_os_thread();
    while (u->state == BUSY && waits)
        waits = tide_lock_wait_until(&modules_lock, &modules_changed, &until);
    return u->state != BUSY;
}

static bool modules_close_device(tide_device *device)
{
    void *module = NULL;
    modules_take_lock();
    unit *u = modules_find(device);
    bool busy = u != NULL && !modules_wait_for_work(u);
    if (busy)
        u->leaving = true;
    else if (u != NULL)
        module = modules_empty(u);
    tide_lock_let_go(&modules_lock);
    if (module != NULL)
        device->methods->unload(device, module);
    return !busy;
}

/* The device was closed while this thread, or one before it in this round, was at work for it. */
static void modules_end_device(unit *u)
{
    tide_device *device = u->device;
    modules_take_lock();
    void *module = modules_empty(u);
    tide_lock_let_go(&modules_lock);
    tide_outside outside = tide_outside_enter();
    if (module != NULL)
        device->methods->unload(device, module);
    tide_outside_leave(outside);
    tide_device_end(device);
}

/* ---- drivers, and the end of the process ---------------------------------------------------- */

/* False: the process ends, and this thread shall not go where it would have to be waited for. */
static bool modules_begin_building(void)
{
    modules_take_lock();
    bool begun = !modules_ended;
    tide_assert(modules_own < UINT8_MAX);
    modules_builders += begun;
    modules_own += begun;
    tide_lock_let_go(&modules_lock);
    return begun;
}

static void modules_end_building(void)
{
    modules_take_lock();
    tide_assert(modules_own > 0 && modules_builders >= modules_own);
    modules_builders--;
    modules_own--;
    pthread_cond_broadcast(&modules_changed);
    tide_lock_let_go(&modules_lock);
}

void tide_modules_build(void)
{
    if (!modules_any_in(WANTED, BUSY))
        return;
    TIDE_UNCANCELLED; /* it would be waited for */
    if (!modules_begin_building())
        return;
    for (unit *u = modules_first(); u != NULL; u = u->next) {
        if (!modules_have_ended()) /* while another was built */
            modules_build_unit(u);
        if (modules_state_of(u) == LEAVING && modules_claim(u, LEAVING))
            modules_end_device(u);
    }
    modules_end_building();
}

/* A driver may be waiting for the registry, since it loads code with sites. Who exits inside a driver
 * never returns there, and is not waited for by another thread that exits. */
void tide_modules_end(void)
{
    tide_registry_abandon();
    modules_take_lock();
    __atomic_store_n(&modules_ended, true, __ATOMIC_RELAXED);
    modules_builders -= modules_own;
    modules_own = 0;
    pthread_cond_broadcast(&modules_changed);
    struct timespec until = tide_lock_time_in(tide_modules_patience_ms);
    while (modules_builders != 0 && !modules_given_up)
        modules_given_up =
            !tide_lock_wait_until(&modules_lock, &modules_changed, &until) && modules_builders != 0;
    tide_lock_let_go(&modules_lock);
}

/* ---- using ---------------------------------------------------------------------------------- */

/* The runtime's hook. A frame that comes before its kernels are READY goes the plain way. */
static tide_frame_result modules_help(const tide_frame_work *work)
{
    if (tide_setting_get(TIDE_SETTING_frame_kernels) == 0)
        return TIDE_FRAME_ABSENT;
    const unit *u = modules_find(work->device);
    state now = u != NULL ? modules_state_of(u) : IDLE;
    if (now == IDLE)
        modules_want(work->device);
    if (now != READY || !tide_launch_possible(work))
        return TIDE_FRAME_ABSENT;
    return tide_launch(u->language, u->kernels, work) == TIDE_OK ? TIDE_FRAME_QUEUED
                                                                 : TIDE_FRAME_FAILED;
}

void tide_modules_attach(void)
{
    tide_hooks_policy.help = modules_help;
    tide_hooks_policy.close = modules_close_device;
    tide_hooks_policy.leave_drivers = tide_modules_end;
}

bool tide_modules_ready(const tide_device *device)
{
    const unit *u = modules_find(device);
    return u != NULL && modules_state_of(u) == READY;
}

void tide_modules_why(const tide_device *device, char *out, size_t room)
{
    const unit *u = modules_find(device);
    snprintf(out, room, "%s", u != NULL && modules_state_of(u) == FAILED ? u->error : "");
}
