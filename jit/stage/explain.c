/* SPDX-License-Identifier: MIT */
/* The stager by hand: what a spec means, in words, and what is made of it, as C or
 * as machine code. */
#include "jit/stage/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/stage/compile.h"
#include "runtime/base/assert.h"

enum { TEXT_MAX = TIDE_SPEC_SITE_BYTES * (TIDE_SPEC_SITES + 1) };

/* Gives false, for the caller to return. */
static bool explain_complain(const char *file, const char *what)
{
    fprintf(stderr, "tidepool-stage: %s: %s\n", file, what);
    return false;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* The whole file, which must be text and no longer than a request. */
static bool explain_read_text(const char *file, char text[TEXT_MAX + 1])
{
    FILE *in = strcmp(file, "-") == 0 ? stdin : fopen(file, "r");
    if (in == NULL)
        return explain_complain(file, strerror(errno));
    size_t bytes = fread(text, 1, TEXT_MAX + 1, in);
    bool good = !ferror(in), whole = bytes <= TEXT_MAX;
    if (in != stdin)
        fclose(in);
    if (!good || !whole)
        return explain_complain(file, good ? "longer than any request can be" : "cannot be read");
    text[bytes] = '\0';
    return strlen(text) == bytes || explain_complain(file, "the text has a byte 0");
}

static stage_request *explain_read_request(const char *file)
{
    static char text[TEXT_MAX + 1];
    static stage_request request;
    char error[STAGE_ERROR_BYTES];
    if (!explain_read_text(file, text))
        return NULL;
    if (!stage_read(text, &request, error)) {
        explain_complain(file, error);
        return NULL;
    }
    tide_assert(request.count > 0 && request.count <= TIDE_SPEC_SITES);
    return &request;
}

/* ---- words ---------------------------------------------------------------------------------- */

static void explain_print_item(const tide_spec *spec, uint32_t i)
{
    const tide_spec_item *item = &spec->items[i];
    tide_assert(i < spec->item_count && item->ndim >= 0 && item->ndim <= TIDE_NDIM_MAX);
    printf("%s %s (%" PRIu32 ")", i == 0 ? "" : ",", item->name, item->type);
    for (int d = 0; spec->kind == TIDE_KIND_ARRAY && d < item->ndim; d++)
        printf("%s%" PRId64 "%s", d == 0 ? " [" : " x ", item->shape[d],
               d == item->ndim - 1 ? "]" : "");
}

static void explain_print_items(const tide_spec *spec)
{
    for (uint32_t i = 0; i < spec->item_count; i++)
        explain_print_item(spec, i);
}

static void explain_print_words(const tide_spec *spec)
{
    static const char *const before[TIDE_SPEC_KINDS] = {
        [TIDE_KIND_SCOPE] = "a scope that saves the shelves of",
        [TIDE_KIND_FRAME] = "a frame that takes, under one guard, an array each of",
        [TIDE_KIND_ACQUIRE] = "an acquire that tests, in this order, for",
        [TIDE_KIND_ARRAY] = "an acquire of arrays that knows",
    };
    tide_assert(spec->kind < TIDE_SPEC_KINDS && before[spec->kind] != NULL);
    printf(" * %s: %s", spec->stem, before[spec->kind]);
    explain_print_items(spec);
    printf(".\n");
    if (spec->kind == TIDE_KIND_SCOPE && spec->item_count > TIDE_SCOPE_SAVED)
        printf(" *   More than %d types: their positions always go to the log.\n",
               TIDE_SCOPE_SAVED);
    if (spec->kind == TIDE_KIND_SCOPE && spec->item_count <= TIDE_SCOPE_SAVED)
        printf(" *   Positions stay in the scope. A level around that has not saved these shelves "
               "saves them first.\n");
    if (spec->count)
        printf(" *   Every use of it is counted, with a locked add.\n");
    printf(" *   When a guard fails, nothing has changed and the library's general path goes "
           "on.\n");
}

/* ---- C or machine code ---------------------------------------------------------------------- */

static bool explain_copy_out(const char *path)
{
    char part[4096];
    size_t bytes;
    FILE *in = fopen(path, "r");
    if (in == NULL)
        return explain_complain(path, strerror(errno));
    while ((bytes = fread(part, 1, sizeof part, in)) > 0)
        fwrite(part, 1, bytes, stdout);
    bool whole = ferror(in) == 0;
    fclose(in);
    return whole || explain_complain(path, "cannot be read");
}

/* By way of a file, which is all that libgccjit writes to. */
static bool explain_print_output(const stage_request *request, stage_output output)
{
    char path[] = "/tmp/tidepool-explain-XXXXXX", error[STAGE_ERROR_BYTES];
    int file = mkstemp(path);
    if (file < 0)
        return explain_complain(path, strerror(errno));
    close(file);
    bool good = stage_compile(request, output, path, error) || explain_complain("spec", error);
    good = good && explain_copy_out(path);
    unlink(path);
    return good;
}

int stage_explain(const char *spec_file, bool assembler)
{
    const stage_request *request = explain_read_request(spec_file);
    if (request == NULL)
        return 1;
    printf("/*\n");
    for (uint32_t i = 0; i < request->count; i++)
        explain_print_words(&request->specs[i]);
    printf(" */\n");
    fflush(stdout);
    return !explain_print_output(request, assembler ? STAGE_OUTPUT_ASM : STAGE_OUTPUT_C);
}

int stage_compile_file(const char *spec_file, const char *library_file)
{
    char error[STAGE_ERROR_BYTES];
    const stage_request *request = explain_read_request(spec_file);
    if (request == NULL)
        return 1;
    return !(stage_compile(request, STAGE_OUTPUT_LIBRARY, library_file, error) ||
             explain_complain(spec_file, error));
}
