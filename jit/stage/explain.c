/* SPDX-License-Identifier: MIT */
/* The stager by hand: what is made of a spec, as C or as machine code. */
#include "jit/stage/explain.h"

#include <errno.h>
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
    return request == NULL ||
           !explain_print_output(request, assembler ? STAGE_OUTPUT_ASM : STAGE_OUTPUT_C);
}

int stage_compile_file(const char *spec_file, const char *library_file)
{
    char error[STAGE_ERROR_BYTES];
    const stage_request *request = explain_read_request(spec_file);
    return request == NULL || !(stage_compile(request, STAGE_OUTPUT_LIBRARY, library_file, error) ||
                                explain_complain(spec_file, error));
}
