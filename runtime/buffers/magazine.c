/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "runtime/buffers/magazine.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "runtime/base/assert.h"
#include "runtime/buffers/depot.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"

_Thread_local tide_magazine_way tide_magazine_ways[TIDE_MAGAZINE_WAYS];

/* ---- the thread's list ------------------------------------------------------------------ */

/* All magazines of a thread; others unlink from it what they destroy. */
typedef struct thread_magazines {
    tide_magazine *first;
} thread_magazines;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool have_key;

static void unlink_both(tide_magazine *magazine)
{
    *magazine->link = magazine->next;
    if (magazine->next != NULL)
        magazine->next->link = magazine->link;
    *magazine->thread_link = magazine->thread_next;
    if (magazine->thread_next != NULL)
        magazine->thread_next->thread_link = magazine->thread_link;
}

static void discard(tide_magazine *magazine)
{
    unlink_both(magazine);
    for (unsigned i = 0; i < TIDE_BUFFER_KEYS; i++)
        tide_os_free(magazine->cells[i]);
    tide_os_free(magazine);
}

/* At thread exit: what it cached goes to the depot. A destructor that runs later and uses buffers
 * makes another list, which the next round of destructors ends. */
static void end_thread(void *list)
{
    thread_magazines *all = list;
    memset(tide_magazine_ways, 0, sizeof tide_magazine_ways);
    tide_registry_lock();
    while (all->first != NULL) {
        tide_magazine *magazine = all->first;
        tide_buffers *buffers = magazine->buffers;
        pthread_mutex_lock(&buffers->mutex);
        tide_depot_collect(buffers, magazine);
        discard(magazine);
        pthread_mutex_unlock(&buffers->mutex);
    }
    tide_registry_unlock();
    tide_os_free(all);
}

static void make_key(void)
{
    have_key = pthread_key_create(&key, end_thread) == 0;
}

static thread_magazines *thread_list(void)
{
    pthread_once(&once, make_key);
    if (!have_key)
        return NULL;
    thread_magazines *list = pthread_getspecific(key);
    if (list != NULL)
        return list;
    list = tide_os_resize(NULL, sizeof *list);
    if (list == NULL)
        return NULL;
    *list = (thread_magazines){0};
    if (!tide_os_faulted(sizeof(void *)) && pthread_setspecific(key, list) == 0)
        return list;
    tide_os_free(list);
    return NULL;
}

/* ---- one magazine ----------------------------------------------------------------------- */

static tide_magazine *find(thread_magazines *list, const tide_buffers *buffers)
{
    tide_registry_lock();
    tide_magazine *magazine = list->first;
    while (magazine != NULL && magazine->buffers != buffers)
        magazine = magazine->thread_next;
    tide_registry_unlock();
    return magazine;
}

static void enlist(thread_magazines *list, tide_magazine *magazine)
{
    tide_buffers *buffers = magazine->buffers;
    tide_registry_lock();
    magazine->thread_next = list->first;
    magazine->thread_link = &list->first;
    if (list->first != NULL)
        list->first->thread_link = &magazine->thread_next;
    list->first = magazine;
    pthread_mutex_lock(&buffers->mutex);
    magazine->next = buffers->magazines;
    magazine->link = &buffers->magazines;
    if (magazine->next != NULL)
        magazine->next->link = &magazine->next;
    buffers->magazines = magazine;
    pthread_mutex_unlock(&buffers->mutex);
    tide_registry_unlock();
}

TIDE_COLD tide_magazine *tide_magazine_make(tide_buffers *buffers)
{
    thread_magazines *list = thread_list();
    if (list == NULL)
        return NULL;
    tide_magazine *magazine = find(list, buffers);
    if (magazine == NULL) {
        magazine = tide_os_aligned(sizeof *magazine, 64);
        if (magazine == NULL)
            return NULL;
        *magazine = (tide_magazine){.buffers = buffers};
        enlist(list, magazine);
    }
    tide_magazine_ways[buffers->number % TIDE_MAGAZINE_WAYS] =
        (tide_magazine_way){buffers->number, magazine};
    return magazine;
}

bool tide_cells_make(tide_magazine *magazine, unsigned at)
{
    if (magazine->cells[at] != NULL)
        return true;
    tide_cell *cells = tide_os_aligned(TIDE_BUCKETS * sizeof *cells, sizeof *cells);
    if (cells == NULL)
        return false;
    memset(cells, 0, TIDE_BUCKETS * sizeof *cells);
    magazine->cells[at] = cells;
    return true;
}

/* ---- all of an instance ----------------------------------------------------------------- */

enum { SPINS = 1000, YIELDS = 100 };

/* What its thread does in there is short, but the thread may have lost its processor. */
static void wait_while_busy(const tide_magazine *magazine)
{
    for (unsigned tries = 0; __atomic_load_n(&magazine->busy, __ATOMIC_ACQUIRE) != 0; tries++) {
        if (tries > SPINS + YIELDS)
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        else if (tries > SPINS)
            sched_yield();
    }
}

void tide_magazines_stop(tide_buffers *buffers)
{
    tide_assert(buffers->stopped == 0);
    __atomic_store_n(&buffers->stopped, 1, __ATOMIC_RELAXED);
    tide_fence_heavy();
    for (const tide_magazine *m = buffers->magazines; m != NULL; m = m->next)
        wait_while_busy(m);
}

void tide_magazines_resume(tide_buffers *buffers)
{
    tide_assert(buffers->stopped == 1);
    __atomic_store_n(&buffers->stopped, 0, __ATOMIC_RELEASE);
}

void tide_magazines_end(tide_buffers *buffers)
{
    while (buffers->magazines != NULL)
        discard(buffers->magazines);
}
