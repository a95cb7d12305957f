/* SPDX-License-Identifier: MIT */
/* Preloaded: memory is short for so many exports of arrays as a test asks for, or once as something grows. */
#include <dlfcn.h>
#include <stddef.h>

int short_exports; /* to come; the test sets it */
int short_growth;  /* growths to come, of which the last fails; the test sets it */
static _Thread_local int short_now;
extern void *__libc_realloc(void *memory, size_t bytes);

void *realloc(void *memory, size_t bytes)
{
    int last = short_growth == 1;
    short_growth -= short_growth > 0;
    return short_now || last ? NULL : __libc_realloc(memory, bytes);
}

void *tide_array_export(void *pool, const void *array)
{
    void *library = dlopen("libtidepool.so.0", RTLD_NOW | RTLD_NOLOAD); /* is loaded, and stays */
    void *(*export)(void *, const void *);
    *(void **)&export = dlsym(library, "tide_array_export");
    short_now = short_exports > 0;
    short_exports -= short_now;
    void *exported = export(pool, array);
    short_now = 0;
    return exported;
}
