/* SPDX-License-Identifier: MIT */
/* A process that does to the library all that processes do, at once and for minutes:
 *
 *   tidepool-soak [--seconds N] [--seed N] PLUGIN
 *
 * Two threads open scopes, two use buffers and hand them to each other, one loads and unloads a
 * plugin, one forks, one starts threads and cancels them, one kills the stager and closes every
 * descriptor that the process has. The first thread watches: a thread that does nothing for half a
 * minute is hung; its stack and those of the others are printed, and the process aborts. At the end
 * no stager may be left, four descriptors at most, and, if it ran for a minute or more, a MiB of
 * memory more than after a tenth of the time. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidepool/tidepool.h>

#include "tests/random.h"

#if defined(__SANITIZE_THREAD__)
#define SOAK_UNDER_TSAN 1
#elif defined(__has_feature)
#define SOAK_UNDER_TSAN __has_feature(thread_sanitizer)
#else
#define SOAK_UNDER_TSAN 0
#endif

enum { WORKERS = 8, HUNG_SECONDS = 30, STACK = 64 };

typedef struct worker {
    const char *name;
    bool (*turn)(struct worker *self); /* one turn; false: something was wrong */
    pthread_t thread;
    rng random;
    uint64_t turns; /* atomic */
} worker;

static bool soak_over, soak_failed; /* atomic */
static const char *soak_plugin;

static bool soak_must(bool good, const char *what)
{
    if (good)
        return true;
    fprintf(stderr, "soak: %s: %s\n", what, tide_error_message());
    __atomic_store_n(&soak_failed, true, __ATOMIC_RELAXED);
    return false;
}

/* ---- scopes ----------------------------------------------------------------------------- */

static bool scope_leaf(tide_pool *pool, size_t n)
{
    TIDE_FRAME(pool, (double, a, n), (int32_t, b, n));
    if (a == NULL || b == NULL)
        return false;
    a[n - 1] = b[n - 1] = 7;
    return a[n - 1] == b[n - 1];
}

static bool scope_branch(tide_pool *pool, size_t n)
{
    TIDE_SCOPE(pool);
    double *outer = tide_acquire(pool, double, n);
    float *other = n % 3 == 0 ? tide_acquire(pool, float, n) : NULL;
    if (outer == NULL)
        return false;
    outer[0] = (double)n;
    bool good = true;
    TIDE_LOOP(pool, i, n % 5)
    good = scope_leaf(pool, n + i) && good;
    (void)other;
    return good && outer[0] == (double)n;
}

static bool scopes(worker *self)
{
    tide_pool *pool = rng_below(&self->random, 2) == 0 ? tide_pool_local() : tide_pool_create(NULL);
    bool good = pool != NULL;
    for (unsigned i = 0; good && i < 2000; i++)
        good = scope_branch(pool, 1 + (size_t)rng_below(&self->random, 300));
    good = good && tide_pool_depth(pool) == 0 && tide_pool_check(pool) == TIDE_OK;
    if (pool != NULL && pool != tide_pool_local())
        good = tide_pool_destroy(pool) == TIDE_OK && good;
    tide_step();
    return soak_must(good, "scopes");
}

/* ---- buffers ---------------------------------------------------------------------------- */

enum { HANDED = 64 };
static tide_buffers *soak_buffers;
static tide_buffer handed[HANDED];
static pthread_mutex_t handed_lock = PTHREAD_MUTEX_INITIALIZER;

/* Puts a buffer into a place, and releases the one that another thread may have left there. */
static bool buffers(worker *self)
{
    bool good = true;
    for (unsigned i = 0; good && i < 500; i++) {
        size_t place = (size_t)rng_below(&self->random, HANDED);
        size_t bytes = 64 + (size_t)rng_below(&self->random, 1 << 16);
        tide_buffer mine = tide_buffer_acquire(soak_buffers, bytes);
        good = mine.generation != 0;
        if (good)
            memset(tide_buffer_pointer(soak_buffers, mine), 1, bytes);
        pthread_mutex_lock(&handed_lock);
        tide_buffer before = handed[place];
        handed[place] = mine;
        pthread_mutex_unlock(&handed_lock);
        if (before.generation != 0)
            good = tide_buffer_release(soak_buffers, before) == TIDE_OK && good;
    }
    return soak_must(good, "buffers");
}

/* ---- plugins ---------------------------------------------------------------------------- */

/* Loading may fail because a descriptor of the loader was closed meanwhile. */
static bool plugins(worker *self)
{
    (void)self;
    void *handle = dlopen(soak_plugin, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return true;
    size_t (*run)(void) = NULL;
    *(void **)&run = dlsym(handle, "plugin_run_alone");
    bool good = run != NULL;
    for (unsigned i = 0; good && i < 300; i++)
        good = run() > 0;
    return soak_must(dlclose(handle) == 0 && good, "plugins");
}

/* ---- forks ------------------------------------------------------------------------------ */

/* Ends by _exit: exit would wait for a lock of the C library that the plugins' thread may have held
 * in dlclose when this process was forked (glibc 2.36, __exit_funcs_lock). */
static void fork_child(uint64_t seed)
{
    worker child = {.random = {seed}};
    if (SOAK_UNDER_TSAN) /* its allocator's locks are as the other threads left them */
        _exit(0);
    alarm(HUNG_SECONDS);
    _exit(scopes(&child) ? 0 : 1);
}

static bool forks(worker *self)
{
    int status = 0;
    uint64_t seed = rng_next(&self->random);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        fork_child(seed);
    if (child < 0)
        return true;
    bool ended = waitpid(child, &status, 0) == child;
    if (ended && status != 0)
        fprintf(stderr, "soak: a child ended by status %#x\n", (unsigned)status);
    usleep(20000);
    return soak_must(ended && status == 0, "forks");
}

/* ---- cancellations ---------------------------------------------------------------------- */

static void *cancel_victim(void *seed)
{
    worker self = {.random = {(uintptr_t)seed}};
    while (scopes(&self)) {
        tide_buffers_trim(soak_buffers, 0);
        pthread_testcancel();
    }
    return NULL;
}

static bool cancellations(worker *self)
{
    pthread_t victim;
    if (pthread_create(&victim, NULL, cancel_victim, (void *)(uintptr_t)rng_next(&self->random)) !=
        0)
        return true;
    usleep((useconds_t)rng_below(&self->random, 20000));
    bool good = pthread_cancel(victim) == 0;
    return soak_must(pthread_join(victim, NULL) == 0 && good, "cancellations");
}

/* ---- stagers and descriptors ------------------------------------------------------------ */

/* Is this process a stager of ours? Its private directory, which it is told, names our process. */
static bool stager_is_ours(const char *pid)
{
    char path[64], line[4096] = {0}, mine[32];
    snprintf(path, sizeof path, "/proc/%.16s/cmdline", pid);
    snprintf(mine, sizeof mine, "-%d-", (int)getpid());
    FILE *file = fopen(path, "r");
    size_t bytes = file != NULL ? fread(line, 1, sizeof line - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    for (size_t i = 0; i < bytes; i++)
        line[i] = line[i] == '\0' ? ' ' : line[i];
    return strstr(line, "--serve") != NULL && strstr(line, mine) != NULL;
}

/* How many there are; kills them if `signal` is not 0. */
static unsigned stagers_each(int signal)
{
    unsigned count = 0;
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    while (processes != NULL && (entry = readdir(processes)) != NULL) {
        int pid = atoi(entry->d_name);
        if (pid <= 1 || !stager_is_ours(entry->d_name))
            continue;
        count++;
        if (signal != 0)
            kill(pid, signal);
    }
    if (processes != NULL)
        closedir(processes);
    return count;
}

static bool killings(worker *self)
{
    if (SOAK_UNDER_TSAN || rng_below(&self->random, 4) != 0) /* it calls what follows a race */
        stagers_each(SIGKILL);
    else
        closefrom(3);
    usleep(100000 + (useconds_t)rng_below(&self->random, 300000));
    return true;
}

/* ---- the watch -------------------------------------------------------------------------- */

static worker workers[WORKERS] = {
    {.name = "scopes", .turn = scopes},     {.name = "more scopes", .turn = scopes},
    {.name = "buffers", .turn = buffers},   {.name = "more buffers", .turn = buffers},
    {.name = "plugins", .turn = plugins},   {.name = "forks", .turn = forks},
    {.name = "killings", .turn = killings}, {.name = "cancellations", .turn = cancellations},
};

static void *work(void *user)
{
    worker *self = user;
    while (!__atomic_load_n(&soak_over, __ATOMIC_RELAXED) && self->turn(self))
        __atomic_fetch_add(&self->turns, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void print_stack(int signal)
{
    void *frames[STACK];
    (void)signal;
    backtrace_symbols_fd(frames, backtrace(frames, STACK), STDERR_FILENO);
}

static void give_up(const worker *hung)
{
    fprintf(stderr, "soak: '%s' has done nothing for %d s; all stacks:\n", hung->name,
            HUNG_SECONDS);
    for (unsigned i = 0; i < WORKERS; i++) {
        fprintf(stderr, "-- %s\n", workers[i].name);
        pthread_kill(workers[i].thread, SIGUSR1);
        sleep(1);
    }
    abort();
}

static void watch_for(unsigned seconds)
{
    static uint64_t seen[WORKERS];
    static unsigned quiet[WORKERS];
    for (unsigned s = 0; s < seconds && !__atomic_load_n(&soak_failed, __ATOMIC_RELAXED); s++) {
        sleep(1);
        for (unsigned i = 0; i < WORKERS; i++) {
            uint64_t now = __atomic_load_n(&workers[i].turns, __ATOMIC_RELAXED);
            quiet[i] = now == seen[i] ? quiet[i] + 1 : 0;
            seen[i] = now;
            if (quiet[i] >= HUNG_SECONDS)
                give_up(&workers[i]);
        }
    }
}

/* ---- what is left ----------------------------------------------------------------------- */

static size_t memory_kib(void)
{
    size_t pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%zu %zu", &pages, &resident) != 2)
        resident = 0;
    if (file != NULL)
        fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

static unsigned descriptors(void)
{
    unsigned count = 0;
    for (int i = 3; i < 1024; i++)
        count += dup2(i, i) == i;
    return count;
}

static bool soak(unsigned seconds)
{
    for (unsigned i = 0; i < WORKERS; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return soak_must(false, "no thread");
    watch_for(seconds / 10 + 1);
    size_t before = memory_kib();
    watch_for(seconds - seconds / 10);
    size_t after = memory_kib();
    __atomic_store_n(&soak_over, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(workers[i].thread, NULL);
    for (unsigned i = 0; i < WORKERS; i++)
        printf("%-14s %8llu turns\n", workers[i].name, (unsigned long long)workers[i].turns);
    for (unsigned s = 0; s < 10 && stagers_each(0) != 0; s++)
        sleep(1); /* an idle one ends */
    printf("memory         %8zu KiB, %zu after a tenth of the time\n", after, before);
    printf("descriptors    %8u\n", descriptors());
    printf("stagers        %8u\n", stagers_each(0));
    bool good = soak_must(stagers_each(0) == 0, "a stager is left") &&
                soak_must(descriptors() <= 4, "descriptors are left");
    /* A descriptor may have been closed under the reader. ThreadSanitizer's own memory grows. */
    bool read = before != 0 && after != 0 && !SOAK_UNDER_TSAN;
    return soak_must(seconds < 60 || !read || after <= before + 1024, "memory grew") && good &&
           !soak_failed;
}

int main(int count, char **arguments)
{
    unsigned seconds = 600;
    uint64_t seed = 1;
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--seconds") == 0 && i + 1 < count)
            seconds = (unsigned)strtoul(arguments[++i], NULL, 10);
        else if (strcmp(arguments[i], "--seed") == 0 && i + 1 < count)
            seed = strtoull(arguments[++i], NULL, 10);
        else
            soak_plugin = arguments[i];
    }
    soak_buffers = tide_buffers_create(NULL, NULL);
    if (soak_plugin == NULL || soak_buffers == NULL || seconds == 0) {
        fprintf(stderr, "usage: tidepool-soak [--seconds N] [--seed N] PLUGIN\n");
        return 2;
    }
    signal(SIGUSR1, print_stack);
    for (unsigned i = 0; i < WORKERS; i++)
        workers[i].random.state = seed * WORKERS + i;
    return soak(seconds) ? 0 : 1;
}
