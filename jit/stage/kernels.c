/* SPDX-License-Identifier: MIT */
/* From an order for kernels of devices to a file of them; the same by hand, on stdout. */
#include "jit/stage/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/kernels/code.h"
#include "jit/kernels/source.h"
#include "jit/stage/nvrtc.h"
#include "runtime/base/assert.h"
#include "runtime/scope/compiled.h"

enum { DEADLINE_MS = 8000 }; /* below the library's own, after which the whole process goes */

_Static_assert(sizeof((stage_cuda_code){0}.compiler) <= TIDE_KERNELS_COMPILER,
               "the file's head holds what the compiler is called");

/* Past the two lines of the head; NULL: there are fewer. */
static const char *kernels_order_line(const char *text)
{
    for (int line = 0; line < 2 && text != NULL; line++) {
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    return text;
}

bool stage_orders_kernels(const char *text)
{
    tide_assert(text != NULL);
    const char *order = kernels_order_line(text);
    return order != NULL && strncmp(order, "kernels ", strlen("kernels ")) == 0;
}

/* A new file, whole or not there. */
static bool kernels_write_file(const char *path, const char *head, size_t head_bytes,
                               const stage_cuda_code *made)
{
    tide_assert(head_bytes > 0 && head_bytes < TIDE_KERNELS_HEAD);
    tide_assert(made->code != NULL && made->bytes > 0);
    FILE *file = fopen(path, "wbx");
    if (file == NULL)
        return false;
    bool good = fwrite(head, 1, head_bytes, file) == head_bytes &&
                fwrite(made->code, 1, made->bytes, file) == made->bytes;
    good = fclose(file) == 0 && good;
    if (!good)
        remove(path);
    return good;
}

static bool kernels_compile(tide_kernels_target target, const char *path,
                            char error[STAGE_ERROR_BYTES])
{
    static char source[TIDE_KERNELS_SOURCE_BYTES];
    char head[TIDE_KERNELS_HEAD];
    stage_cuda_code made;
    tide_kernels_source(TIDE_KERNELS_CUDA, source, sizeof source);
    const stage_cuda_device device = {target.architecture, target.driver};
    if (!stage_nvrtc_compile(source, &device, DEADLINE_MS, &made, error, STAGE_ERROR_BYTES))
        return false;
    size_t bytes =
        tide_kernels_head_write(target, made.compiler, made.kind, made.code, made.bytes, head);
    bool good = kernels_write_file(path, head, bytes, &made);
    if (!good)
        snprintf(error, STAGE_ERROR_BYTES, "%s cannot be written", path);
    free(made.code);
    return good;
}

bool stage_kernels(const char *text, const char *path, char error[STAGE_ERROR_BYTES])
{
    tide_spec_reader reader = {.text = text};
    uint64_t layout;
    tide_kernels_target target;
    if (!tide_spec_read_head(&reader, &layout)) {
        snprintf(error, STAGE_ERROR_BYTES, "%s", reader.error);
        return false;
    }
    return tide_kernels_order_read(reader.text, &target, error, STAGE_ERROR_BYTES) &&
           kernels_compile(target, path, error);
}

/* ---- by hand -------------------------------------------------------------------------------- */

static int kernels_show_architectures(void)
{
    int all[64];
    char error[STAGE_ERROR_BYTES];
    size_t count = stage_nvrtc_architectures(all, sizeof all / sizeof *all, error, sizeof error);
    tide_assert(count <= sizeof all / sizeof *all);
    for (size_t i = 0; i < count; i++)
        printf("%d\n", all[i]);
    if (count == 0)
        fprintf(stderr, "tidepool-stage: %s\n", error);
    return count == 0;
}

static int kernels_show_code(const char *architecture, const char *driver)
{
    static char source[TIDE_KERNELS_SOURCE_BYTES];
    char error[STAGE_ERROR_BYTES];
    stage_cuda_code made;
    tide_kernels_source(TIDE_KERNELS_CUDA, source, sizeof source);
    const stage_cuda_device device = {(unsigned)strtoul(architecture, NULL, 10),
                                      (unsigned)strtoul(driver, NULL, 10)};
    if (!stage_nvrtc_compile(source, &device, DEADLINE_MS, &made, error, sizeof error)) {
        fprintf(stderr, "tidepool-stage: %s\n", error);
        return 1;
    }
    bool good = fwrite(made.code, 1, made.bytes, stdout) == made.bytes;
    free(made.code);
    return !good;
}

int stage_kernels_show(int count, char **args)
{
    static char source[TIDE_KERNELS_SOURCE_BYTES];
    tide_assert(count >= 0);
    bool cuda = count > 0 && strcmp(args[0], "cuda") == 0;
    if (count == 1 && strcmp(args[0], "--architectures") == 0)
        return kernels_show_architectures();
    if ((count == 2 || count == 3) && cuda)
        return kernels_show_code(args[1], count == 3 ? args[2] : "0");
    if (count != 1 || (!cuda && strcmp(args[0], "opencl") != 0)) {
        fputs("usage: tidepool-stage --kernels cuda|opencl | cuda ARCHITECTURE [DRIVER] | "
              "--architectures\n",
              stderr);
        return 2;
    }
    tide_kernels_source(cuda ? TIDE_KERNELS_CUDA : TIDE_KERNELS_OPENCL, source, sizeof source);
    return fputs(source, stdout) == EOF;
}
