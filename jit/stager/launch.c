/* SPDX-License-Identifier: MIT */
/* Two steps, as a daemon is started: a process between, which starts the program and ends. So the
 * program's parent is init (or whoever collects orphans), and the calling program, which may wait
 * for all of its children, has none that it does not know.
 *
 *   1. Both processes run in the caller's memory, on stacks of their own, while the caller sleeps
 *      (vfork, as posix_spawn does it). A copy of a large program would cost more than the compile.
 *      So nothing runs in them but plain computation and bare system calls: the C library's
 *      wrappers keep records, which would be the caller's, and so do sanitizers.
 *   2. The one between has no signal for its end and executes nothing. Such a child is not seen by
 *      wait(NULL), nor collected by the system for a program that ignores SIGCHLD. It has ended
 *      when the caller goes on, which then collects it by its number.
 *   3. All signals are blocked meanwhile: a handler of the program's would run in the wrong
 *      process.
 *   4. What became of it comes through a pipe, which ends when the program runs. (Not through the
 *      shared memory: Valgrind copies it.) */
#define _GNU_SOURCE
#include "jit/stager/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jit/stager/processors.h"
#include "runtime/base/assert.h"
#include "runtime/base/descriptor.h"

/* The C library's name for clone, which ThreadSanitizer leaves alone: it takes clone for fork. */
extern int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...);

/* In a process that shares our memory, nothing may be recorded of it. (The first attribute alone
 * lets Clang tell AddressSanitizer of calls that do not return.) */
#if defined(__has_attribute) && __has_attribute(disable_sanitizer_instrumentation)
#define LAUNCH_BARE                                   \
    __attribute__((disable_sanitizer_instrumentation, \
                   no_sanitize("address", "thread", "undefined")))
#else
#define LAUNCH_BARE \
    __attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))
#endif

enum {
    STACK = 32 << 10,
    REPORT = 3, /* where the pipe is put in the program, until it runs */
    CLOSED_ONE_BY_ONE = 1 << 16,
    MOST_MS = 200,    /* for the pipe to end             */
    SIGNAL_BYTES = 8, /* of a set of signals, to the kernel  */
    ACTION_BYTES = 64 /* at least those of one of its actions */
};

/* What the pipe carries. */
typedef struct report {
    pid_t pid;  /* of the program; 0: this is about a failure */
    int failed; /* an errno; 0: none                          */
} report;

/* What both processes see; written by the caller only. */
static struct {
    const tide_launch *launch;
    int report;
    uid_t user;
    gid_t group;
    unsigned char no_action[ACTION_BYTES];
    uint64_t no_signals;
} launch_shared; /* guarded by the lock of the round, as all of this room */

static _Alignas(64) unsigned char launch_stacks[2][STACK];

/* ---- the program's process, before it runs the program -------------------------------------- */

static LAUNCH_BARE _Noreturn void launch_end(int status)
{
    for (;;)
        (void)syscall(SYS_exit_group, status);
}

/* Tells, and ends. */
static LAUNCH_BARE _Noreturn void launch_give_up(int pipe)
{
    report said = {.failed = errno};
    (void)syscall(SYS_write, pipe, &said, sizeof said);
    launch_end(127);
}

/* The standard streams and the pipe, and nothing else that is open in the program. Complaints go
 * nowhere unless they are wanted and the program has where to. */
static LAUNCH_BARE bool launch_arrange_files(void)
{
    const tide_launch *launch = launch_shared.launch;
    if (syscall(SYS_dup3, launch->socket, STDIN_FILENO, 0) < 0 ||
        syscall(SYS_dup3, launch->socket, STDOUT_FILENO, 0) < 0)
        return false;
    if (!launch->errors || syscall(SYS_fcntl, STDERR_FILENO, F_GETFD) < 0) {
        long null = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_WRONLY | O_CLOEXEC, 0);
        if (null < 0 || (null != STDERR_FILENO && syscall(SYS_dup3, null, STDERR_FILENO, 0) < 0) ||
            syscall(SYS_fcntl, STDERR_FILENO, F_SETFD, 0) < 0)
            return false;
    }
    if (launch_shared.report != REPORT &&
        syscall(SYS_dup3, launch_shared.report, REPORT, O_CLOEXEC) < 0)
        return false;
    if (syscall(SYS_close_range, REPORT + 1, UINT_MAX, 0) < 0)
        for (int i = REPORT + 1; i < CLOSED_ONE_BY_ONE; i++)
            (void)syscall(SYS_close, i);
    return true;
}

/* The hot thread of a program may run before all others, on a processor of its own. What compiles
 * must not. (A program may not be allowed to take a higher niceness back: so be it.) */
static LAUNCH_BARE void launch_be_ordinary(void)
{
    struct sched_param none = {.sched_priority = 0};
    (void)syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &none);
    (void)syscall(SYS_setpriority, PRIO_PROCESS, 0, 0);
    (void)syscall(SYS_sched_setaffinity, 0, sizeof tide_processors, tide_processors);
    (void)syscall(SYS_umask, 077);
    for (int i = 1; i < _NSIG; i++)
        (void)syscall(SYS_rt_sigaction, i, launch_shared.no_action, NULL, SIGNAL_BYTES);
}

/* A program that was root and is somebody else for now has root's id left to go back to: not so
 * what it starts. Without new privileges root's program has no capability that its parent lacks. */
static LAUNCH_BARE bool launch_give_up_privileges(void)
{
    gid_t group = launch_shared.group;
    uid_t user = launch_shared.user;
    (void)syscall(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_setresgid, group, group, group) == 0 &&
           syscall(SYS_setresuid, user, user, user) == 0 &&
           syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

static LAUNCH_BARE int launch_run(void *unused)
{
    const tide_launch *launch = launch_shared.launch;
    (void)unused;
    (void)syscall(SYS_setsid);
    if (!launch_arrange_files())
        launch_give_up(launch_shared.report);
    launch_be_ordinary();
    if (syscall(SYS_chdir, launch->folder) != 0) {
        if (errno == ENOENT) /* which says that the program is not there */
            errno = ESTALE;
        launch_give_up(REPORT);
    }
    if (!launch_give_up_privileges())
        launch_give_up(REPORT);
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &launch_shared.no_signals, NULL, SIGNAL_BYTES);
    (void)syscall(SYS_execve, launch->program, launch->arguments, launch->environment);
    launch_give_up(REPORT);
}

/* ---- the process between -------------------------------------------------------------------- */

static LAUNCH_BARE int launch_between(void *unused)
{
    (void)unused;
    int pid = __clone(launch_run, launch_stacks[1] + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    report said = {.pid = pid > 0 ? pid : 0, .failed = pid > 0 ? 0 : errno};
    (void)syscall(SYS_write, launch_shared.report, &said, sizeof said);
    launch_end(0);
}

/* ---- the caller ----------------------------------------------------------------------------- */

/* All that comes before the pipe ends. Mostly both processes have told what they had to when this
 * is called (not under Valgrind). A process that another thread cloned meanwhile may hold the other
 * end, too, for as long as it lives: so the end is not waited for long. An errno; 0: the program
 * runs. */
static int launch_read_reports(int pipe, pid_t *pid)
{
    report said;
    int failed = 0;
    ssize_t got;
    while ((got = read(pipe, &said, sizeof said)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN) {
            struct pollfd one = {.fd = pipe, .events = POLLIN};
            if (poll(&one, 1, MOST_MS) == 0)
                break;
            continue;
        }
        if (got != sizeof said) /* they are written whole */
            return EIO;
        if (said.failed != 0 && failed == 0)
            failed = said.failed;
        if (said.pid != 0)
            *pid = said.pid;
    }
    return failed == 0 && *pid <= 1 ? EAGAIN : failed; /* the one between was killed */
}

static bool launch_open_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    ends[0] = tide_descriptor_lift(ends[0]);
    ends[1] = tide_descriptor_lift(ends[1]);
    if (ends[0] >= 0 && ends[1] >= 0)
        return true;
    int failed = errno;
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    errno = failed;
    return false;
}

/* Starts the process between, and collects it. An errno. */
static int launch_start(void)
{
    uint64_t all = UINT64_MAX, before;
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, SIGNAL_BYTES);
    int pid = __clone(launch_between, launch_stacks[0] + STACK, CLONE_VM | CLONE_VFORK, NULL);
    int failed = pid < 0 ? errno : 0;
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, SIGNAL_BYTES);
    while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        continue; /* by the program itself, if it waits for such children, too: as good */
    return failed;
}

int tide_launch_program(const tide_launch *launch, pid_t *pid)
{
    int ends[2];
    tide_assert(launch->program[0] == '/' && launch->folder[0] == '/');
    tide_assert(launch->socket > STDERR_FILENO);
    *pid = 0;
    if (!launch_open_pipe(ends))
        return errno;
    launch_shared.launch = launch;
    launch_shared.report = ends[1];
    launch_shared.user = geteuid();
    launch_shared.group = getegid();
    tide_descriptor from = tide_descriptor_hold(ends[0]), to = tide_descriptor_hold(ends[1]);
    int failed = launch_start(); /* this takes a while */
    tide_descriptor_close(&to);
    if (failed == 0 && tide_descriptor_get(&from) >= 0)
        failed = launch_read_reports(from.number, pid);
    else if (failed == 0)
        failed = EBADF;
    tide_descriptor_close(&from);
    launch_shared.launch = NULL;
    /* It is our child only if the program collects orphans; then nobody else would know of it. */
    while (failed != 0 && *pid > 1 && waitpid(*pid, NULL, __WALL) < 0 && errno == EINTR)
        continue;
    return failed;
}
