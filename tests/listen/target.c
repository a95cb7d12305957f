/* SPDX-License-Identifier: MIT */
/* A program to look into. It works until its standard input ends; a line on that has it do one
 * thing, and it says "done" or what failed. Each thread it was told of has a pool; all use two sites. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidepool/listen.h>
#include <tidepool/scope.h>
#include <tidepool/tidepool.h>
#include <tidepool/tune.h>

static bool target_ended;
static uint64_t target_rounds;

static double work_frame(tide_pool *pool, size_t n)
{
    TIDE_SCOPE(pool);
    float *f = tide_acquire(pool, float, n);
    double *g = tide_acquire(pool, double, n);
    if (f == NULL || g == NULL)
        abort();
    f[0] = 1;
    g[0] = 2;
    return (double)f[0] + g[0];
}

static double work_round(tide_pool *pool, size_t n)
{
    TIDE_SCOPE(pool);
    double *a = tide_acquire(pool, double, n);
    int32_t *b = tide_acquire(pool, int32_t, n);
    if (a == NULL || b == NULL)
        abort();
    a[0] = 1;
    b[0] = 2;
    return a[0] + b[0] + work_frame(pool, n);
}

static void *target_work(void *unused)
{
    (void)unused;
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.name = "target"});
    if (pool == NULL)
        abort();
    do {
        for (int i = 0; i < 1000; i++)
            if (work_round(pool, 100) != 6)
                abort();
        __atomic_fetch_add(&target_rounds, 1, __ATOMIC_RELAXED);
        usleep(500);
    } while (!__atomic_load_n(&target_ended, __ATOMIC_RELAXED));
    tide_pool_destroy(pool);
    return NULL;
}

/* ---- what it is told to do ---------------------------------------------------------------- */

/* Has a line come, or its end? Takes no more than that line: the rest is the parent's. */
static bool target_is_told(int wait_ms)
{
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    char byte = 0;
    if (poll(&input, 1, wait_ms) <= 0)
        return false;
    while (read(STDIN_FILENO, &byte, 1) == 1 && byte != '\n')
        continue;
    return true;
}

/* The child works, or is another program, until it gets a line; the parent waits for it. */
static int target_fork(bool executes)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0 && executes) {
        execlp("sh", "sh", "-c", "read line", (char *)NULL);
        _exit(1);
    }
    if (child == 0) {
        tide_pool *pool = tide_pool_create(NULL);
        while (pool != NULL && !target_is_told(10))
            work_round(pool, 10);
        _exit(pool == NULL);
    }
    printf("child %d\n", (int)child);
    fflush(stdout);
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* The same process runs this program from its beginning. */
static int target_begin_anew(void)
{
    char *args[] = {"again", "1", NULL};
    fflush(stdout);
    execv("/proc/self/exe", args);
    return 1;
}

enum { FILLED_MAX = 64 };

static int filled[FILLED_MAX]; /* descriptors, while there is none left */

/* No descriptor can be had any more. */
static int target_fill(void)
{
    struct rlimit most = {.rlim_cur = FILLED_MAX, .rlim_max = FILLED_MAX};
    int count = 0;
    memset(filled, -1, sizeof filled);
    if (setrlimit(RLIMIT_NOFILE, &most) != 0)
        return 1;
    while (count < FILLED_MAX && (filled[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        count++;
    return count == 0 || errno != EMFILE;
}

static int target_free(void)
{
    for (int i = 0; i < FILLED_MAX && filled[i] >= 0; i++)
        close(filled[i]);
    return 0;
}

/* Of all threads, thousands. Each may be within one more. */
static int target_tell_rounds(void)
{
    printf("%llu ", (unsigned long long)__atomic_load_n(&target_rounds, __ATOMIC_RELAXED));
    return 0;
}

static int target_obey(const char *word)
{
    if (strcmp(word, "rounds") == 0)
        return target_tell_rounds();
    if (strcmp(word, "fill") == 0)
        return target_fill();
    if (strcmp(word, "free") == 0)
        return target_free();
    if (strcmp(word, "listen") == 0)
        return tide_listen(NULL);
    if (strcmp(word, "end") == 0)
        return tide_listen_end();
    if (strcmp(word, "listen in a file") == 0)
        return tide_listen("/dev/null/folder") == TIDE_ERROR_FILE ? 0 : 1;
    if (strcmp(word, "pool") == 0)
        return tide_pool_destroy(tide_pool_create(NULL));
    if (strcmp(word, "setting") == 0)
        return tide_tune_set("listen", 1);
    if (strcmp(word, "fork") == 0 || strcmp(word, "exec") == 0)
        return target_fork(word[0] == 'e');
    if (strcmp(word, "again") == 0)
        return target_begin_anew();
    return 1;
}

int main(int count, char **args)
{
    pthread_t threads[256];
    char line[64];
    int wanted = count > 1 ? atoi(args[1]) : 1;
    for (int i = 0; i < wanted && i < 256; i++)
        pthread_create(&threads[i], NULL, target_work, NULL);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        int code = target_obey(line);
        printf("%s %s\n", code == 0 ? "done" : "failed", code == 0 ? "" : tide_error_message());
        fflush(stdout);
    }
    __atomic_store_n(&target_ended, true, __ATOMIC_RELAXED);
    for (int i = 0; i < wanted && i < 256; i++)
        pthread_join(threads[i], NULL);
    return target_rounds > 0 || wanted == 0 ? 0 : 1;
}
