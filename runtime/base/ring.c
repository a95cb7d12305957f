/* SPDX-License-Identifier: MIT */
/* The one call that attaches the rings. */
#include "runtime/base/ring.h"

#include <pthread.h>

#include "runtime/base/process.h"

static pthread_once_t ring_attached = PTHREAD_ONCE_INIT;

/* A fork may come in the middle: then the child does all of it again. So each step may be
 * repeated. */
static void ring_attach_all(void)
{
    tide_exit_watch();
    TIDE_RINGS_CALL(attach);
}

/* All that is made from here on outlives a plugin that is unloaded, so that plugin stays. Before
 * the `once`, for the linker is asked. */
void tide_attach(void)
{
    tide_copy_stay();
    pthread_once(&ring_attached, ring_attach_all);
}
