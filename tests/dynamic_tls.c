/* SPDX-License-Identifier: MIT */
/* LeakSanitizer survives threads that still run at exit and have variables of a library loaded late.
 * Run times before Clang 17 take such a variable for one of an old glibc when its place in the page
 * is 16: they read two words before it as the address and size of what is to be searched, and crash.
 * What CTest sets for AddressSanitizer keeps them from that; without it this test ends with a status
 * of 1. Argument: the library. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <cmocka.h>

#define THREADS 64

static const char *path;
static char *(*here)(void);
static sem_t used;
static _Atomic int mistakable;

static void *use_and_stay(void *unused)
{
    if (((uintptr_t)here() & 4095) == 16)
        mistakable++;
    sem_post(&used);
    for (;;)
        pause();
    return unused;
}

static void threads_stay_until_exit(void **state)
{
    (void)state;
    void *module = dlopen(path, RTLD_NOW);
    assert_non_null(module);
    void *found = dlsym(module, "dynamic_tls_here");
    assert_non_null(found);
    memcpy(&here, &found, sizeof here);
    assert_int_equal(sem_init(&used, 0, 0), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, use_and_stay, NULL), 0);
        assert_int_equal(sem_wait(&used), 0);
    }
    assert_true(mistakable > 0);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    path = argv[1];
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_stay_until_exit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
