/* SPDX-License-Identifier: MIT */
/* The law of locks: whoever calls into the dynamic linker holds no lock that a constructor of a
 * module may want, since the linker runs constructors under a lock of its own.
 *
 * The calls of the library are wrapped (the linker's option --wrap). Each first has another thread
 * take the registry: that succeeds at once, or not before the call is over. */
#define _GNU_SOURCE
#include "learning.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "runtime/base/registry.h"

enum { CALL_DLOPEN, CALL_DLSYM, CALLS };
static const char *const call_names[CALLS] = {"dlopen", "dlsym"};

static unsigned calls[CALLS];          /* how often the library made each */
static const char *under_lock;         /* one that was made with the registry locked */
static _Thread_local bool probing_off; /* in the thread that probes */

typedef struct probe {
    pthread_mutex_t mutex;
    pthread_cond_t over;
    bool taken;
    unsigned users; /* the thread and who waits for it; the last one frees it */
} probe;

static void probe_leave(probe *p)
{
    bool last = --p->users == 0;
    pthread_mutex_unlock(&p->mutex);
    if (!last)
        return;
    pthread_mutex_destroy(&p->mutex);
    pthread_cond_destroy(&p->over);
    free(p);
}

static void *probe_registry(void *user)
{
    probe *p = user;
    probing_off = true;
    tide_registry_lock();
    tide_registry_unlock();
    pthread_mutex_lock(&p->mutex);
    p->taken = true;
    pthread_cond_signal(&p->over);
    probe_leave(p);
    return NULL;
}

/* Can another thread have the registry now? Only a wrong answer takes as long as this waits. */
static bool registry_is_free(void)
{
    enum { SECONDS = 60 };
    pthread_t thread;
    struct timespec until;
    probe *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->users = 2;
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->over, NULL);
    assert_int_equal(pthread_create(&thread, NULL, probe_registry, p), 0);
    pthread_detach(thread);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SECONDS;
    pthread_mutex_lock(&p->mutex);
    while (!p->taken && pthread_cond_timedwait(&p->over, &p->mutex, &until) != ETIMEDOUT) {
    }
    bool taken = p->taken;
    probe_leave(p);
    return taken;
}

static void called(unsigned call)
{
    if (probing_off)
        return;
    calls[call]++;
    if (under_lock == NULL && !registry_is_free())
        under_lock = call_names[call];
}

void *__real_dlopen(const char *path, int flags);
void *__real_dlsym(void *handle, const char *name);
void *__wrap_dlopen(const char *path, int flags);
void *__wrap_dlsym(void *handle, const char *name);

void *__wrap_dlopen(const char *path, int flags)
{
    called(CALL_DLOPEN);
    return __real_dlopen(path, flags);
}

void *__wrap_dlsym(void *handle, const char *name)
{
    called(CALL_DLSYM);
    return __real_dlsym(handle, name);
}

static void learn_and_run(tide_kind kind)
{
    char name[64];
    snprintf(name, sizeof name, "linker: %s", tide_kind_name(kind));
    use u = use_of(name, kind, learning_pool, 1, TIDE_F64);
    until(&u, TIDE_TIER_COMPILED);
    expect_executed(&u, 10);
}

static void the_registry_is_free_whenever_the_linker_is_called(void **state)
{
    (void)state;
    need_stager();
    learn_and_run(TIDE_KIND_SCOPE);
    learn_and_run(TIDE_KIND_FRAME);
    learn_and_run(TIDE_KIND_ACQUIRE);
    learn_and_run(TIDE_KIND_ARRAY);
    if (under_lock != NULL)
        fail_msg("%s was called with the registry locked", under_lock);
    for (unsigned i = 0; i < CALLS; i++)
        if (calls[i] == 0)
            fail_msg("%s was never called: nothing was shown", call_names[i]);
}

/* Drivers are libraries, too. That there is none changes nothing. */
static void the_registry_is_free_while_a_driver_is_looked_for(void **state)
{
    (void)state;
    unsigned before = calls[CALL_DLOPEN];
    tide_device *device = tide_device_open("opencl:0");
    tide_device_close(device);
    assert_null(tide_device_open("cuda:77"));
    assert_true(calls[CALL_DLOPEN] > before);
    if (under_lock != NULL)
        fail_msg("%s was called with the registry locked", under_lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(the_registry_is_free_whenever_the_linker_is_called),
        LEARNING_TEST(the_registry_is_free_while_a_driver_is_looked_for),
    };
    return cmocka_run_group_tests_name("learning: linker", tests, learning_make_pool,
                                       learning_drop_pool);
}
