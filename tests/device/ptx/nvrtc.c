/* SPDX-License-Identifier: MIT */
/* NVRTC, with one difference: where a cubin is asked for (-arch=sm_90), PTX of the same
 * architecture (-arch=compute_90) is made and given in its place. So whoever compiles for a device
 * and loads the code runs on the fake driver, which executes PTX. PTX_NVRTC names the real
 * library. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)

enum { INTERNAL_ERROR = 11, OPTIONS_MAX = 16, OPTION_BYTES = 256 };

typedef struct program *program;

int ptx_nvrtc_itself(void);
int ptx_nvrtc_itself(void)
{
    return 1;
}

/* Another library than this one, under whatever name this one was found. */
static void *open_real(void)
{
    const char *const places[] = {getenv("PTX_NVRTC"),
                                  "libnvrtc.so.13",
                                  "libnvrtc.so.12",
                                  "libnvrtc.so",
                                  "/usr/local/cuda/lib64/libnvrtc.so.13",
                                  "/usr/local/cuda/lib64/libnvrtc.so.12",
                                  "/usr/local/cuda/lib64/libnvrtc.so"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        void *found = places[i] != NULL ? dlopen(places[i], RTLD_NOW | RTLD_LOCAL) : NULL;
        if (found != NULL && dlsym(found, "ptx_nvrtc_itself") == NULL)
            return found;
    }
    fputs("ptx_nvrtc: there is no NVRTC\n", stderr);
    return NULL;
}

static void *real_symbol(const char *name)
{
    static void *library;
    if (library == NULL)
        library = open_real();
    return library != NULL ? dlsym(library, name) : NULL;
}

#define FORWARD(name, parameters, ...)                                    \
    int name parameters;                                                  \
    int name parameters                                                   \
    {                                                                     \
        int(*function) parameters;                                        \
        *(void **)(void *)&function = real_symbol(#name);                 \
        return function != NULL ? function(__VA_ARGS__) : INTERNAL_ERROR; \
    }

FORWARD(nvrtcVersion, (int *major, int *minor), major, minor)
FORWARD(nvrtcGetNumSupportedArchs, (int *count), count)
FORWARD(nvrtcGetSupportedArchs, (int *all), all)
FORWARD(nvrtcCreateProgram,
        (program * out, const char *source, const char *name, int count, const char *const *headers,
         const char *const *names),
        out, source, name, count, headers, names)
FORWARD(nvrtcDestroyProgram, (program * of), of)
FORWARD(nvrtcGetPTXSize, (program of, size_t *bytes), of, bytes)
FORWARD(nvrtcGetPTX, (program of, char *out), of, out)
FORWARD(nvrtcGetProgramLogSize, (program of, size_t *bytes), of, bytes)
FORWARD(nvrtcGetProgramLog, (program of, char *out), of, out)

int nvrtcGetCUBINSize(program of, size_t *bytes);
int nvrtcGetCUBINSize(program of, size_t *bytes)
{
    return nvrtcGetPTXSize(of, bytes);
}

int nvrtcGetCUBIN(program of, char *out);
int nvrtcGetCUBIN(program of, char *out)
{
    return nvrtcGetPTX(of, out);
}

const char *nvrtcGetErrorString(int result);
const char *nvrtcGetErrorString(int result)
{
    const char *(*function)(int);
    *(void **)(void *)&function = real_symbol("nvrtcGetErrorString");
    return function != NULL ? function(result) : "there is no NVRTC";
}

int nvrtcCompileProgram(program of, int count, const char *const *options);
int nvrtcCompileProgram(program of, int count, const char *const *options)
{
    static const char cubin[] = "-arch=sm_";
    char texts[OPTIONS_MAX][OPTION_BYTES];
    const char *changed[OPTIONS_MAX];
    int (*function)(program, int, const char *const *);
    *(void **)(void *)&function = real_symbol("nvrtcCompileProgram");
    if (function == NULL || count > OPTIONS_MAX)
        return INTERNAL_ERROR;
    for (int i = 0; i < count; i++) {
        bool is_cubin = strncmp(options[i], cubin, strlen(cubin)) == 0;
        snprintf(texts[i], sizeof texts[i], "-arch=compute_%s",
                 options[i] + strlen(cubin) * is_cubin);
        changed[i] = is_cubin ? texts[i] : options[i];
    }
    return function(of, count, changed);
}
