/* SPDX-License-Identifier: MIT */
/* What /proc tells of a thread that sleeps, and a search through its stack. */
#define _GNU_SOURCE
#include "jit/cache/asleep.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"

_Static_assert(sizeof(uintptr_t) == sizeof(uint64_t), "a word of a stack is an address");

/* ---- what the system tells ---------------------------------------------------------------- */

/* The file's text, or -1 and an error number. */
static int asleep_read_file(int thread, const char *name, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", thread, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    ssize_t bytes = read(file, text, room - 1);
    int error = errno;
    (void)close(file);
    errno = error;
    text[bytes > 0 ? bytes : 0] = '\0';
    return bytes > 0 ? 0 : -1;
}

/* The line is "NUMBER ARGUMENTS… STACK PLACE". It is "running" for a thread that runs, and the
 * number is -1 for one that has been stopped outside of a system call. */
static bool asleep_in_a_call(int thread, uintptr_t *stack)
{
    char text[256], *last = NULL, *before = NULL, *rest = NULL;
    if (asleep_read_file(thread, "syscall", text, sizeof text) != 0 || text[0] < '0' ||
        text[0] > '9')
        return false;
    for (char *word = strtok_r(text, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
        before = last;
        last = word;
    }
    *stack = before != NULL ? (uintptr_t)strtoull(before, NULL, 16) : 0;
    return *stack != 0;
}

static bool asleep_read_number(const char *text, const char *name, uint64_t *number)
{
    const char *found = strstr(text, name);
    if (found == NULL)
        return false;
    *number = strtoull(found + strlen(name), NULL, 10);
    return true;
}

/* How often it was taken from its processor, with its will or without. */
static bool asleep_count_switches(int thread, uint64_t *switches)
{
    char text[4096];
    uint64_t own = 0, forced = 0;
    if (asleep_read_file(thread, "status", text, sizeof text) != 0 ||
        !asleep_read_number(text, "\nvoluntary_ctxt_switches:", &own) ||
        !asleep_read_number(text, "\nnonvoluntary_ctxt_switches:", &forced))
        return false;
    *switches = own + forced;
    return true;
}

/* By a signal that is not sent: /proc may be that of another namespace, where threads have other
 * numbers. */
static bool asleep_is_gone(int thread)
{
    return syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH;
}

/* Does /proc number threads as this process does? If not, nothing is known of any. */
static bool asleep_proc_is_ours(void)
{
    char path[64], own[64];
    ssize_t bytes = readlink("/proc/thread-self", path, sizeof path - 1);
    path[bytes > 0 ? bytes : 0] = '\0';
    snprintf(own, sizeof own, "%d/task/%d", (int)getpid(), tide_os_thread_number());
    return strcmp(path, own) == 0;
}

/* ---- its stack ---------------------------------------------------------------------------- */

/* Processors that sign addresses do so in the bits above. */
static uintptr_t asleep_address(uintptr_t word)
{
    return word & ((UINT64_C(1) << 48) - 1);
}

static bool asleep_points_there(uintptr_t word, const tide_code_range *code, size_t count)
{
    uintptr_t address = asleep_address(word);
    for (size_t i = 0; i < count; i++)
        if (address >= code[i].first && address < code[i].last)
            return true;
    return false;
}

/* Reads by the system: should the thread end meanwhile, its stack goes. */
static bool asleep_stack_is_clean(uintptr_t from, uintptr_t to, const tide_code_range *code,
                                  size_t count)
{
    uintptr_t words[512];
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    bool clean = memory >= 0;
    from &= ~(uintptr_t)(sizeof *words - 1);
    tide_assert(from < to && to % sizeof *words == 0);
    while (clean && from < to) {
        size_t want = to - from < sizeof words ? to - from : sizeof words;
        ssize_t bytes = pread(memory, words, want, (off_t)from);
        clean = bytes == (ssize_t)want;
        for (size_t i = 0; clean && i < want / sizeof *words; i++)
            clean = !asleep_points_there(words[i], code, count);
        from += want;
    }
    if (memory >= 0)
        (void)close(memory);
    return clean;
}

/* It is known to be the thread's own, and not too much to read. */
static bool asleep_stack_is_own(const tide_sleeper *sleeper, uintptr_t stack)
{
    enum { MOST = 1 << 24 };
    return stack >= sleeper->stack_low && stack < sleeper->stack_high &&
           sleeper->stack_high - stack <= MOST;
}

bool tide_asleep_outside(const tide_sleeper *sleeper, const tide_code_range *code, size_t count)
{
    uintptr_t stack = (uintptr_t)__builtin_frame_address(0);
    uint64_t before = 0, after = 0;
    int thread = sleeper->thread;
    if (thread == tide_os_thread_number())
        return asleep_stack_is_own(sleeper, stack) &&
               asleep_stack_is_clean(stack, sleeper->stack_high, code, count);
    if (thread == 0 || !asleep_proc_is_ours())
        return false;
    if (!asleep_count_switches(thread, &before) || !asleep_in_a_call(thread, &stack))
        return asleep_is_gone(thread);
    return asleep_stack_is_own(sleeper, stack) &&
           asleep_stack_is_clean(stack, sleeper->stack_high, code, count) &&
           asleep_in_a_call(thread, &stack) && asleep_count_switches(thread, &after) &&
           before == after;
}
