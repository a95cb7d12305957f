/* SPDX-License-Identifier: MIT */
/* Stands before libgccjit, and notes each context and each function that it is to compile. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libgccjit.h>

static void note(const char *line)
{
    const char *path = getenv("TIDEPOOL_TEST_LOG");
    FILE *log = path != NULL ? fopen(path, "a") : NULL;
    if (log == NULL || fputs(line, log) < 0 || fclose(log) != 0)
        abort();
}

static void find_behind(const char *name, void *function)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL)
        abort();
    memcpy(function, &found, sizeof found);
}

gcc_jit_context *gcc_jit_context_acquire(void)
{
    gcc_jit_context *(*behind)(void);
    find_behind("gcc_jit_context_acquire", &behind);
    note("context\n");
    return behind();
}

gcc_jit_function *gcc_jit_context_new_function(gcc_jit_context *context, gcc_jit_location *place,
                                               enum gcc_jit_function_kind kind, gcc_jit_type *gives,
                                               const char *name, int count, gcc_jit_param **params,
                                               int variadic)
{
    gcc_jit_function *(*behind)(gcc_jit_context *, gcc_jit_location *, enum gcc_jit_function_kind,
                                gcc_jit_type *, const char *, int, gcc_jit_param **, int);
    find_behind("gcc_jit_context_new_function", &behind);
    if (kind == GCC_JIT_FUNCTION_EXPORTED)
        note("function\n");
    return behind(context, place, kind, gives, name, count, params, variadic);
}
