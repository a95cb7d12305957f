/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/soak/rest.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "tests/soak/sanitized.h"

static pthread_mutex_t rest_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t rest_changed = PTHREAD_COND_INITIALIZER;
static bool rest_asked; /* atomic; written under the lock */
static unsigned resting;

/* Without the lock where no rest is asked for: it would order turns that nothing else orders, and
 * hide races between them. */
void rest_if_asked(void)
{
    if (!__atomic_load_n(&rest_asked, __ATOMIC_RELAXED))
        return;
    pthread_mutex_lock(&rest_lock);
    resting++;
    pthread_cond_broadcast(&rest_changed);
    while (rest_asked)
        pthread_cond_wait(&rest_changed, &rest_lock);
    resting--;
    pthread_mutex_unlock(&rest_lock);
}

void rest_for_good(void)
{
    pthread_mutex_lock(&rest_lock);
    resting++;
    pthread_cond_broadcast(&rest_changed);
    pthread_mutex_unlock(&rest_lock);
}

static void rest_ask(bool asked)
{
    __atomic_store_n(&rest_asked, asked, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&rest_changed);
}

bool rest_begin(unsigned threads, unsigned seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    pthread_mutex_lock(&rest_lock);
    rest_ask(true);
    while (resting < threads &&
           pthread_cond_timedwait(&rest_changed, &rest_lock, &until) != ETIMEDOUT)
        continue;
    bool all = resting == threads;
    pthread_mutex_unlock(&rest_lock);
    return all;
}

void rest_end(void)
{
    pthread_mutex_lock(&rest_lock);
    rest_ask(false);
    pthread_mutex_unlock(&rest_lock);
}

#if SOAK_UNDER_ASAN || SOAK_UNDER_TSAN
size_t __sanitizer_get_current_allocated_bytes(void);

size_t rest_memory_kib(void)
{
    return __sanitizer_get_current_allocated_bytes() / 1024;
}
#else
size_t rest_memory_kib(void)
{
    char line[256];
    size_t kib = 0;
    malloc_trim(0);
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    while (file != NULL && kib == 0 && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Anonymous: %zu kB", &kib) != 1)
            kib = 0;
    if (file != NULL)
        fclose(file);
    return kib;
}
#endif
