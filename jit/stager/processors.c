/* SPDX-License-Identifier: MIT */
/* Asked while the library is loaded: by one system call, before anybody else runs. */
#define _GNU_SOURCE
#include "jit/stager/processors.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

unsigned char tide_processors[TIDE_PROCESSORS_BYTES] __attribute__((aligned(64)));

static __attribute__((constructor)) void processors_note(void)
{
    int before = errno;
    if (syscall(SYS_sched_getaffinity, getpid(), sizeof tide_processors, tide_processors) <= 0)
        memset(tide_processors, 0xff, sizeof tide_processors); /* the kernel leaves out the rest */
    errno = before;
}
