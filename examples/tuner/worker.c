/* SPDX-License-Identifier: MIT */
/* A worker: does its work until it is told to end. What a round takes is measured under the name
 * "round". */
#define _GNU_SOURCE
#include <signal.h>
#include <time.h>

#include <tidepool/tunable.h>

#include "worker.h"

TIDE_MEASURED(worker_round, "round");

static volatile sig_atomic_t worker_ended;

static void worker_end(int number)
{
    (void)number;
    worker_ended = 1;
}

int main(void)
{
    (void)signal(SIGTERM, worker_end);
    while (!worker_ended) {
        {
            TIDE_MEASURE(&worker_round, 0, unused);
            worker_work(tide_pool_local());
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = 2000000},
                        NULL); /* others want to work, too */
    }
    return 0;
}
