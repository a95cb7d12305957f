/* SPDX-License-Identifier: MIT */
/* What is kept of one device is its unit, from the device's first frame until it is closed. The thread
 * that claims the device's place for it builds; there is no lock, for nobody waits. A device is open
 * while a frame is on it, so closing never finds its unit half built. */
#include "jit/kernels/modules.h"

#include "jit/kernels/kernels.h"
#include "jit/kernels/nvrtc.h"
#include "jit/kernels/table.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/settings.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/device.h"

enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };

typedef struct unit {
    void *module;
    void *kernels[TIDE_FRAME_KINDS];
} unit;

/* Stands for the unit that a thread is building, or that cannot be had. */
static unit modules_claimed;

/* The text of kernels.h. */
__asm__(".pushsection .rodata\n"
        ".global tide_kernels_text\n"
        ".hidden tide_kernels_text\n"
        "tide_kernels_text:\n"
        ".incbin \"" TIDE_KERNELS_HEADER "\"\n"
        ".byte 0\n"
        ".popsection\n");

/* NULL: there is none. */
static unit *modules_unit_of(const tide_device *device)
{
    unit *u = __atomic_load_n(&device->kernels, __ATOMIC_ACQUIRE);
    return u != &modules_claimed ? u : NULL;
}

/* ---- building ------------------------------------------------------------------------------- */

void *tide_modules_compile(tide_device *device, const char *source)
{
    int major = 0, minor = 0, version = 0, of = tide_cuda_of(device)->ordinal;
    size_t bytes = 0;
    tide_cuda_entered entered;
    if (tide_cuda_enter(device, &entered) != TIDE_OK)
        return NULL;
    bool told = tide_cu.cuDeviceGetAttribute(&major, CAPABILITY_MAJOR, of) == TIDE_CU_SUCCESS &&
                tide_cu.cuDeviceGetAttribute(&minor, CAPABILITY_MINOR, of) == TIDE_CU_SUCCESS &&
                tide_cu.cuDriverGetVersion(&version) == TIDE_CU_SUCCESS && major > 0;
    tide_cuda_leave(entered);
    if (!told) {
        tide_fail(TIDE_ERROR_DEVICE, device->name,
                  "the driver does not tell its compute capability");
        return NULL;
    }
    void *code =
        tide_nvrtc_compile(source, (unsigned)(major * 10 + minor), (unsigned)version, &bytes);
    void *module = code != NULL ? tide_cuda_module(device, code) : NULL;
    tide_os_free(code);
    return module;
}

/* False with a message. */
static bool modules_load(tide_device *device, unit *u)
{
    static const char *const names[TIDE_FRAME_KINDS] = TIDE_KERNEL_NAMES;
    u->module = tide_modules_compile(device, tide_kernels_text);
    bool good = u->module != NULL;
    for (size_t kind = 0; good && kind < TIDE_FRAME_KINDS; kind++) {
        u->kernels[kind] = tide_cuda_kernel(device, u->module, names[kind]);
        good = u->kernels[kind] != NULL;
    }
    if (!good && u->module != NULL)
        tide_cuda_module_drop(device, u->module);
    return good;
}

static void modules_say_once(const tide_device *device)
{
    static bool said;
    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
        tide_os_complain("frames on %s are filled and copied array by array: %s", device->name,
                         tide_error_message());
}

/* False: it cannot be had. A device that is lost, in a child of fork or at exit, too, refuses the frame
 * anyway, which is no fault of the kernels. The thread's last failure stays what it was. */
static bool modules_build(tide_device *device, unit *u)
{
    tide_failure before;
    tide_failure_keep(&before);
    bool good = modules_load(device, u);
    if (!good && !tide_device_lost(device) && !tide_device_exiting(device))
        modules_say_once(device);
    tide_failure_restore(&before);
    return good;
}

/* The device's unit, built now if nobody has begun to. NULL: there is none so far, or it cannot be had. */
static unit *modules_ready_unit(tide_device *device)
{
    void *none = NULL;
    if (__atomic_load_n(&device->kernels, __ATOMIC_RELAXED) != NULL || tide_device_lost(device) ||
        tide_device_exiting(device))
        return modules_unit_of(device);
    unit *u = tide_os_resize(NULL, sizeof *u);
    if (u == NULL) /* a later frame tries again */
        return NULL;
    const bool claimed = __atomic_compare_exchange_n(&device->kernels, &none, &modules_claimed,
                                                     false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    if (claimed && modules_build(device, u)) {
        __atomic_store_n(&device->kernels, u, __ATOMIC_RELEASE);
        return u;
    }
    tide_os_free(u);
    return claimed ? NULL : modules_unit_of(device);
}

/* ---- using ---------------------------------------------------------------------------------- */

/* Queues the work on its stream: one launch for each table of segments. */
static tide_status modules_launch(void *kernel, const tide_frame_work *work)
{
    tide_segments table;
    size_t place = 0;
    void *block = work->block, *arguments[] = {&table, &block};
    tide_assert((work->kind == TIDE_FRAME_FILL_PARTS) == (block == NULL));
    for (uint32_t groups; (groups = tide_table_next(work, &place, &table)) != 0;)
        TIDE_FORWARD(
            tide_cuda_launch(work->device, work->stream, kernel, groups, TIDE_GROUP, arguments));
    return TIDE_OK;
}

/* The runtime's hook. */
static tide_frame_result modules_help(const tide_frame_work *work)
{
    if (tide_setting_get(TIDE_SETTING_frame_kernels) == 0 ||
        work->device->dl.device_type != TIDE_DL_CUDA || !tide_table_possible(work))
        return TIDE_FRAME_ABSENT;
    const unit *u = modules_ready_unit(work->device);
    if (u == NULL)
        return TIDE_FRAME_ABSENT;
    tide_assert(work->kind < TIDE_FRAME_KINDS && u->kernels[work->kind] != NULL);
    return modules_launch(u->kernels[work->kind], work) == TIDE_OK ? TIDE_FRAME_QUEUED
                                                                   : TIDE_FRAME_FAILED;
}

void tide_modules_close(tide_device *device)
{
    unit *u = modules_unit_of(device);
    if (u == NULL)
        return;
    tide_cuda_module_drop(device, u->module);
    __atomic_store_n(&device->kernels, NULL, __ATOMIC_RELEASE);
    tide_os_free(u);
}

void tide_modules_attach(void)
{
    tide_frame_help = modules_help;
}
