/* SPDX-License-Identifier: MIT */
/* Descriptors that are known by device and inode, and not by number alone. */
#define _GNU_SOURCE
#include "runtime/base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/assert.h"

tide_descriptor tide_descriptor_hold(int number)
{
    struct stat seen;
    tide_assert(number > STDERR_FILENO);
    if (fstat(number, &seen) != 0) /* somebody closed it already */
        return TIDE_DESCRIPTOR_NONE;
    return (tide_descriptor){
        .number = number, .device = (uint64_t)seen.st_dev, .inode = (uint64_t)seen.st_ino};
}

int tide_descriptor_get(const tide_descriptor *held)
{
    struct stat seen;
    bool same = held->number >= 0 && fstat(held->number, &seen) == 0 &&
                (uint64_t)seen.st_dev == held->device && (uint64_t)seen.st_ino == held->inode;
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
