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
#include "runtime/base/error.h"
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

static const char call[] = "NVRTC";

/* With the first of the compiler's complaints, in one printable line. */
static void nvrtc_fail(const nvrtc_library *by, program made, int result)
{
    size_t bytes = 0;
    char *log = NULL;
    if (by->nvrtcGetProgramLogSize(made, &bytes) == 0 && bytes > 1)
        log = tide_os_resize(NULL, bytes); /* with the final 0 */
    bool read = log != NULL && by->nvrtcGetProgramLog(made, log) == 0;
    for (size_t i = 0; read && i < bytes - 1; i++)
        if (log[i] < ' ' || log[i] > '~')
            log[i] = ' ';
    if (read)
        log[bytes - 1] = '\0';
    tide_fail(TIDE_ERROR_DEVICE, call, "%s%s%s", by->nvrtcGetErrorString(result), read ? ": " : "",
              read ? log : "");
    tide_os_free(log);
}

/* Copies the code out of the program. */
static void *nvrtc_fetch_code(const nvrtc_library *by, program made, size_t *bytes)
{
    int result = by->nvrtcGetCUBINSize(made, bytes);
    void *code = result == 0 && *bytes > 0 ? tide_os_resize(NULL, *bytes) : NULL;
    if (code != NULL && (result = by->nvrtcGetCUBIN(made, code)) == 0)
        return code;
    tide_os_free(code);
    tide_fail(TIDE_ERROR_DEVICE, call, "no code: %s",
              result != 0 ? by->nvrtcGetErrorString(result) : "no memory");
    return NULL;
}

static void *nvrtc_compile(const nvrtc_library *by, const char *source, unsigned architecture,
                           size_t *bytes)
{
    program made;
    char option[32];
    const char *const options[] = {option, "-std=c++14"};
    int result = by->nvrtcCreateProgram(&made, source, "tidepool.cu", 0, NULL, NULL);
    if (result != 0) {
        tide_fail(TIDE_ERROR_DEVICE, call, "%s", by->nvrtcGetErrorString(result));
        return NULL;
    }
    snprintf(option, sizeof option, "-arch=sm_%u", architecture);
    result = by->nvrtcCompileProgram(made, 2, options);
    void *code = result == 0 ? nvrtc_fetch_code(by, made, bytes) : NULL;
    if (result != 0)
        nvrtc_fail(by, made, result);
    (void)by->nvrtcDestroyProgram(&made);
    return code;
}

/* An older compiler may know a device that a newer one does not any more. The message is the last one's. */
void *tide_nvrtc_compile(const char *source, unsigned architecture, unsigned driver, size_t *bytes)
{
    nvrtc_library library;
    char name[PATH_BYTES];
    void *code = NULL;
    tide_assert(source != NULL && bytes != NULL);
    tide_fail(TIDE_ERROR_DEVICE, call, "%s",
              nvrtc_named[0] != '\0' ? "TIDEPOOL_NVRTC names none that can be used"
                                     : "libnvrtc.so of the driver's version and older ones are not "
                                       "found");
    for (size_t i = 0; code == NULL && nvrtc_name(i, driver, name); i++)
        if (nvrtc_load(name, &library))
            code = nvrtc_compile(&library, source, architecture, bytes);
    return code;
}
