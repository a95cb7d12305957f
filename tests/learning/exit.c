/* SPDX-License-Identifier: MIT */
/* A process ends while its threads go on: inside scopes that run compiled code and tables, that are
 * on trial and observed, of the program and of a module that is still loaded. What they can reach
 * stays until the very end; so the process ends by the status that it was given. */
#define _GNU_SOURCE
#include "learning.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include <tidepool/callsite.h>
#include <tidepool/learn.h>
#include <tidepool/site.h>

#include "../plugin.h"

enum { THREADS = 3, LATE_US = 3000 };

static const char *exit_plugin;
static size_t (*exit_plugin_run)(tide_pool *pool);

/* ---- the sites ---------------------------------------------------------------------------- */

#define EXIT_SITE(function, site)                        \
    static void function(tide_pool *pool)                \
    {                                                    \
        TIDE_SCOPE_NAMED(pool, site);                    \
        double *reals = tide_acquire(pool, double, 8);   \
        int32_t *whole = tide_acquire(pool, int32_t, 8); \
        if (reals != NULL && whole != NULL)              \
            reals[7] = (double)(whole[7] = 1);           \
    }
EXIT_SITE(exit_compiled, "exit: compiled")
EXIT_SITE(exit_table, "exit: table")
EXIT_SITE(exit_tried, "exit: tried")
EXIT_SITE(exit_observed, "exit: observed")

struct exit_search {
    const char *name;
    tide_site *found;
};

static bool exit_is_named(tide_site *site, void *user)
{
    struct exit_search *search = user;
    if (site->name != NULL && strcmp(site->name, search->name) == 0)
        search->found = site;
    return search->found == NULL;
}

static tide_site *exit_site(const char *name)
{
    struct exit_search search = {name, NULL};
    tide_site_each(exit_is_named, &search);
    assert_non_null(search.found);
    return search.found;
}

static void exit_learn(void (*run)(tide_pool *pool), tide_site *site, tide_tier tier)
{
    for (unsigned i = 0; i < 100 && tier_of(site) != tier; i++) {
        for (unsigned j = 0; j < 210; j++)
            run(learning_pool);
        settle();
        expect_ok(tide_step());
    }
    assert_int_equal(tier_of(site), tier);
}

/* A window that does not fill, and a trial that does not end, while a child lives. */
static void exit_prepare(void)
{
    bool compiles = have_stager();
    exit_learn(exit_table, exit_site("exit: table"),
               compiles ? TIDE_TIER_COMPILED : TIDE_TIER_TABLE);
    expect_ok(tide_site_pin(exit_site("exit: table"), TIDE_TIER_TABLE));
    if (compiles) {
        exit_learn(exit_compiled, exit_site("exit: compiled"), TIDE_TIER_COMPILED);
        set("trial", 1);
        set("trial_calls", 1e4);
        set("trial_burst", 256);
        for (unsigned i = 0;
             i < 100 && strcmp(reason_of(exit_site("exit: tried")), "compiled; on trial") != 0;
             i++) {
            for (unsigned j = 0; j < 210; j++)
                exit_tried(learning_pool);
            settle();
        }
        assert_string_equal(reason_of(exit_site("exit: tried")), "compiled; on trial");
    }
    set("window_calls", 1e6);
    exit_observed(learning_pool);
    assert_true(info_of(exit_site("exit: observed")).observed);
    set("window_calls", 200); /* of the next one */
    void *plugin = dlopen(exit_plugin, RTLD_NOW | RTLD_LOCAL);
    if (plugin == NULL)
        fail_msg("%s", dlerror());
    *(void **)&exit_plugin_run = dlsym(plugin, "plugin_run");
    assert_non_null(exit_plugin_run);
    assert_int_equal(exit_plugin_run(learning_pool), PLUGIN_ARRAYS);
}

/* ---- the end -------------------------------------------------------------------------------- */

static size_t exit_rounds[THREADS]; /* atomic */
static bool exit_slowly; /* in the children: the end takes its time, so that threads go on */

static void exit_take_time(void)
{
    if (exit_slowly)
        usleep(LATE_US);
}

/* After the destructors of the program and of what it has loaded. */
static void exit_take_time_last(void)
{
    exit_take_time();
}

__attribute__((section(".fini_array.00001"),
               used)) static void (*const exit_last)(void) = exit_take_time_last;

static void *exit_go_on(void *user)
{
    size_t *rounds = user;
    tide_pool *pool = tide_pool_local();
    for (;;) {
        exit_compiled(pool);
        exit_table(pool);
        exit_tried(pool);
        exit_observed(pool);
        if (exit_plugin_run(pool) != PLUGIN_ARRAYS)
            _exit(3);
        __atomic_fetch_add(rounds, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* Rounds, with a site that is always wanted as code: so the stager has something to do. */
static void *exit_step(void *user)
{
    size_t *rounds = user;
    tide_pool *pool = tide_pool_local();
    use u = {.site = tide_site_register("exit: stepped"), .pool = pool, .count = 1};
    for (;;) {
        for (unsigned i = 0; i < 210; i++) {
            u.types[0] = i % 2 == 0 ? TIDE_F64 : TIDE_I32;
            (void)use_once(&u);
        }
        tide_site_reset(u.site);
        tide_step();
        __atomic_fetch_add(rounds, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* Does not return. */
static void exit_in_the_middle(bool handlers, bool stepping)
{
    exit_slowly = true;
    if (handlers)
        CHILD_MUST(atexit(exit_take_time) == 0);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_t thread;
        void *(*run)(void *) = stepping && i == 0 ? exit_step : exit_go_on;
        CHILD_MUST(pthread_create(&thread, NULL, run, &exit_rounds[i]) == 0);
        CHILD_MUST(pthread_detach(thread) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        while (__atomic_load_n(&exit_rounds[i], __ATOMIC_RELAXED) < 20)
            usleep(50);
    exit(0);
}

static void exits_while_threads_are_in_scopes(void **state)
{
    (void)state;
    exit_prepare();
    for (size_t i = 0, most = scaled(120, 4); i < most; i++) {
        pid_t child = fork_child(60);
        if (child == 0)
            exit_in_the_middle(i % 2 != 0, i % 4 < 2);
        assert_int_equal(wait_for_child(child), 0);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {LEARNING_TEST(exits_while_threads_are_in_scopes)};
    exit_plugin = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests_name("learning: exit", tests, learning_make_pool,
                                       learning_drop_pool);
}
