/* SPDX-License-Identifier: MIT */
/* The kernels on a CUDA device: compiled by NVRTC, launched by the driver; both loaded when asked
 * for. */
#include "kernels.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/device.h>
#include <tidepool/device_bump.h>

static const char preamble[] = "#define KERNEL extern \"C\" __global__\n"
                               "#define GLOBAL\n"
                               "#define INDEX (int)(blockIdx.x * blockDim.x + threadIdx.x)\n"
                               "#define sqrt sqrtf\n"
                               "#define exp expf\n"
                               "#define BUMP tide_bump\n";

/* As nvrtc.h and cuda.h have them; handles are pointers. The driver is asked for each entry point
 * at the CUDA version of these parameters: names alone may mean others tomorrow. */
#define NVRTC_ENTRIES(X)                                                                    \
    X(nvrtcGetErrorString, const char *, (int))                                             \
    X(nvrtcGetNumSupportedArchs, int, (int *))                                              \
    X(nvrtcGetSupportedArchs, int, (int *))                                                 \
    X(nvrtcCreateProgram, int,                                                              \
      (void **, const char *, const char *, int, const char *const *, const char *const *)) \
    X(nvrtcDestroyProgram, int, (void **))                                                  \
    X(nvrtcCompileProgram, int, (void *, int, const char *const *))                         \
    X(nvrtcGetPTXSize, int, (void *, size_t *))                                             \
    X(nvrtcGetPTX, int, (void *, char *))                                                   \
    X(nvrtcGetCUBINSize, int, (void *, size_t *))                                           \
    X(nvrtcGetCUBIN, int, (void *, char *))                                                 \
    X(nvrtcGetProgramLogSize, int, (void *, size_t *))                                      \
    X(nvrtcGetProgramLog, int, (void *, char *))

#define CUDA_ENTRIES(X)                                                                      \
    X(cuGetErrorName, 6000, (int, const char **))                                            \
    X(cuCtxSetCurrent, 4000, (void *))                                                       \
    X(cuCtxGetDevice, 2000, (int *))                                                         \
    X(cuDeviceGetAttribute, 2000, (int *, int, int))                                         \
    X(cuMemAlloc, 3020, (uint64_t *, size_t))                                                \
    X(cuMemFree, 3020, (uint64_t))                                                           \
    X(cuModuleLoadDataEx, 2010, (void **, const void *, unsigned, int *, void **))           \
    X(cuModuleGetFunction, 2000, (void **, void *, const char *))                            \
    X(cuStreamCreate, 2000, (void **, unsigned))                                             \
    X(cuStreamDestroy, 4000, (void *))                                                       \
    X(cuStreamSynchronize, 2000, (void *))                                                   \
    X(cuStreamBeginCapture, 10010, (void *, int))                                            \
    X(cuStreamEndCapture, 10000, (void *, void **))                                          \
    X(cuGraphInstantiateWithFlags, 11040, (void **, void *, unsigned long long))             \
    X(cuGraphLaunch, 10000, (void *, void *))                                                \
    X(cuGraphExecDestroy, 10000, (void *))                                                   \
    X(cuGraphDestroy, 10000, (void *))                                                       \
    X(cuLaunchKernel, 4000,                                                                  \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, \
       void **, void **))

static struct {
#define X(name, type, arguments) type(*name) arguments;
    NVRTC_ENTRIES(X)
#undef X
#define X(name, version, arguments) int(*name) arguments;
    CUDA_ENTRIES(X)
#undef X
} cu;

enum { NON_BLOCKING = 1, CAPTURE_OF_THREAD = 1 };
enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76, JIT_LOG = 5, JIT_LOG_BYTES = 6 };

static void *open_any(const char *what, const char *const *names)
{
    for (const char *const *name = names; *name != NULL; name++) {
        void *library = dlopen(*name, RTLD_NOW);
        if (library != NULL)
            return library;
    }
    fprintf(stderr, "inference: there is no %s: %s\n", what, dlerror());
    return NULL;
}

static bool load_compiler(void)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                        "/usr/local/cuda/lib64/libnvrtc.so", NULL};
    void *library = open_any("NVRTC", names);
    if (library == NULL)
        return false;
#define X(name, type, arguments)                                             \
    *(void **)(void *)&cu.name = dlsym(library, #name);                      \
    if (cu.name == NULL) {                                                   \
        fprintf(stderr, "inference: this NVRTC is too old: no " #name "\n"); \
        return false;                                                        \
    }
    NVRTC_ENTRIES(X)
#undef X
    return true;
}

static bool load_driver(void)
{
    static const char *const names[] = {"libcuda.so.1", NULL};
    int (*find)(const char *, void **, int, uint64_t, int *) = NULL;
    int status;
    void *library = open_any("CUDA driver", names);
    if (library == NULL)
        return false;
    *(void **)(void *)&find = dlsym(library, "cuGetProcAddress_v2");
#define X(name, version, arguments)                                                               \
    if (find == NULL || find(#name, (void **)(void *)&cu.name, version, 1, &status) != 0 ||       \
        cu.name == NULL) {                                                                        \
        fprintf(stderr, "inference: this CUDA driver is too old: no " #name " of %d\n", version); \
        return false;                                                                             \
    }
    CUDA_ENTRIES(X)
#undef X
    return true;
}

/* False, and a word on stderr, if the driver's call has failed. */
static bool call_good(int result, const char *call, const char *more)
{
    const char *name = NULL;
    if (result == 0)
        return true;
    (void)cu.cuGetErrorName(result, &name);
    fprintf(stderr, "inference: %s: %s (%d)%s%s\n", call, name != NULL ? name : "unknown error",
            result, more[0] != '\0' ? ": " : "", more);
    return false;
}

static bool complain(void *program, int result)
{
    size_t bytes = 0;
    char *log = NULL;
    if (program != NULL && cu.nvrtcGetProgramLogSize(program, &bytes) == 0)
        log = calloc(1, bytes + 1);
    if (log != NULL)
        (void)cu.nvrtcGetProgramLog(program, log);
    fprintf(stderr, "inference: NVRTC: %s: %s\n", cu.nvrtcGetErrorString(result),
            log != NULL ? log : "no log");
    free(log);
    return false;
}

/* A cubin for an architecture that NVRTC knows. A newer device gets PTX of the newest, which its
 * driver translates. */
static void choose_target(int architecture, char option[32], bool *cubin)
{
    int count = 0, all[64], newest = 0;
    *cubin = false;
    if (cu.nvrtcGetNumSupportedArchs(&count) != 0 || count > 64 ||
        cu.nvrtcGetSupportedArchs(all) != 0)
        count = 0;
    for (int i = 0; i < count; i++) {
        *cubin = *cubin || all[i] == architecture;
        newest = all[i] > newest ? all[i] : newest;
    }
    snprintf(option, 32, "-arch=%s_%d", *cubin ? "sm" : "compute",
             *cubin || newest == 0 || newest > architecture ? architecture : newest);
}

/* Into `code`, to be freed by the caller; PTX ends with a 0. */
static bool compile_program(void *program, int architecture, char **code)
{
    char option[32];
    bool cubin;
    size_t bytes = 0;
    choose_target(architecture, option, &cubin);
    int result = cu.nvrtcCompileProgram(program, 1, (const char *const[]){option});
    if (result == 0)
        result = (cubin ? cu.nvrtcGetCUBINSize : cu.nvrtcGetPTXSize)(program, &bytes);
    if (result != 0)
        return complain(program, result);
    *code = malloc(bytes);
    result = *code != NULL ? (cubin ? cu.nvrtcGetCUBIN : cu.nvrtcGetPTX)(program, *code) : 1;
    return result == 0 || complain(program, result);
}

static bool compile_text(const char *text, int architecture, char **code)
{
    const char *bump = tide_bump_source();
    char *whole = malloc(sizeof preamble + strlen(bump) + strlen(text));
    void *program = NULL;
    if (whole == NULL) {
        fputs("inference: no memory for the kernels' text\n", stderr);
        return false;
    }
    strcat(strcat(strcpy(whole, preamble), bump), text);
    int result = cu.nvrtcCreateProgram(&program, whole, "layers.inc", 0, NULL, NULL);
    bool good = result == 0 ? compile_program(program, architecture, code) : complain(NULL, result);
    if (program != NULL)
        (void)cu.nvrtcDestroyProgram(&program);
    free(whole);
    return good;
}

static bool load_code(kernels *k, const char *code)
{
    void *module = NULL;
    char log[512] = "";
    int options[] = {JIT_LOG, JIT_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    if (!call_good(cu.cuModuleLoadDataEx(&module, code, 2, options, values), "cuModuleLoadDataEx",
                   log))
        return false;
    for (int i = 0; i < KERNEL_COUNT; i++)
        if (!call_good(cu.cuModuleGetFunction(&k->of[i], module, kernel_names[i]),
                       "cuModuleGetFunction", kernel_names[i]))
            return false;
    return true;
}

static bool build(kernels *k, const tide_device *device, const char *text)
{
    int ordinal = 0, major = 0, minor = 0;
    char *code = NULL;
    if (!load_compiler() || !load_driver())
        return false;
    if (!call_good(cu.cuCtxSetCurrent(tide_device_context(device)), "cuCtxSetCurrent", "") ||
        !call_good(cu.cuCtxGetDevice(&ordinal), "cuCtxGetDevice", "") ||
        !call_good(cu.cuDeviceGetAttribute(&major, CAPABILITY_MAJOR, ordinal),
                   "cuDeviceGetAttribute", "") ||
        !call_good(cu.cuDeviceGetAttribute(&minor, CAPABILITY_MINOR, ordinal),
                   "cuDeviceGetAttribute", ""))
        return false;
    bool built = compile_text(text, 10 * major + minor, &code) && load_code(k, code);
    free(code);
    k->stream = tide_device_stream(device);
    return built;
}

static bool launch(const kernels *k, kernel_name name, size_t threads, const argument *arguments,
                   size_t count)
{
    void *values[ARGUMENTS_MAX];
    if (count > ARGUMENTS_MAX) {
        fprintf(stderr, "inference: %s: more than %d arguments\n", kernel_names[name],
                ARGUMENTS_MAX);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        values[i] =
            (void *)(uintptr_t)(arguments[i].array != NULL ? (const void *)&arguments[i].array
                                                           : &arguments[i].number);
    return call_good(cu.cuLaunchKernel(k->of[name], (unsigned)((threads + GROUP - 1) / GROUP), 1, 1,
                                       GROUP, 1, 1, 0, k->stream, values, NULL),
                     "cuLaunchKernel", kernel_names[name]);
}

/* ---- cuBLAS, as cublas_v2.h has it ---------------------------------------------------------- */

static int (*cublas_create)(void **), (*cublas_stream)(void *, void *);
static int (*cublas_sgemm)(void *, int of_a, int of_b, int m, int n, int k, const float *alpha,
                           const float *a, int lda, const float *b, int ldb, const float *beta,
                           float *c, int ldc);

static const char *open_library(kernels *k)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12"};
    void *library = NULL;
    size_t i = 0;
    for (; i < sizeof names / sizeof *names && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW);
    if (library == NULL)
        return NULL;
    *(void **)(void *)&cublas_create = dlsym(library, "cublasCreate_v2");
    *(void **)(void *)&cublas_stream = dlsym(library, "cublasSetStream_v2");
    *(void **)(void *)&cublas_sgemm = dlsym(library, "cublasSgemm_v2");
    bool good = cublas_create != NULL && cublas_stream != NULL && cublas_sgemm != NULL &&
                cublas_create(&k->handle) == 0 && cublas_stream(k->handle, k->stream) == 0;
    return good ? names[i - 1] : NULL;
}

/* cuBLAS has columns first: what is row by row here is transposed there, and so is the product. */
static bool multiply_by_cublas(const kernels *k, float *out, float *in, float *weights, int rows,
                               int width)
{
    static const float one = 1;
    int result = cublas_sgemm(k->handle, 0, 0, width, rows, width, &one, weights, width, in, width,
                              &one, out, width);
    if (result != 0)
        fprintf(stderr, "inference: cublasSgemm fails with %d\n", result);
    return result == 0;
}

static bool move_cublas(kernels *k)
{
    int result = cublas_create(&k->handle);
    if (result == 0)
        result = cublas_stream(k->handle, k->stream);
    if (result != 0)
        fprintf(stderr, "inference: cublasSetStream fails with %d\n", result);
    return result == 0;
}

/* ---- memory without a pool ------------------------------------------------------------------ */

static void *take(size_t bytes)
{
    uint64_t address = 0;
    if (!call_good(cu.cuMemAlloc(&address, bytes), "cuMemAlloc", ""))
        return NULL;
    return (void *)(uintptr_t)address;
}

/* cuMemFree gives back at once what work may still use, if nobody has waited. */
static bool give(const kernels *k, void *array)
{
    return call_good(cu.cuStreamSynchronize(k->stream), "cuStreamSynchronize", "") &&
           call_good(cu.cuMemFree((uintptr_t)array), "cuMemFree", "");
}

/* ---- streams and graphs --------------------------------------------------------------------- */

static void *open_stream(const tide_device *device)
{
    void *stream = NULL;
    if ((cu.cuStreamCreate == NULL && !load_driver()) ||
        !call_good(cu.cuCtxSetCurrent(tide_device_context(device)), "cuCtxSetCurrent", ""))
        return NULL;
    (void)call_good(cu.cuStreamCreate(&stream, NON_BLOCKING), "cuStreamCreate", "");
    return stream;
}

static void close_stream(void *stream)
{
    (void)call_good(cu.cuStreamDestroy(stream), "cuStreamDestroy", "");
}

static bool record(const kernels *k)
{
    return call_good(cu.cuStreamBeginCapture(k->stream, CAPTURE_OF_THREAD), "cuStreamBeginCapture",
                     "");
}

/* The driver keeps of a graph what it runs; the graph itself is kept, too, for its end. */
typedef struct recorded_graph {
    void *graph, *exec;
} recorded_graph;

static void *recorded(const kernels *k)
{
    recorded_graph *made = calloc(1, sizeof *made);
    if (made == NULL) {
        fputs("inference: no memory for a graph\n", stderr);
        return NULL;
    }
    if (call_good(cu.cuStreamEndCapture(k->stream, &made->graph), "cuStreamEndCapture", "") &&
        call_good(cu.cuGraphInstantiateWithFlags(&made->exec, made->graph, 0),
                  "cuGraphInstantiateWithFlags", ""))
        return made;
    free(made);
    return NULL;
}

static bool replay(const kernels *k, void *graph)
{
    return call_good(cu.cuGraphLaunch(((recorded_graph *)graph)->exec, k->stream), "cuGraphLaunch",
                     "");
}

static void forget(void *graph)
{
    recorded_graph *gone = graph;
    (void)call_good(cu.cuGraphExecDestroy(gone->exec), "cuGraphExecDestroy", "");
    (void)call_good(cu.cuGraphDestroy(gone->graph), "cuGraphDestroy", "");
    free(gone);
}

const kernel_methods cuda_methods = {.device = "cuda:",
                                     .build = build,
                                     .launch = launch,
                                     .open_library = open_library,
                                     .move_library = move_cublas,
                                     .multiply = multiply_by_cublas,
                                     .take = take,
                                     .give = give,
                                     .open_stream = open_stream,
                                     .close_stream = close_stream,
                                     .record = record,
                                     .recorded = recorded,
                                     .replay = replay,
                                     .forget = forget};
