/* SPDX-License-Identifier: MIT */
/* Modules whose sites have been learned are unloaded: with compiled code, on trial, with a
 * window open, with a compile under way. Nothing of theirs may be looked at afterwards, though
 * the next module often lies where they lay. */
#define _GNU_SOURCE
#include "learning.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include <tidepool/learn.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>

#include "../plugin.h"
#include "tests/hooks.h"

static const char *plugin_path;

typedef struct plugin {
    void *handle;
    size_t (*run)(tide_pool *pool);
} plugin;

static plugin load(void)
{
    plugin p = {dlopen(plugin_path, RTLD_NOW | RTLD_LOCAL), NULL};
    if (p.handle == NULL)
        fail_msg("%s", dlerror());
    *(void **)&p.run = dlsym(p.handle, "plugin_run");
    assert_non_null(p.run);
    return p;
}

static void unload(const plugin *p)
{
    assert_int_equal(dlclose(p->handle), 0);
    assert_null(dlopen(plugin_path, RTLD_NOW | RTLD_NOLOAD)); /* it is really gone */
}

static void run(const plugin *p, tide_pool *pool, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        assert_int_equal(p->run(pool), PLUGIN_ARRAYS);
}

struct seen {
    unsigned sites, compiled;
    uint64_t runs;
};

static bool see(tide_site *site, void *user)
{
    struct seen *seen = user;
    tide_site_information info;
    if (site->name == NULL || strncmp(site->name, "plugin: ", 8) != 0)
        return true;
    expect_ok(tide_site_info(site, &info));
    seen->sites++;
    seen->compiled += info.tier == TIDE_TIER_COMPILED;
    seen->runs += info.runs;
    return true;
}

static struct seen look(void)
{
    struct seen seen = {0};
    tide_site_each(see, &seen);
    return seen;
}

/* Does each of the sites' uses execute compiled code? */
static bool all_executed(const plugin *p, tide_pool *pool)
{
    struct seen before = look();
    run(p, pool, 50);
    return before.compiled == before.sites && look().runs == before.runs + 50 * before.sites;
}

/* Whether a scope is nested in others that do not know its types depends on what those have
 * learned: so the inner sites may have to look again once the outer ones are done. */
static void learn(const plugin *p, tide_pool *pool)
{
    set_constant("window_every", 5);
    for (unsigned i = 0; i < 400 && !all_executed(p, pool); i++) {
        run(p, pool, 200);
        settle();
        expect_ok(tide_step());
    }
    run(p, pool, 1);
    assert_true(all_executed(p, pool));
}

/* How far learning has come when the module goes. */
enum moment { COMPILED, ORDERED, ANSWERED, OBSERVED, TRIED, FRESH, MOMENTS };

static void load_and_unload(enum moment moment, tide_pool *pool)
{
    plugin p = load();
    set("trial", moment == TRIED);
    switch (moment) {
    case COMPILED: learn(&p, pool); break;
    case ORDERED: /* nobody has told the library that the answer is there */
    case ANSWERED:
        run(&p, pool, 210);
        expect_ok(tide_step());
        break;
    case OBSERVED: run(&p, pool, 120); break;
    case TRIED:
        for (unsigned i = 0; i < 4; i++) {
            run(&p, pool, i < 2 ? 210 : 3);
            settle();
        }
        break;
    default: break;
    }
    unload(&p);
    assert_int_equal(look().sites, 0);
    if (moment != ORDERED)
        settle();
}

static void modules_go_at_any_moment_of_learning(void **state)
{
    (void)state;
    need_stager();
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    settle();
    for (unsigned i = 0; i < scaled(36, 6); i++)
        load_and_unload((enum moment)(i % MOMENTS), pool);
    settle();
    CHECK_POOL(pool);
    expect_ok(tide_pool_destroy(pool));
}

/* Sites of other kinds and other types come to lie where a module's were. */
static void what_comes_to_lie_where_a_module_was_is_learned_afresh(void **state)
{
    (void)state;
    need_stager();
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    for (unsigned i = 0; i < scaled(6, 2); i++) {
        char name[64];
        plugin p = load();
        set("window_every", 1);
        learn(&p, pool);
        run(&p, pool, 30); /* windows are opened on compiled plans, too */
        expect_ok(tide_step());
        run(&p, pool, 30);
        unload(&p);
        for (tide_kind kind = 0; kind < TIDE_KIND_COUNT; kind++) {
            snprintf(name, sizeof name, "plugins: after %u %s", i, tide_kind_name(kind));
            use u = use_of(name, kind, pool, 2, TIDE_F64, TIDE_I32);
            set("window_every", 100);
            until(&u, TIDE_TIER_COMPILED);
            set("window_every", 1);
            learn_windows(&u, 3);
            expect_ok(tide_site_pin(u.site, best_tier(kind)));
            settle();
            expect_executed(&u, 10);
        }
    }
    CHECK_POOL(pool);
    expect_ok(tide_pool_destroy(pool));
}

/* The background thread is in the middle of something when the module goes. */
static void modules_go_beside_a_busy_keeper(void **state)
{
    (void)state;
    need_stager();
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    set("background_period", 1);
    set("window_every", 1);
    expect_ok(tide_background_start());
    for (unsigned i = 0; i < scaled(60, 10); i++) {
        plugin p = load();
        run(&p, pool, 50 + i * 37 % 1000);
        unload(&p);
    }
    expect_ok(tide_background_stop());
    settle();
    CHECK_POOL(pool);
    expect_ok(tide_pool_destroy(pool));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(modules_go_at_any_moment_of_learning),
        LEARNING_TEST(what_comes_to_lie_where_a_module_was_is_learned_afresh),
        LEARNING_TEST(modules_go_beside_a_busy_keeper),
    };
    if (argc != 2)
        return 2;
    plugin_path = argv[1];
    return cmocka_run_group_tests_name("learning: plugins", tests, NULL, NULL);
}
