/* SPDX-License-Identifier: MIT */
/* A shared object with sites of its own, in C. */
#include <tidepool/scope.h>

#include "plugin.h"

#include "plugin_inline.h"

struct only_in_the_plugin {
    double a, b, c;
};

static size_t one(tide_pool *pool)
{
    TIDE_SCOPE_NAMED(pool, "plugin: one");
    return tide_acquire(pool, double, 10) != NULL;
}

static size_t two(tide_pool *pool)
{
    TIDE_SCOPE_NAMED(pool, "plugin: two");
    size_t got = tide_acquire(pool, struct only_in_the_plugin, 10) != NULL;
    /* The first one in a level that has not saved its types writes the log; the second one runs the
     * plan's own code. */
    for (int i = 0; i < 2; i++) {
        TIDE_SCOPE_NAMED(pool, "plugin: nested");
        got += tide_acquire(pool, float, 10) != NULL;
    }
    return got - 1;
}

static size_t without_a_site(tide_pool *pool)
{
    size_t got = 0;
    TIDE_FRAME(pool, (double, a, 3), (struct only_in_the_plugin, b, 3));
    TIDE_LOOP(pool, i, 2)
    got += tide_acquire(pool, short, 1 + i) != NULL;
    return a != NULL && b != NULL && got == 2 ? 2 : 0;
}

size_t plugin_run(tide_pool *pool)
{
    return one(pool) + two(pool) + without_a_site(pool) + plugin_inline_scope(pool);
}

size_t plugin_run_alone(void)
{
    return plugin_run(tide_pool_local());
}

tide_type plugin_type(void)
{
    return tide_type_of(struct only_in_the_plugin);
}

/* Scopes run at the very beginning and the very end, too. */
__attribute__((constructor)) static void at_load(void)
{
    plugin_run_alone();
}

__attribute__((destructor)) static void at_unload(void)
{
    plugin_run_alone();
}
