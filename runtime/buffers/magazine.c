/* SPDX-License-Identifier: MIT */
/* Magazines: made on a thread's first use, stopped and resumed, ended with their thread
 * or their instance. */
#define _GNU_SOURCE
#include "runtime/buffers/magazine.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "runtime/base/os.h"
#include "runtime/base/registry.h"

_Thread_local tide_magazine_way tide_magazine_ways[TIDE_MAGAZINE_WAYS];

/* ---- the thread's list ------------------------------------------------------------------ */

/* All magazines of a thread; guarded by the registry, since whoever destroys an instance takes its
 * magazines out of all lists. */
typedef struct thread_magazines {
    tide_magazine *first;
} thread_magazines;

static pthread_key_t magazine_key;
static pthread_once_t magazine_key_once = PTHREAD_ONCE_INIT;
static bool magazine_have_key;

/* Out of the instance's list and the thread's. Registry and mutex held. */
static void magazine_unlink(tide_magazine *magazine)
{
    tide_assert(*magazine->link == magazine && *magazine->thread_link == magazine);
    *magazine->link = magazine->next;
    if (magazine->next != NULL)
        magazine->next->link = magazine->link;
    *magazine->thread_link = magazine->thread_next;
    if (magazine->thread_next != NULL)
        magazine->thread_next->thread_link = magazine->thread_link;
}

static void magazine_discard(tide_magazine *magazine)
{
    magazine_unlink(magazine);
    for (unsigned i = 0; i < TIDE_BUFFER_KEYS; i++)
        tide_os_free(magazine->cells[i]);
    tide_os_free(magazine);
}

/* A magazine's buffers, permits and counts become the depot's. By its thread, mutex held. */
static void magazine_collect(tide_buffers *buffers, tide_magazine *magazine)
{
    tide_assert(magazine->buffers == buffers && magazine->busy == 0);
    for (unsigned key = 0; key < TIDE_BUFFER_KEYS; key++) {
        for (unsigned b = 0; magazine->cells[key] != NULL && b < TIDE_BUCKETS; b++) {
            tide_cell *cell = &magazine->cells[key][b];
            tide_depot_bucket *depot = tide_depot_at(buffers, key, b);
            if (depot == NULL) { /* made for a release that never came */
                tide_assert(tide_cell_credit(cell) == 0);
                continue;
            }
            tide_cell_empty(buffers, cell, key, b);
            depot->counts.hits += cell->counts.hits;
            depot->counts.releases += cell->counts.releases;
            depot->counts.asked += cell->counts.asked;
            cell->counts = (tide_buffer_counts){0};
        }
    }
}

/* At thread exit: what it cached goes to the depot. A destructor that runs later and uses buffers
 * makes another list, which the next round of destructors ends. */
static void magazine_end_thread(void *list)
{
    thread_magazines *all = list;
    memset(tide_magazine_ways, 0, sizeof tide_magazine_ways);
    tide_registry_lock();
    while (all->first != NULL) {
        tide_magazine *magazine = all->first;
        tide_buffers *buffers = magazine->buffers;
        pthread_mutex_lock(&buffers->mutex);
        magazine_collect(buffers, magazine);
        magazine_discard(magazine);
        pthread_mutex_unlock(&buffers->mutex);
    }
    tide_registry_unlock();
    tide_os_free(all);
}

static void magazine_make_key(void)
{
    magazine_have_key = pthread_key_create(&magazine_key, magazine_end_thread) == 0;
}

/* The calling thread's list, made on first use; NULL: it can have none. */
static thread_magazines *magazine_thread_list(void)
{
    pthread_once(&magazine_key_once, magazine_make_key);
    if (!magazine_have_key)
        return NULL;
    thread_magazines *list = pthread_getspecific(magazine_key);
    if (list != NULL)
        return list;
    list = tide_os_resize(NULL, sizeof *list);
    if (list == NULL)
        return NULL;
    *list = (thread_magazines){0};
    if (!tide_os_faulted(sizeof(void *)) && pthread_setspecific(magazine_key, list) == 0)
        return list;
    tide_os_free(list);
    return NULL;
}

/* ---- one magazine ----------------------------------------------------------------------- */

/* The registry is locked, since another thread may destroy an instance and its magazines. */
static tide_magazine *magazine_find_in_thread(thread_magazines *list, const tide_buffers *buffers)
{
    tide_registry_lock();
    tide_magazine *magazine = list->first;
    while (magazine != NULL && magazine->buffers != buffers)
        magazine = magazine->thread_next;
    tide_registry_unlock();
    return magazine;
}

/* Into the instance's list and the thread's. */
static void magazine_enlist(thread_magazines *list, tide_magazine *magazine)
{
    tide_buffers *buffers = magazine->buffers;
    tide_assert(magazine->link == NULL && magazine->thread_link == NULL);
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
    thread_magazines *list = magazine_thread_list();
    if (list == NULL)
        return NULL;
    tide_magazine *magazine = magazine_find_in_thread(list, buffers);
    if (magazine == NULL) {
        magazine = tide_os_aligned(sizeof *magazine, 64);
        if (magazine == NULL)
            return NULL;
        *magazine = (tide_magazine){.buffers = buffers};
        magazine_enlist(list, magazine);
    }
    tide_assert(magazine->buffers == buffers);
    tide_magazine_ways[buffers->number % TIDE_MAGAZINE_WAYS] =
        (tide_magazine_way){buffers->number, magazine};
    return magazine;
}

bool tide_cells_make(tide_magazine *magazine, unsigned at)
{
    tide_assert(at < TIDE_BUFFER_KEYS);
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
static void magazine_wait_while_busy(const tide_magazine *magazine)
{
    for (unsigned tries = 0; __atomic_load_n(&magazine->busy, __ATOMIC_ACQUIRE) != 0; tries++) {
        if (tries > SPINS + YIELDS) {
            int cancel = tide_os_forbid_cancel(); /* sleeping is a point of cancellation */
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
            tide_os_restore_cancel(cancel);
        } else if (tries > SPINS) {
            sched_yield();
        }
    }
}

void tide_magazines_stop(tide_buffers *buffers)
{
    tide_assert(buffers->stopped == 0);
    __atomic_store_n(&buffers->stopped, 1, __ATOMIC_RELAXED);
    tide_fence_heavy();
    for (const tide_magazine *m = buffers->magazines; m != NULL; m = m->next) {
        tide_assert(m->buffers == buffers);
        magazine_wait_while_busy(m);
    }
}

void tide_magazines_resume(tide_buffers *buffers)
{
    tide_assert(buffers->stopped == 1);
    __atomic_store_n(&buffers->stopped, 0, __ATOMIC_RELEASE);
}

void tide_magazines_end(tide_buffers *buffers)
{
    while (buffers->magazines != NULL)
        magazine_discard(buffers->magazines);
}
