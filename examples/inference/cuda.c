/* SPDX-License-Identifier: MIT */
/* The kernels on a CUDA device: compiled by NVRTC, launched by the driver; both loaded when asked
 * for. */
#include "kernels.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char preamble[] = "#define KERNEL extern \"C\" __global__\n"
                               "#define GLOBAL\n"
                               "#define INDEX (int)(blockIdx.x * blockDim.x + threadIdx.x)\n"
                               "#define sqrt sqrtf\n"
                               "#define exp expf\n";

/* As nvrtc.h and cuda.h have them; handles are pointers. */
static struct {
    int (*nvrtcCreateProgram)(void **, const char *, const char *, int, const char *const *,
                              const char *const *);
    int (*nvrtcCompileProgram)(void *, int, const char *const *);
    int (*nvrtcGetCUBINSize)(void *, size_t *);
    int (*nvrtcGetCUBIN)(void *, char *);
    int (*nvrtcGetProgramLogSize)(void *, size_t *);
    int (*nvrtcGetProgramLog)(void *, char *);
    int (*cuCtxSetCurrent)(void *);
    int (*cuCtxGetDevice)(int *);
    int (*cuDeviceGetAttribute)(int *, int, int);
    int (*cuModuleLoadData)(void **, const void *);
    int (*cuModuleGetFunction)(void **, void *, const char *);
    int (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, void *, void **, void **);
} cu;

enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };

static void *open_any(const char *const *names)
{
    for (; *names != NULL; names++) {
        void *library = dlopen(*names, RTLD_NOW);
        if (library != NULL)
            return library;
    }
    fprintf(stderr, "inference: %s\n", dlerror());
    return NULL;
}

static bool load(void)
{
    static const char *const compilers[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                            "/usr/local/cuda/lib64/libnvrtc.so", NULL};
    static const char *const drivers[] = {"libcuda.so.1", NULL};
    void *compiler = open_any(compilers), *driver = open_any(drivers);
    if (compiler == NULL || driver == NULL)
        return false;
#define FIND(library, name, symbol) *(void **)(void *)&cu.name = dlsym(library, symbol)
    FIND(compiler, nvrtcCreateProgram, "nvrtcCreateProgram");
    FIND(compiler, nvrtcCompileProgram, "nvrtcCompileProgram");
    FIND(compiler, nvrtcGetCUBINSize, "nvrtcGetCUBINSize");
    FIND(compiler, nvrtcGetCUBIN, "nvrtcGetCUBIN");
    FIND(compiler, nvrtcGetProgramLogSize, "nvrtcGetProgramLogSize");
    FIND(compiler, nvrtcGetProgramLog, "nvrtcGetProgramLog");
    FIND(driver, cuCtxSetCurrent, "cuCtxSetCurrent");
    FIND(driver, cuCtxGetDevice, "cuCtxGetDevice");
    FIND(driver, cuDeviceGetAttribute, "cuDeviceGetAttribute");
    FIND(driver, cuModuleLoadData, "cuModuleLoadData");
    FIND(driver, cuModuleGetFunction, "cuModuleGetFunction");
    FIND(driver, cuLaunchKernel, "cuLaunchKernel");
#undef FIND
    return cu.nvrtcGetCUBIN != NULL && cu.cuLaunchKernel != NULL;
}

static void complain(void *program)
{
    size_t bytes = 0;
    char *log;
    if (cu.nvrtcGetProgramLogSize(program, &bytes) == 0 && (log = malloc(bytes + 1)) != NULL) {
        if (cu.nvrtcGetProgramLog(program, log) == 0)
            fprintf(stderr, "inference: %s\n", log);
        free(log);
    }
}

/* The code for this device's architecture; freed by the caller. */
static char *compile(const char *text, int architecture)
{
    char option[32], *whole = malloc(sizeof preamble + strlen(text)), *code = NULL;
    const char *options[] = {option};
    void *program = NULL;
    size_t bytes = 0;
    if (whole == NULL)
        return NULL;
    snprintf(option, sizeof option, "-arch=sm_%d", architecture);
    strcat(strcpy(whole, preamble), text);
    if (cu.nvrtcCreateProgram(&program, whole, "layers.inc", 0, NULL, NULL) == 0) {
        if (cu.nvrtcCompileProgram(program, 1, options) != 0)
            complain(program);
        else if (cu.nvrtcGetCUBINSize(program, &bytes) == 0 && (code = malloc(bytes)) != NULL)
            (void)cu.nvrtcGetCUBIN(program, code);
    }
    free(whole);
    return code;
}

static bool build(kernels *k, const tide_device *device, const char *text)
{
    int ordinal = 0, major = 0, minor = 0;
    if (!load() || cu.cuCtxSetCurrent(tide_device_context(device)) != 0 ||
        cu.cuCtxGetDevice(&ordinal) != 0 ||
        cu.cuDeviceGetAttribute(&major, CAPABILITY_MAJOR, ordinal) != 0 ||
        cu.cuDeviceGetAttribute(&minor, CAPABILITY_MINOR, ordinal) != 0)
        return false;
    char *code = compile(text, 10 * major + minor);
    void *module = NULL;
    bool built = code != NULL && cu.cuModuleLoadData(&module, code) == 0;
    for (int i = 0; built && i < KERNEL_COUNT; i++)
        built = cu.cuModuleGetFunction(&k->of[i], module, kernel_names[i]) == 0;
    free(code);
    k->stream = tide_device_stream(device);
    return built;
}

static bool launch(kernels *k, kernel_name name, size_t threads, const argument *arguments,
                   size_t count)
{
    void *values[ARGUMENTS_MAX];
    if (count > ARGUMENTS_MAX)
        return false;
    for (size_t i = 0; i < count; i++)
        values[i] =
            (void *)(uintptr_t)(arguments[i].array != NULL ? (const void *)&arguments[i].array
                                                           : &arguments[i].number);
    int error = cu.cuLaunchKernel(k->of[name], (unsigned)((threads + GROUP - 1) / GROUP), 1, 1,
                                  GROUP, 1, 1, 0, k->stream, values, NULL);
    if (error != 0)
        fprintf(stderr, "inference: %s: CUDA error %d\n", kernel_names[name], error);
    return error == 0;
}

const kernel_methods cuda_methods = {"cuda:", build, launch};
