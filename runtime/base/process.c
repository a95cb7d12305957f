/* SPDX-License-Identifier: MIT */
/* Keeps the module of this copy loaded; notices that the process ends. */
#define _GNU_SOURCE
#include "runtime/base/process.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>

#include "runtime/base/assert.h"

__attribute__((visibility("hidden"))) _Alignas(2) char tide_copy_own;

/* The module is found by its name in the linker's list: its file is not opened again. Two threads
 * may both ask for it; once more does no harm. The shared library is linked so that it stays, and the
 * program stays anyway. */
void tide_copy_stay(void)
{
#if !defined TIDEPOOL_SHARED && !defined TIDEPOOL_CORE_ONLY
    static bool stays; /* atomic */
    Dl_info info;
    struct link_map *own = NULL;
    if (__atomic_exchange_n(&stays, true, __ATOMIC_RELAXED) ||
        dladdr1(&tide_copy_own, &info, (void **)&own, RTLD_DL_LINKMAP) == 0)
        return;
    tide_assert(own != NULL && own->l_name != NULL);
    if (own->l_name[0] != '\0')
        (void)dlopen(own->l_name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
#endif
}

/* ---- the end ---------------------------------------------------------------------------- */

static bool exit_begun; /* atomic */

static void exit_begin(void)
{
    __atomic_store_n(&exit_begun, true, __ATOMIC_RELEASE);
}

/* Without memory for the handler the end is not noticed, and looks as if it had begun: then nothing
 * is freed when a module goes. */
void tide_exit_watch(void)
{
    if (atexit(exit_begin) != 0)
        exit_begin();
}

bool tide_exit_begun(void)
{
    return __atomic_load_n(&exit_begun, __ATOMIC_ACQUIRE);
}
