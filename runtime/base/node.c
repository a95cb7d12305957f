/* SPDX-License-Identifier: MIT */
/* Nodes of memory, as the kernel tells them. */
#define _GNU_SOURCE
#include "runtime/base/node.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/assert.h"
#include "runtime/base/settings.h"
#include "runtime/base/test_hooks.h"

unsigned (*_Atomic tide_node_model)(void);

unsigned tide_nodes_of_list(const char *list)
{
    unsigned long last = 0;
    for (const char *at = list; *at != '\0';) {
        char *end;
        unsigned long number = strtoul(at, &end, 10);
        last = end != at ? number : last;
        at = end != at ? end : at + 1;
        at += *at == '-' || *at == ',';
    }
    return last < TIDE_NODES_MAX ? (unsigned)last + 1 : TIDE_NODES_MAX;
}

static unsigned node_count(void)
{
    char text[64];
    int error = errno, from = open("/sys/devices/system/node/online", O_RDONLY | O_CLOEXEC);
    ssize_t got = from >= 0 ? read(from, text, sizeof text - 1) : -1;
    if (from >= 0)
        (void)close(from);
    errno = error;
    text[got > 0 ? got : 0] = '\0';
    return tide_nodes_of_list(text);
}

unsigned tide_nodes(void)
{
    static unsigned known; /* atomic; 0: not asked yet */
    if (tide_node_model != NULL)
        return TIDE_NODES_MAX;
    unsigned count = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (count == 0) {
        count = node_count();
        __atomic_store_n(&known, count, __ATOMIC_RELAXED);
    }
    tide_assert(count >= 1 && count <= TIDE_NODES_MAX);
    return count;
}

/* Elsewhere the kernel lends no such answer, and it is a call that a locked program does not have. */
#ifdef __x86_64__
enum { NODE_CALLS = 0 };
#else
enum { NODE_CALLS = 1 };
#endif

unsigned tide_node(void)
{
    unsigned (*model)(void) = tide_node_model, processor, node = 0;
    if (model != NULL)
        return model() % TIDE_NODES_MAX;
    if ((NODE_CALLS && tide_setting_get(TIDE_SETTING_locked) != 0) ||
        getcpu(&processor, &node) != 0)
        return 0;
    return node % TIDE_NODES_MAX;
}
