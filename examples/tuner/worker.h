/* SPDX-License-Identifier: MIT */
#ifndef TUNER_WORKER_H
#define TUNER_WORKER_H

#include <tidepool/tidepool.h>

/* A round of the work that a program does: transform.c, film.c, interpreter.c. */
void worker_work(tide_pool *pool);

#endif
