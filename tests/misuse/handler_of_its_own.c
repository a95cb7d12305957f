/* SPDX-License-Identifier: MIT */
/* A program that survives faults: its handler was there first, gets every fault, and the guards
 * go on watching after it has jumped out. All on a signal stack with little more than the kernel
 * itself needs. */
#define _GNU_SOURCE
#include "diagnosed.h"

#include <errno.h>
#include <signal.h>
#include <sys/auxv.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

static sigjmp_buf out;
static char *volatile wanted;
static int volatile calls;

static void handler(int signal, siginfo_t *info, void *context)
{
    (void)context;
    if (signal != SIGSEGV || (info->si_code > 0 && info->si_addr != wanted))
        abort();
    calls++;
    errno = ERANGE;
    if (info->si_code > 0)
        siglongjmp(out, 1);
}

static void fault(const void *address)
{
    wanted = (char *)address;
    if (sigsetjmp(out, 1) == 0)
        use(address);
}

int main(void)
{
    size_t least = getauxval(AT_MINSIGSTKSZ);
    stack_t alternative = {.ss_size = (least > 4096 ? least : 4096) + 6144};
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    alternative.ss_sp = malloc(alternative.ss_size);
    need(alternative.ss_sp != NULL);
    need(sigaltstack(&alternative, NULL) == 0 && sigaction(SIGSEGV, &action, NULL) == 0);
    tide_pool *pool = pool_at(TIDE_CHECK_GUARD);
    double *first = tide_ones(pool, double, 8); ACQUIRED_HERE;
    double *second = tide_ones(pool, double, 16); ACQUIRED_HERE;
    EXPECT("use after rewind: byte 0 of an array of 8 f64");
    EXPECT("use after rewind: byte 0 of an array of 16 f64");
    tide_pool_reset(pool);
    fault(first);
    fault(second);
    fault((void *)(uintptr_t)64); /* none of ours */
    errno = 0;
    raise(SIGSEGV); /* no fault at all */
    need(calls == 4 && errno == 0);
    return 0;
}
