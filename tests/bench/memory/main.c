/* SPDX-License-Identifier: MIT */
/* tidepool-memory: one program of large arrays in a process of its own, by malloc or by pools and
 * buffers, so that another malloc can be preloaded.
 *
 *   tidepool-memory CASE malloc|tide SECONDS
 *
 * prints the processor time in milliseconds; what the process had resident over what was live, on
 * the average of all moments at which the program looked, and at the peak; and MiB resident after it
 * has idled for so many seconds. What was resident before the program began is taken off. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tidepool/buffers.h>
#include <tidepool/dynamic.h>
#include <tidepool/learn.h>
#include <tidepool/tidepool.h>
#include <tidepool/tune.h>

enum { MIB = 1 << 20, TAKEN_MAX = 64 };

static bool by_tide;

static void die(const char *what)
{
    fprintf(stderr, "tidepool-memory: %s\n", what);
    exit(1);
}

/* ---- arrays of a round, and memory with a life of its own ------------------------------------- */

typedef struct taken {
    tide_mark mark;
    void *each[TAKEN_MAX];
    size_t count;
} taken;

static void round_begin(taken *t)
{
    t->count = 0;
    if (by_tide)
        t->mark = tide_checkpoint(tide_pool_local());
}

/* Written whole. */
static void round_take(taken *t, size_t bytes)
{
    void *data = by_tide ? tide_acquire(tide_pool_local(), char, bytes) : malloc(bytes);
    if (data == NULL || t->count == TAKEN_MAX)
        die("no memory");
    memset(data, 1, bytes);
    t->each[t->count++] = data;
}

static void round_end(taken *t)
{
    if (by_tide)
        tide_rewind(tide_pool_local(), t->mark);
    else
        while (t->count > 0)
            free(t->each[--t->count]);
}

typedef struct block {
    tide_buffer buffer;
    void *data;
} block;

static tide_buffers *buffers;

static void block_take(block *b, size_t bytes)
{
    if (by_tide)
        b->buffer = tide_buffer_acquire_pointer(buffers, bytes, &b->data);
    else
        b->data = malloc(bytes);
    if (b->data == NULL)
        die("no memory");
    memset(b->data, 1, bytes);
}

static void block_give(block *b)
{
    if (!by_tide)
        free(b->data);
    else if (tide_buffer_release(buffers, b->buffer) != TIDE_OK)
        die(tide_error_message());
}

/* ---- looks ------------------------------------------------------------------------------------ */

static size_t looks_base, looks_most, looks_most_live;
static double looks_sum;
static unsigned looks_count;

static size_t resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1)
        die("no /proc/self/statm");
    fclose(file);
    size_t bytes = (size_t)pages * (size_t)getpagesize();
    return bytes > looks_base ? bytes - looks_base : 0;
}

static void look(size_t live)
{
    size_t now = resident();
    looks_sum += (double)now / (double)live;
    looks_count++;
    looks_most = now > looks_most ? now : looks_most;
    looks_most_live = live > looks_most_live ? live : looks_most_live;
}

/* ---- cases ------------------------------------------------------------------------------------ */

/* One array that becomes longer, as of a file that is read on. */
static void growing(void)
{
    taken t;
    for (size_t kib = 1024; kib <= 64 << 10; kib += kib / 16) {
        round_begin(&t);
        round_take(&t, kib << 10);
        look(kib << 10);
        round_end(&t);
    }
}

/* Eight arrays a round, one of them large, each round another. */
static void moving(void)
{
    taken t;
    srand(1);
    for (int r = 0; r < 1000; r++) {
        int large = rand() % 8;
        round_begin(&t);
        for (int k = 0; k < 8; k++)
            round_take(&t, k == large ? 4 * MIB : 4096);
        if (r % 16 == 0)
            look(4 * MIB + 7 * 4096);
        round_end(&t);
    }
}

/* The same sizes each round: five arrays, as of a stencil. */
static void steady(void)
{
    taken t;
    for (int r = 0; r < 400; r++) {
        round_begin(&t);
        for (size_t k = 0; k < 5; k++)
            round_take(&t, (700 << 10) + (k << 15));
        if (r % 16 == 0)
            look(5 * (700 << 10) + (10 << 15));
        round_end(&t);
    }
}

enum { WORKERS = 20 };
static sem_t worker_go[WORKERS], worker_done;

static void *worker(void *number)
{
    taken t;
    for (;;) {
        sem_wait(&worker_go[(size_t)number]);
        round_begin(&t);
        round_take(&t, 16 * MIB);
        look(16 * MIB);
        round_end(&t);
        sem_post(&worker_done);
    }
    return NULL;
}

/* Threads of which one is at work at a time. They stay, as those of a pool of threads do. */
static void workers(void)
{
    sem_init(&worker_done, 0, 0);
    for (size_t i = 0; i < WORKERS; i++) {
        pthread_t thread;
        sem_init(&worker_go[i], 0, 0);
        if (pthread_create(&thread, NULL, worker, (void *)i) != 0 || pthread_detach(thread) != 0)
            die("no thread");
    }
    for (int r = 0; r < 3 * WORKERS; r++) {
        sem_post(&worker_go[r % WORKERS]);
        sem_wait(&worker_done);
    }
}

/* Many blocks, released all at once. */
static void burst(void)
{
    enum { COUNT = 2000 };
    static block all[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        block_take(&all[i], 256 << 10);
        if (i % 100 == 99)
            look((i + 1) << 18);
    }
    for (size_t i = 0; i < COUNT; i++)
        block_give(&all[i]);
}

/* Blocks between small ones that stay. */
static void pinned(void)
{
    enum { COUNT = 400 };
    static block all[COUNT];
    for (int r = 0; r < 3; r++) {
        for (size_t i = 0; i < COUNT; i++) {
            block_take(&all[i], MIB);
            char *small = malloc(2000);
            if (small != NULL)
                memset(small, 1, 2000);
        }
        look((size_t)COUNT * MIB + (size_t)(r + 1) * COUNT * 2000);
        for (size_t i = 0; i < COUNT; i++)
            block_give(&all[i]);
    }
}

/* Large blocks, then smaller ones. */
static void shrinking(void)
{
    block three[3];
    for (size_t mib = 96; mib >= 12; mib = mib * 3 / 4) {
        for (int i = 0; i < 3; i++)
            block_take(&three[i], mib * MIB);
        look(3 * mib * MIB);
        for (int i = 0; i < 3; i++)
            block_give(&three[i]);
    }
}

/* Blocks replaced at random, of 8 KiB to 1 MiB. */
static void replaced(void)
{
    enum { COUNT = 64 };
    static block all[COUNT];
    static size_t bytes[COUNT];
    size_t live = 0;
    srand(2);
    for (int i = 0; i < 20000; i++) {
        int k = rand() % COUNT;
        if (bytes[k] != 0)
            block_give(&all[k]);
        live -= bytes[k];
        bytes[k] = ((size_t)8 << 10 << rand() % 7) + (size_t)(rand() % 8192);
        live += bytes[k];
        block_take(&all[k], bytes[k]);
        if (i % 256 == 255)
            look(live);
    }
    for (int k = 0; k < COUNT; k++)
        if (bytes[k] != 0)
            block_give(&all[k]);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {{"growing", growing},     {"moving", moving},    {"steady", steady},
             {"workers", workers},     {"burst", burst},      {"pinned", pinned},
             {"shrinking", shrinking}, {"replaced", replaced}};

/* Half-second steps, as a program has them that waits for requests. */
static void idle(int seconds)
{
    for (int i = 0; i < 2 * seconds; i++) {
        usleep(500000);
        if (by_tide)
            (void)tide_step();
    }
}

static double processor_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

int main(int count, char **arguments)
{
    for (size_t i = 0; count == 4 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(arguments[1], cases[i].name) != 0)
            continue;
        by_tide = strcmp(arguments[2], "tide") == 0;
        if (by_tide && ((buffers = tide_buffers_create(NULL, NULL)) == NULL ||
                        tide_tune_set("auto_trim", 1) != TIDE_OK))
            die(tide_error_message());
        looks_base = resident();
        double begun = processor_ms();
        cases[i].run();
        double ms = processor_ms() - begun;
        idle(atoi(arguments[3]));
        printf("%s %s %.1f ms %.2f %.2f %zu MiB\n", cases[i].name, arguments[2], ms,
               looks_sum / looks_count, (double)looks_most / (double)looks_most_live,
               resident() >> 20);
        return 0;
    }
    fputs("tidepool-memory CASE malloc|tide SECONDS\n", stderr);
    return 2;
}
