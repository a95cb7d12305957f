/* SPDX-License-Identifier: MIT */
#include "runtime/base/hooks.h"

#include <pthread.h>

tide_callbacks tide_callbacks_profile, tide_callbacks_policy;

static pthread_once_t attached = PTHREAD_ONCE_INIT;

void tide_seam_attach(void)
{
    pthread_once(&attached, tide_policy_attach);
}
