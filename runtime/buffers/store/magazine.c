/* SPDX-License-Identifier: MIT */
/* Magazines: made on a thread's first use, stopped and resumed, ended with their thread
 * or their instance. */
#define _GNU_SOURCE
#include "runtime/buffers/store/magazine.h"

#include <sched.h>
#include <string.h>

#include "runtime/base/os.h"
#include "runtime/base/process.h"
#include "runtime/base/registry.h"
#include "runtime/base/shim.h"
#include "runtime/base/thread.h"
#include "runtime/buffers/store/depot.h"

/* Of a thread without magazines: no instance has the number 0. */
static const tide_magazine_way magazine_no_ways[TIDE_MAGAZINE_WAYS];

_Thread_local const tide_magazine_way *tide_magazine_ways = magazine_no_ways;

/* ---- the thread's list ------------------------------------------------------------------ */

/* The calling thread's own; NULL: it has none. */
static tide_magazine_way *magazine_own_ways(void)
{
    return tide_magazine_ways != magazine_no_ways
               ? (tide_magazine_way *)(uintptr_t)tide_magazine_ways
               : NULL;
}

/* Mutex held, as for the next. */
static void magazine_discard(tide_magazine *magazine)
{
    tide_assert(*magazine->link == magazine);
    *magazine->link = magazine->next;
    if (magazine->next != NULL)
        magazine->next->link = magazine->link;
    tide_os_free(magazine);
}

/* What it caches comes to the depot. No hook is told of what goes: the instance is quick. */
static void magazine_end(tide_magazine *magazine)
{
    tide_buffers *buffers = magazine->buffers;
    tide_lock_take(&buffers->mutex);
    uint32_t going = tide_depot_collect(buffers, magazine);
    magazine_discard(magazine);
    tide_lock_let_go(&buffers->mutex);
    tide_depot_free_all(buffers, going, NULL);
}

/* At thread exit. The registry is locked, so that no instance ends meanwhile and takes its magazine
 * along. If another destructor uses buffers later, the thread gets a new list. The system runs its
 * destructors again, and that list is ended then. */
static void magazine_end_thread(void)
{
    tide_magazine_way *ways = magazine_own_ways();
    tide_assert(ways != NULL);
    tide_magazine_ways = magazine_no_ways;
    tide_registry_lock();
    for (unsigned way = 0; way < TIDE_MAGAZINE_WAYS; way++) {
        const tide_buffers *buffers = tide_buffers_at_way(way);
        if (buffers != NULL && buffers->number == ways[way].number)
            magazine_end(ways[way].magazine);
    }
    tide_registry_unlock();
    tide_os_free(ways);
}

/* The calling thread's list, made on first use; NULL: it can have none. */
static tide_magazine_way *magazine_ways(void)
{
    tide_magazine_way *ways = magazine_own_ways();
    if (ways != NULL)
        return ways;
    ways = tide_os_resize(NULL, sizeof magazine_no_ways);
    if (ways == NULL)
        return NULL;
    tide_shim_no_leak(ways);
    memset(ways, 0, sizeof magazine_no_ways);
    if (tide_thread_keep(TIDE_THREAD_MAGAZINES, magazine_end_thread) != TIDE_OK) {
        tide_os_free(ways);
        return NULL;
    }
    tide_magazine_ways = ways;
    return ways;
}

/* ---- one magazine ----------------------------------------------------------------------- */

static TIDE_COLD tide_magazine *magazine_make(tide_buffers *buffers)
{
    tide_magazine_way *ways = magazine_ways();
    tide_magazine *magazine = ways != NULL ? tide_os_aligned(sizeof *magazine, 64) : NULL;
    if (magazine == NULL)
        return NULL;
    memset(magazine, 0, sizeof *magazine);
    magazine->buffers = buffers;
    magazine->thread = ways;
    tide_lock_take(&buffers->mutex);
    magazine->next = buffers->magazines;
    magazine->link = &buffers->magazines;
    if (magazine->next != NULL)
        magazine->next->link = &magazine->next;
    buffers->magazines = magazine;
    tide_lock_let_go(&buffers->mutex);
    ways[buffers->way / sizeof *ways] = (tide_magazine_way){buffers->number, magazine};
    return magazine;
}

tide_magazine *tide_magazine_of(tide_buffers *buffers)
{
    tide_magazine *magazine = tide_magazine_known(buffers);
    if (magazine != NULL || !buffers->quick || buffers->copy != &tide_copy_own)
        return magazine;
    return magazine_make(buffers);
}

void tide_cell_forget_oldest(tide_cell *cell, unsigned count)
{
    tide_assert(count <= cell->held);
    cell->held -= count;
    memmove(cell->slots, cell->slots + count, cell->held * sizeof cell->slots[0]);
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
    tide_assert(buffers->stopped == 0);
    __atomic_store_n(&buffers->stopped, 1, __ATOMIC_RELAXED);
    if (buffers->magazines == NULL)
        return;
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

/* What the depot does not keep stays with the process. */
void tide_magazines_inherit(tide_buffers *buffers)
{
    const tide_magazine_way *own = magazine_own_ways();
    for (tide_magazine *m = buffers->magazines, *next; m != NULL; m = next) {
        next = m->next;
        if (m->thread == own)
            continue;
        (void)tide_depot_collect(buffers, m);
        magazine_discard(m);
    }
}
