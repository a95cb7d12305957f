/* SPDX-License-Identifier: MIT */
/* Ends as it is told: by returning, by exit in a thread, in a handler of events, in a hook of
 * buffers or of a pool, in a child; or by _exit. Or once its standard input has ended. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidepool/buffers.h>
#include <tidepool/learn.h>
#include <tidepool/tidepool.h>

static void end_by_buffers(const tide_buffer_event *event, void *user)
{
    (void)event;
    if (user != NULL)
        exit(0);
}

static void end_by_pool(const tide_pool_event *event, void *user)
{
    (void)event;
    (void)user;
    exit(0);
}

static void end_by_event(const tide_event *event, void *user)
{
    (void)event;
    (void)user;
    exit(0);
}

static void *end_by_thread(void *user)
{
    exit(0);
    return user;
}

/* Never ends: exit does not wait for it. */
static void *work_on(void *user)
{
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.name = "still at work"});
    for (size_t i = 0;; i++) {
        TIDE_SCOPE(pool);
        if (tide_acquire(pool, double, 100 + i % 1000) == NULL)
            return user;
        __atomic_store_n((int *)user, 1, __ATOMIC_RELEASE);
    }
}

static void use(tide_pool *pool)
{
    for (size_t i = 0; i < 100; i++) {
        TIDE_SCOPE(pool);
        (void)tide_acquire(pool, double, 100);
        tide_step();
    }
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    pthread_t thread;
    static int at_work; /* the thread goes on after this function has returned */
    tide_pool *pool = tide_pool_local();
    if (strcmp(how, "event") == 0)
        tide_event_set_handler(end_by_event, NULL);
    use(pool);
    tide_buffers *buffers = tide_buffers_create(
        NULL, &(tide_buffers_options){.name = "b",
                                      .hook = strcmp(how, "buffers") == 0 ? end_by_buffers : NULL,
                                      .user = pool});
    (void)tide_buffer_acquire(buffers, 1000);
    if (strcmp(how, "pool") == 0)
        (void)tide_acquire(tide_pool_create(&(tide_pool_options){.hook = end_by_pool}), int, 5);
    if (strcmp(how, "thread") == 0) {
        pthread_create(&thread, NULL, end_by_thread, NULL);
        pthread_join(thread, NULL);
    }
    if (strcmp(how, "others") == 0) {
        pthread_create(&thread, NULL, work_on, &at_work);
        while (__atomic_load_n(&at_work, __ATOMIC_ACQUIRE) == 0)
            usleep(100);
    }
    if (strcmp(how, "child") == 0 && fork() != 0)
        _exit(wait(NULL) > 0 ? 0 : 1);
    if (strcmp(how, "input") == 0)
        while (getchar() != EOF)
            continue;
    if (strcmp(how, "_exit") == 0)
        _exit(0);
    return 0;
}
