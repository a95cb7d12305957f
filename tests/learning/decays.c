/* SPDX-License-Identifier: MIT */
/* Nothing that learning counts against a site or the stager grows for good: what was long ago
 * counts less and less, and a site that is not used is no reason for anything. */
#include "learning.h"

#include <stdio.h>

#include <tidepool/learn.h>
#include <tidepool/site.h>

#include "jit/learn/learner.h"
#include "jit/learn/round.h"
#include "runtime/base/settings.h"
#include "runtime/scope/site.h"

static void steps(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        expect_ok(tide_step());
}

/* ---- misses ------------------------------------------------------------------------------ */

static void patience_with_misses_wears_off(void **state)
{
    (void)state;
    set("window_every", 4);
    for (tide_kind kind = TIDE_KIND_SCOPE; kind <= TIDE_KIND_ACQUIRE; kind += TIDE_KIND_ACQUIRE) {
        use u = use_of(kind == TIDE_KIND_SCOPE ? "decays: scope" : "decays: acquire", kind,
                       learning_pool, 1, TIDE_F64);
        learn_windows(&u, 2);
        tide_learner *learner = u.site->record->learner;
        learner->misses_max = 1 << 12;
        steps(2 * 4 * 12 + 2 * 4);
        assert_int_equal(learner->misses_max, tide_constant_whole(TIDE_CONSTANT_misses));
    }
}

/* ---- idle sites -------------------------------------------------------------------------- */

static unsigned gave_up;

static void hear(const tide_event *event, void *user)
{
    const use *u = user;
    gave_up += event->kind == TIDE_EVENT_GAVE_UP && event->site == u->site;
}

/* Windows open and close, and nobody uses the site. */
static void a_site_that_is_not_used_stays_what_it_is(void **state)
{
    (void)state;
    need_stager();
    for (tide_kind kind = 0; kind < TIDE_KIND_COUNT; kind++) {
        char name[32];
        snprintf(name, sizeof name, "decays: idle %s", tide_kind_name(kind));
        use u = use_of(name, kind, learning_pool, 1, TIDE_F64);
        set("window_every", 100);
        until(&u, TIDE_TIER_COMPILED);
        set("window_every", 4);
        set("window_rounds", 3);
        const char *reason = reason_of(u.site);
        uint64_t generation = info_of(u.site).generation, seen = 0;
        gave_up = 0;
        tide_event_set_handler(hear, &u);
        for (unsigned i = 0; i < 600; i++) {
            steps(1);
            seen += info_of(u.site).observed;
        }
        tide_event_set_handler(NULL, NULL);
        assert_true(seen > 100);
        assert_int_equal(gave_up, 0);
        assert_string_equal(reason_of(u.site), reason);
        assert_int_equal(info_of(u.site).generation, generation);
        assert_true(u.site->record->learner != NULL);
        expect_types(u.site, 1, TIDE_F64);
        assert_int_equal(tier_of(u.site), best_tier(kind));
        expect_executed(&u, 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(patience_with_misses_wears_off),
        LEARNING_TEST(a_site_that_is_not_used_stays_what_it_is),
    };
    return cmocka_run_group_tests_name("learning: decays", tests, learning_make_pool,
                                       learning_drop_pool);
}
