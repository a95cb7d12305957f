/* SPDX-License-Identifier: MIT */
/* What a test does in the constructor and the destructor of a module
 * (tests/learning/constructor.c): the dynamic linker's lock is held there. The program exports its symbols (ENABLE_EXPORTS) and
 * wraps dlopen (--wrap=dlopen). Include it after cmocka.h. */
#ifndef TIDEPOOL_TESTS_IN_LINKER_H
#define TIDEPOOL_TESTS_IN_LINKER_H

#include <dlfcn.h>
#include <stdbool.h>

void *__real_dlopen(const char *path, int flags);
void *__wrap_dlopen(const char *path, int flags);

static const char *in_linker_module; /* the module's file */
static void (*in_constructor)(void), (*in_destructor)(void);
static bool in_linker_loaded;

/* The module calls it. */
void run_in_linker(void);
void run_in_linker(void)
{
    void (*now)(void) = in_linker_loaded ? in_destructor : in_constructor;
    in_linker_loaded = !in_linker_loaded;
    if (now != NULL)
        now();
}

/* Loads the module and unloads it; NULL: nothing is done there. */
static inline void visit_linker(void (*constructor)(void), void (*destructor)(void))
{
    in_constructor = constructor;
    in_destructor = destructor;
    void *handle = __real_dlopen(in_linker_module, RTLD_NOW);
    assert_non_null(handle);
    assert_true(in_linker_loaded);
    assert_int_equal(dlclose(handle), 0);
    assert_false(in_linker_loaded);
}

#endif
