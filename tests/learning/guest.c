/* SPDX-License-Identifier: MIT */
/* Learning in a program that does as it likes: that has a hot thread before all others. */
#define _GNU_SOURCE
#include "learning.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <tidepool/learn.h>

/* ---- the background thread ---------------------------------------------------------------- */

static bool is_background(const char *task)
{
    char path[300], name[32];
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    bool found = fgets(name, sizeof name, file) != NULL && strcmp(name, "tide-background\n") == 0;
    fclose(file);
    return found;
}

static pid_t background_task(void)
{
    pid_t found = 0;
    DIR *list = opendir("/proc/self/task");
    assert_non_null(list);
    for (struct dirent *entry; found == 0 && (entry = readdir(list)) != NULL;)
        if (is_background(entry->d_name))
            found = (pid_t)strtol(entry->d_name, NULL, 10);
    closedir(list);
    return found;
}

/* In a thread: the urgent one of a program, on a processor of its own. NULL: it may not be so. */
static void *start_background_urgently(void *pool)
{
    cpu_set_t all, one, its;
    struct sched_param first = {.sched_priority = 1};
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return NULL;
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    if (setpriority(PRIO_PROCESS, 0, -5) != 0 || sched_setscheduler(0, SCHED_FIFO, &first) != 0 ||
        sched_setaffinity(0, sizeof one, &one) != 0 || tide_background_start() != TIDE_OK)
        return NULL;
    pid_t task = 0;
    for (unsigned i = 0; i < PATIENCE_MS && (task = background_task()) == 0; i++)
        usleep(1000);
    bool ordinary = task != 0 && sched_getscheduler(task) == SCHED_OTHER &&
                    sched_getaffinity(task, sizeof its, &its) == 0 && CPU_EQUAL(&its, &all) &&
                    getpriority(PRIO_PROCESS, (id_t)task) == 0;
    static char not_ordinary;
    return ordinary ? pool : &not_ordinary;
}

static bool background_may_use(const cpu_set_t *wanted)
{
    cpu_set_t its;
    pid_t task = background_task();
    return task != 0 && sched_getaffinity(task, sizeof its, &its) == 0 && CPU_EQUAL(&its, wanted);
}

/* The background thread frees itself, so that whoever starts it need not wait for that. */
static void the_thread_is_not_bound_to_the_processor_of_who_starts_it(void **state)
{
    (void)state;
    cpu_set_t all, one;
    CPU_ZERO(&one);
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    expect_ok(tide_background_start());
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    for (unsigned i = 0; i < PATIENCE_MS && !background_may_use(&all); i++)
        usleep(1000);
    assert_true(background_may_use(&all));
    expect_ok(tide_background_stop());
}

static void the_thread_is_not_as_urgent_as_who_starts_it(void **state)
{
    (void)state;
    pthread_t thread;
    void *said;
    assert_int_equal(pthread_create(&thread, NULL, start_background_urgently, learning_pool), 0);
    assert_int_equal(pthread_join(thread, &said), 0);
    expect_ok(tide_background_stop());
    assert_true(said == NULL || said == learning_pool);
    if (said == NULL)
        skip();
}

/* ---- names -------------------------------------------------------------------------------- */

/* All bytes but 0, sixteen to a name, of a site and of its type. */
static void sites_and_types_of_any_name_compile(void **state)
{
    (void)state;
    need_stager();
    for (int first = 0; first < 256; first += 16) {
        char name[20];
        for (int i = 0; i < 16; i++)
            name[i] = (char)(first + i == 0 ? 255 : first + i);
        name[16] = '\0';
        use u = use_of(name, TIDE_KIND_SCOPE, learning_pool, 1, tide_type_register(name, 8, 8));
        until(&u, TIDE_TIER_COMPILED);
        assert_string_equal(info_of(u.site).name, name);
    }
}

/* A program that was bound as a whole, by taskset say. The background thread takes its name after its
 * processors. 0: it has those of the program. */
static int be_bound(void)
{
    cpu_set_t ours;
    if (sched_getaffinity(0, sizeof ours, &ours) != 0 || CPU_COUNT(&ours) != 1 ||
        tide_background_start() != TIDE_OK)
        return 1;
    for (unsigned i = 0; i < PATIENCE_MS && background_task() == 0; i++)
        usleep(1000);
    return background_may_use(&ours) ? 0 : 2;
}

static const char *self; /* this program, as it was called: Valgrind is not what starts again */

static void the_thread_stays_where_the_process_was_put(void **state)
{
    (void)state;
    pid_t child = fork_child(100);
    if (child == 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        CHILD_MUST(sched_setaffinity(0, sizeof one, &one) == 0);
        execl(self, "bound", "bound", (char *)NULL);
        _exit(126);
    }
    assert_int_equal(wait_for_child(child), 0);
}

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "bound") == 0)
        return be_bound();
    self = arguments[0];
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(the_thread_is_not_bound_to_the_processor_of_who_starts_it),
        LEARNING_TEST(the_thread_is_not_as_urgent_as_who_starts_it),
        LEARNING_TEST(the_thread_stays_where_the_process_was_put),
        LEARNING_TEST(sites_and_types_of_any_name_compile),
    };
    return cmocka_run_group_tests(tests, learning_make_pool, learning_drop_pool);
}
