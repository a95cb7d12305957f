/* SPDX-License-Identifier: MIT */
/* The CUDA run-time compiler, NVRTC: loaded if it is there, asked for code. Its few functions are
 * declared here: building needs no toolkit.
 *
 * A cubin is asked for, not PTX. A driver loads cubins of compilers of its own major version, also
 * of newer ones, and of all older major versions; but PTX of no compiler newer than itself. So the
 * newest compiler is taken whose code the driver loads. A device that this compiler does not know
 * gets PTX for the newest architecture before it, which the driver translates.
 *
 * Nothing is kept here but the libraries themselves: each device is compiled for once. */
#include "jit/kernels/nvrtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"

enum { ARCHITECTURES_MAX = 64, PATH_BYTES = 4096 };

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

void tide_nvrtc_set(const char *names)
{
    snprintf(nvrtc_named, sizeof nvrtc_named, "%s", names != NULL ? names : "");
}

/* The i-th library to try; false: there are fewer. The newest first; then as toolkits are installed
 * where the linker does not look. */
static bool nvrtc_name(size_t i, char out[PATH_BYTES])
{
    static const char *const places[] = {"libnvrtc.so.13",
                                         "libnvrtc.so.12",
                                         "libnvrtc.so.11.2",
                                         "libnvrtc.so",
                                         "/usr/local/cuda/lib64/libnvrtc.so.13",
                                         "/usr/local/cuda/lib64/libnvrtc.so.12",
                                         "/usr/local/cuda/lib64/libnvrtc.so"};
    const size_t count = sizeof places / sizeof *places;
    const char *named = nvrtc_named;
    if (*named == '\0') {
        snprintf(out, PATH_BYTES, "%s", i < count ? places[i] : "");
        return i < count;
    }
    for (; i > 0 && *named != '\0'; i--) {
        named += strcspn(named, ":");
        named += *named == ':';
    }
    snprintf(out, PATH_BYTES, "%.*s", (int)strcspn(named, ":"), named);
    return *named != '\0';
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

/* ---- choosing ------------------------------------------------------------------------------- */

/* What is to be compiled by which compiler. */
typedef struct nvrtc_choice {
    nvrtc_library by;
    int architecture; /* 0: none will do */
    bool cubin;
} nvrtc_choice;

/* Does a driver of this version load what the compiler makes? 0: not known. */
static bool nvrtc_fits(const nvrtc_library *of, unsigned driver, bool cubin)
{
    int major = (int)(driver / 1000), minor = (int)(driver % 1000 / 10);
    return driver == 0 || of->major < major ||
           (of->major == major && (cubin || of->minor <= minor));
}

/* The newest that is known up to this one; 0: none. */
static int nvrtc_newest(const nvrtc_library *of, int architecture)
{
    int newest = 0;
    for (int i = 0; i < of->count; i++)
        if (of->architectures[i] <= architecture && of->architectures[i] > newest)
            newest = of->architectures[i];
    return newest;
}

static void nvrtc_refuse(const nvrtc_library *of, tide_cuda_target target, char *error, size_t room)
{
    if (nvrtc_newest(of, (int)target.architecture) == 0)
        snprintf(error, room, "NVRTC %d.%d does not know sm_%u", of->major, of->minor,
                 target.architecture);
    else
        snprintf(error, room,
                 "NVRTC %d.%d makes code for sm_%u that a driver of CUDA %u.%u does not load, and "
                 "there is no older one",
                 of->major, of->minor, target.architecture, target.driver / 1000,
                 target.driver % 1000 / 10);
}

/* A cubin by the first that can make one; else PTX by the first whose PTX the driver takes. False:
 * `error` says what is wrong with the first compiler. */
static bool nvrtc_choose(tide_cuda_target target, nvrtc_choice *out, char *error, size_t room)
{
    char name[PATH_BYTES];
    nvrtc_library of = {0};
    bool any = false;
    out->architecture = 0;
    snprintf(error, room, "no NVRTC: %s",
             nvrtc_named[0] != '\0' ? "TIDEPOOL_NVRTC names none that can be used"
                                    : "libnvrtc.so.13 and older ones are not found");
    for (size_t i = 0; nvrtc_name(i, name); i++) {
        if (!nvrtc_load(name, &of))
            continue;
        if (!any)
            nvrtc_refuse(&of, target, error, room);
        any = true;
        int newest = nvrtc_newest(&of, (int)target.architecture);
        bool cubin = newest == (int)target.architecture;
        if (newest == 0 || (out->architecture != 0 && !cubin) ||
            !nvrtc_fits(&of, target.driver, cubin))
            continue;
        *out = (nvrtc_choice){of, newest, cubin};
        if (cubin)
            return true;
    }
    return out->architecture != 0;
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
    nvrtc_choice choice;
    program made;
    char option[32];
    const char *const options[] = {option, "-std=c++14"};
    tide_assert(source != NULL && out != NULL && error != NULL && room > 0);
    if (!nvrtc_choose(target, &choice, error, room))
        return false;
    const nvrtc_library *by = &choice.by;
    int result = by->nvrtcCreateProgram(&made, source, "tidepool.cu", 0, NULL, NULL);
    if (result != 0) {
        snprintf(error, room, "NVRTC: %s", by->nvrtcGetErrorString(result));
        return false;
    }
    snprintf(option, sizeof option, "-arch=%s_%d", choice.cubin ? "sm" : "compute",
             choice.architecture);
    result = by->nvrtcCompileProgram(made, 2, options);
    bool good = result == 0 && nvrtc_fetch_code(by, made, choice.cubin, out, error, room);
    if (result != 0)
        nvrtc_take_log(by, made, by->nvrtcGetErrorString(result), error, room);
    (void)by->nvrtcDestroyProgram(&made);
    tide_assert(!good || (out->code != NULL && out->bytes > 0));
    return good;
}
