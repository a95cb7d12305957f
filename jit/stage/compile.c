/* SPDX-License-Identifier: MIT */
/* From a request to a code object: its text is read, its sites are emitted, libgccjit compiles them.
 * Half of what a compile of one site costs libgccjit takes to set itself up, so all sites of a request
 * share one context. */
#include "jit/stage/compile.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "jit/stage/assemble.h"
#include "jit/stage/emit.h"
#include "runtime/base/assert.h"

/* Writes one line to `error`; gives false, for the caller to return. */
static __attribute__((format(printf, 2, 3))) bool compile_failed(char error[STAGE_ERROR_BYTES],
                                                                 const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, STAGE_ERROR_BYTES, format, args);
    va_end(args);
    error[strcspn(error, "\r\n")] = '\0'; /* the answer is one line */
    tide_assert(strlen(error) < STAGE_ERROR_BYTES && strpbrk(error, "\r\n") == NULL);
    return false;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Two sites of one stem would export the same symbols. */
static bool compile_stem_is_taken(const stage_request *request, const char *stem)
{
    for (uint32_t i = 0; i < request->count; i++)
        if (strcmp(request->specs[i].stem, stem) == 0)
            return true;
    return false;
}

/* All sites up to the end of the text; there must be one at least. */
static bool compile_read_sites(tide_spec_reader *reader, stage_request *out,
                               char error[STAGE_ERROR_BYTES])
{
    for (tide_spec spec; tide_spec_read(reader, &spec); out->specs[out->count++] = spec) {
        if (spec.item_count == 0)
            return out->count > 0 || compile_failed(error, "the text has no sites");
        if (out->count == TIDE_SPEC_SITES)
            return compile_failed(error, "line %" PRIu32 ": more than %d sites", reader->line,
                                  TIDE_SPEC_SITES);
        if (compile_stem_is_taken(out, spec.stem))
            return compile_failed(error, "line %" PRIu32 ": stem '%s' is taken", reader->line,
                                  spec.stem);
        tide_assert(out->count < TIDE_SPEC_SITES && spec.item_count <= TIDE_SPEC_ITEMS);
    }
    return compile_failed(error, "%s", reader->error);
}

bool stage_read(const char *text, stage_request *out, char error[STAGE_ERROR_BYTES])
{
    tide_spec_reader reader = {.text = text};
    uint64_t layout, own = tide_compiled_layout();
    tide_assert(text != NULL && out != NULL && error != NULL);
    out->count = 0;
    if (!tide_spec_read_head(&reader, &layout))
        return compile_failed(error, "%s", reader.error);
    if (layout != own)
        return compile_failed(error,
                              "the spec is for layout %016" PRIx64 ", this stager knows %016" PRIx64
                              ": library and stager are of different builds",
                              layout, own);
    return compile_read_sites(&reader, out, error);
}

/* ---- compiling ------------------------------------------------------------------------------ */

/* Passes that find nothing to do in straight code, and take a quarter of the time. (The dominator
 * pass does harm: it threads the cold paths into the hot ones, which then lack registers.) */
/* clang-format off */
static const char *const idle_passes[] = {
    "-fno-tree-dominator-opts", "-fno-tree-sink", "-fno-tree-dse", "-fno-tree-pta", "-fno-tree-ch",
    "-fno-tree-sra", "-fno-tree-slsr", "-fno-tree-loop-optimize", "-fno-tree-bit-ccp",
    "-fno-tree-copy-prop", "-fno-ipa-modref", "-fno-ipa-pure-const", "-fno-ipa-profile",
    "-fno-ipa-reference", "-fno-ssa-phiopt", "-fno-ssa-backprop", "-fno-if-conversion",
    "-fno-if-conversion2", "-fno-dse", "-fno-split-wide-types", "-fno-ivopts",
    "-fno-move-loop-invariants", "-fno-tree-ccp", "-fno-tree-reassoc", "-fno-tree-phiprop",
    "-fno-tree-loop-im", "-fno-tree-builtin-call-dce", "-fno-thread-jumps",
    "-fno-forward-propagate", "-fno-combine-stack-adjustments", "-fno-dce"
};
/* clang-format on */

/* Level 1: emitted code is straight, and level 2 makes the same hot paths of it (the golden counts
 * hold it to that) for a third more work; what it would add (packed stores, stores moved about,
 * functions of two sites made one) is unwanted anyway. Guards are always predicted: two branches
 * are cheaper than computing both conditions for one. Of the registers only the general ones are
 * used, so the compiler sets itself up for fewer. As for a program of its own, the pointer to the
 * library's table is read where it is and not by way of another. A function that is aligned costs a
 * cycle less; how far is left to the compiler, for options whose value is a string are read again
 * by the next compile after libgccjit 12 has freed them. Atomics of Arm are made in place: a helper
 * of libgcc's would be an import. */
static void compile_set_options(gcc_jit_context *context)
{
    static const char *const compiler[] = {
        "-foptimize-sibling-calls",
        "-fno-stack-protector",
        "-fno-inline",
        "-falign-functions",
        "-fpie",
        "--param=logical-op-non-short-circuit=0",
        "-fira-region=one",
#if defined __x86_64__ || defined __aarch64__
        "-mgeneral-regs-only",
#endif
#ifdef __aarch64__
        "-mno-outline-atomics",
#endif
    };
    gcc_jit_context_set_int_option(context, GCC_JIT_INT_OPTION_OPTIMIZATION_LEVEL, 1);
    gcc_jit_context_set_str_option(context, GCC_JIT_STR_OPTION_PROGNAME, "tidepool-stage");
    for (size_t i = 0; i < sizeof compiler / sizeof *compiler; i++)
        gcc_jit_context_add_command_line_option(context, compiler[i]);
    for (size_t i = 0; i < sizeof idle_passes / sizeof *idle_passes; i++)
        gcc_jit_context_add_command_line_option(context, idle_passes[i]);
#ifdef LIBGCCJIT_HAVE_gcc_jit_context_set_bool_print_errors_to_stderr
    gcc_jit_context_set_bool_print_errors_to_stderr(context, 0);
#endif
}

static void compile_write_out(gcc_jit_context *context, stage_output output, const char *path)
{
    tide_assert(path != NULL);
    if (output == STAGE_OUTPUT_C)
        gcc_jit_context_dump_to_file(context, path, 0);
    else
        gcc_jit_context_compile_to_file(context, GCC_JIT_OUTPUT_KIND_ASSEMBLER, path);
}

bool stage_compile(const stage_request *request, stage_output output, const char *path,
                   char error[STAGE_ERROR_BYTES])
{
    stage_emit e;
    char text[STAGE_PATH_BYTES + 2];
    tide_assert(request->count > 0 && request->count <= TIDE_SPEC_SITES);
    if (strlen(path) >= STAGE_PATH_BYTES)
        return compile_failed(error, "the library's path is too long");
    gcc_jit_context *context = gcc_jit_context_acquire();
    if (context == NULL)
        return compile_failed(error, "libgccjit gives no context");
    snprintf(text, sizeof text, "%s%s", path, output == STAGE_OUTPUT_LIBRARY ? ".s" : "");
    compile_set_options(context);
    stage_begin(&e, context);
    for (uint32_t i = 0; i < request->count; i++)
        stage_emit_scope(&e, &request->specs[i]);
    if (gcc_jit_context_get_first_error(context) == NULL)
        compile_write_out(context, output, text);
    const char *first = gcc_jit_context_get_first_error(context);
    bool good = first == NULL || compile_failed(error, "libgccjit: %s", first);
    gcc_jit_context_release(context);
    if (output != STAGE_OUTPUT_LIBRARY)
        return good;
    good = good && stage_assemble(path, error);
    (void)unlink(text);
    return good;
}
