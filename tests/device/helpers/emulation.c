/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "emulation.h"

#include <stdbool.h>
#include <stdlib.h>
#include <ucontext.h>

enum { THREADS = 1024, STACK = 32 << 10, WARP = 32 };

static struct {
    ucontext_t all, threads[THREADS];
    char *stacks;
    bool live[THREADS];
    unsigned thread, group, active[THREADS]; /* what each has said of being here */
    unsigned long long values[THREADS];
    emulation_body *body;
    const void *user;
} run;

static void give_way(void)
{
    swapcontext(&run.threads[run.thread], &run.all);
}

static void start(void)
{
    run.body(run.user);
    run.live[run.thread] = false;
}

unsigned emulation_thread(void)
{
    return run.thread;
}

unsigned emulation_group(void)
{
    return run.group;
}

static unsigned first_of_warp(void)
{
    return run.thread / WARP * WARP;
}

/* All who come here in the same turn are here together. */
unsigned emulation_active(void)
{
    unsigned mask = 0, first = first_of_warp();
    run.active[run.thread] = 1;
    give_way();
    for (unsigned i = 0; i < WARP; i++)
        mask |= run.active[first + i] << i;
    give_way();
    run.active[run.thread] = 0;
    give_way();
    return mask;
}

/* A lane that is asked without having been named would give garbage: here it stops the test. */
unsigned long long emulation_exchange(unsigned mask, unsigned long long value, unsigned lane)
{
    unsigned first = first_of_warp();
    if ((mask >> (run.thread - first) & 1) == 0 || (mask >> lane % WARP & 1) == 0)
        abort();
    run.values[run.thread] = value;
    give_way();
    unsigned long long got = run.values[first + lane % WARP];
    give_way();
    return got;
}

static void begin(unsigned thread)
{
    ucontext_t *context = &run.threads[thread];
    getcontext(context);
    context->uc_stack.ss_sp = run.stacks + (size_t)thread * STACK;
    context->uc_stack.ss_size = STACK;
    context->uc_link = &run.all;
    makecontext(context, start, 0);
    run.live[thread] = true;
    run.active[thread] = 0;
}

static void run_group(unsigned group)
{
    for (unsigned i = 0; i < group; i++)
        begin(i);
    for (bool any = true; any;) {
        any = false;
        for (run.thread = 0; run.thread < group; run.thread++)
            if (run.live[run.thread]) {
                any = true;
                swapcontext(&run.all, &run.threads[run.thread]);
            }
    }
}

void emulation_run(unsigned groups, unsigned group, emulation_body *body, const void *user)
{
    if (group > THREADS)
        abort();
    run.stacks = run.stacks != NULL ? run.stacks : malloc((size_t)THREADS * STACK);
    run.body = body;
    run.user = user;
    for (run.group = 0; run.group < groups; run.group++)
        run_group(group);
}
