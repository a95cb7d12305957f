/* SPDX-License-Identifier: MIT */
#include "runtime/base/hooks.h"

#include <pthread.h>

tide_hooks tide_hooks_profile, tide_hooks_policy;

static pthread_once_t attached = PTHREAD_ONCE_INIT;

void tide_attach(void)
{
    pthread_once(&attached, tide_attach_all);
}
