/* SPDX-License-Identifier: MIT */
/* Descriptors that are known by what is behind them, and not by number alone. */
#define _GNU_SOURCE
#include "runtime/base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/assert.h"

/* The number -1: there is none. */
static tide_descriptor descriptor_look(int number)
{
    struct stat seen;
    struct statx more = {.stx_mask = 0};
    if (number < 0 || fstat(number, &seen) != 0)
        return TIDE_DESCRIPTOR_NONE;
    tide_descriptor found = {.number = number,
                             .type = seen.st_mode & S_IFMT,
                             .device = (uint64_t)seen.st_dev,
                             .inode = (uint64_t)seen.st_ino};
    if (statx(number, "", AT_EMPTY_PATH, STATX_BTIME, &more) == 0 &&
        (more.stx_mask & STATX_BTIME) != 0) {
        found.born_s = more.stx_btime.tv_sec;
        found.born_ns = more.stx_btime.tv_nsec;
    }
    return found;
}

tide_descriptor tide_descriptor_hold(int number)
{
    tide_assert(number > STDERR_FILENO);
    return descriptor_look(number); /* none: somebody closed it already */
}

/* A process may lose the right to ask for births. */
static bool descriptor_born_alike(const tide_descriptor *a, const tide_descriptor *b)
{
    bool told = (a->born_s != 0 || a->born_ns != 0) && (b->born_s != 0 || b->born_ns != 0);
    return !told || (a->born_s == b->born_s && a->born_ns == b->born_ns);
}

bool tide_descriptor_same(const tide_descriptor *a, const tide_descriptor *b)
{
    return a->device == b->device && a->inode == b->inode && a->type == b->type &&
           descriptor_born_alike(a, b);
}

int tide_descriptor_get(const tide_descriptor *held)
{
    tide_descriptor now = descriptor_look(held->number);
    bool same = now.number >= 0 && tide_descriptor_same(&now, held);
    tide_assert(!same || held->number > STDERR_FILENO);
    return same ? held->number : -1;
}

void tide_descriptor_close(tide_descriptor *held)
{
    int number = tide_descriptor_get(held);
    if (number >= 0)
        close(number);
    *held = TIDE_DESCRIPTOR_NONE;
}

int tide_descriptor_lift(int number)
{
    if (number < 0 || number > STDERR_FILENO)
        return number;
    int lifted = fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), failed = errno;
    close(number);
    errno = failed;
    tide_assert(lifted < 0 || lifted > STDERR_FILENO);
    return lifted;
}
