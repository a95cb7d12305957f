/* SPDX-License-Identifier: MIT */
/* A small program is interpreted; each of its call sites is a site of the library's. */
#include <stdlib.h>

#include <tidepool/dynamic.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/tunable.h>

#include "worker.h"

enum { CALLS = 4 };

static const struct interpreter_call {
    const char *site;
    const char *type;
    size_t count;
} interpreter_program[CALLS] = {{"call 0: sum", "f64", 100},
                                {"call 1: names", "i8", 300},
                                {"call 2: index", "i32", 50},
                                {"call 3: sum", "f32", 80}};

/* A call opens a scope of its own site, and has temporaries of a type that only the program knows. */
static void interpreter_step(tide_pool *pool, const struct interpreter_call *call, tide_site *site)
{
    tide_scope scope;
    if (site == NULL || tide_scope_enter(pool, site, &scope) != TIDE_OK)
        abort();
    for (int64_t i = tide_tunable("unroll", 1, 8); i > 0; i--)
        if (tide_acquire_type(pool, tide_type_find(call->type), call->count) == NULL)
            abort();
    (void)tide_scope_leave(&scope);
}

void worker_work(tide_pool *pool)
{
    static tide_site *sites[CALLS];
    for (int i = 0; i < CALLS; i++) {
        if (sites[i] == NULL)
            sites[i] = tide_site_register(interpreter_program[i].site);
        interpreter_step(pool, &interpreter_program[i], sites[i]);
    }
}
