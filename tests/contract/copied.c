/* SPDX-License-Identifier: MIT */
/* A plugin that the static library is linked into. */
#include "tests/contract/copied.h"

#include <string.h>

#include <tidepool/buffers.h>
#include <tidepool/learn.h>
#include <tidepool/tidepool.h>

enum { COUNT = 100 };

typedef struct only_here {
    char bytes[480];
} only_here;

static int fill(void *array)
{
    if (array != NULL)
        memset(array, 0x5a, COUNT * sizeof(only_here));
    return array != NULL;
}

static int acquire(tide_pool *pool)
{
    int got = fill(tide_acquire(pool, only_here, COUNT));
    got += fill(tide_acquire_type(pool, tide_type_of(only_here), COUNT));
    {
        TIDE_SCOPE(pool);
        got += fill(tide_acquire(pool, only_here, COUNT));
    }
    {
        TIDE_SCOPE_TYPES(pool, only_here);
        got += fill(tide_acquire(pool, only_here, COUNT));
    }
    {
        TIDE_FRAME(pool, (only_here, a, COUNT));
        got += fill(a);
    }
    TIDE_LOOP(pool, i, 2)
    got += fill(tide_acquire(pool, only_here, COUNT));
    return got;
}

static tide_pool *make_pool(void)
{
    return tide_pool_create(NULL);
}

static tide_type type(void)
{
    return tide_type_of(only_here);
}

static tide_buffers *make_buffers(void)
{
    return tide_buffers_create(NULL, NULL);
}

static int use_buffers(tide_buffers *buffers)
{
    tide_buffer buffer = tide_buffer_acquire(buffers, sizeof(only_here) * COUNT);
    if (buffer.generation == 0)
        return 0;
    return fill(tide_buffer_pointer(buffers, buffer)) &&
           tide_buffer_release(buffers, buffer) == TIDE_OK;
}

const copied_calls *copied_get(void)
{
    static const copied_calls calls = {
        .make_pool = make_pool,
        .destroy_pool = tide_pool_destroy,
        .reset_pool = tide_pool_reset,
        .local_pool = tide_pool_local,
        .acquire = acquire,
        .type = type,
        .make_buffers = make_buffers,
        .use_buffers = use_buffers,
        .destroy_buffers = tide_buffers_destroy,
        .start_thread = tide_background_start,
        .message = tide_error_message,
        .status = tide_error_status,
    };
    return &calls;
}
