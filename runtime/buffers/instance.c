/* SPDX-License-Identifier: MIT */
/* The list of all instances of buffers, and the clock by which cached buffers age. */
#include "runtime/buffers/instance.h"

#include "runtime/base/registry.h"

static tide_buffers *instance_list; /* guarded by the registry, as is the next */
static uint64_t instance_numbers;   /* the last number given out               */
static uint64_t instance_ticks;     /* atomic: releases read it                */

void tide_buffers_enlist(tide_buffers *buffers)
{
    tide_assert(buffers->number == 0 && buffers->link == NULL);
    buffers->number = ++instance_numbers;
    buffers->next = instance_list;
    buffers->link = &instance_list;
    if (instance_list != NULL) {
        tide_assert(instance_list->link == &instance_list);
        instance_list->link = &buffers->next;
    }
    instance_list = buffers;
}

void tide_buffers_delist(tide_buffers *buffers)
{
    tide_assert(*buffers->link == buffers);
    *buffers->link = buffers->next;
    if (buffers->next != NULL)
        buffers->next->link = buffers->link;
}

tide_buffers *tide_buffers_first(void)
{
    return instance_list;
}

void tide_buffers_each(void (*visit)(tide_buffers *buffers, void *user), void *user)
{
    tide_assert(visit != NULL);
    tide_registry_lock();
    for (tide_buffers *b = instance_list; b != NULL; b = b->next)
        visit(b, user);
    tide_registry_unlock();
}

uint64_t tide_buffers_now(void)
{
    return __atomic_load_n(&instance_ticks, __ATOMIC_RELAXED);
}

uint64_t tide_buffers_advance(void)
{
    return __atomic_add_fetch(&instance_ticks, 1, __ATOMIC_RELAXED);
}
