/* SPDX-License-Identifier: MIT */
/* The CUDA run-time compiler, NVRTC: loaded if it is there, asked for code. Its few functions are
 * declared here: building needs no toolkit.
 *
 * A cubin is asked for, not PTX. A driver loads cubins of compilers of its own major version, also
 * of newer ones, and of all older major versions. So it is the compiler of the driver's own major version
 * that is looked for, then older ones. A device that it does not know gets PTX for the newest
 * architecture before it, which the driver translates.
 *
 * Nothing is kept here but the libraries themselves: each device is compiled for once. */
#include "jit/kernels/nvrtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"

enum { ARCHITECTURES_MAX = 64, PATH_BYTES = 4096, NEWEST = 13, OLDEST = 11 };

typedef struct program *program;

#define ENTRIES(X)                                                                            \
    X(nvrtcVersion, (int *, int *))                                                           \
    X(nvrtcGetNumSupportedArchs, (int *))                                                     \
    X(nvrtcGetSupportedArchs, (int *))                                                        \
    X(nvrtcCreateProgram,                                                                     \
      (program *, const char *, const char *, int, const char *const *, const char *const *)) \
    X(nvrtcDestroyProgram, (program *))                                                       \
    X(nvrtcCompileProgram, (program, int, const char *const *))                               \
    X(nvrtcGetPTXSize, (program, size_t *))                                                   \
    X(nvrtcGetPTX, (program, char *))                                                         \
    X(nvrtcGetCUBINSize, (program, size_t *))                                                 \
    X(nvrtcGetCUBIN, (program, char *))                                                       \
    X(nvrtcGetProgramLogSize, (program, size_t *))                                            \
    X(nvrtcGetProgramLog, (program, char *))

typedef struct nvrtc_library {
#define X(name, arguments) int(*name) arguments;
    ENTRIES(X)
#undef X
    const char *(*nvrtcGetErrorString)(int);
    int major, minor;
    int architectures[ARCHITECTURES_MAX];
    int count; /* 0: it does not say */
} nvrtc_library;

/* ---- loading -------------------------------------------------------------------------------- */

static char nvrtc_named[PATH_BYTES]; /* "": nothing is named */

void tide_nvrtc_set(const char *name)
{
    snprintf(nvrtc_named, sizeof nvrtc_named, "%s", name != NULL ? name : "");
}

/* The i-th library to try for a driver that knows this version of CUDA; false: there are fewer. Of its own
 * major version first, then of older ones; where the linker looks, then where toolkits are installed. */
static bool nvrtc_name(size_t i, unsigned driver, char out[PATH_BYTES])
{
    const int major = (driver != 0 ? (int)(driver / 1000) : NEWEST) - (int)(i / 2);
    if (nvrtc_named[0] != '\0') {
        snprintf(out, PATH_BYTES, "%s", nvrtc_named);
        return i == 0;
    }
    snprintf(out, PATH_BYTES, "%slibnvrtc.so.%d%s", i % 2 == 0 ? "" : "/usr/local/cuda/lib64/",
             major, major == OLDEST ? ".2" : "");
    return major >= OLDEST;
}

/* `function` points to a pointer to a function, whatever its type. */
static bool nvrtc_find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    _Static_assert(sizeof found == sizeof(int (*)(void)), "POSIX: of one size");
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

/* False: it cannot be loaded, or lacks what 11.2 has. It stays loaded. */
static bool nvrtc_load(const char *name, nvrtc_library *of)
{
    int count = 0;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL)
        return false;
    bool all = nvrtc_find(library, "nvrtcGetErrorString", &of->nvrtcGetErrorString);
#define X(name, arguments) all = nvrtc_find(library, #name, &of->name) && all;
    ENTRIES(X)
#undef X
    if (!all || of->nvrtcVersion(&of->major, &of->minor) != 0)
        return false;
    bool told = of->nvrtcGetNumSupportedArchs(&count) == 0 && count > 0 &&
                count <= ARCHITECTURES_MAX && of->nvrtcGetSupportedArchs(of->architectures) == 0;
    of->count = told ? count : 0;
    return true;
}

/* The newest that is known up to this one; 0: none. */
static int nvrtc_newest(const nvrtc_library *of, unsigned architecture)
{
    int newest = 0;
    for (int i = 0; i < of->count; i++)
        if (of->architectures[i] <= (int)architecture && of->architectures[i] > newest)
            newest = of->architectures[i];
    return newest;
}

/* The first that knows the device's architecture or one before it, which is returned. 0: none; `error` says
 * why. */
static int nvrtc_choose(tide_cuda_target target, nvrtc_library *by, char *error, size_t room)
{
    char name[PATH_BYTES];
    snprintf(error, room, "no NVRTC: %s",
             nvrtc_named[0] != '\0' ? "TIDEPOOL_NVRTC names none that can be used"
                                    : "libnvrtc.so of the driver's version and older ones are not "
                                      "found");
    for (size_t i = 0; nvrtc_name(i, target.driver, name); i++) {
        if (!nvrtc_load(name, by))
            continue;
        int newest = nvrtc_newest(by, target.architecture);
        if (newest != 0)
            return newest;
        snprintf(error, room, "NVRTC %d.%d does not know sm_%u", by->major, by->minor,
                 target.architecture);
    }
    return 0;
}

/* ---- compiling ------------------------------------------------------------------------------ */

/* The first of the compiler's complaints, as one printable line. */
static void nvrtc_take_log(const nvrtc_library *by, program made, const char *what, char *error,
                           size_t room)
{
    size_t bytes = 0;
    char *log = NULL;
    tide_assert(room > 0);
    if (by->nvrtcGetProgramLogSize(made, &bytes) == 0 && bytes > 1)
        log = tide_os_resize(NULL, bytes + 1);
    bool read = log != NULL && by->nvrtcGetProgramLog(made, log) == 0;
    if (read)
        log[bytes] = '\0';
    int length = snprintf(error, room, "NVRTC: %s%s%s", what, read ? ": " : "", read ? log : "");
    tide_os_free(log);
    for (int i = 0; i < length && (size_t)i < room && error[i] != '\0'; i++)
        if (error[i] < ' ' || error[i] > '~')
            error[i] = ' ';
}

/* Copies the code out of the program. */
static bool nvrtc_fetch_code(const nvrtc_library *by, program made, bool cubin, tide_cuda_code *out,
                             char *error, size_t room)
{
    int (*size)(program, size_t *) = cubin ? by->nvrtcGetCUBINSize : by->nvrtcGetPTXSize;
    int (*get)(program, char *) = cubin ? by->nvrtcGetCUBIN : by->nvrtcGetPTX;
    *out = (tide_cuda_code){.cubin = cubin};
    int result = size(made, &out->bytes);
    out->code = result == 0 && out->bytes > 0 ? tide_os_resize(NULL, out->bytes) : NULL;
    if (out->code != NULL && (result = get(made, out->code)) == 0)
        return true;
    tide_os_free(out->code);
    out->code = NULL;
    snprintf(error, room, "NVRTC gives no code: %s",
             result != 0 ? by->nvrtcGetErrorString(result) : "no memory");
    return false;
}

bool tide_nvrtc_compile(const char *source, tide_cuda_target target, tide_cuda_code *out,
                        char *error, size_t room)
{
    nvrtc_library library = {0};
    const nvrtc_library *by = &library;
    program made;
    char option[32];
    const char *const options[] = {option, "-std=c++14"};
    tide_assert(source != NULL && out != NULL && error != NULL && room > 0);
    const int architecture = nvrtc_choose(target, &library, error, room);
    if (architecture == 0)
        return false;
    const bool cubin = architecture == (int)target.architecture;
    int result = by->nvrtcCreateProgram(&made, source, "tidepool.cu", 0, NULL, NULL);
    if (result != 0) {
        snprintf(error, room, "NVRTC: %s", by->nvrtcGetErrorString(result));
        return false;
    }
    snprintf(option, sizeof option, "-arch=%s_%d", cubin ? "sm" : "compute", architecture);
    result = by->nvrtcCompileProgram(made, 2, options);
    bool good = result == 0 && nvrtc_fetch_code(by, made, cubin, out, error, room);
    if (result != 0)
        nvrtc_take_log(by, made, by->nvrtcGetErrorString(result), error, room);
    (void)by->nvrtcDestroyProgram(&made);
    tide_assert(!good || (out->code != NULL && out->bytes > 0));
    return good;
}
