/* SPDX-License-Identifier: MIT */
/* What the environment makes of the thread's own pool: of a thousand arrays, how many keep their
 * content beyond their scope, are poisoned, or are out of reach. */
#define _GNU_SOURCE
#include "diagnosed.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static size_t kept, poisoned, gone;

static void look(const void *from)
{
    unsigned char byte = 0;
    struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)from, 1};
    long got = syscall(SYS_process_vm_readv, getpid(), &here, 1L, &there, 1L, 0L);
    need(got == 1 || errno == EFAULT);
    gone += got != 1;
    poisoned += got == 1 && byte == 0xFF;
    kept += got == 1 && byte == 42;
}

static void work(tide_pool *pool, unsigned char **arrays)
{
    TIDE_SCOPE(pool);
    for (int i = 0; i < 10; i++)
        memset(arrays[i] = tide_acquire(pool, unsigned char, 100), 42, 100);
}

int main(void)
{
    tide_pool *pool = tide_pool_local();
    tide_pool_statistics stats;
    unsigned char *arrays[10];
    for (int scope = 0; scope < 100; scope++) {
        work(pool, arrays);
        need(tide_pool_stats(pool, &stats) == TIDE_OK);
        for (int i = 0; i < 10 && stats.bytes_held != 0; i++)
            look(arrays[i]);
    }
    printf("kept %zu poisoned %zu gone %zu held %d\n", kept, poisoned, gone, stats.bytes_held != 0);
    return 0;
}
