/* SPDX-License-Identifier: MIT */
/* The CUDA run-time compiler, NVRTC: loaded if it is there, asked for code. Its few functions are
 * declared here: building needs no toolkit.
 *
 * A cubin is asked for, not PTX. A driver loads cubins of compilers of its own major version, also
 * of newer ones, and of all older major versions. So it is the compiler of the driver's own major version
 * that is tried, then older ones.
 *
 * Nothing is kept here but the libraries themselves: each device is compiled for once. */
#include "jit/kernels/nvrtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"

enum { PATH_BYTES = 4096, NEWEST = 13, OLDEST = 12 };

typedef struct program *program;

#define ENTRIES(X)                                                                            \
    X(nvrtcCreateProgram,                                                                     \
      (program *, const char *, const char *, int, const char *const *, const char *const *)) \
    X(nvrtcDestroyProgram, (program *))                                                       \
    X(nvrtcCompileProgram, (program, int, const char *const *))                               \
    X(nvrtcGetCUBINSize, (program, size_t *))                                                 \
    X(nvrtcGetCUBIN, (program, char *))                                                       \
    X(nvrtcGetProgramLogSize, (program, size_t *))                                            \
    X(nvrtcGetProgramLog, (program, char *))

typedef struct nvrtc_library {
#define X(name, arguments) int(*name) arguments;
    ENTRIES(X)
#undef X
    const char *(*nvrtcGetErrorString)(int);
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
    snprintf(out, PATH_BYTES, "%slibnvrtc.so.%d", i % 2 == 0 ? "" : "/usr/local/cuda/lib64/",
             major);
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

/* False: it cannot be loaded, or lacks what is used of it. It stays loaded. */
static bool nvrtc_load(const char *name, nvrtc_library *of)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL)
        return false;
    bool all = nvrtc_find(library, "nvrtcGetErrorString", &of->nvrtcGetErrorString);
#define X(name, arguments) all = nvrtc_find(library, #name, &of->name) && all;
    ENTRIES(X)
#undef X
    return all;
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
static bool nvrtc_fetch_code(const nvrtc_library *by, program made, tide_cuda_code *out,
                             char *error, size_t room)
{
    *out = (tide_cuda_code){.code = NULL};
    int result = by->nvrtcGetCUBINSize(made, &out->bytes);
    out->code = result == 0 && out->bytes > 0 ? tide_os_resize(NULL, out->bytes) : NULL;
    if (out->code != NULL && (result = by->nvrtcGetCUBIN(made, out->code)) == 0)
        return true;
    tide_os_free(out->code);
    out->code = NULL;
    snprintf(error, room, "NVRTC gives no code: %s",
             result != 0 ? by->nvrtcGetErrorString(result) : "no memory");
    return false;
}

static bool nvrtc_compile(const nvrtc_library *by, const char *source, unsigned architecture,
                          tide_cuda_code *out, char *error, size_t room)
{
    program made;
    char option[32];
    const char *const options[] = {option, "-std=c++14"};
    int result = by->nvrtcCreateProgram(&made, source, "tidepool.cu", 0, NULL, NULL);
    if (result != 0) {
        snprintf(error, room, "NVRTC: %s", by->nvrtcGetErrorString(result));
        return false;
    }
    snprintf(option, sizeof option, "-arch=sm_%u", architecture);
    result = by->nvrtcCompileProgram(made, 2, options);
    bool good = result == 0 && nvrtc_fetch_code(by, made, out, error, room);
    if (result != 0)
        nvrtc_take_log(by, made, by->nvrtcGetErrorString(result), error, room);
    (void)by->nvrtcDestroyProgram(&made);
    tide_assert(!good || (out->code != NULL && out->bytes > 0));
    return good;
}

/* An older compiler may know a device that a newer one does not any more. `error` is the last one's. */
bool tide_nvrtc_compile(const char *source, tide_cuda_target target, tide_cuda_code *out,
                        char *error, size_t room)
{
    nvrtc_library library;
    char name[PATH_BYTES];
    tide_assert(source != NULL && out != NULL && error != NULL && room > 0);
    snprintf(error, room, "no NVRTC: %s",
             nvrtc_named[0] != '\0' ? "TIDEPOOL_NVRTC names none that can be used"
                                    : "libnvrtc.so of the driver's version and older ones are not "
                                      "found");
    for (size_t i = 0; nvrtc_name(i, target.driver, name); i++)
        if (nvrtc_load(name, &library) &&
            nvrtc_compile(&library, source, target.architecture, out, error, room))
            return true;
    return false;
}
