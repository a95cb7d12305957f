/* SPDX-License-Identifier: MIT */
/* After lock-down a process that may only ask for memory and wait goes on: a filter kills it at any
 * other system call. Only public headers: each scene is a process of its own, which begins anew. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/dynamic.h>
#include <tidepool/learn.h>
#include <tidepool/listen.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/tidepool.h>
#include <tidepool/tune.h>

#include "tests/forms.h"
#include "tests/support.h"

/* What .github/SECURITY.md lists, and what malloc and the ends of threads (sigaltstack: a sanitizer) and
 * processes call. */
static const unsigned locked_allowed[] = {
    SYS_mmap,          SYS_munmap,      SYS_madvise,         SYS_futex,          SYS_mprotect,
    SYS_brk,           SYS_mremap,      SYS_gettid,          SYS_prctl,          SYS_exit_group,
    SYS_clock_gettime, SYS_sched_yield, SYS_restart_syscall, SYS_rt_sigprocmask, SYS_exit,
    SYS_sigaltstack};
enum { LOCKED_ALLOWED = sizeof locked_allowed / sizeof *locked_allowed };

/* Valgrind's own calls and those of ThreadSanitizer's own thread are not the library's: then the rest
 * is tested without the filter. */
static void locked_filter(void)
{
    if (under_thread_sanitizer() || under_valgrind())
        return;
    struct sock_filter rows[2 * LOCKED_ALLOWED + 2];
    unsigned at = 0;
    rows[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
    for (unsigned i = 0; i < LOCKED_ALLOWED; i++) {
        rows[at++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, locked_allowed[i], 0, 1);
        rows[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    rows[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {(unsigned short)at, rows};
    CHILD_MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHILD_MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) ==
               0);
}

static void locked_use(tide_pool *pool, tide_site *site, tide_type type)
{
    for (int i = 0; i < 300; i++) {
        tide_scope scope;
        CHILD_MUST(tide_scope_enter(pool, site, &scope) == TIDE_OK);
        CHILD_MUST(tide_acquire_type(pool, type, 100) != NULL);
        CHILD_MUST(tide_scope_leave(&scope) == TIDE_OK);
    }
}

static void locked_expect_learned(const tide_site *site, tide_type type)
{
    tide_site_information info;
    CHILD_MUST(tide_site_info(site, &info) == TIDE_OK);
    CHILD_MUST(info.tier == TIDE_TIER_TABLE && info.type_count == 1 && info.types[0] == type);
}

static void locked_use_buffers(tide_buffers *buffers)
{
    CHILD_MUST(buffers != NULL);
    for (size_t i = 0; i < 2000; i++) {
        tide_buffer buffer = tide_buffer_acquire(buffers, 64 + i * 997 % (1 << 20));
        CHILD_MUST(buffer.generation != 0);
        CHILD_MUST(tide_buffer_release(buffers, buffer) == TIDE_OK);
    }
}

static pthread_barrier_t locked_filtered;
static tide_buffers *locked_buffers;

/* It was there before, and makes the pools and magazines of its own afterwards. */
static void *locked_other_thread(void *unused)
{
    pthread_barrier_wait(&locked_filtered); /* it has begun */
    pthread_barrier_wait(&locked_filtered);
    locked_use_buffers(locked_buffers);
    locked_use(tide_pool_local(), tide_site_register("locked: of another thread"), TIDE_I32);
    return unused;
}

static void locked_work(tide_pool *pool, tide_site *known)
{
    pthread_t other;
    locked_buffers = tide_buffers_create(NULL, NULL);
    CHILD_MUST(pthread_barrier_init(&locked_filtered, NULL, 2) == 0);
    CHILD_MUST(pthread_create(&other, NULL, locked_other_thread, NULL) == 0);
    pthread_barrier_wait(&locked_filtered);
    locked_filter();
    locked_use(pool, known, TIDE_F32); /* other types than before */
    tide_site *born = tide_site_register("locked: born later");
    CHILD_MUST(born != NULL);
    locked_use(pool, born, TIDE_F64);
    locked_expect_learned(born, TIDE_F64);
    locked_use_buffers(tide_buffers_create(NULL, NULL));
    pthread_barrier_wait(&locked_filtered);
    locked_use_buffers(locked_buffers);
    CHILD_MUST(pthread_join(other, NULL) == 0);
    CHILD_MUST(tide_step() == TIDE_OK && tide_settle(0) == TIDE_OK);
    CHILD_MUST(tide_background_start() == TIDE_ERROR_STATE && !tide_background_running());
    CHILD_MUST(tide_listen(NULL) == TIDE_ERROR_STATE);
    CHILD_MUST(tide_device_open("opencl:0") == NULL && tide_error_status() == TIDE_ERROR_STATE);
    CHILD_MUST(tide_pool_destroy(tide_pool_create(NULL)) == TIDE_OK);
    CHILD_MUST(tide_buffers_trim(locked_buffers, 0).slots != 0);
    _exit(0);
}

static void a_locked_program_goes_on_by_memory_and_locks_alone(void **state)
{
    (void)state;
    pid_t child = fork_child(100);
    if (child == 0) {
        tide_pool *pool = tide_pool_create(NULL);
        tide_site *known = tide_site_register("locked: known");
        CHILD_MUST(pool != NULL && known != NULL);
        locked_use(pool, known, TIDE_F64);
        CHILD_MUST(tide_background_start() == TIDE_OK);
        CHILD_MUST(tide_lock_down() == TIDE_OK && !tide_background_running());
        locked_expect_learned(known, TIDE_F64);
        locked_work(pool, known);
    }
    expect_child_ends_well(child);
}

static void the_environment_may_say_so_too(void **state)
{
    (void)state;
    pid_t child = fork_child(100);
    if (child == 0) {
        setenv("TIDEPOOL_LOCKED", "1", 1);
        tide_pool *pool = tide_pool_create(NULL);
        tide_site *known = tide_site_register("locked: known");
        CHILD_MUST(pool != NULL && known != NULL);
        locked_use(pool, known, TIDE_F64);
        locked_expect_learned(known, TIDE_F64);
        locked_work(pool, known);
    }
    expect_child_ends_well(child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_locked_program_goes_on_by_memory_and_locks_alone),
        cmocka_unit_test(the_environment_may_say_so_too),
    };
    return cmocka_run_group_tests_name("learning: locked", tests, NULL, NULL);
}
