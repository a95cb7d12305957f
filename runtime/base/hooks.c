/* SPDX-License-Identifier: MIT */
/* The tables of hooks, and the one call that attaches what stands above the runtime. */
#include "runtime/base/hooks.h"

#include <pthread.h>

tide_hooks tide_hooks_profile, tide_hooks_policy;

static pthread_once_t hooks_attached = PTHREAD_ONCE_INIT;

void tide_attach(void)
{
    pthread_once(&hooks_attached, tide_attach_all);
}
