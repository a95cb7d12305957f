/* SPDX-License-Identifier: MIT */
/* A process that does to the library all that processes do, at once and for minutes:
 *
 *   tidepool-soak [--seconds N] [--seed N] PLUGIN
 *
 * Two threads open scopes, two use buffers and hand them to each other, one loads and unloads a
 * plugin, one forks, one starts threads that end, one kills the stager. The first thread watches: a thread that does nothing for half a
 * minute is hung, and so is an end that takes as long: the process aborts, and its core has the
 * stacks. What was done is counted, and all of it must have been done. After each minute
 * all threads rest and give their buffers back, and the memory that the process holds is read
 * (rest.h): at the end it may be a MiB more than after the first minute. Then there may be four
 * descriptors at most.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tidepool/buffers.h>
#include <tidepool/learn.h>
#include <tidepool/tidepool.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

#include "tests/random.h"
#include "tests/soak/rest.h"
#include "tests/soak/sanitized.h"

enum { WORKERS = 8, HUNG_SECONDS = 30 };

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

/* ---- what was done ------------------------------------------------------------------------ */

typedef enum deed { PLUGINS, COMPILED, KILLED, CHILDREN, ENDED, DEEDS } deed;

static struct {
    const char *what;
    uint64_t times; /* atomic */
} counts[DEEDS] = {
    [PLUGINS] = {.what = "plugins loaded"}, [COMPILED] = {.what = "scopes in compiled code"},
    [KILLED] = {.what = "stagers killed"},  [CHILDREN] = {.what = "children forked"},
    [ENDED] = {.what = "threads ended"},
};

static void count_add(deed what, uint64_t times)
{
    __atomic_fetch_add(&counts[what].times, times, __ATOMIC_RELAXED);
}

/* Whatever could not be done is no error when it happens: a library cannot be loaded while its
 * descriptor is closed. But it has to be done in the end. */
static bool counts_are_good(void)
{
    bool good = true;
    for (unsigned i = 0; i < DEEDS; i++) {
        printf("%-24s %10llu\n", counts[i].what, (unsigned long long)counts[i].times);
        if (counts[i].times == 0) {
            fprintf(stderr, "soak: %s: none\n", counts[i].what);
            good = false;
        }
    }
    return good;
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
    TIDE_SCOPE_AT(scope, pool, "soak: branch");
    count_add(COMPILED, scope.plan->tier == TIDE_TIER_COMPILED);
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

/* While all threads rest: what they handed on, and what the cache holds, is of random sizes. */
static bool buffers_give_back(void)
{
    bool good = true;
    for (unsigned i = 0; i < HANDED; i++) {
        if (handed[i].generation != 0)
            good = tide_buffer_release(soak_buffers, handed[i]) == TIDE_OK && good;
        handed[i] = (tide_buffer){0};
    }
    tide_buffers_trim(soak_buffers, 0);
    return soak_must(good, "buffers given back");
}

/* ---- plugins ---------------------------------------------------------------------------- */

/* For each library that comes or goes ThreadSanitizer (Clang 14) maps 1.7 MB and keeps them. Once
 * that is as much as the machine's memory, used or not, the kernel refuses to fork. */
static void plugins_pace(void)
{
    if (SOAK_UNDER_TSAN)
        usleep(100000);
}

static bool plugins(worker *self)
{
    (void)self;
    plugins_pace();
    void *handle = dlopen(soak_plugin, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return soak_must(false, "no plugin");
    count_add(PLUGINS, 1);
    size_t (*run)(void) = NULL;
    *(void **)&run = dlsym(handle, "plugin_run_alone");
    bool good = run != NULL;
    for (unsigned i = 0; good && i < 300; i++)
        good = run() > 0;
    return soak_must(dlclose(handle) == 0 && good, "plugins");
}

/* ---- forks ------------------------------------------------------------------------------ */

/* By _exit: if another thread was loading a plugin, glibc leaves its list of modules locked here, and
 * its list of what is done at exit. */
static void fork_live(uint64_t seed)
{
    worker child = {.random = {seed}};
    if (SOAK_UNDER_TSAN) /* its allocator's locks are as the other threads left them */
        _exit(0);
    alarm(HUNG_SECONDS / 2);
    _exit(scopes(&child) ? 0 : 1);
}

static void fork_say_failure(void)
{
    static bool said;
    if (!said)
        perror("soak: a fork failed");
    said = true;
}

static bool forks(worker *self)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        fork_live(rng_next(&self->random));
    if (child < 0)
        fork_say_failure();
    bool good = child < 0 || (waitpid(child, &status, 0) == child && status == 0);
    count_add(CHILDREN, child > 0);
    if (!good)
        fprintf(stderr, "soak: a child ended by status %#x\n", (unsigned)status);
    usleep(20000);
    return soak_must(good, "forks");
}

/* ---- threads that end --------------------------------------------------------------------- */

static void *end_between_calls(void *seed)
{
    worker self = {.random = {(uintptr_t)seed}};
    for (uint64_t turns = rng_below(&self.random, 100); turns > 0 && scopes(&self); turns--)
        tide_buffers_trim(soak_buffers, 0);
    pthread_exit(NULL);
}

static bool endings(worker *self)
{
    pthread_t thread;
    void *seed = (void *)(uintptr_t)rng_next(&self->random);
    if (pthread_create(&thread, NULL, end_between_calls, seed) != 0)
        return true;
    count_add(ENDED, pthread_join(thread, NULL) == 0);
    return true;
}

/* ---- stagers --------------------------------------------------------------------------- */

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

static void kill_stagers(void)
{
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    while (processes != NULL && (entry = readdir(processes)) != NULL) {
        int pid = atoi(entry->d_name);
        if (pid > 1 && stager_is_ours(entry->d_name))
            count_add(KILLED, kill(pid, SIGKILL) == 0);
    }
    if (processes != NULL)
        closedir(processes);
}

static bool killings(worker *self)
{
    kill_stagers();
    /* Compiled code is adopted at once, or has to win. */
    tide_tune_set("trial", (double)rng_below(&self->random, 2));
    usleep(100000 + (useconds_t)rng_below(&self->random, 300000));
    return true;
}

/* ---- the watch -------------------------------------------------------------------------- */

static worker workers[WORKERS] = {
    {.name = "scopes", .turn = scopes},     {.name = "more scopes", .turn = scopes},
    {.name = "buffers", .turn = buffers},   {.name = "more buffers", .turn = buffers},
    {.name = "plugins", .turn = plugins},   {.name = "forks", .turn = forks},
    {.name = "killings", .turn = killings}, {.name = "endings", .turn = endings},
};

static void *work(void *user)
{
    worker *self = user;
    pthread_setname_np(pthread_self(), self->name);
    while (!__atomic_load_n(&soak_over, __ATOMIC_RELAXED) && self->turn(self)) {
        __atomic_fetch_add(&self->turns, 1, __ATOMIC_RELAXED);
        rest_if_asked();
    }
    rest_for_good();
    return NULL;
}

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "soak: hung: %s\n", what);
    abort();
}

/* A thread that is quiet for too long ends it all. */
static void watch_turns(void)
{
    static uint64_t seen[WORKERS];
    static unsigned quiet[WORKERS];
    for (unsigned i = 0; i < WORKERS; i++) {
        uint64_t now = __atomic_load_n(&workers[i].turns, __ATOMIC_RELAXED);
        quiet[i] = now == seen[i] ? quiet[i] + 1 : 0;
        seen[i] = now;
        if (quiet[i] >= HUNG_SECONDS)
            give_up(workers[i].name);
    }
}

static bool watch_has_failed(void)
{
    return __atomic_load_n(&soak_failed, __ATOMIC_RELAXED);
}

/* What the process holds after so many seconds, in KiB; 0: it failed. */
static size_t watch_for(unsigned seconds)
{
    for (unsigned s = 0; s < seconds && !watch_has_failed(); s++) {
        sleep(1);
        watch_turns();
    }
    if (!rest_begin(WORKERS, HUNG_SECONDS))
        give_up("a thread that should rest");
    size_t held = buffers_give_back() ? rest_memory_kib() : 0;
    rest_end();
    printf("memory at rest           %10zu KiB\n", held);
    return watch_has_failed() ? 0 : held;
}

/* Each ends its turn, and then what the library does at a thread's end. */
static void watch_end(void)
{
    __atomic_store_n(&soak_over, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < WORKERS; i++) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += HUNG_SECONDS;
        if (pthread_timedjoin_np(workers[i].thread, NULL, &until) != 0)
            give_up(workers[i].name);
    }
}

/* ---- the end ------------------------------------------------------------------------------ */

static unsigned descriptors_left(void)
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
    unsigned part = seconds < 120 ? seconds / 2 : 60;
    size_t before = watch_for(part), after = before;
    for (unsigned past = part; past < seconds && !watch_has_failed(); past += part)
        after = watch_for(seconds - past < part ? seconds - past : part);
    watch_end();
    for (unsigned i = 0; i < WORKERS; i++)
        printf("%-24s %10llu turns\n", workers[i].name, (unsigned long long)workers[i].turns);
    bool good = counts_are_good();
    unsigned descriptors = descriptors_left();
    printf("descriptors left         %10u\n", descriptors);
    good = soak_must(descriptors <= 4, "descriptors are left") && good;
    if (watch_has_failed())
        return false;
    good = soak_must(before != 0 && after != 0, "memory could not be read") && good;
    return soak_must(after <= before + 1024, "memory grew") && good;
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
    if (soak_plugin == NULL || seconds < 2) {
        fprintf(stderr, "usage: tidepool-soak [--seconds N] [--seed N] PLUGIN\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* or a child would print what was left in it, too */
    tide_tune_set("break_even", 0);   /* there is always something to compile */
    soak_buffers = tide_buffers_create(NULL, NULL);
    if (!soak_must(soak_buffers != NULL, "no buffers"))
        return 1;
    for (unsigned i = 0; i < WORKERS; i++)
        workers[i].random.state = seed * WORKERS + i;
    bool good = soak(seconds);
    alarm(HUNG_SECONDS); /* the library's own end */
    return good ? 0 : 1;
}
