/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/soak/stacks.h"

#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    FRAMES = 64,
    MAPS = 1 << 18, /* bytes of /proc/self/maps that are read */
    ANSWER_MS = 3000
};

static char stacks_maps[MAPS];
static int stacks_printed; /* atomic: threads that have printed theirs */

/* Interposed. The mask is passed on, but for the signal of the stacks. */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    sigset_t given;
    if (set != NULL) {
        given = *set;
        if (how != SIG_UNBLOCK)
            sigdelset(&given, SIGUSR1);
        set = &given;
    }
    return syscall(SYS_rt_sigprocmask, how, set, before, _NSIG / 8) == 0 ? 0 : EXIT_FAILURE;
}

/* ---- one stack -------------------------------------------------------------------------- */

static void stacks_read_file(const char *path, char *to, size_t room)
{
    size_t at = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t got = 1; file >= 0 && at + 1 < room && got > 0; at += got > 0 ? (size_t)got : 0)
        got = read(file, to + at, room - 1 - at);
    to[at] = '\0';
    if (file >= 0)
        close(file);
}

/* A line of the maps is: START-END RIGHTS OFFSET DEVICE INODE PATH. */
static void stacks_print_frame(uintptr_t address)
{
    for (const char *line = stacks_maps; *line != '\0'; line += *line == '\n') {
        char *at;
        uintptr_t start = strtoull(line, &at, 16), end = strtoull(at + 1, &at, 16);
        size_t length = strcspn(line, "\n");
        const char *path = memchr(line, '/', length);
        if (address >= start && address < end && path != NULL) {
            uintptr_t offset = strtoull(at + strlen(" r-xp "), NULL, 16);
            dprintf(STDERR_FILENO, "  %.*s +%#zx\n", (int)(line + length - path), path,
                    (size_t)(address - start + offset));
            return;
        }
        line += length;
    }
    dprintf(STDERR_FILENO, "  %#zx\n", (size_t)address);
}

static void stacks_print_own(int signal)
{
    void *frames[FRAMES];
    (void)signal;
    int count = backtrace(frames, FRAMES);
    for (int i = 0; i < count; i++)
        stacks_print_frame((uintptr_t)frames[i]);
    __atomic_fetch_add(&stacks_printed, 1, __ATOMIC_RELEASE);
}

/* ---- all -------------------------------------------------------------------------------- */

/* What the thread does; what the kernel says of it, if it does not answer. */
static void stacks_print_of(int process, int thread)
{
    char path[64], text[256];
    int before = __atomic_load_n(&stacks_printed, __ATOMIC_ACQUIRE);
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", thread);
    stacks_read_file(path, text, sizeof text);
    dprintf(STDERR_FILENO, "-- thread %d: %s", thread, text);
    if (thread == (int)syscall(SYS_gettid)) {
        stacks_print_own(0);
        return;
    }
    bool sent = syscall(SYS_tgkill, process, thread, SIGUSR1) == 0;
    for (int ms = 0; sent && ms < ANSWER_MS; ms++) {
        if (__atomic_load_n(&stacks_printed, __ATOMIC_ACQUIRE) != before)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", thread);
    stacks_read_file(path, text, sizeof text);
    dprintf(STDERR_FILENO, "  no answer; its system call, arguments, stack and place: %s\n",
            text[0] != '\0' ? text : "none, it has ended");
}

/* The kernel's own entries, for readdir would allocate. */
static void stacks_print_all(void)
{
    struct entry {
        uint64_t inode;
        int64_t offset;
        uint16_t length;
        uint8_t type;
        char name[];
    };
    static _Alignas(uint64_t) char entries[1 << 15];
    int process = (int)getpid();
    stacks_read_file("/proc/self/maps", stacks_maps, sizeof stacks_maps);
    int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long bytes = folder < 0 ? 0 : syscall(SYS_getdents64, folder, entries, sizeof entries);
    for (long at = 0; at < bytes;) {
        const struct entry *one = (const struct entry *)(const void *)(entries + at);
        if (one->name[0] != '.')
            stacks_print_of(process, (int)strtol(one->name, NULL, 10));
        at += one->length;
    }
    if (folder < 0)
        stacks_print_own(0);
}

void stacks_give_up(const char *what)
{
    static bool begun;
    if (!__atomic_exchange_n(&begun, true, __ATOMIC_RELAXED)) {
        dprintf(STDERR_FILENO, "soak: hung: %s; all stacks:\n", what);
        stacks_print_all();
    }
    abort();
}

static void stacks_alarm(int signal)
{
    (void)signal;
    stacks_give_up("an end that does not come (alarm)");
}

/* The first backtrace of a process loads a library: not when it is hung, perhaps in the linker. */
void stacks_prepare(void)
{
    void *frame;
    pthread_setname_np(pthread_self(), "first");
    (void)backtrace(&frame, 1);
    signal(SIGUSR1, stacks_print_own);
    signal(SIGALRM, stacks_alarm);
}
