/* SPDX-License-Identifier: MIT */
/* Modules, their kernels, launches. A module is PTX, which is executed, or the word "fake" with one
 * kernel of our own. Who calls anything here has the lock, other than a test that asks. */
#include <stdio.h>
#include <stdlib.h>

#include "model.h"
#include "ptx.h"

enum {
    INVALID_PTX = 218,
    NO_BINARY = 209,
    INVALID_IMAGE = 200,
    UNSUPPORTED_PTX_VERSION = 222,
    NAMES = 64,
    RUNS_MAX = 64,
    WILD_GROUPS = 64
};

/* Counted by its handle and by each launch: work may still be queued when it is unloaded. */
typedef struct module {
    ptx_module *ptx; /* NULL: "fake" */
    unsigned holders;
} module;

typedef struct function {
    module *of;
    const ptx_kernel *kernel; /* NULL: bump */
    struct function *next;
} function;

typedef struct code_launch {
    const ptx_kernel *kernel;
    module *of;
    context *context;
    unsigned groups, group, holders;
    char parameters[];
} code_launch;

static struct {
    unsigned architecture, driver;
    bool asked; /* the environment */
    uint64_t instructions;
    char names[NAMES][64];
    unsigned runs[NAMES];
} code;

static function
    *functions; /* never given back: handles outlive modules in programs that are wrong */

/* ---- what a test asks ----------------------------------------------------------------------- */

void fake_architecture(unsigned architecture)
{
    fake_lock();
    code.architecture = architecture;
    code.asked = true;
    fake_unlock();
}

int code_architecture(void)
{
    const char *named = code.asked ? NULL : getenv("FAKE_CUDA_ARCHITECTURE");
    if (named != NULL)
        code.architecture = (unsigned)strtoul(named, NULL, 10);
    code.asked = true;
    return (int)code.architecture;
}

void fake_driver_version(unsigned version)
{
    fake_lock();
    code.driver = version;
    fake_unlock();
}

/* 13020: CUDA 13.2. */
int code_driver_version(void)
{
    enum { NEWEST = 13090 };
    return (int)(code.driver != 0 ? code.driver : NEWEST);
}

uint64_t fake_instructions(void)
{
    fake_lock();
    uint64_t count = code.instructions;
    fake_unlock();
    return count;
}

static unsigned *runs_of(const char *name)
{
    for (unsigned i = 0; i < NAMES; i++) {
        if (code.names[i][0] == '\0')
            snprintf(code.names[i], sizeof code.names[i], "%s", name);
        if (strcmp(code.names[i], name) == 0)
            return &code.runs[i];
    }
    abort();
}

unsigned fake_kernel_runs(const char *name)
{
    fake_lock();
    unsigned runs = *runs_of(name);
    fake_unlock();
    return runs;
}

void code_report(void)
{
    unsigned names = 0, runs = 0;
    for (unsigned i = 0; i < NAMES; i++) {
        names += code.runs[i] != 0;
        runs += code.runs[i];
    }
    fflush(stdout);
    fprintf(stderr, "fake_cuda: kernels of %u names, %u runs, %llu instructions\n", names, runs,
            (unsigned long long)code.instructions);
    if (fake.hazard[0] != '\0')
        fprintf(stderr, "fake_cuda: hazard: %s\n", fake.hazard);
    if (fake.violation[0] != '\0')
        fprintf(stderr, "fake_cuda: violation: %s\n", fake.violation);
}

void code_reset(void)
{
    code.instructions = 0;
    memset(code.names, 0, sizeof code.names);
    memset(code.runs, 0, sizeof code.runs);
}

/* ---- modules -------------------------------------------------------------------------------- */

/* Into the log that the caller gave, if it gave one. */
static int refuse_code(int result, const char *why, unsigned count, const int *options,
                       void **values)
{
    char *log = NULL;
    size_t room = 0;
    for (unsigned i = 0; i < count; i++)
        if (options[i] == TIDE_CU_JIT_ERROR_LOG)
            log = values[i];
        else if (options[i] == TIDE_CU_JIT_ERROR_LOG_BYTES)
            room = (size_t)(uintptr_t)values[i];
    if (log != NULL && room != 0)
        snprintf(log, room, "%s", why);
    return result;
}

static int load_ptx(const char *text, char why[PTX_ERROR_BYTES], ptx_module **out)
{
    *out = ptx_load(text, why);
    if (*out == NULL)
        return INVALID_PTX;
    if (ptx_target(*out) <= (unsigned)code_architecture())
        return 0;
    snprintf(why, PTX_ERROR_BYTES, "the device is sm_%d, and the code is for sm_%u",
             code_architecture(), ptx_target(*out));
    ptx_unload(*out);
    return INVALID_PTX;
}

/* PTX 8.0 came with CUDA 12.0 and so on, 8.5 with 12.5 and 12.6; 9.0 with 13.0. */
static int ptx_since(int major, int minor)
{
    return (major + 4) * 1000 + (minor + (major == 8 && minor > 5)) * 10;
}

/* PTX of a version that the driver does not know yet. */
static int check_ptx_version(const char *text, char why[PTX_ERROR_BYTES])
{
    int major = 0, minor = 0;
    const char *version = strstr(text, ".version");
    if (version == NULL || sscanf(version, ".version %d.%d", &major, &minor) != 2 ||
        ptx_since(major, minor) <= code_driver_version())
        return 0;
    snprintf(why, PTX_ERROR_BYTES, "PTX %d.%d is newer than the driver, which is of CUDA %d.%d",
             major, minor, code_driver_version() / 1000, code_driver_version() % 1000 / 10);
    return UNSUPPORTED_PTX_VERSION;
}

/* Of the head of a cubin: compilers of CUDA 13 write version 8, with the architecture elsewhere
 * among the flags. */
enum { ELF_VERSION = 8, ELF_FLAGS = 48, ELF_NEWER = 8, CUDA_13 = 13000 };

static int check_cubin(const unsigned char *image, char why[PTX_ERROR_BYTES])
{
    uint32_t flags = 0;
    bool newer = image[ELF_VERSION] >= ELF_NEWER;
    memcpy(&flags, image + ELF_FLAGS, sizeof flags);
    unsigned built_for = (newer ? flags >> 8 : flags) & 0xFF;
    unsigned device = (unsigned)code_architecture();
    if (newer && code_driver_version() < CUDA_13) {
        snprintf(why, PTX_ERROR_BYTES, "the cubin's version is newer than the driver");
        return INVALID_IMAGE;
    }
    if (built_for / 10 != device / 10 || built_for > device)
        snprintf(why, PTX_ERROR_BYTES, "the device is sm_%u, and the cubin is for sm_%u", device,
                 built_for);
    else
        snprintf(why, PTX_ERROR_BYTES, "the fake driver executes PTX, no cubins");
    return NO_BINARY;
}

int code_load(const void *image, unsigned count, const int *options, void **values,
              tide_cu_module *out)
{
    char why[PTX_ERROR_BYTES] = "";
    ptx_module *ptx = NULL;
    int result = memcmp(image, "fake", 4) == 0      ? 0
                 : memcmp(image, "\177ELF", 4) == 0 ? NO_BINARY
                                                    : INVALID_IMAGE;
    if (result == NO_BINARY)
        result = check_cubin(image, why);
    else if (result == INVALID_IMAGE && strstr(image, ".version") != NULL &&
             (result = check_ptx_version(image, why)) == 0)
        result = load_ptx(image, why, &ptx);
    if (result != 0)
        return refuse_code(result, why, count, options, values);
    module *made = calloc(1, sizeof *made);
    if (made == NULL)
        abort();
    *made = (module){ptx, 1};
    *out = (tide_cu_module)(void *)made;
    return 0;
}

static void leave_module(module *of)
{
    if (--of->holders != 0)
        return;
    if (of->ptx != NULL)
        ptx_unload(of->ptx);
    free(of);
}

int code_unload(tide_cu_module handle)
{
    module *of = (module *)(void *)handle;
    if (of == NULL)
        return INVALID_HANDLE;
    for (function **at = &functions; *at != NULL;) {
        function *one = *at;
        if (one->of != of) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        free(one);
    }
    leave_module(of);
    return 0;
}

int code_find(tide_cu_module handle, const char *name, tide_cu_function *out)
{
    module *of = (module *)(void *)handle;
    const ptx_kernel *kernel = of->ptx != NULL ? ptx_find(of->ptx, name) : NULL;
    if (kernel == NULL && (of->ptx != NULL || strcmp(name, "bump") != 0))
        return NOT_FOUND;
    function *made = malloc(sizeof *made);
    if (made == NULL)
        abort();
    *made = (function){of, kernel, functions};
    functions = made;
    *out = (tide_cu_function)(void *)made;
    return 0;
}

/* ---- queued launches ------------------------------------------------------------------------ */

void code_keep(work *queued)
{
    if (queued->code == NULL)
        return;
    queued->code->holders++;
    queued->extents = memory_extents(&queued->extent_count);
}

void code_drop(work *over)
{
    free(over->extents);
    over->extents = NULL;
    code_launch *of = over->code;
    over->code = NULL;
    if (of == NULL || --of->holders != 0)
        return;
    leave_module(of->of);
    free(of);
}

/* ---- what a run has used -------------------------------------------------------------------- */

static bool bit_at(const uint8_t *bits, size_t i)
{
    return (bits[i / 8] >> i % 8 & 1) != 0;
}

/* The next run of bytes; false: none is left. */
static bool next_run(const uint8_t *bits, size_t bytes, size_t *from, size_t *end)
{
    size_t i = *end;
    while (i < bytes && !bit_at(bits, i))
        i += i % 8 == 0 && bits[i / 8] == 0 ? 8 : 1;
    *from = i;
    while (i < bytes && bit_at(bits, i))
        i += i % 8 == 0 && bits[i / 8] == 0xFF && i + 8 <= bytes ? 8 : 1;
    *end = i;
    return *from < bytes;
}

/* More than so many pieces are told as one, from the first to the last. */
static void tell_uses(const work *one, const ptx_range *of, const uint8_t *bits, bool writes)
{
    fake_range all[RUNS_MAX];
    size_t from, end = 0, count = 0;
    while (bits != NULL && next_run(bits, of->bytes, &from, &end)) {
        char *start = (char *)(uintptr_t)of->address;
        if (count == RUNS_MAX) {
            all[0].bytes = (size_t)(start + end - (char *)all[0].data);
            count = 1;
        }
        all[count++] = (fake_range){start + from, end - from, writes};
    }
    for (size_t i = 0; i < count; i++)
        model_used(one, &all[i]);
}

static void tell_all(const work *one)
{
    for (size_t i = 0; i < one->extent_count; i++) {
        ptx_range *of = &one->extents[i];
        tell_uses(one, of, of->reads, false);
        tell_uses(one, of, of->writes, true);
        free(of->reads);
        free(of->writes);
        of->reads = of->writes = NULL;
    }
}

/* ---- running -------------------------------------------------------------------------------- */

/* One small launch in four lets the lanes of warps part at random. */
static void run_code(const work *one)
{
    code_launch *c = one->code;
    bool wild = c->groups <= WILD_GROUPS && fake_random() % 4 == 0;
    ptx_launch l = {.kernel = c->kernel,
                    .groups = c->groups,
                    .group = c->group,
                    .parameters = c->parameters,
                    .ranges = one->extents,
                    .range_count = one->extent_count,
                    .seed = wild ? fake_random() | 1 : 0};
    bool good = ptx_run(&l);
    tell_all(one);
    code.instructions += l.instructions;
    ++*runs_of(ptx_kernel_name(c->kernel));
    if (good)
        return;
    fprintf(stderr, "fake_cuda: %s\n", l.error);
    fake_complain("%s", l.error);
    c->context->lost = true;
}

static int start_ptx(const function *of, unsigned groups, unsigned group, void **values,
                     void *stream)
{
    size_t bytes = ptx_parameter_bytes(of->kernel), offset = 0;
    code_launch *made = calloc(1, sizeof *made + bytes);
    if (made == NULL)
        abort();
    *made = (code_launch){of->kernel, of->of, control_current(), groups, group, 1};
    for (size_t i = 0, size; (size = ptx_parameter(of->kernel, i, &offset)) != 0; i++)
        memcpy(made->parameters + offset, values[i], size);
    of->of->holders++;
    work one = {.run = run_code, .what = ptx_kernel_name(of->kernel), .code = made};
    int result = entry_queue(stream, &one);
    code_drop(&one);
    return result;
}

/* The kernel of "fake": adds its second argument to each of the first's so many bytes. */
typedef struct bump_arguments {
    unsigned char *data;
    unsigned by;
    size_t count;
} bump_arguments;

static void bump(const void *of)
{
    const bump_arguments *arguments = of;
    unsigned char *bytes = fake_see(arguments->data);
    for (size_t i = 0; i < arguments->count; i++)
        bytes[i] = (unsigned char)(bytes[i] + arguments->by);
}

static int start_bump(unsigned groups, unsigned group, void **values, void *stream)
{
    bump_arguments arguments = {.count = (size_t)groups * group};
    memcpy(&arguments.data, values[0], sizeof arguments.data);
    memcpy(&arguments.by, values[1], sizeof arguments.by);
    const fake_range range = {arguments.data, arguments.count, true};
    return entry_launch(stream, bump, &arguments, sizeof arguments, &range, 1);
}

/* `shape`: groups in x, y, z, threads of each in x, y, z, bytes of shared memory. */
int code_start(tide_cu_function handle, const unsigned shape[7], void **values, void *stream)
{
    const function *of = (const function *)(const void *)handle;
    bool flat = shape[1] * shape[2] * shape[4] * shape[5] == 1;
    if (of == NULL || !flat || shape[6] != 0 || shape[0] == 0 || shape[3] == 0 || shape[3] > 1024)
        return TIDE_CU_INVALID_VALUE;
    return of->kernel != NULL ? start_ptx(of, shape[0], shape[3], values, stream)
                              : start_bump(shape[0], shape[3], values, stream);
}
