/* SPDX-License-Identifier: MIT */
/* Runs kernels for this processor. Threads run one after another; lanes of a warp that ask for each other
 * (shuffles) run side by side, each on a stack of its own, and wait for those that they name. A mask that is
 * right holds for any lanes that happen to be together, so one time in four only some of them are. */
#include "host_code.h"

#include "arena.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { LANES = 32, STACK = 256 << 10 };

/* ---- loading -------------------------------------------------------------------------------- */

/* No name may come twice: the linker would give what it has loaded by it. */
void *host_code_load(const void *image)
{
    static int first = 200;
    const Elf64_Ehdr *head = image;
    if (head->e_machine == EM_CUDA || head->e_shoff == 0)
        return NULL;
    size_t bytes = head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;
    char path[64];
    int any = memfd_create("kernels", MFD_CLOEXEC), file = fcntl(any, F_DUPFD_CLOEXEC, first++);
    if (file < 0 || write(file, image, bytes) != (ssize_t)bytes)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fprintf(stderr, "fake_cuda: %s\n", dlerror());
    close(file);
    close(any);
    return library;
}

bool host_code_find(void *library, const char *name, host_kernel *out)
{
    char entry[128];
    snprintf(entry, sizeof entry, "%s_run", name);
    *(void **)(void *)&out->run = dlsym(library, entry);
    snprintf(entry, sizeof entry, "%s_size", name);
    *(void **)(void *)&out->size = dlsym(library, entry);
    out->cells = dlsym(library, "fake_cells_now");
    out->warps = dlsym(library, "fake_warps") != NULL;
    return out->run != NULL && out->size != NULL && out->cells != NULL;
}

/* ---- what is used ---------------------------------------------------------------------------- */

static host_launch *running;

static void complain(const char *what, uintptr_t address, size_t bytes)
{
    const fake_cells *now = running->kernel->cells;
    if (running->error[0] == '\0')
        snprintf(running->error, sizeof running->error, "group %u, thread %u %s %zu bytes at %#zx",
                 now->block.x, now->thread.x, what, bytes, (size_t)address);
}

static extent *extent_of(uintptr_t address, size_t bytes)
{
    extent *one = running->extents, *end = one + running->extent_count;
    while (one < end && (address < one->address || address + bytes > one->address + one->bytes))
        one++;
    return one < end ? one : NULL;
}

static void note_use(uintptr_t address, size_t bytes, int writes)
{
    extent *of = extent_of(address, bytes);
    if (of == NULL || (bytes <= 16 && address % bytes != 0)) {
        complain(of != NULL ? "uses, not aligned," : writes ? "writes" : "reads", address, bytes);
        return;
    }
    uint8_t **bits = writes ? &of->writes : &of->reads;
    if (*bits == NULL && (*bits = calloc(of->bytes / 8 + 1, 1)) == NULL)
        abort();
    for (size_t at = address - of->address; bytes > 0; at++, bytes--)
        (*bits)[at / 8] |= (uint8_t)(1 << at % 8);
}

/* ---- warps ------------------------------------------------------------------------------------ */

typedef enum lane_state { OVER, RUNS, AT_MASK, AT_SHUFFLE } lane_state;

static struct {
    ucontext_t scheduler, lanes[LANES];
    char *stacks;
    lane_state states[LANES];
    unsigned now, first; /* the lane that runs; its warp's first thread */
    unsigned masks[LANES];
    uint64_t posted[2][LANES];
    uint8_t round[LANES];
} warp;

static void lane_wait(lane_state state)
{
    warp.states[warp.now] = state;
    swapcontext(&warp.lanes[warp.now], &warp.scheduler);
}

static unsigned lane_active(void)
{
    lane_wait(AT_MASK);
    return warp.masks[warp.now];
}

/* Who comes early to the next one posts elsewhere. */
static uint64_t lane_shuffle(unsigned mask, uint64_t value, int from)
{
    unsigned round = warp.round[warp.now]++ % 2;
    if ((mask >> warp.now & 1) == 0 || (mask >> (from & 31) & 1) == 0)
        complain("shuffles with a wrong mask,", mask, 4);
    warp.masks[warp.now] = mask;
    warp.posted[round][warp.now] = value;
    lane_wait(AT_SHUFFLE);
    return warp.posted[round][from & 31];
}

static void lane_body(void)
{
    running->kernel->run(running->values);
    warp.states[warp.now] = OVER;
}

static unsigned lanes_in(lane_state state)
{
    unsigned mask = 0;
    for (unsigned i = 0; i < LANES; i++)
        mask |= (unsigned)(warp.states[i] == state) << i;
    return mask;
}

static void resume(unsigned mask)
{
    fake_cells *cells = running->kernel->cells;
    for (unsigned i = 0; i < LANES; i++) {
        if ((mask >> i & 1) == 0)
            continue;
        warp.now = cells->lane = i;
        cells->thread.x = warp.first + i;
        warp.states[i] = RUNS;
        swapcontext(&warp.scheduler, &warp.lanes[i]);
    }
}

/* Lanes whose shuffle is complete; else those that ask who is there, or some of them. */
static unsigned choose(void)
{
    unsigned at_shuffle = lanes_in(AT_SHUFFLE), at_mask = lanes_in(AT_MASK), some = at_mask;
    for (unsigned i = 0; i < LANES; i++)
        if (warp.states[i] == AT_SHUFFLE && (warp.masks[i] & ~at_shuffle) == 0)
            return warp.masks[i];
    if (fake_random() % 4 == 0)
        some &= fake_random();
    some = some != 0 ? some : at_mask;
    for (unsigned i = 0; i < LANES; i++)
        if ((some >> i & 1) != 0)
            warp.masks[i] = some;
    return some;
}

static void run_warp(unsigned first, unsigned count)
{
    if (warp.stacks == NULL && (warp.stacks = malloc((size_t)LANES * STACK)) == NULL)
        abort();
    warp.first = first;
    memset(warp.states, 0, sizeof warp.states);
    memset(warp.round, 0, sizeof warp.round);
    for (unsigned i = 0; i < count; i++) {
        if (getcontext(&warp.lanes[i]) != 0)
            abort();
        warp.lanes[i].uc_stack.ss_sp = warp.stacks + (size_t)i * STACK;
        warp.lanes[i].uc_stack.ss_size = STACK;
        warp.lanes[i].uc_link = &warp.scheduler;
        makecontext(&warp.lanes[i], lane_body, 0);
        warp.states[i] = RUNS;
    }
    unsigned next = lanes_in(RUNS);
    while (next != 0) {
        resume(next);
        next = choose();
    }
    if (lanes_in(OVER) != UINT32_MAX)
        complain("waits for a lane that never comes,", 0, 0);
}

/* ---- running ---------------------------------------------------------------------------------- */

static void run_group(const host_launch *of)
{
    fake_cells *cells = of->kernel->cells;
    const unsigned step = of->kernel->warps ? LANES : 1;
    for (unsigned thread = 0; thread < of->group; thread += step) {
        cells->thread = (fake_shape){.x = thread};
        if (of->kernel->warps)
            run_warp(thread, of->group - thread < LANES ? of->group - thread : LANES);
        else
            of->kernel->run(of->values);
    }
}

void host_code_run(host_launch *launch)
{
    fake_cells *cells = launch->kernel->cells;
    running = launch;
    *cells = (fake_cells){.threads = {.x = launch->group, .y = 1, .z = 1},
                          .from = (uintptr_t)arena.device,
                          .end = (uintptr_t)arena.device + ADDRESSES,
                          .used = note_use,
                          .active = lane_active,
                          .shuffle = lane_shuffle};
    memory_show_all(true);
    for (cells->block.x = 0; cells->block.x < launch->groups; cells->block.x++)
        run_group(launch);
    memory_show_all(false);
    running = NULL;
}
