/* SPDX-License-Identifier: MIT */
/* The CUDA run-time compiler, NVRTC: loaded if it is there, asked for code. Its few functions are
 * declared here: building needs no toolkit.
 *
 * A cubin is asked for, not PTX: a driver refuses PTX of a compiler newer than itself. Only a
 * device newer than the compiler gets PTX, which its driver, newer still, translates. */
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

static struct {
#define X(name, arguments) int(*name) arguments;
    ENTRIES(X)
#undef X
    const char *(*nvrtcGetErrorString)(int);
    int (*nvrtcSetFlowCallback)(program, int (*)(void *, void *), void *); /* NULL before 12.8 */
    int major, minor;
} nvrtc;

/* ---- loading -------------------------------------------------------------------------------- */

/* The newest first; then as toolkits are installed where the linker does not look. */
static const char *const places[] = {"libnvrtc.so.13",
                                     "libnvrtc.so.12",
                                     "libnvrtc.so.11.2",
                                     "libnvrtc.so",
                                     "/usr/local/cuda/lib64/libnvrtc.so.13",
                                     "/usr/local/cuda/lib64/libnvrtc.so.12",
                                     "/usr/local/cuda/lib64/libnvrtc.so"};

/* TIDEPOOL_NVRTC names another library, or "none". (The stager is not used
 * under raised privileges.) */
static void *nvrtc_open_library(void)
{
    const char *named = getenv("TIDEPOOL_NVRTC");
    void *library = NULL;
    if (named != NULL)
        return dlopen(named, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof places / sizeof *places && library == NULL; i++)
        library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

/* `function` points to a pointer to a function, whatever its type. */
static bool nvrtc_find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    _Static_assert(sizeof found == sizeof nvrtc.nvrtcVersion, "POSIX: of one size");
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool nvrtc_find_all(void *library)
{
    bool all = nvrtc_find(library, "nvrtcGetErrorString", &nvrtc.nvrtcGetErrorString);
    (void)nvrtc_find(library, "nvrtcSetFlowCallback", &nvrtc.nvrtcSetFlowCallback);
#define X(name, arguments) all = nvrtc_find(library, #name, &nvrtc.name) && all;
    ENTRIES(X)
#undef X
    return all && nvrtc.nvrtcVersion(&nvrtc.major, &nvrtc.minor) == 0;
}

/* Once; it stays. False: one line in `error`. */
static bool nvrtc_load(char *error, size_t room)
{
    static void *library;
    static bool whole;
    tide_assert(error != NULL && room > 0);
    if (library == NULL) {
        library = nvrtc_open_library();
        whole = library != NULL && nvrtc_find_all(library);
    }
    if (library == NULL)
        snprintf(error, room, "no NVRTC: %s",
                 getenv("TIDEPOOL_NVRTC") != NULL ? "TIDEPOOL_NVRTC names none that can be loaded"
                                                  : "libnvrtc.so.13 and older ones are not found");
    else if (!whole)
        snprintf(error, room, "no NVRTC: the library that was found lacks entry points of 11.2");
    tide_assert(!whole || library != NULL);
    return whole;
}

size_t stage_nvrtc_architectures(int *out, size_t most, char *error, size_t room)
{
    int count = 0, all[ARCHITECTURES_MAX];
    tide_assert(out != NULL && most > 0);
    if (!nvrtc_load(error, room))
        return 0;
    if (nvrtc.nvrtcGetNumSupportedArchs(&count) != 0 || count <= 0 || count > ARCHITECTURES_MAX ||
        nvrtc.nvrtcGetSupportedArchs(all) != 0) {
        snprintf(error, room, "NVRTC does not say which architectures it knows");
        return 0;
    }
    size_t given = (size_t)count < most ? (size_t)count : most;
    memcpy(out, all, given * sizeof *out);
    return given;
}

/* ---- compiling ------------------------------------------------------------------------------ */

/* The architecture itself, as a cubin; the newest there is, as PTX, for a newer
 * device. 0: neither. */
static int nvrtc_choose_target(unsigned architecture, bool *cubin, char *error, size_t room)
{
    int all[ARCHITECTURES_MAX], newest = 0;
    size_t count = stage_nvrtc_architectures(all, ARCHITECTURES_MAX, error, room);
    *cubin = false;
    for (size_t i = 0; i < count; i++) {
        *cubin = *cubin || all[i] == (int)architecture;
        newest = all[i] > newest ? all[i] : newest;
    }
    if (*cubin)
        return (int)architecture;
    if (newest != 0 && (int)architecture > newest)
        return newest;
    if (count != 0)
        snprintf(error, room, "NVRTC %d.%d does not know sm_%u", nvrtc.major, nvrtc.minor,
                 architecture);
    return 0;
}

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
static void nvrtc_take_log(program made, const char *what, char *error, size_t room)
{
    size_t bytes = 0;
    char *log = NULL;
    tide_assert(room > 0);
    if (nvrtc.nvrtcGetProgramLogSize(made, &bytes) == 0 && bytes > 1)
        log = calloc(1, bytes + 1);
    if (log != NULL)
        (void)nvrtc.nvrtcGetProgramLog(made, log);
    int length = snprintf(error, room, "NVRTC: %s%s%s", what, log != NULL ? ": " : "",
                          log != NULL ? log : "");
    free(log);
    for (int i = 0; i < length && (size_t)i < room && error[i] != '\0'; i++)
        if (error[i] < ' ' || error[i] > '~')
            error[i] = ' ';
}

/* Copies the code out of the program. */
static bool nvrtc_fetch_code(program made, bool cubin, stage_cuda_code *out, char *error,
                             size_t room)
{
    int (*size)(program, size_t *) = cubin ? nvrtc.nvrtcGetCUBINSize : nvrtc.nvrtcGetPTXSize;
    int (*get)(program, char *) = cubin ? nvrtc.nvrtcGetCUBIN : nvrtc.nvrtcGetPTX;
    out->bytes = 0;
    int result = size(made, &out->bytes);
    out->code = result == 0 && out->bytes > 0 ? malloc(out->bytes) : NULL;
    if (out->code != NULL && (result = get(made, out->code)) == 0)
        return true;
    free(out->code);
    out->code = NULL;
    snprintf(error, room, "NVRTC gives no code: %s",
             result != 0 ? nvrtc.nvrtcGetErrorString(result) : "no memory");
    return false;
}

/* Within the deadline, where the compiler asks whether it is over. */
static bool nvrtc_compile(program made, int target, bool cubin, int deadline_ms,
                          stage_cuda_code *out, char *error, size_t room)
{
    char option[32];
    const char *const options[] = {option, "-std=c++14"};
    tide_assert(target != 0 && deadline_ms > 0);
    int64_t deadline = nvrtc_now_ms() + deadline_ms;
    snprintf(option, sizeof option, "-arch=%s_%d", cubin ? "sm" : "compute", target);
    snprintf(out->compiler, sizeof out->compiler, "nvrtc %d.%d %s %s", nvrtc.major, nvrtc.minor,
             options[0], options[1]);
    if (nvrtc.nvrtcSetFlowCallback != NULL)
        (void)nvrtc.nvrtcSetFlowCallback(made, nvrtc_is_late, &deadline);
    int result = nvrtc.nvrtcCompileProgram(made, 2, options);
    if (result == 0)
        return nvrtc_fetch_code(made, cubin, out, error, room);
    if (result == CANCELLED)
        snprintf(error, room, "NVRTC was cancelled after %d ms", deadline_ms);
    else
        nvrtc_take_log(made, nvrtc.nvrtcGetErrorString(result), error, room);
    return false;
}

bool stage_nvrtc_compile(const char *source, unsigned architecture, int deadline_ms,
                         stage_cuda_code *out, char *error, size_t room)
{
    bool cubin;
    program made;
    tide_assert(source != NULL && out != NULL);
    int target =
        nvrtc_load(error, room) ? nvrtc_choose_target(architecture, &cubin, error, room) : 0;
    if (target == 0)
        return false;
    int result = nvrtc.nvrtcCreateProgram(&made, source, "tidepool.cu", 0, NULL, NULL);
    if (result != 0) {
        snprintf(error, room, "NVRTC: %s", nvrtc.nvrtcGetErrorString(result));
        return false;
    }
    out->kind = cubin ? "cubin" : "ptx";
    bool good = nvrtc_compile(made, target, cubin, deadline_ms, out, error, room);
    (void)nvrtc.nvrtcDestroyProgram(&made);
    tide_assert(!good || (out->code != NULL && out->bytes > 0));
    return good;
}
