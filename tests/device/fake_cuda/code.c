/* SPDX-License-Identifier: MIT */
/* Modules, their kernels, launches. A module is code for this processor (../kernels), or the word "fake" with
 * one kernel of our own, "bump". Who calls anything here has the lock, other
 * than a test that asks. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "host_code.h"

enum { NO_BINARY = 209, INVALID_IMAGE = 200, NAMES = 64, NAME_BYTES = 64 };

/* Counted by its handle and by each launch: work may still be queued when it is unloaded. */
typedef struct module {
    void *library; /* NULL: "fake" */
    unsigned holders;
    struct module *next; /* of all: one that a lost device never unloads is the driver's, no leak */
    struct function {
        struct module *of;
        host_kernel kernel;
        char name[NAME_BYTES];
    } functions[NAMES];
    unsigned count; /* of these */
} module;

typedef struct function function;

static module *modules;

typedef struct code_launch {
    host_kernel kernel;
    char name[NAME_BYTES];
    module *of;
    context *context;
    unsigned groups, group, holders;
    const void *values[FAKE_ARGUMENTS];
    char parameters[];
} code_launch;

static struct {
    char names[NAMES][NAME_BYTES];
    unsigned runs[NAMES];
} code;

/* ---- what a test asks ----------------------------------------------------------------------- */

int code_architecture(void)
{
    const char *named = getenv("FAKE_CUDA_ARCHITECTURE");
    return named != NULL ? (int)strtol(named, NULL, 10) : 0;
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
    fprintf(stderr, "fake_cuda: kernels of %u names, %u runs\n", names, runs);
    if (fake.hazard[0] != '\0')
        fprintf(stderr, "fake_cuda: hazard: %s\n", fake.hazard);
    if (fake.violation[0] != '\0')
        fprintf(stderr, "fake_cuda: violation: %s\n", fake.violation);
}

void code_reset(void)
{
    memset(code.names, 0, sizeof code.names);
    memset(code.runs, 0, sizeof code.runs);
}

/* ---- modules -------------------------------------------------------------------------------- */

int code_load(const void *image, tide_cu_module *out)
{
    void *library = NULL;
    bool fake_word = memcmp(image, "fake", 4) == 0;
    if (!fake_word && memcmp(image, "\177ELF", 4) != 0)
        return INVALID_IMAGE;
    if (!fake_word && (library = host_code_load(image)) == NULL)
        return NO_BINARY; /* it is not for this processor */
    module *made = calloc(1, sizeof *made);
    if (made == NULL)
        abort();
    made->library = library;
    made->holders = 1;
    made->next = modules;
    modules = made;
    *out = (tide_cu_module)(void *)made;
    return 0;
}

static void leave_module(module *of)
{
    if (--of->holders != 0)
        return;
    module **link = &modules;
    while (*link != of)
        link = &(*link)->next;
    *link = of->next;
    if (of->library != NULL)
        dlclose(of->library);
    free(of);
}

int code_unload(tide_cu_module handle)
{
    module *of = (module *)(void *)handle;
    if (of == NULL)
        return INVALID_HANDLE;
    leave_module(of);
    return 0;
}

/* The kernel of "fake": each thread adds the second argument to a byte of the first. */
static fake_cells bump_cells;

static size_t bump_size(unsigned i)
{
    return i == 0 ? sizeof(unsigned char *) : i == 1 ? sizeof(unsigned) : 0;
}

static void bump(const void *const *values)
{
    const fake_cells *now = &bump_cells;
    unsigned char *at = *(unsigned char *const *)values[0] + now->block.x * now->threads.x;
    at += now->thread.x;
    now->used((uintptr_t)at, 1, 1);
    *at = (unsigned char)(*at + *(const unsigned *)values[1]);
}

int code_find(tide_cu_module handle, const char *name, tide_cu_function *out)
{
    module *of = (module *)(void *)handle;
    host_kernel kernel = {.run = bump, .size = bump_size, .cells = &bump_cells};
    if (of->library != NULL ? !host_code_find(of->library, name, &kernel)
                            : strcmp(name, "bump") != 0)
        return NOT_FOUND;
    if (of->count == NAMES)
        abort();
    function *made = &of->functions[of->count++];
    *made = (function){.of = of, .kernel = kernel};
    snprintf(made->name, sizeof made->name, "%s", name);
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

static void tell_uses(const work *one, const extent *of, const uint8_t *bits, bool writes)
{
    size_t from, end = 0;
    while (bits != NULL && next_run(bits, of->bytes, &from, &end)) {
        char *start = (char *)(uintptr_t)of->address;
        model_used(one, &(fake_range){start + from, end - from, writes});
    }
}

static void tell_all(const work *one)
{
    for (size_t i = 0; i < one->extent_count; i++) {
        extent *of = &one->extents[i];
        tell_uses(one, of, of->reads, false);
        tell_uses(one, of, of->writes, true);
        free(of->reads);
        free(of->writes);
        of->reads = of->writes = NULL;
    }
}

/* ---- running -------------------------------------------------------------------------------- */

static void run_code(const work *one)
{
    code_launch *c = one->code;
    host_launch l = {.kernel = &c->kernel,
                     .values = c->values,
                     .groups = c->groups,
                     .group = c->group,
                     .extents = one->extents,
                     .extent_count = one->extent_count};
    ++*runs_of(c->name);
    host_code_run(&l);
    tell_all(one);
    if (l.error[0] == '\0')
        return;
    fprintf(stderr, "fake_cuda: %s: %s\n", c->name, l.error);
    fake_complain("%s: %s", c->name, l.error);
    c->context->lost = true;
}

/* Of the parameters, which are copied behind the launch. */
static size_t parameter_bytes(const function *of)
{
    size_t bytes = 0, size;
    for (unsigned i = 0; (size = of->kernel.size(i)) != 0; i++)
        bytes += (size + 15) / 16 * 16;
    return bytes;
}

static int start_code(const function *of, unsigned groups, unsigned group, void **values,
                      void *stream)
{
    size_t bytes = parameter_bytes(of), size;
    code_launch *made = calloc(1, sizeof *made + bytes + 16);
    if (made == NULL)
        abort();
    *made = (code_launch){of->kernel, "", of->of, control_current(), groups, group, 1, {0}};
    memcpy(made->name, of->name, sizeof made->name);
    char *to = (char *)(((uintptr_t)made->parameters + 15) & ~(uintptr_t)15);
    for (unsigned i = 0; (size = of->kernel.size(i)) != 0; i++) {
        made->values[i] = memcpy(to, values[i], size);
        to += (size + 15) / 16 * 16;
    }
    of->of->holders++;
    work one = {.run = run_code, .what = made->name, .code = made};
    int result = entry_queue(stream, &one);
    code_drop(&one);
    return result;
}

/* `shape`: groups in x, y, z, threads of each in x, y, z, bytes of shared memory. */
int code_start(tide_cu_function handle, const unsigned shape[7], void **values, void *stream)
{
    const function *of = (const function *)(const void *)handle;
    bool flat = shape[1] * shape[2] * shape[4] * shape[5] == 1;
    if (of == NULL || !flat || shape[6] != 0 || shape[0] == 0 || shape[3] == 0 || shape[3] > 1024)
        return TIDE_CU_INVALID_VALUE;
    return start_code(of, shape[0], shape[3], values, stream);
}
