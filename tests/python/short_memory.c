/* SPDX-License-Identifier: MIT */
/* Preloaded: memory is short for so many exports of arrays as a test asks for. */
#include <dlfcn.h>
#include <stddef.h>

int short_exports; /* to come; the test sets it */
static _Thread_local int short_now;
extern void *__libc_realloc(void *memory, size_t bytes);

void *realloc(void *memory, size_t bytes)
{
    return short_now ? NULL : __libc_realloc(memory, bytes);
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
