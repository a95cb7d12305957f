/* SPDX-License-Identifier: MIT */
/* The CUDA run-time compiler, NVRTC: loaded if it is there, asked for code. Its few functions are
 * declared here: building needs no toolkit.
 *
 * A cubin is asked for, not PTX. A driver loads cubins of compilers of its own major version, also
 * of newer ones, and of all older major versions; but PTX of no compiler newer than itself. So the
 * newest compiler is taken whose code the driver loads. A device that this compiler does not know
 * gets PTX for the newest architecture before it, which the driver translates. */
#include "jit/stage/nvrtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/assert.h"

enum { CANCELLED = 16, ARCHITECTURES_MAX = 64 };

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
    void *handle; /* NULL: there is none */
    bool whole;
#define X(name, arguments) int(*name) arguments;
    ENTRIES(X)
#undef X
    const char *(*nvrtcGetErrorString)(int);
    int (*nvrtcSetFlowCallback)(program, int (*)(void *, void *), void *); /* NULL before 12.8 */
    int major, minor;
    int architectures[ARCHITECTURES_MAX];
    size_t count; /* 0: it does not say */
} nvrtc_library;

/* ---- loading -------------------------------------------------------------------------------- */

/* The newest first; then as toolkits are installed where the linker does not look. */
static const char *const places[] = {"libnvrtc.so.13",
                                     "libnvrtc.so.12",
                                     "libnvrtc.so.11.2",
                                     "libnvrtc.so",
                                     "/usr/local/cuda/lib64/libnvrtc.so.13",
                                     "/usr/local/cuda/lib64/libnvrtc.so.12",
                                     "/usr/local/cuda/lib64/libnvrtc.so"};

enum { PLACES = sizeof places / sizeof *places, PATH_BYTES = 4096 };

/* TIDEPOOL_NVRTC names other libraries, the newest first, separated by colons; or "none". (The
 * stager is not used under raised privileges.) The i-th name; false: there are fewer. */
static bool nvrtc_name(size_t i, char out[PATH_BYTES])
{
    const char *named = getenv("TIDEPOOL_NVRTC");
    if (named == NULL) {
        snprintf(out, PATH_BYTES, "%s", i < PLACES ? places[i] : "");
        return i < PLACES;
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

static bool nvrtc_find_all(nvrtc_library *of)
{
    bool all = nvrtc_find(of->handle, "nvrtcGetErrorString", &of->nvrtcGetErrorString);
    (void)nvrtc_find(of->handle, "nvrtcSetFlowCallback", &of->nvrtcSetFlowCallback);
#define X(name, arguments) all = nvrtc_find(of->handle, #name, &of->name) && all;
    ENTRIES(X)
#undef X
    return all && of->nvrtcVersion(&of->major, &of->minor) == 0;
}

static void nvrtc_ask_architectures(nvrtc_library *of)
{
    int count = 0;
    if (of->nvrtcGetNumSupportedArchs(&count) == 0 && count > 0 && count <= ARCHITECTURES_MAX &&
        of->nvrtcGetSupportedArchs(of->architectures) == 0)
        of->count = (size_t)count;
}

/* The i-th there is, loaded once; it stays. NULL: there are no more names. */
static const nvrtc_library *nvrtc_load(size_t i)
{
    static nvrtc_library loaded[PLACES];
    static bool tried[PLACES];
    char name[PATH_BYTES];
    if (i >= PLACES || !nvrtc_name(i, name))
        return NULL;
    nvrtc_library *of = &loaded[i];
    if (!tried[i] && (of->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) != NULL &&
        (of->whole = nvrtc_find_all(of)))
        nvrtc_ask_architectures(of);
    tried[i] = true;
    return of;
}

/* The first whole one; NULL: one line in `error`. */
static const nvrtc_library *nvrtc_first(char *error, size_t room)
{
    bool found = false;
    tide_assert(error != NULL && room > 0);
    const nvrtc_library *of;
    for (size_t i = 0; (of = nvrtc_load(i)) != NULL; i++) {
        if (of->whole)
            return of;
        found = found || of->handle != NULL;
    }
    if (found)
        snprintf(error, room, "no NVRTC: the library that was found lacks entry points of 11.2");
    else
        snprintf(error, room, "no NVRTC: %s",
                 getenv("TIDEPOOL_NVRTC") != NULL ? "TIDEPOOL_NVRTC names none that can be loaded"
                                                  : "libnvrtc.so.13 and older ones are not found");
    return NULL;
}

size_t stage_nvrtc_architectures(int *out, size_t most, char *error, size_t room)
{
    tide_assert(out != NULL && most > 0);
    const nvrtc_library *of = nvrtc_first(error, room);
    if (of == NULL)
        return 0;
    if (of->count == 0)
        snprintf(error, room, "NVRTC does not say which architectures it knows");
    size_t given = of->count < most ? of->count : most;
    memcpy(out, of->architectures, given * sizeof *out);
    return given;
}

/* ---- choosing ------------------------------------------------------------------------------- */

/* What is to be compiled by which compiler. */
typedef struct nvrtc_choice {
    const nvrtc_library *by; /* NULL: none will do */
    int target;              /* the architecture   */
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
static int nvrtc_target(const nvrtc_library *of, int architecture)
{
    int newest = 0;
    for (size_t i = 0; i < of->count; i++)
        if (of->architectures[i] <= architecture && of->architectures[i] > newest)
            newest = of->architectures[i];
    return newest;
}

/* A cubin by the first that can make one; else PTX by the first whose PTX the driver takes. */
static nvrtc_choice nvrtc_choose(const stage_cuda_device *device)
{
    nvrtc_choice choice = {0};
    const nvrtc_library *of;
    for (size_t i = 0; (of = nvrtc_load(i)) != NULL; i++) {
        int target = of->whole ? nvrtc_target(of, (int)device->architecture) : 0;
        bool cubin = target == (int)device->architecture;
        if (target == 0 || (choice.by != NULL && !cubin) || !nvrtc_fits(of, device->driver, cubin))
            continue;
        choice = (nvrtc_choice){of, target, cubin};
        if (cubin)
            return choice;
    }
    return choice;
}

/* Why there is none. */
static void nvrtc_refuse(const stage_cuda_device *device, char *error, size_t room)
{
    const nvrtc_library *of = nvrtc_first(error, room);
    if (of == NULL)
        return;
    if (nvrtc_target(of, (int)device->architecture) == 0)
        snprintf(error, room, "NVRTC %d.%d does not know sm_%u", of->major, of->minor,
                 device->architecture);
    else
        snprintf(error, room,
                 "NVRTC %d.%d makes code for sm_%u that a driver of CUDA %u.%u does not load, and "
                 "there is no older one",
                 of->major, of->minor, device->architecture, device->driver / 1000,
                 device->driver % 1000 / 10);
}

/* ---- compiling ------------------------------------------------------------------------------ */

/* Of the processor's time: on a loaded machine nothing hangs that takes long. What does hang, the
 * library will end with the whole process. */
static int64_t nvrtc_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Asked now and then while it compiles: 1 cancels. */
static int nvrtc_is_late(void *deadline, void *unused)
{
    (void)unused;
    return nvrtc_now_ms() >= *(const int64_t *)deadline;
}

/* The first of the compiler's complaints, as one printable line. */
static void nvrtc_take_log(const nvrtc_library *by, program made, const char *what, char *error,
                           size_t room)
{
    size_t bytes = 0;
    char *log = NULL;
    tide_assert(room > 0);
    if (by->nvrtcGetProgramLogSize(made, &bytes) == 0 && bytes > 1)
        log = calloc(1, bytes + 1);
    if (log != NULL)
        (void)by->nvrtcGetProgramLog(made, log);
    int length = snprintf(error, room, "NVRTC: %s%s%s", what, log != NULL ? ": " : "",
                          log != NULL ? log : "");
    free(log);
    for (int i = 0; i < length && (size_t)i < room && error[i] != '\0'; i++)
        if (error[i] < ' ' || error[i] > '~')
            error[i] = ' ';
}

/* Copies the code out of the program. */
static bool nvrtc_fetch_code(const nvrtc_library *by, program made, bool cubin,
                             stage_cuda_code *out, char *error, size_t room)
{
    int (*size)(program, size_t *) = cubin ? by->nvrtcGetCUBINSize : by->nvrtcGetPTXSize;
    int (*get)(program, char *) = cubin ? by->nvrtcGetCUBIN : by->nvrtcGetPTX;
    out->bytes = 0;
    int result = size(made, &out->bytes);
    out->code = result == 0 && out->bytes > 0 ? malloc(out->bytes) : NULL;
    if (out->code != NULL && (result = get(made, out->code)) == 0)
        return true;
    free(out->code);
    out->code = NULL;
    snprintf(error, room, "NVRTC gives no code: %s",
             result != 0 ? by->nvrtcGetErrorString(result) : "no memory");
    return false;
}

/* Within the deadline, where the compiler asks whether it is over. */
static bool nvrtc_compile(const nvrtc_choice *choice, program made, int deadline_ms,
                          stage_cuda_code *out, char *error, size_t room)
{
    char option[32];
    const char *const options[] = {option, "-std=c++14"};
    const nvrtc_library *by = choice->by;
    tide_assert(choice->target != 0 && deadline_ms >= 0);
    int64_t deadline = nvrtc_now_ms() + deadline_ms;
    snprintf(option, sizeof option, "-arch=%s_%d", choice->cubin ? "sm" : "compute",
             choice->target);
    snprintf(out->compiler, sizeof out->compiler, "nvrtc %d.%d %s %s", by->major, by->minor,
             options[0], options[1]);
    if (by->nvrtcSetFlowCallback != NULL)
        (void)by->nvrtcSetFlowCallback(made, nvrtc_is_late, &deadline);
    int result = by->nvrtcCompileProgram(made, 2, options);
    if (result == 0)
        return nvrtc_fetch_code(by, made, choice->cubin, out, error, room);
    if (result == CANCELLED)
        snprintf(error, room, "NVRTC was cancelled after %d ms", deadline_ms);
    else
        nvrtc_take_log(by, made, by->nvrtcGetErrorString(result), error, room);
    return false;
}

bool stage_nvrtc_compile(const char *source, const stage_cuda_device *device, int deadline_ms,
                         stage_cuda_code *out, char *error, size_t room)
{
    program made;
    tide_assert(source != NULL && out != NULL);
    const nvrtc_choice choice = nvrtc_choose(device);
    if (choice.by == NULL) {
        nvrtc_refuse(device, error, room);
        return false;
    }
    int result = choice.by->nvrtcCreateProgram(&made, source, "tidepool.cu", 0, NULL, NULL);
    if (result != 0) {
        snprintf(error, room, "NVRTC: %s", choice.by->nvrtcGetErrorString(result));
        return false;
    }
    out->kind = choice.cubin ? "cubin" : "ptx";
    bool good = nvrtc_compile(&choice, made, deadline_ms, out, error, room);
    (void)choice.by->nvrtcDestroyProgram(&made);
    tide_assert(!good || (out->code != NULL && out->bytes > 0));
    return good;
}
