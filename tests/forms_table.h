/* SPDX-License-Identifier: MIT */
/* The forms themselves. Included by one file for each language and set of compiler flags, which
 * says FORMS_TABLE (the table's name) and FORMS_LANGUAGE (a prefix for the names). */
#include <tidepool/dynamic.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>

#include "forms.h"

#ifndef FORMS_TABLE
#error "say FORMS_TABLE and FORMS_LANGUAGE first"
#endif

/* The tiers of a form with a site: name, tier, whether its types are declared. */
#define FORMS_TIERS(X)                    \
    X(full, TIDE_TIER_FULL, false)        \
    X(table, TIDE_TIER_TABLE, true)       \
    X(undeclared, TIDE_TIER_TABLE, false) \
    X(compiled, TIDE_TIER_COMPILED, true)

/* The pool is refused or NULL: nothing was entered, so the plan need not say anything. */
#define FORMS_SCOPE(name, tier, declared)                                              \
    static tide_status run_scope_##name(tide_pool *pool, form_body *body, void *state) \
    {                                                                                  \
        TIDE_SCOPE_AT(scope, pool, FORMS_LANGUAGE " scope/" #name);                    \
        if (pool != NULL)                                                              \
            expect_tier(scope.plan, tier);                                             \
        body(pool, state);                                                             \
        return TIDE_OK;                                                                \
    }

#define FORMS_CALL(name, tier, declared)                                              \
    static tide_status run_call_##name(tide_pool *pool, form_body *body, void *state) \
    {                                                                                 \
        static tide_site *site;                                                       \
        if (site == NULL)                                                             \
            site = tide_site_register(FORMS_LANGUAGE " call/" #name);                 \
        assert_non_null(site);                                                        \
        tide_scope scope;                                                             \
        tide_status entered = tide_scope_enter(pool, site, &scope);                   \
        if (entered == TIDE_OK)                                                       \
            expect_tier(scope.plan, tier);                                            \
        body(pool, state);                                                            \
        return entered == TIDE_OK ? tide_scope_leave(&scope) : entered;               \
    }

FORMS_TIERS(FORMS_SCOPE)
FORMS_TIERS(FORMS_CALL)

static tide_status run_types(tide_pool *pool, form_body *body, void *state)
{
    TIDE_SCOPE_TYPES(pool, double, int32_t);
    body(pool, state);
    return TIDE_OK;
}

static tide_status run_frame(tide_pool *pool, form_body *body, void *state)
{
    TIDE_FRAME(pool, (double, reals, 7), (int32_t, integers, 5));
    if (forms_of_the_host && reals != NULL && integers != NULL) {
        fill_bytes(reals, 7 * sizeof *reals, 1);
        fill_bytes(integers, 5 * sizeof *integers, 2);
    }
    body(pool, state);
    return TIDE_OK;
}

/* The body runs in the middle iteration: after one that touched nothing, and before another. */
static tide_status run_loop(tide_pool *pool, form_body *body, void *state)
{
    TIDE_LOOP(pool, i, 3)
    {
        if (i == 1)
            body(pool, state);
    }
    return TIDE_OK;
}

static void repeat_loop(tide_pool *pool, size_t count, form_body *body, void *state)
{
    TIDE_LOOP(pool, i, count)
    body(pool, state);
}

static tide_status run_mark(tide_pool *pool, form_body *body, void *state)
{
    tide_mark mark = tide_checkpoint(pool);
    tide_status status = mark.pool == NULL ? tide_error_status() : TIDE_OK;
    body(pool, state);
    return status == TIDE_OK ? tide_rewind(pool, mark) : status;
}

#define FORMS_ROW_SCOPE(name, tier, declared) \
    {FORMS_LANGUAGE " scope/" #name,          \
     FORMS_LANGUAGE " scope/" #name,          \
     tier,                                    \
     declared,                                \
     true,                                    \
     run_scope_##name,                        \
     NULL},
#define FORMS_ROW_CALL(name, tier, declared) \
    {FORMS_LANGUAGE " call/" #name,          \
     FORMS_LANGUAGE " call/" #name,          \
     tier,                                   \
     declared,                               \
     false,                                  \
     run_call_##name,                        \
     NULL},
/* clang-format off */
#define FORMS_ROW(name, block, run, repeat) \
    {FORMS_LANGUAGE " " name, NULL, TIDE_TIER_FULL, false, block, run, repeat}
/* clang-format on */

const form FORMS_TABLE[] = {
    FORMS_TIERS(FORMS_ROW_SCOPE) FORMS_TIERS(FORMS_ROW_CALL)
        FORMS_ROW("types", true, run_types, NULL),
    FORMS_ROW("frame", true, run_frame, NULL),
    FORMS_ROW("loop", true, run_loop, repeat_loop),
    FORMS_ROW("mark", false, run_mark, NULL),
    {NULL, NULL, TIDE_TIER_FULL, false, false, NULL, NULL},
};
