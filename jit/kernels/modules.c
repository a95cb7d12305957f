/* SPDX-License-Identifier: MIT */
/* A device's kernels move through the states of `state` under the lock; the step that others rely
 * on, to READY, is released and acquired. What takes long, and whatever may reach the dynamic
 * linker (drivers load code with it), is done without the lock, by whoever has made the unit BUSY.
 *
 * The lock is held for moments only, and no other is taken under it. Who closes a device has the
 * lock of that, not the registry's, and waits while the unit is BUSY: so a build does not refuse a
 * close, and no device goes while something is built for it. */
#include "jit/kernels/modules.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "jit/kernels/cached.h"
#include "jit/kernels/source.h"
#include "jit/kernels/table.h"
#include "jit/spec/spec.h"
#include "runtime/base/assert.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/device.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/settings.h"

enum { TRIES = 3, CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };

/* Orders of sites are numbered from 1. */
static const uint64_t order_mark = UINT64_C(1) << 63;

typedef enum state {
    IDLE,    /* nobody has wanted them                         */
    WANTED,  /* to be looked for, ordered or built             */
    ORDERED, /* CUDA: with the stager                          */
    ARRIVED, /* CUDA: the file is here, to be loaded           */
    BUSY,    /* somebody is about it, without the lock         */
    READY,
    FAILED
} state;

typedef struct unit {
    struct unit *next;
    tide_device *device;
    state state; /* atomic */
    tide_kernels_language language;
    unsigned architecture, tries;
    uint64_t order;
    tide_kernels_file file; /* ARRIVED */
    void *module;           /* READY, as the next */
    void *kernels[TIDE_KERNEL_COUNT];
    char error[256];
} unit;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_busy = PTHREAD_COND_INITIALIZER;
static unit *units; /* atomic; never freed, as devices are not */
static uint64_t orders;

static state state_of(const unit *u)
{
    return __atomic_load_n(&u->state, __ATOMIC_ACQUIRE);
}

static void move(unit *u, state to)
{
    __atomic_store_n(&u->state, to, __ATOMIC_RELEASE);
}

static unit *first(void)
{
    return __atomic_load_n(&units, __ATOMIC_ACQUIRE);
}

static unit *find(const tide_device *device)
{
    unit *u = first();
    while (u != NULL && u->device != device)
        u = u->next;
    return u;
}

/* Takes a unit in hand, if it is still in this state. (Its device is there, then: closing makes it
 * IDLE before.) */
static bool claim(unit *u, state from)
{
    pthread_mutex_lock(&mutex);
    bool ours = u->state == from;
    if (ours)
        move(u, BUSY);
    pthread_mutex_unlock(&mutex);
    return ours;
}

static void let_go(unit *u, state to)
{
    pthread_mutex_lock(&mutex);
    move(u, to);
    pthread_cond_broadcast(&not_busy);
    pthread_mutex_unlock(&mutex);
}

void (*tide_modules_wanted)(void);

/* ---- wanting -------------------------------------------------------------------------------- */

/* Locked. */
static unit *find_or_make(tide_device *device)
{
    unit *u = find(device);
    if (u != NULL)
        return u;
    u = tide_os_resize(NULL, sizeof *u);
    if (u == NULL)
        return NULL;
    *u = (unit){.next = units, .device = device};
    __atomic_store_n(&units, u, __ATOMIC_RELEASE);
    return u;
}

static void want(tide_device *device)
{
    pthread_mutex_lock(&mutex);
    unit *u = find_or_make(device);
    bool ours = u != NULL && u->state == IDLE;
    if (ours) {
        u->language =
            device->dl.device_type == TIDE_DL_CUDA ? TIDE_KERNELS_CUDA : TIDE_KERNELS_OPENCL;
        u->tries = 0;
        u->error[0] = '\0';
        move(u, WANTED);
    }
    pthread_mutex_unlock(&mutex);
    if (ours)
        tide_modules_wanted();
}

/* ---- failing -------------------------------------------------------------------------------- */

/* What the program does without is said once. */
static void say_once(const unit *u)
{
    static bool said;
    char line[480];
    if (__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
        return;
    int length = snprintf(line, sizeof line,
                          "tidepool: frames on %s are filled and copied array by array: %s\n",
                          u->device->name, u->error);
    tide_os_write_error(line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

static void failed(unit *u, const char *why)
{
    snprintf(u->error, sizeof u->error, "%s", why);
    say_once(u); /* as long as it is BUSY: the device is there */
    let_go(u, FAILED);
}

/* ---- the stager ----------------------------------------------------------------------------- */

static bool find_architecture(unit *u)
{
    int major = 0, minor = 0, of = tide_cuda_of(u->device)->ordinal;
    if (tide_cu.cuDeviceGetAttribute(&major, CAPABILITY_MAJOR, of) != TIDE_CU_SUCCESS ||
        tide_cu.cuDeviceGetAttribute(&minor, CAPABILITY_MINOR, of) != TIDE_CU_SUCCESS)
        return false;
    u->architecture = (unsigned)(major * 10 + minor);
    return major > 0;
}

static void submit(unit *u)
{
    char text[TIDE_SPEC_SITE_BYTES];
    size_t bytes = tide_spec_write_head(text, sizeof text);
    tide_kernels_order_write(u->architecture, text + bytes);
    u->order = order_mark | ++orders;
    u->tries++;
    tide_stager_submit(u->order, text, strlen(text));
    let_go(u, ORDERED);
}

static void order(unit *u)
{
    if (!find_architecture(u)) {
        failed(u, "the driver does not tell its compute capability");
        return;
    }
    u->file = tide_kernels_kept(u->architecture);
    if (u->file.bytes != NULL)
        let_go(u, ARRIVED);
    else
        submit(u);
}

void tide_modules_order(void)
{
    for (unit *u = first(); u != NULL; u = u->next)
        if (state_of(u) == WANTED && u->language == TIDE_KERNELS_CUDA && claim(u, WANTED))
            order(u);
}

static void arrived(unit *u, const tide_stager_answer *answer)
{
    char error[256];
    u->file = tide_kernels_fetch(answer->path, u->architecture, error, sizeof error);
    if (u->file.bytes == NULL) {
        failed(u, error);
        return;
    }
    tide_kernels_keep(u->architecture, &u->file);
    let_go(u, ARRIVED);
}

/* A stager that was lost may do better the next time; one that says no, or is not there, will not.
 */
static void answered(unit *u, const tide_stager_answer *answer)
{
    bool lost = answer->result == TIDE_STAGER_LATE || answer->result == TIDE_STAGER_DIED ||
                answer->result == TIDE_STAGER_GARBAGE;
    if (answer->result == TIDE_STAGER_OK)
        arrived(u, answer);
    else if (lost && u->tries < TRIES)
        let_go(u, WANTED);
    else
        failed(u, answer->error);
}

bool tide_modules_answer(const tide_stager_answer *answer)
{
    for (unit *u = first(); u != NULL; u = u->next)
        if (state_of(u) == ORDERED && u->order == answer->order && claim(u, ORDERED))
            answered(u, answer);
    return (answer->order & order_mark) != 0;
}

static bool any(state from, state to)
{
    for (const unit *u = first(); u != NULL; u = u->next)
        if (state_of(u) >= from && state_of(u) <= to)
            return true;
    return false;
}

bool tide_modules_ordered(void)
{
    return any(ORDERED, ORDERED);
}

bool tide_modules_pending(void)
{
    return any(WANTED, BUSY);
}

/* ---- loading -------------------------------------------------------------------------------- */

static bool find_kernels(unit *u)
{
    bool all = true;
    for (tide_kernel kernel = 0; all && kernel < TIDE_KERNEL_COUNT; kernel++) {
        char name[32];
        tide_kernels_name(kernel, name, sizeof name);
        u->kernels[kernel] = u->device->methods->kernel(u->device, u->module, name);
        all = u->kernels[kernel] != NULL;
    }
    return all;
}

static void load(unit *u, const char *code, size_t bytes, const char *options)
{
    const tide_device_methods *methods = u->device->methods;
    u->module = methods->load(u->device, code, bytes, options);
    if (u->module != NULL && find_kernels(u)) {
        let_go(u, READY);
        return;
    }
    char why[256];
    snprintf(why, sizeof why, "%s", tide_error_message());
    if (u->module != NULL)
        methods->unload(u->device, u->module);
    u->module = NULL;
    failed(u, why);
}

static void build_source(unit *u)
{
    char *text = tide_os_resize(NULL, TIDE_KERNELS_SOURCE_BYTES);
    if (text == NULL) {
        failed(u, "no memory for the source of its kernels");
        return;
    }
    size_t bytes = tide_kernels_source(TIDE_KERNELS_OPENCL, text, TIDE_KERNELS_SOURCE_BYTES);
    load(u, text, bytes, "-cl-std=CL1.2");
    tide_os_free(text);
}

static void load_file(unit *u)
{
    tide_kernels_file file = u->file;
    u->file.bytes = NULL;
    load(u, file.code.code, file.code.bytes, NULL);
    tide_os_free(file.bytes);
}

void tide_modules_build(void)
{
    for (unit *u = first(); u != NULL; u = u->next) {
        state now = state_of(u);
        if (now == WANTED && u->language == TIDE_KERNELS_OPENCL && claim(u, WANTED))
            build_source(u);
        else if (now == ARRIVED && claim(u, ARRIVED))
            load_file(u);
    }
}

/* Nobody can want anything for the device any more, so what is IDLE then stays so. */
static void close_device(tide_device *device)
{
    pthread_mutex_lock(&mutex);
    unit *u = find(device);
    while (u != NULL && u->state == BUSY)
        pthread_cond_wait(&not_busy, &mutex);
    void *module = u != NULL ? u->module : NULL;
    if (u != NULL) {
        tide_os_free(u->file.bytes);
        u->file.bytes = NULL;
        u->module = NULL;
        move(u, IDLE);
    }
    pthread_mutex_unlock(&mutex);
    if (module != NULL)
        device->methods->unload(device, module);
}

/* The stager is the parent's; so are OpenCL's threads, whose devices refuse the child anyway. */
void tide_modules_forget(void)
{
    mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    not_busy = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    for (unit *u = units; u != NULL; u = u->next) {
        if (u->state == ORDERED || u->state == BUSY)
            move(u, u->state == BUSY ? FAILED : WANTED);
    }
}

/* ---- helping -------------------------------------------------------------------------------- */

static size_t table_size(const unit *u)
{
    return u->language == TIDE_KERNELS_CUDA ? TIDE_SEGMENTS_MANY : TIDE_SEGMENTS_OPENCL;
}

/* OpenCL: places of the table that are not used get a buffer of one that is. */
static size_t add_buffers(const tide_table *table, const void *used[TIDE_SEGMENTS_OPENCL],
                          tide_argument *arguments, size_t count)
{
    const void *any_buffer = NULL;
    for (size_t i = 0; i < table->segments.count; i++)
        any_buffer = table->buffers[i] != NULL ? table->buffers[i] : any_buffer;
    for (size_t i = 0; i < TIDE_SEGMENTS_OPENCL; i++) {
        bool there = i < table->segments.count && table->buffers[i] != NULL;
        used[i] = there ? table->buffers[i] : any_buffer;
        arguments[count++] = (tide_argument){&used[i], 0};
    }
    return count;
}

static tide_status launch(const unit *u, const tide_frame_work *help, tide_kernel kernel,
                          const tide_table *table)
{
    const void *used[TIDE_SEGMENTS_OPENCL];
    tide_argument arguments[2 + TIDE_SEGMENTS_OPENCL];
    size_t count = 0;
    arguments[count++] = (tide_argument){&table->segments, tide_segments_bytes(table_size(u))};
    if (kernel != TIDE_KERNEL_FILL)
        arguments[count++] = (tide_argument){&help->block, 0};
    if (u->language == TIDE_KERNELS_OPENCL && kernel != TIDE_KERNEL_FINISH)
        count = add_buffers(table, used, arguments, count);
    return help->device->methods->launch(
        help->device, help->stream, u->kernels[kernel],
        kernel == TIDE_KERNEL_FINISH ? 1 : table->groups,
        u->language == TIDE_KERNELS_CUDA ? TIDE_GROUP_CUDA : TIDE_GROUP_OPENCL, arguments, count);
}

static tide_status run(const unit *u, const tide_frame_work *help, tide_kernel kernel)
{
    tide_table table;
    tide_table_place place = {0};
    while (tide_table_next(help, kernel, u->language, table_size(u), &place, &table))
        if (table.groups != 0 || kernel == TIDE_KERNEL_FINISH)
            TIDE_FORWARD(launch(u, help, kernel, &table));
    return TIDE_OK;
}

static tide_status clear_block(const tide_frame_work *help)
{
    static const uint64_t zero;
    return help->device->methods->fill(help->device, help->stream, help->block, &zero, sizeof zero,
                                       help->count);
}

static tide_status run_all(const unit *u, const tide_frame_work *help, tide_kernel kernel)
{
    if (kernel == TIDE_KERNEL_HASH || kernel == TIDE_KERNEL_CHECK)
        TIDE_FORWARD(clear_block(help));
    TIDE_FORWARD(run(u, help, kernel));
    return kernel == TIDE_KERNEL_HASH ? run(u, help, TIDE_KERNEL_FINISH) : TIDE_OK;
}

static tide_frame_result help_frame(const tide_frame_work *help)
{
    static const tide_kernel kernels[] = {
        [TIDE_FRAME_FILL_PARTS] = TIDE_KERNEL_FILL,     [TIDE_FRAME_PACK] = TIDE_KERNEL_PACK,
        [TIDE_FRAME_UNPACK] = TIDE_KERNEL_UNPACK, [TIDE_FRAME_HASH] = TIDE_KERNEL_HASH,
        [TIDE_FRAME_CHECK] = TIDE_KERNEL_CHECK,
    };
    if (tide_setting_get(TIDE_SETTING_frame_kernels) == 0)
        return TIDE_FRAME_ABSENT;
    const unit *u = find(help->device);
    state now = u != NULL ? state_of(u) : IDLE;
    if (now == IDLE)
        want(help->device);
    if (now != READY || !tide_table_possible(help, kernels[help->kind]))
        return TIDE_FRAME_ABSENT;
    return run_all(u, help, kernels[help->kind]) == TIDE_OK ? TIDE_FRAME_QUEUED : TIDE_FRAME_FAILED;
}

void tide_modules_attach(void)
{
    tide_hooks_policy.help = help_frame;
    tide_hooks_policy.close = close_device;
}

bool tide_modules_ready(const tide_device *device)
{
    const unit *u = find(device);
    return u != NULL && state_of(u) == READY;
}

void tide_modules_why(const tide_device *device, char *out, size_t room)
{
    const unit *u = find(device);
    snprintf(out, room, "%s", u != NULL && state_of(u) == FAILED ? u->error : "");
}
