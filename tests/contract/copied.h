/* SPDX-License-Identifier: MIT */
/* What a plugin with a copy of the library of its own offers to a program. */
#ifndef TIDEPOOL_TESTS_CONTRACT_COPIED_H
#define TIDEPOOL_TESTS_CONTRACT_COPIED_H

#include <tidepool/buffers.h>
#include <tidepool/pool.h>

typedef struct copied_calls {
    tide_pool *(*make_pool)(void);
    tide_status (*destroy_pool)(tide_pool *pool);
    tide_status (*reset_pool)(tide_pool *pool);
    tide_pool *(*local_pool)(void);
    /* Arrays of the plugin's own type, by each form of scope, all written; how many it got. */
    int (*acquire)(tide_pool *pool);
    tide_type (*type)(void);
    tide_buffers *(*make_buffers)(void);
    int (*use_buffers)(tide_buffers *buffers); /* 1: it got one, and released it */
    tide_status (*destroy_buffers)(tide_buffers *buffers);
    tide_status (*start_thread)(void); /* of learning */
    const char *(*message)(void);
    tide_status (*status)(void);
} copied_calls;

enum { COPIED_ARRAYS = 7 }; /* what `acquire` gives when all of it works */

__attribute__((visibility("default"))) const copied_calls *copied_get(void);

#endif
