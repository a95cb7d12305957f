/* SPDX-License-Identifier: MIT */
/* An NVRTC of a made-up version (MAJOR, MINOR) that knows made-up architectures: its code is the fake
 * driver's word for kernels that do nothing, and says what was asked of it. */
#include <stdio.h>
#include <string.h>

#pragma GCC visibility push(default)

static const int known[] = {ARCHITECTURES};
static char asked[1000];

int nvrtcVersion(int *major, int *minor);
int nvrtcVersion(int *major, int *minor)
{
    *major = MAJOR;
    *minor = MINOR;
    return 0;
}

int nvrtcGetNumSupportedArchs(int *count);
int nvrtcGetNumSupportedArchs(int *count)
{
    *count = (int)(sizeof known / sizeof *known);
    return 0;
}

int nvrtcGetSupportedArchs(int *all);
int nvrtcGetSupportedArchs(int *all)
{
    memcpy(all, known, sizeof known);
    return 0;
}

int nvrtcCreateProgram(void **program);
int nvrtcCreateProgram(void **program)
{
    *program = asked;
    return 0;
}

int nvrtcDestroyProgram(void **program);
int nvrtcDestroyProgram(void **program)
{
    *program = NULL;
    return 0;
}

int nvrtcCompileProgram(void *program, int count, const char *const *options);
int nvrtcCompileProgram(void *program, int count, const char *const *options)
{
    (void)program, (void)count;
    snprintf(asked, sizeof asked, "fake: %d.%d %s", MAJOR, MINOR, options[0]);
    return 0;
}

#define SIZE(name)                          \
    int name(void *program, size_t *bytes); \
    int name(void *program, size_t *bytes)  \
    {                                       \
        (void)program;                      \
        *bytes = strlen(asked) + 1;         \
        return 0;                           \
    }
#define TEXT(name)                             \
    int name(void *program, char *out);        \
    int name(void *program, char *out)         \
    {                                          \
        (void)program;                         \
        memcpy(out, asked, strlen(asked) + 1); \
        return 0;                              \
    }
SIZE(nvrtcGetPTXSize)
SIZE(nvrtcGetCUBINSize)
SIZE(nvrtcGetProgramLogSize)
TEXT(nvrtcGetPTX)
TEXT(nvrtcGetCUBIN)
TEXT(nvrtcGetProgramLog)

const char *nvrtcGetErrorString(int result);
const char *nvrtcGetErrorString(int result)
{
    (void)result;
    return "none";
}
