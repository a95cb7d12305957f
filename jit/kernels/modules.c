/* SPDX-License-Identifier: MIT */
/* What is kept of one device is its unit, from the device's first frame until it is closed. A unit
 * has one state, which is atomic: the thread that turns IDLE to BUSY builds, and with READY or
 * FAILED it publishes what it has made. There is no lock, for nobody waits. A device is open while
 * a frame is on it, so closing never finds its unit BUSY. */
#include "jit/kernels/modules.h"

#include <stdio.h>
#include <string.h>

#include "jit/kernels/kernels.h"
#include "jit/kernels/nvrtc.h"
#include "jit/kernels/source.h"
#include "jit/kernels/table.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/settings.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/device.h"

enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };

typedef enum state {
    IDLE,  /* nothing is loaded                         */
    BUSY,  /* one thread compiles and loads             */
    READY, /* frames are launched                       */
    FAILED /* until it is closed; `why` says the reason */
} state;

typedef struct unit {
    state state; /* atomic */
    void *module, *kernels[TIDE_FRAME_KINDS];
    char why[256];
} unit;

static state modules_state_of(const unit *u)
{
    return __atomic_load_n(&u->state, __ATOMIC_ACQUIRE);
}

static void modules_move(unit *u, state to)
{
    __atomic_store_n(&u->state, to, __ATOMIC_RELEASE);
}

/* NULL when memory is short. */
static unit *modules_unit_of(tide_device *device)
{
    void *known = __atomic_load_n(&device->kernels, __ATOMIC_ACQUIRE);
    if (known != NULL)
        return known;
    unit *made = tide_os_resize(NULL, sizeof *made);
    if (made == NULL)
        return NULL;
    *made = (unit){.state = IDLE};
    if (__atomic_compare_exchange_n(&device->kernels, &known, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return made;
    tide_os_free(made);
    return known;
}

/* ---- building ------------------------------------------------------------------------------- */

static tide_kernels_language modules_language_of(const tide_device *device)
{
    return device->dl.device_type == TIDE_DL_CUDA ? TIDE_KERNELS_CUDA : TIDE_KERNELS_OPENCL;
}

static bool modules_ask_target(tide_device *device, tide_cuda_target *out)
{
    int major = 0, minor = 0, version = 0, of = tide_cuda_of(device)->ordinal;
    tide_cuda_entered entered;
    if (tide_cuda_enter(device, &entered) != TIDE_OK)
        return false;
    bool told = tide_cu.cuDeviceGetAttribute(&major, CAPABILITY_MAJOR, of) == TIDE_CU_SUCCESS &&
                tide_cu.cuDeviceGetAttribute(&minor, CAPABILITY_MINOR, of) == TIDE_CU_SUCCESS &&
                tide_cu.cuDriverGetVersion(&version) == TIDE_CU_SUCCESS && major > 0;
    tide_cuda_leave(entered);
    *out = (tide_cuda_target){(unsigned)(major * 10 + minor), (unsigned)version};
    if (!told)
        tide_fail(TIDE_ERROR_DEVICE, device->name,
                  "the driver does not tell its compute capability");
    return told;
}

/* NULL with a message. */
static void *modules_compile(tide_device *device, const char *source)
{
    char error[256];
    tide_cuda_target target;
    tide_cuda_code made;
    if (!modules_ask_target(device, &target))
        return NULL;
    if (!tide_nvrtc_compile(source, target, &made, error, sizeof error)) {
        tide_fail(TIDE_ERROR_DEVICE, device->name, "%s", error);
        return NULL;
    }
    void *module = device->methods->load(device, made.code, made.bytes, NULL);
    tide_os_free(made.code);
    return module;
}

/* False with a message. */
static bool modules_load(tide_device *device, unit *u)
{
    const tide_device_methods *methods = device->methods;
    tide_kernels_language language = modules_language_of(device);
    char *source = tide_os_resize(NULL, TIDE_KERNELS_SOURCE_BYTES);
    if (source == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, device->name, "no memory for their source") == TIDE_OK;
    size_t bytes = tide_kernels_source(language, source, TIDE_KERNELS_SOURCE_BYTES);
    u->module = language == TIDE_KERNELS_CUDA
                    ? modules_compile(device, source)
                    : methods->load(device, source, bytes, "-cl-std=CL1.2");
    tide_os_free(source);
    bool good = u->module != NULL;
    for (size_t kind = 0; good && kind < TIDE_FRAME_KINDS; kind++) {
        u->kernels[kind] = methods->kernel(device, u->module, tide_kernel_names[kind]);
        good = u->kernels[kind] != NULL;
    }
    return good;
}

static void modules_say_once(const tide_device *device, const char *why)
{
    static bool said;
    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
        tide_os_complain("frames on %s are filled and copied array by array: %s", device->name,
                         why);
}

/* A device that is lost, in a child of fork or at exit too, refuses the frame anyway: that is no
 * fault of the kernels. The thread's last failure stays what it was. */
static void modules_build(tide_device *device, unit *u)
{
    tide_failure before;
    tide_failure_keep(&before);
    tide_assert(u->module == NULL && u->why[0] == '\0');
    bool good = modules_load(device, u);
    bool refused = tide_device_lost(device) || tide_device_exiting(device);
    if (!good && !refused) {
        snprintf(u->why, sizeof u->why, "%s", tide_error_message());
        modules_say_once(device, u->why);
    }
    if (!good && u->module != NULL)
        device->methods->unload(device, u->module);
    if (!good)
        u->module = NULL;
    tide_failure_restore(&before);
    modules_move(u, good ? READY : refused ? IDLE : FAILED);
}

/* ---- launching ------------------------------------------------------------------------------ */

/* OpenCL: a place of the table that is not used gets the buffer of one that is. */
static size_t modules_add_buffers(const tide_table *table, const void *used[TIDE_SEGMENTS_OPENCL],
                                  tide_argument *arguments, size_t count)
{
    const void *any_buffer = NULL;
    tide_assert(table->segments.count <= TIDE_SEGMENTS_OPENCL);
    for (size_t i = 0; i < table->segments.count; i++)
        any_buffer = table->buffers[i] != NULL ? table->buffers[i] : any_buffer;
    for (size_t i = 0; i < TIDE_SEGMENTS_OPENCL; i++) {
        bool there = i < table->segments.count && table->buffers[i] != NULL;
        used[i] = there ? table->buffers[i] : any_buffer;
        arguments[count++] = (tide_argument){&used[i], 0};
    }
    return count;
}

static tide_status modules_launch_table(tide_kernels_language language, void *kernel,
                                        const tide_frame_work *work, const tide_table *table)
{
    const void *used[TIDE_SEGMENTS_OPENCL];
    tide_argument arguments[2 + TIDE_SEGMENTS_OPENCL];
    size_t count = 0;
    tide_assert(table->segments.count != 0 && kernel != NULL);
    tide_assert((work->kind == TIDE_FRAME_FILL_PARTS) == (work->block == NULL));
    arguments[count++] =
        (tide_argument){&table->segments, tide_segments_bytes(tide_table_size(language))};
    if (work->block != NULL)
        arguments[count++] = (tide_argument){&work->block, 0};
    if (language == TIDE_KERNELS_OPENCL)
        count = modules_add_buffers(table, used, arguments, count);
    tide_assert(count <= sizeof arguments / sizeof *arguments);
    return work->device->methods->launch(
        work->device, work->stream, kernel, table->groups,
        language == TIDE_KERNELS_CUDA ? TIDE_GROUP_CUDA : TIDE_GROUP_OPENCL, arguments, count);
}

/* Queues the work on its stream: one launch for each table of segments. */
static tide_status modules_launch(tide_kernels_language language, void *kernel,
                                  const tide_frame_work *work)
{
    tide_table table;
    tide_table_place place = {0};
    while (tide_table_next(work, language, &place, &table))
        if (table.groups != 0)
            TIDE_FORWARD(modules_launch_table(language, kernel, work, &table));
    return TIDE_OK;
}

/* ---- using ---------------------------------------------------------------------------------- */

/* The runtime's hook. */
static tide_frame_result modules_help(const tide_frame_work *work)
{
    tide_device *device = work->device;
    if (tide_setting_get(TIDE_SETTING_frame_kernels) == 0 || device->methods->load == NULL ||
        !tide_table_possible(work))
        return TIDE_FRAME_ABSENT;
    unit *u = modules_unit_of(device);
    state idle = IDLE;
    if (u != NULL && modules_state_of(u) == IDLE && !tide_device_lost(device) &&
        !tide_device_exiting(device) &&
        __atomic_compare_exchange_n(&u->state, &idle, BUSY, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
        modules_build(device, u);
    if (u == NULL || modules_state_of(u) != READY)
        return TIDE_FRAME_ABSENT;
    tide_assert(u->module != NULL && work->kind < TIDE_FRAME_KINDS);
    return modules_launch(modules_language_of(device), u->kernels[work->kind], work) == TIDE_OK
               ? TIDE_FRAME_QUEUED
               : TIDE_FRAME_FAILED;
}

void tide_modules_close(tide_device *device)
{
    unit *u = __atomic_load_n(&device->kernels, __ATOMIC_ACQUIRE);
    if (u == NULL)
        return;
    tide_assert(modules_state_of(u) != BUSY);
    if (modules_state_of(u) == READY)
        device->methods->unload(device, u->module);
    __atomic_store_n(&device->kernels, NULL, __ATOMIC_RELEASE);
    tide_os_free(u);
}

void tide_modules_attach(void)
{
    tide_frame_help = modules_help;
}

bool tide_modules_ready(const tide_device *device, const char **why)
{
    const unit *u = __atomic_load_n(&device->kernels, __ATOMIC_ACQUIRE);
    state now = u != NULL ? modules_state_of(u) : IDLE;
    if (why != NULL)
        *why = now == FAILED ? u->why : "";
    return now == READY;
}
