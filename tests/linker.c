/* SPDX-License-Identifier: MIT */
/* Visits of the linker's list of modules beside those of the program, whose visitor may call the
 * library: the linker's lock of the list is held then, for which a visit of the library's waits. */
#define _GNU_SOURCE
#include "runtime/base/linker.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <tidepool/tidepool.h>

#include "forms.h"
#include "in_linker.h"
#include "runtime/base/os.h"
#include "runtime/base/test_hooks.h"
#include "unobserved.h"

enum { SECONDS = 120 }; /* until what hangs is ended */

/* ---- a visit of another thread's ----------------------------------------------------------- */

static bool noted; /* atomic: the next visit is noted */
static bool begun; /* atomic: it is about to wait for the list */

int __real_dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *user);
int __wrap_dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *user);

UNOBSERVED int __wrap_dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *),
                                      void *user)
{
    if (__atomic_exchange_n(&noted, false, __ATOMIC_SEQ_CST))
        __atomic_store_n(&begun, true, __ATOMIC_SEQ_CST);
    return __real_dl_iterate_phdr(visit, user);
}

static int find_first(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)info, (void)size;
    *(bool *)found = true;
    return 1;
}

static bool find_module(void)
{
    bool found = false;
    return tide_linker_each_module(find_first, &found) == 1 && found;
}

static void *visit_there(void *user)
{
    return find_module() ? user : NULL;
}

static pthread_t start_visit(void)
{
    pthread_t thread;
    begun = false;
    __atomic_store_n(&noted, true, __ATOMIC_SEQ_CST);
    assert_int_equal(pthread_create(&thread, NULL, visit_there, &begun), 0);
    while (!__atomic_load_n(&begun, __ATOMIC_SEQ_CST))
        tide_os_nap();
    return thread;
}

static void expect_joined(pthread_t thread)
{
    void *result = NULL;
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_non_null(result);
}

/* ---- scenes -------------------------------------------------------------------------------- */

static pthread_t visiting, forking;

static int visit_here(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)info, (void)size, (void)user;
    visiting = start_visit();
    assert_true(find_module());
    return 1;
}

static void a_visitor_may_visit_while_another_thread_waits_to(void **unused)
{
    (void)unused;
    alarm(SECONDS);
    assert_int_equal(__real_dl_iterate_phdr(visit_here, NULL), 1);
    expect_joined(visiting);
    alarm(0);
}

static bool forks; /* atomic: a fork has begun */

static void note_fork(void)
{
    __atomic_store_n(&forks, true, __ATOMIC_SEQ_CST);
}

/* The child can visit the list. */
static void *fork_there(void *user)
{
    pid_t child = fork_child(SECONDS);
    if (child == 0)
        _exit(find_module() && tide_type_register("in a child", 24, 8) != 0 ? 0 : 1);
    return wait_for_child(child) == 0 ? user : NULL;
}

/* Whoever forks waits for the visit, so has no lock that this thread may want. Nothing tells that
 * it waits: so it gets some time to come there, and what is shown holds without that, too. */
static int use_library_while_one_forks(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)info, (void)size, (void)user;
    visiting = start_visit();
    assert_int_equal(pthread_create(&forking, NULL, fork_there, &forks), 0);
    while (!__atomic_load_n(&forks, __ATOMIC_SEQ_CST))
        tide_os_nap();
    for (int i = 0; i < 200; i++) {
        (void)tide_site_count();
        tide_os_nap();
    }
    assert_true(tide_type_register("in a visitor", 40, 8) != 0);
    assert_true(find_module());
    return 1;
}

static void a_visitor_may_use_the_library_while_a_fork_waits(void **unused)
{
    (void)unused;
    alarm(SECONDS);
    assert_int_equal(pthread_atfork(note_fork, NULL, NULL), 0); /* called before the library's */
    assert_int_equal(__real_dl_iterate_phdr(use_library_while_one_forks, NULL), 1);
    expect_joined(visiting);
    expect_joined(forking);
    alarm(0);
}

/* ---- a child that finds the list locked ---------------------------------------------------- */

/* With a site: so this program tells the library as it ends. */
static void use_scope(void)
{
    TIDE_SCOPE(tide_pool_local());
    assert_non_null(tide_acquire(tide_pool_local(), double, 8));
}

/* Of a module that is no part of the program, as the sites of a plugin are looked for. */
static bool find_shared_module(void)
{
#if defined DLFO_STRUCT_HAS_EH_DBASE
    tide_linker_range module;
    return tide_linker_module_of((const void *)(uintptr_t)_cmocka_run_group_tests, &module);
#else
    return true; /* an older C library cannot */
#endif
}

static void *child_ended; /* NULL: it hung, or found nothing */

static void *fork_and_exit(void *user)
{
    pid_t child = fork_child(SECONDS);
    if (child == 0)
        exit(find_shared_module() ? 0 : 1);
    return wait_for_child(child) == 0 ? user : NULL;
}

/* As if it loaded a module. Nothing is asserted here: a failure would leave the list locked. */
static int hold_list_in_fork(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)info, (void)size;
    *(bool *)user = pthread_create(&forking, NULL, fork_and_exit, &forks) == 0 &&
                    pthread_join(forking, &child_ended) == 0;
    return 1;
}

/* glibc does not unlock it there. */
static void a_child_ends_though_the_list_is_locked(void **unused)
{
    (void)unused;
    bool forked = false;
    if (under_sanitizer()) /* its search for leaks at the end visits the list */
        skip();
    use_scope();
    assert_int_equal(__real_dl_iterate_phdr(hold_list_in_fork, &forked), 1);
    assert_true(forked);
    assert_non_null(child_ended);
}

static void expect_modules_found(void)
{
    tide_linker_range own, other;
    const void *in_cmocka = (const void *)(uintptr_t)_cmocka_run_group_tests;
    assert_true(tide_linker_module_of(&begun, &own));
    assert_true(own.first <= (uintptr_t)&begun && (uintptr_t)&begun < own.last);
    assert_true(own.first <= (uintptr_t)use_scope && (uintptr_t)use_scope < own.last);
    assert_true(tide_linker_module_of(in_cmocka, &other));
    assert_true(other.first <= (uintptr_t)in_cmocka && (uintptr_t)in_cmocka < other.last);
    assert_true(other.last <= own.first || own.last <= other.first);
    assert_false(tide_linker_module_of(&own, &other)); /* the stack is no module's */
}

/* What was noted is whether the list was visited. */
static void the_module_of_an_address_is_found(void **unused)
{
    (void)unused;
    tide_linker_without_finder = true;
    __atomic_store_n(&noted, true, __ATOMIC_SEQ_CST);
    expect_modules_found();
    assert_false(__atomic_load_n(&noted, __ATOMIC_SEQ_CST));
    tide_linker_without_finder = false;
#if defined DLFO_STRUCT_HAS_EH_DBASE
    __atomic_store_n(&noted, true, __ATOMIC_SEQ_CST);
    expect_modules_found();
    assert_true(__atomic_exchange_n(&noted, false, __ATOMIC_SEQ_CST));
#endif
}

/* ---- storm --------------------------------------------------------------------------------- */

static bool over; /* atomic */

static void *visit_on(void *user)
{
    bool all = true;
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
        all = find_module() && all;
    return all ? user : NULL;
}

/* So many that some visit is under way nearly always: they give way to a fork that waits. */
static void a_child_always_finds_the_list_free(void **unused)
{
    (void)unused;
    enum { THREADS = 16 };
    pthread_t threads[THREADS];
    alarm(SECONDS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, visit_on, &over), 0);
    for (size_t i = 0; i < scaled(100, 10); i++)
        assert_non_null(fork_there(&over));
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++)
        expect_joined(threads[i]);
    alarm(0);
}

/* ---- the first use of the library ---------------------------------------------------------- */

static void *use_first(void *user)
{
    return tide_pool_local() != NULL ? user : NULL;
}

/* Another thread's first use does not wait for the linker, whose lock this one has: a use in here
 * would wait for that. */
static void await_first_use(void)
{
    pthread_t thread;
    void *used = NULL;
    CHILD_MUST(pthread_create(&thread, NULL, use_first, &forks) == 0);
    CHILD_MUST(pthread_join(thread, &used) == 0 && used != NULL);
    CHILD_MUST(tide_pool_local() != NULL);
}

static const char *program; /* as it was called */

/* This program again, since it has used the library. */
static void a_first_use_does_not_wait_for_the_linker(void **unused)
{
    (void)unused;
    pid_t child = fork_child(SECONDS);
    if (child == 0) {
        execl(program, program, in_linker_module, "first use", (char *)NULL);
        _exit(126);
    }
    expect_child_ends_well(child);
}

UNOBSERVED void *__wrap_dlopen(const char *path, int flags)
{
    return __real_dlopen(path, flags);
}

int main(int count, char **arguments)
{
    if (count < 2)
        return 2;
    program = arguments[0];
    in_linker_module = arguments[1];
    if (count > 2) {
        visit_linker(await_first_use, NULL);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_visitor_may_visit_while_another_thread_waits_to),
        cmocka_unit_test(a_visitor_may_use_the_library_while_a_fork_waits),
        cmocka_unit_test(a_child_ends_though_the_list_is_locked),
        cmocka_unit_test(a_first_use_does_not_wait_for_the_linker),
        cmocka_unit_test(the_module_of_an_address_is_found),
        cmocka_unit_test(a_child_always_finds_the_list_free),
    };
    assert_non_null(tide_pool_local()); /* the library is attached */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
