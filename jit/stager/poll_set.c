/* SPDX-License-Identifier: MIT */
/* One epoll of all that may wake us: a socket with something to read, a process that ended. */
#include "jit/stager/poll_set.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/base/assert.h"

static int poll_set_descriptor = -1; /* open while there are workers */

int tide_poll_set_descriptor(void)
{
    return poll_set_descriptor;
}

static bool poll_set_watch(int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(poll_set_descriptor, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

bool tide_poll_set_add(const tide_process *process, char *error, size_t room)
{
    tide_assert(process->socket >= 0);
    if (poll_set_descriptor < 0)
        poll_set_descriptor = tide_process_lift(epoll_create1(EPOLL_CLOEXEC));
    bool watched = poll_set_descriptor >= 0 && poll_set_watch(process->socket) &&
                   (process->pidfd < 0 || poll_set_watch(process->pidfd));
    if (!watched)
        snprintf(error, room, "the stager cannot be watched: %s", strerror(errno));
    return watched;
}

void tide_poll_set_for_room(const tide_process *process, bool wanted)
{
    tide_assert(poll_set_descriptor >= 0 && process->socket >= 0);
    struct epoll_event event = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0u)};
    (void)epoll_ctl(poll_set_descriptor, EPOLL_CTL_MOD, process->socket, &event);
}

/* It must be taken out before it is closed: a process that was forked without our handlers may hold
 * a copy, and then closing ours would leave it watched. */
void tide_poll_set_drop(int descriptor)
{
    if (descriptor >= 0)
        (void)epoll_ctl(poll_set_descriptor, EPOLL_CTL_DEL, descriptor, NULL);
}

bool tide_poll_set_wait(int64_t most_ms)
{
    struct epoll_event event;
    tide_assert(most_ms >= 0 && most_ms <= INT_MAX);
    return epoll_wait(poll_set_descriptor, &event, 1, (int)most_ms) >= 0;
}

void tide_poll_set_close(void)
{
    if (poll_set_descriptor >= 0)
        close(poll_set_descriptor);
    poll_set_descriptor = -1;
}
