/* SPDX-License-Identifier: MIT */
/* A gate at which one thread stops, at a place that the test has numbered, until another lets it
 * pass. */
#ifndef TIDEPOOL_TESTS_GATE_H
#define TIDEPOOL_TESTS_GATE_H

#include <pthread.h>
#include <stdbool.h>

#include "tests/unobserved.h"

enum { GATE_NOWHERE = -1 };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_moved = PTHREAD_COND_INITIALIZER;
static int gate_place = GATE_NOWHERE; /* the next thread that comes there stops; atomic */
static bool gate_reached, gate_open;

/* For the next one who comes to that place. Who passed the gate before must be known to be through:
 * if it has not woken yet, it finds the gate closed. */
static inline void gate_close(int place)
{
    pthread_mutex_lock(&gate);
    __atomic_store_n(&gate_place, place, __ATOMIC_RELAXED);
    gate_reached = gate_open = false;
    pthread_mutex_unlock(&gate);
}

static inline bool gate_is_reached(void)
{
    pthread_mutex_lock(&gate);
    bool reached = gate_reached;
    pthread_mutex_unlock(&gate);
    return reached;
}

static inline void gate_wait_reached(void)
{
    pthread_mutex_lock(&gate);
    while (!gate_reached)
        pthread_cond_wait(&gate_moved, &gate);
    pthread_mutex_unlock(&gate);
}

static inline void gate_let_pass(void)
{
    pthread_mutex_lock(&gate);
    gate_open = true;
    pthread_cond_broadcast(&gate_moved);
    pthread_mutex_unlock(&gate);
}

static inline UNOBSERVED bool gate_is_at(int place)
{
    return __atomic_load_n(&gate_place, __ATOMIC_RELAXED) == place;
}

/* The calling thread is at that place. */
static inline void gate_pass(int place)
{
    pthread_mutex_lock(&gate);
    if (gate_place == place) {
        __atomic_store_n(&gate_place, GATE_NOWHERE, __ATOMIC_RELAXED);
        gate_reached = true;
        pthread_cond_broadcast(&gate_moved);
        while (!gate_open)
            pthread_cond_wait(&gate_moved, &gate);
    }
    pthread_mutex_unlock(&gate);
}

#endif
