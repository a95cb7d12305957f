/* SPDX-License-Identifier: MIT */
/* A second thread goes on with an array after the thread that lent it has rewound. */
#define _GNU_SOURCE
#include "diagnosed.h"

#include <pthread.h>

static void *reader(void *array)
{
    pthread_setname_np(pthread_self(), "reader");
    use(array);
    return NULL;
}

int main(void)
{
    tide_pool *pool = pool_at(TIDE_CHECK_GUARD);
    float *array = NULL;
    TIDE_LOOP(pool, i, 3) { OPENED_HERE(REWOUND);
        array = tide_ones(pool, float, 1000); ACQUIRED_HERE;
    }
    pthread_t thread;
    EXPECT("tidepool: use after rewind: byte 0 of an array of 1000 f32");
    EXPECT("  used      use+0x");
    EXPECT(" by thread 'reader'");
    need(pthread_create(&thread, NULL, reader, array) == 0);
    pthread_join(thread, NULL);
    return 0;
}
