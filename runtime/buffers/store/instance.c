/* SPDX-License-Identifier: MIT */
/* The list of all instances of buffers, and the clock by which cached buffers age. */
#define _GNU_SOURCE
#include "runtime/buffers/store/magazine.h"

#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/process.h"
#include "runtime/base/registry.h"

/* Guarded by the registry: all, the youngest first; the last number given out; those that have a way. */
static tide_buffers *instance_list;
static uint64_t instance_numbers;
static tide_buffers *instance_ways[TIDE_MAGAZINE_WAYS];

/* That the calling thread makes, one inside the other. */
static _Thread_local unsigned instance_visits;

/* Copies of the library lie in different modules, so in different pages: no two copies give out the
 * same number, and a thread never takes another copy's instance for one that it knows. */
static uint64_t instance_numbers_from(void)
{
    tide_assert(instance_numbers < (uint64_t)1 << 28);
    return ((uint64_t)(uintptr_t)&tide_copy_own >> 12) << 28;
}

tide_status tide_buffers_of_ours(const tide_buffers *buffers, const char *call)
{
    return buffers->copy == &tide_copy_own
               ? TIDE_OK
               : tide_fail(TIDE_ERROR_ARGUMENT, call,
                           "buffers %p were made by another copy of the library: a plugin or the "
                           "program has one of its own",
                           (const void *)buffers);
}

tide_status tide_buffer_refuse_flags(uint32_t flags, const char *call)
{
    return tide_fail(TIDE_ERROR_ARGUMENT, call,
                     "no buffers have flags %#x: kinds are 0 to %d, tags 0 to %d, alignments "
                     "TIDE_BUFFER_PAGE_ALIGNED or _HUGE_ALIGNED",
                     flags, TIDE_BUFFER_KINDS - 1, TIDE_BUFFER_TAGS - 1);
}

/* False: others have them all. */
static bool instance_take_way(tide_buffers *buffers)
{
    unsigned way = 0;
    while (way < TIDE_MAGAZINE_WAYS && instance_ways[way] != NULL)
        way++;
    if (way == TIDE_MAGAZINE_WAYS)
        return false;
    instance_ways[way] = buffers;
    buffers->way = way * sizeof(tide_magazine_way);
    return true;
}

tide_buffers *tide_buffers_at_way(unsigned way)
{
    tide_assert(way < TIDE_MAGAZINE_WAYS);
    return instance_ways[way];
}

void tide_buffers_enlist(tide_buffers *buffers)
{
    tide_assert(buffers->number == 0 && buffers->link == NULL);
    buffers->number = instance_numbers_from() + ++instance_numbers;
    buffers->quick = buffers->quick && instance_take_way(buffers);
    buffers->next = instance_list;
    buffers->link = &instance_list;
    if (instance_list != NULL)
        instance_list->link = &buffers->next;
    instance_list = buffers;
}

void tide_buffers_delist(tide_buffers *buffers)
{
    tide_assert(*buffers->link == buffers);
    *buffers->link = buffers->next;
    if (buffers->next != NULL)
        buffers->next->link = buffers->link;
    if (buffers->quick)
        instance_ways[buffers->way / sizeof(tide_magazine_way)] = NULL;
}

tide_buffers *tide_buffers_first(void)
{
    return instance_list;
}

/* ---- visits ----------------------------------------------------------------------------- */

/* To the next instance. `at` is counted as visited until then, so it is still in the list. (A child
 * of a fork begins without visitors, so here there may be fewer than were counted.) */
static tide_buffers *instance_visit_next(tide_buffers *at)
{
    tide_registry_lock();
    tide_buffers *next = at != NULL ? at->next : instance_list;
    while (next != NULL && next->ending)
        next = next->next;
    if (next != NULL)
        next->visitors++;
    if (at != NULL && at->visitors > 0)
        at->visitors--;
    tide_registry_unlock();
    return next;
}

void tide_buffers_visit(void (*visit)(tide_buffers *buffers, void *user), void *user)
{
    tide_assert(visit != NULL);
    instance_visits++;
    for (tide_buffers *at = NULL; (at = instance_visit_next(at)) != NULL;)
        visit(at, user);
    instance_visits--;
}

tide_status tide_buffers_visit_admit(const tide_buffers *buffers, const char *call)
{
    return instance_visits == 0
               ? TIDE_OK
               : tide_fail(TIDE_ERROR_STATE, call,
                           "'%s' cannot end in a function that is called for instance after "
                           "instance (tide_buffers_each, a hook): this thread is in them",
                           buffers->name);
}

void tide_buffers_wait_for_visitors(tide_buffers *buffers)
{
    for (bool any = true; any;) {
        tide_registry_lock();
        tide_assert(buffers->ending);
        any = buffers->visitors != 0;
        tide_registry_unlock();
        if (any)
            tide_os_nap();
    }
}

/* ---- the clock -------------------------------------------------------------------------- */

uint64_t tide_buffers_ticks;
