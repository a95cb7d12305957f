/* SPDX-License-Identifier: MIT */
/* The tables of hooks, and the one call that attaches what stands above the runtime. */
#include "runtime/base/hooks.h"

#include <pthread.h>

#include "runtime/base/copy.h"
#include "runtime/base/exit.h"

tide_hooks tide_hooks_profile, tide_hooks_policy;

static pthread_once_t hooks_attached = PTHREAD_ONCE_INIT;

/* A fork may come in the middle: then the child does all of it again. So each step may be
 * repeated. */
static void hooks_attach(void)
{
    tide_exit_watch();
    tide_attach_all();
}

/* All that is made from here on outlives a plugin that is unloaded, so that plugin stays. Before
 * the `once`, for the linker is asked. */
void tide_attach(void)
{
    tide_copy_stay();
    pthread_once(&hooks_attached, hooks_attach);
}
