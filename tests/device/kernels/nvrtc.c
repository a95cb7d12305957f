/* SPDX-License-Identifier: MIT */
/* An NVRTC whose code is for this processor, whatever it is asked for: a shared object, made by the C++ compiler
 * (`compile`), which the fake driver runs. So a program that compiles for its device runs on the fake as it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma GCC visibility push(default)

enum { COMPILATION = 6, TEXT = 4096 };

typedef struct program {
    char *source, *code, log[TEXT];
    size_t bytes;
} * program;

/* For programs that ask: examples/inference. */
int nvrtcGetNumSupportedArchs(int *count)
{
    *count = 1;
    return 0;
}

int nvrtcGetSupportedArchs(int *all)
{
    *all = 90;
    return 0;
}

int nvrtcCreateProgram(program *out, const char *source)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL || ((*out)->source = strdup(source)) == NULL)
        abort();
    return 0;
}

int nvrtcDestroyProgram(program *of)
{
    free((*of)->source);
    free((*of)->code);
    free(*of);
    return 0;
}

/* All of a file, and a 0; NULL: there is none. */
static char *read_file(const char *folder, const char *name, size_t *bytes)
{
    char path[TEXT];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *from = fopen(path, "rb");
    if (from == NULL || fseek(from, 0, SEEK_END) != 0)
        return NULL;
    *bytes = (size_t)ftell(from);
    rewind(from);
    char *all = calloc(*bytes + 1, 1);
    if (all == NULL || fread(all, 1, *bytes, from) != *bytes)
        abort();
    fclose(from);
    return all;
}

int nvrtcCompileProgram(program of)
{
    char folder[] = "/tmp/host_nvrtc.XXXXXX", command[TEXT];
    if (mkdtemp(folder) == NULL)
        abort();
    snprintf(command, sizeof command, "LD_PRELOAD= '%s' '%s' %s", SCRIPT, COMPILER, folder);
    FILE *to = popen(command, "w");
    if (to == NULL || fputs(of->source, to) < 0)
        abort();
    int failed = pclose(to);
    size_t length = 0;
    char *log = read_file(folder, "log", &length);
    snprintf(of->log, sizeof of->log, "%s", log != NULL ? log : "no compiler");
    free(log);
    if (failed == 0)
        of->code = read_file(folder, "kernels.so", &of->bytes);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0 || failed != 0)
        fprintf(stderr, "host_nvrtc: %s\n", of->log);
    return of->code != NULL ? 0 : COMPILATION;
}

int nvrtcGetCUBINSize(program of, size_t *bytes)
{
    *bytes = of->bytes;
    return 0;
}

int nvrtcGetCUBIN(program of, char *out)
{
    memcpy(out, of->code, of->bytes);
    return 0;
}

/* As examples/inference looks for them. */
int nvrtcGetPTXSize(program of, size_t *bytes)
{
    return nvrtcGetCUBINSize(of, bytes);
}

int nvrtcGetPTX(program of, char *out)
{
    return nvrtcGetCUBIN(of, out);
}

int nvrtcGetProgramLogSize(program of, size_t *bytes)
{
    *bytes = strlen(of->log) + 1;
    return 0;
}

int nvrtcGetProgramLog(program of, char *out)
{
    memcpy(out, of->log, strlen(of->log) + 1);
    return 0;
}

const char *nvrtcGetErrorString(int result)
{
    return result == COMPILATION ? "NVRTC_ERROR_COMPILATION" : "none";
}
