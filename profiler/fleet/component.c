/* SPDX-License-Identifier: MIT */
/* libtidepool-fleet: a thread that takes what the store has at the start, and gives it what this
 * process has seen, now and then. Nothing of the program waits for it, but for moments at the start
 * and at exit. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "jit/tune/fleet.h"
#include "profiler/fleet/store.h"
#include "runtime/base/assert.h"
#include "runtime/base/memory_stream.h"

enum {
    START_MS = 100,
    EXIT_MS = 250,
    STORE_MS = 2000, /* of one push or pull */
    FIRST_MS = 250,  /* until the first push; doubled each time */
    SELDOM_MS = 60 * 1000
};

static pthread_mutex_t component_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t component_moved = PTHREAD_COND_INITIALIZER;
static bool component_started, component_ends, component_ended, component_answers;
static const tide_fleet_host *component_host;
static fleet_url component_url;
static char component_id[FLEET_ID_MAX], component_member[40];

/* Waits for the flag, so long at most. Locked. */
static bool component_wait(const bool *flag, int ms)
{
    struct timespec until = fleet_in(ms);
    while (!*flag && pthread_cond_clockwait(&component_moved, &component_lock, CLOCK_MONOTONIC,
                                            &until) != ETIMEDOUT)
        continue;
    return *flag;
}

static void component_set(bool *flag, bool value)
{
    pthread_mutex_lock(&component_lock);
    *flag = value;
    pthread_cond_broadcast(&component_moved);
    pthread_mutex_unlock(&component_lock);
}

/* Said once. */
static void component_complain(const char *what, const char *follows)
{
    static bool said;
    if (!said)
        fprintf(stderr, "tidepool: TIDEPOOL_FLEET: %s%s\n", what, follows);
    said = true;
}

/* The store has not answered: learning goes on without it. */
static void component_complain_of_store(const char *error)
{
    component_complain(error, "; this process learns by itself");
}

typedef struct component_refused {
    int count;
    char why[FLEET_ERROR_MAX]; /* of the last one */
} component_refused;

static void component_take(void *user, const char *text, size_t length, double weight)
{
    component_refused *refused = user;
    bool fits = length <= FLEET_TEXT_MAX;
    if (fits && component_host->read(text, length, true, weight) == TIDE_OK)
        return;
    refused->count++;
    snprintf(refused->why, sizeof refused->why, "%s",
             fits ? component_host->error_message() : "it is too long");
}

static void component_pull(void)
{
    char error[FLEET_ERROR_MAX];
    component_refused refused = {0};
    bool good = fleet_pull(&component_url, component_id, STORE_MS, component_take, &refused, error);
    if (good && refused.count != 0) {
        char told[FLEET_ERROR_MAX + 64];
        snprintf(told, sizeof told, "%d of its profiles are refused, the last for this: %s",
                 refused.count, refused.why);
        component_complain(told, "");
    } else if (!good)
        component_complain_of_store(error);
    component_set(&component_answers, good);
}

/* A profile of nothing would put one of something out of the store. Its second line is its last. */
static bool component_is_empty(const char *text)
{
    const char *line = strchr(text, '\n');
    return line == NULL || strncmp(line + 1, "end ", 4) == 0;
}

/* What has been seen, if that is more than was told. */
static void component_push(char **told)
{
    char error[FLEET_ERROR_MAX], *text = NULL;
    size_t length = 0;
    FILE *out = tide_memory_stream_open(&text, &length);
    bool good = out != NULL && component_host->write_own(out) == TIDE_OK;
    good = tide_memory_stream_close(out, &text) && good;
    if (!good || component_is_empty(text) || (*told != NULL && strcmp(*told, text) == 0)) {
        free(text);
        return;
    }
    tide_assert(length > 0);
    good =
        fleet_push(&component_url, component_id, component_member, text, length, STORE_MS, error);
    component_set(&component_answers, good);
    if (!good)
        component_complain_of_store(error);
    free(good ? *told : text);
    *told = good ? text : *told;
}

static void *component_run(void *unused)
{
    char *told = NULL;
    (void)prctl(PR_SET_NAME, "tide-fleet");
    component_pull();
    component_set(&component_started, true);
    bool ends = false;
    for (int ms = FIRST_MS; !ends; ms = ms < SELDOM_MS ? 2 * ms : ms) {
        pthread_mutex_lock(&component_lock);
        ends = component_wait(&component_ends, ms);
        bool worth = !ends || component_answers;
        pthread_mutex_unlock(&component_lock);
        if (worth)
            component_push(&told);
    }
    free(told);
    component_set(&component_ended, true);
    return unused;
}

/* A number that no other process has: for who contributes. */
static void component_draw_member(void)
{
    uint64_t drawn = (uint64_t)time(NULL);
    (void)getrandom(&drawn, sizeof drawn, GRND_NONBLOCK);
    snprintf(component_member, sizeof component_member, "%016" PRIx64 "%08x", drawn,
             (unsigned)getpid());
}

static bool component_begin(const tide_fleet_host *host, const char *url, char *error, size_t room)
{
    pthread_t thread;
    tide_assert(room >= FLEET_ERROR_MAX);
    if (!fleet_url_read(url, &component_url, error) ||
        !fleet_identity("/proc/self/exe", host->version, &component_url, component_id, error))
        return false;
    component_host = host;
    component_draw_member();
    int code = host->create_thread(&thread, component_run);
    if (code != 0) {
        snprintf(error, room, "no thread: %s", strerror(code));
        return false;
    }
    pthread_detach(thread);
    pthread_mutex_lock(&component_lock);
    (void)component_wait(&component_started, START_MS);
    pthread_mutex_unlock(&component_lock);
    return true;
}

static void component_end(void)
{
    pthread_mutex_lock(&component_lock);
    component_ends = true;
    pthread_cond_broadcast(&component_moved);
    if (component_answers)
        (void)component_wait(&component_ended, EXIT_MS);
    pthread_mutex_unlock(&component_lock);
}

/* The library's way to die, of which this links nothing. */
void tide_assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "tidepool-fleet: %s:%d: %s\n", file, line, what);
    abort();
}

extern const tide_fleet_component tide_fleet_table;
__attribute__((visibility("default"))) const tide_fleet_component tide_fleet_table = {
    .interface = TIDE_FLEET_INTERFACE, .begin = component_begin, .end = component_end};
