/* SPDX-License-Identifier: MIT */
/* One epoll of all that helpers may wake us by. */
#include "jit/stager/poll_set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static int watch = -1;

int tide_poll_set_descriptor(void)
{
    return watch;
}

static bool add(int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(watch, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

bool tide_poll_set_add(const tide_process *process, char *error, size_t room)
{
    if (watch < 0)
        watch = tide_process_lift(epoll_create1(EPOLL_CLOEXEC));
    bool watched =
        watch >= 0 && add(process->socket) && (process->process < 0 || add(process->process));
    if (!watched)
        snprintf(error, room, "the stager cannot be watched: %s", strerror(errno));
    return watched;
}

void tide_poll_set_for_room(const tide_process *process, bool wanted)
{
    struct epoll_event event = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0u)};
    (void)epoll_ctl(watch, EPOLL_CTL_MOD, process->socket, &event);
}

/* Taken out by name: a process forked behind our back may hold a copy, and closing ours would then
 * leave it watched. */
void tide_poll_set_drop(int descriptor)
{
    if (descriptor >= 0)
        (void)epoll_ctl(watch, EPOLL_CTL_DEL, descriptor, NULL);
}

bool tide_poll_set_wait(int64_t most_ms)
{
    struct epoll_event event;
    return epoll_wait(watch, &event, 1, (int)most_ms) >= 0;
}

void tide_poll_set_close(void)
{
    if (watch >= 0)
        close(watch);
    watch = -1;
}
