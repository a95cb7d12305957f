/* SPDX-License-Identifier: MIT */
/* A site that is not used is no reason for anything. */
#include "learning.h"

#include <stdio.h>

#include <tidepool/learn.h>
#include <tidepool/site.h>

static void steps(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        expect_ok(tide_step());
}

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
        expect_types(u.site, 1, TIDE_F64);
        assert_int_equal(tier_of(u.site), best_tier(kind));
        expect_executed(&u, 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(a_site_that_is_not_used_stays_what_it_is),
    };
    return cmocka_run_group_tests_name("learning: decays", tests, learning_make_pool,
                                       learning_drop_pool);
}
