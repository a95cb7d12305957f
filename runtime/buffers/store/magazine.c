/* SPDX-License-Identifier: MIT */
/* Magazines: made on a thread's first use, stopped and resumed, ended with their thread
 * or their instance. */
#define _GNU_SOURCE
#include "runtime/buffers/store/magazine.h"

#include <sched.h>
#include <string.h>

#include "runtime/base/copy.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/base/thread.h"

/* Of a thread without magazines: no instance has the number 0. */
static const tide_magazine_way magazine_no_ways[TIDE_MAGAZINE_WAYS];

_Thread_local const tide_magazine_way *tide_magazine_ways = magazine_no_ways;

tide_magazine tide_magazine_none;
const uintptr_t tide_magazine_copy = (uintptr_t)&tide_magazine_none;

/* ---- the thread's list ------------------------------------------------------------------ */

/* What a thread has: the ways to its magazines, its own affair, and all of them, guarded by the
 * registry, since whoever destroys an instance takes its magazines out of all lists. */
typedef struct thread_magazines {
    tide_magazine_way ways[TIDE_MAGAZINE_WAYS];
    tide_magazine *first;
} thread_magazines;

_Static_assert(offsetof(thread_magazines, ways) == 0, "the ways tell where the rest is");

/* The calling thread's; NULL: it has none. */
static thread_magazines *magazine_of_thread(void)
{
    return tide_magazine_ways != magazine_no_ways ? (thread_magazines *)(void *)tide_magazine_ways
                                                  : NULL;
}

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

/* It is nobody's any more. Registry and mutex held. */
static void magazine_discard(tide_magazine *magazine)
{
    tide_buffers *buffers = magazine->buffers;
    tide_magazine **place = tide_magazine_place(buffers, magazine->thread);
    magazine_unlink(magazine);
    if (*place == magazine)
        __atomic_store_n(place, &tide_magazine_none, __ATOMIC_RELAXED);
    __atomic_store_n(&magazine->thread, 0, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < TIDE_BUFFER_KEYS; i++) {
        tide_os_free(magazine->cells[i]);
        magazine->cells[i] = NULL;
    }
    magazine->own = NULL;
    magazine->link = magazine->thread_link = NULL; /* in no list of the living */
    magazine->next = buffers->ended;
    buffers->ended = magazine;
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
static void magazine_end_thread(void)
{
    thread_magazines *all = magazine_of_thread();
    tide_assert(all != NULL);
    tide_magazine_ways = magazine_no_ways;
    tide_registry_lock();
    while (all->first != NULL) {
        tide_magazine *magazine = all->first;
        tide_buffers *buffers = magazine->buffers;
        tide_lock_take(&buffers->mutex);
        magazine_collect(buffers, magazine);
        magazine_discard(magazine);
        tide_lock_let_go(&buffers->mutex);
    }
    tide_registry_unlock();
    tide_os_free(all);
}

/* The calling thread's list, made on first use; NULL: it can have none. */
static thread_magazines *magazine_thread_list(void)
{
    thread_magazines *list = magazine_of_thread();
    if (list != NULL)
        return list;
    list = tide_os_resize(NULL, sizeof *list);
    if (list == NULL)
        return NULL;
    *list = (thread_magazines){0};
    if (tide_thread_keep(TIDE_THREAD_MAGAZINES, magazine_end_thread) != TIDE_OK) {
        tide_os_free(list);
        return NULL;
    }
    tide_magazine_ways = list->ways;
    return list;
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
    tide_lock_take(&buffers->mutex);
    magazine->next = buffers->magazines;
    magazine->link = &buffers->magazines;
    if (magazine->next != NULL)
        magazine->next->link = &magazine->next;
    buffers->magazines = magazine;
    tide_lock_let_go(&buffers->mutex);
    tide_registry_unlock();
}

/* One of a thread that is gone, or a new one. NULL: no memory. */
static tide_magazine *magazine_take(tide_buffers *buffers)
{
    tide_lock_take(&buffers->mutex);
    tide_magazine *magazine = buffers->ended;
    if (magazine != NULL)
        buffers->ended = magazine->next;
    tide_lock_let_go(&buffers->mutex);
    if (magazine == NULL && (magazine = tide_os_aligned(sizeof *magazine, 64)) != NULL)
        *magazine = (tide_magazine){.buffers = buffers};
    return magazine;
}

TIDE_COLD tide_magazine *tide_magazine_make(tide_buffers *buffers)
{
    if (buffers->copy != &tide_copy_own) /* its list is not guarded by our registry */
        return NULL;
    thread_magazines *list = magazine_thread_list();
    if (list == NULL)
        return NULL;
    tide_magazine *magazine = magazine_find_in_thread(list, buffers);
    if (magazine == NULL) {
        magazine = magazine_take(buffers);
        if (magazine == NULL)
            return NULL;
        magazine_enlist(list, magazine);
    }
    tide_assert(magazine->buffers == buffers);
    list->ways[buffers->number % TIDE_MAGAZINE_WAYS] =
        (tide_magazine_way){buffers->number, magazine};
    return magazine;
}

/* The calling thread's, in its place unless another thread's stands there. It has its own cells, so
 * that a fast path need not look for them. Mutex held. */
static void magazine_settle(tide_magazine *magazine)
{
    uintptr_t thread = tide_magazine_thread();
    tide_magazine **place = tide_magazine_place(magazine->buffers, thread);
    tide_assert(magazine->thread == 0 && magazine->busy == 0 && magazine->own != NULL);
    __atomic_store_n(&magazine->thread, thread, __ATOMIC_RELAXED);
    if (magazine->buffers->quick && tide_magazine_is(*place, 0))
        __atomic_store_n(place, magazine, __ATOMIC_RELEASE);
}

bool tide_cells_make(tide_magazine *magazine, unsigned at)
{
    tide_assert(at < TIDE_BUFFER_KEYS);
    if (magazine->cells[at] != NULL)
        return true;
    tide_cell *cells = tide_os_aligned(TIDE_BUCKETS * sizeof *cells, TIDE_CELLS_ALIGN);
    if (cells == NULL)
        return false;
    memset(cells, 0, TIDE_BUCKETS * sizeof *cells);
    magazine->cells[at] = cells;
    if (at == magazine->buffers->key) {
        magazine->own = cells;
        magazine_settle(magazine);
    }
    return true;
}

/* ---- all of an instance ----------------------------------------------------------------- */

enum { SPINS = 1000, YIELDS = 100 };

/* What its thread does in there is short, but the thread may have lost its processor. */
static void magazine_wait_while_busy(const tide_magazine *magazine)
{
    for (unsigned tries = 0; __atomic_load_n(&magazine->busy, __ATOMIC_ACQUIRE) != 0; tries++) {
        if (tries > SPINS + YIELDS) {
            tide_os_nap();
        } else if (tries > SPINS) {
            sched_yield();
        }
    }
}

void tide_magazines_stop(tide_buffers *buffers)
{
    tide_assert(!tide_buffers_stopped(buffers));
    __atomic_store_n(&buffers->state, buffers->state | TIDE_STATE_STOPPED, __ATOMIC_RELAXED);
    tide_fence_heavy();
    if (!__atomic_load_n(&tide_fence_asymmetric, __ATOMIC_RELAXED)) /* or not any more */
        __atomic_store_n(&buffers->state, buffers->state | TIDE_STATE_FENCED, __ATOMIC_RELAXED);
    for (const tide_magazine *m = buffers->magazines; m != NULL; m = m->next) {
        tide_assert(m->buffers == buffers);
        magazine_wait_while_busy(m);
    }
}

void tide_magazines_resume(tide_buffers *buffers)
{
    tide_assert(tide_buffers_stopped(buffers));
    __atomic_store_n(&buffers->state, buffers->state & ~(uint32_t)TIDE_STATE_STOPPED,
                     __ATOMIC_RELEASE);
}

void tide_magazines_end(tide_buffers *buffers)
{
    while (buffers->magazines != NULL)
        magazine_discard(buffers->magazines);
    for (tide_magazine *m = buffers->ended, *next; m != NULL; m = next) {
        next = m->next;
        tide_os_free(m);
    }
    buffers->ended = NULL;
}
