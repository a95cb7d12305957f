/* SPDX-License-Identifier: MIT */
/* How often a site is used, told from its windows: with a clock of the test's own. */
#include "forms.h"

#include <stdio.h>

#include <tidepool/dynamic.h>
#include <tidepool/profile.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>

#include "profiler/rate.h"
#include "profiler/test_hooks.h"
#include "profiler/window.h"
#include "runtime/base/registry.h"
#include "runtime/scope/site.h"

static uint64_t now_ns;

static uint64_t fake_clock(void)
{
    return now_ns;
}

static tide_site *site;
static tide_pool *pool;

/* So many uses, one each so many nanoseconds. */
static void use_times(size_t times, uint64_t apart_ns)
{
    tide_scope scope;
    for (size_t i = 0; i < times; i++) {
        now_ns += apart_ns;
        expect_ok(tide_scope_enter(pool, site, &scope));
        expect_ok(tide_scope_leave(&scope));
    }
}

static void begin(uint64_t uses)
{
    tide_registry_lock();
    assert_true(tide_window_begin(site, uses));
    tide_site_publish(site);
    tide_registry_unlock();
}

static void take_window(void)
{
    tide_site_profile unused;
    tide_registry_lock();
    tide_window_take(site, &unused);
    tide_registry_unlock();
}

static tide_site_information info(void)
{
    tide_site_information out;
    expect_ok(tide_site_info(site, &out));
    return out;
}

static int start(void **state)
{
    static unsigned made;
    char name[32];
    (void)state;
    expect_ok(tide_tune_set("learn", 0));
    now_ns = 1000;
    tide_rate_clock = fake_clock;
    snprintf(name, sizeof name, "rate %u", made++);
    site = tide_site_register(name);
    pool = pool_of(TIDE_CHECK_NONE);
    return 0;
}

static int end(void **state)
{
    (void)state;
    return tide_pool_destroy(pool) != TIDE_OK;
}

static void a_site_that_was_never_observed_tells_nothing(void **state)
{
    (void)state;
    use_times(10, 100);
    assert_true(info().calls == 0 && info().calls_per_second == 0);
}

/* 100 uses, 10 µs apart; then the site goes on as before for a second. */
static void a_full_window_tells_the_rate_at_which_it_filled(void **state)
{
    (void)state;
    use_times(1, 1);
    begin(100);
    now_ns += 5000000; /* it idled before: that is not the rate */
    use_times(100, 10000);
    now_ns += 777;
    take_window();
    assert_true(info().calls_per_second > 99999 && info().calls_per_second < 100001);
    double before = info().calls;
    assert_true(before >= 100);
    now_ns += 1000000000;
    assert_true(info().calls > before + 99999 && info().calls < before + 100001);
}

/* Seven uses in a second in which a hundred had room. */
static void a_window_that_was_ended_tells_by_how_long_it_was_open(void **state)
{
    (void)state;
    use_times(1, 1);
    begin(100);
    use_times(7, 1000);
    now_ns += 1000000000 - 7000;
    tide_registry_lock();
    tide_window_end(site);
    tide_registry_unlock();
    take_window();
    assert_true(info().calls_per_second > 6.99 && info().calls_per_second < 7.01);
    assert_true(info().calls >= 7);
}

/* A busy phase, then an idle one: the estimate stops growing once a window has seen that. */
static void a_site_that_falls_idle_is_told_so_by_its_next_window(void **state)
{
    (void)state;
    use_times(1, 1);
    begin(50);
    use_times(50, 1000);
    take_window();
    assert_true(info().calls_per_second > 999000);
    begin(50);
    now_ns += 1000000000;
    tide_registry_lock();
    tide_window_end(site);
    tide_registry_unlock();
    take_window();
    assert_true(info().calls_per_second == 0);
    double calls = info().calls;
    now_ns += UINT64_C(60000000000);
    assert_true(info().calls == calls);
}

/* Nothing of what was told before a reset is told afterwards, nor does it grow on. */
static void a_site_that_was_reset_has_no_rate(void **state)
{
    (void)state;
    use_times(1, 1);
    begin(50);
    use_times(50, 1000);
    take_window();
    assert_true(info().calls >= 50 && info().calls_per_second > 999000);
    expect_ok(tide_site_reset(site));
    now_ns += UINT64_C(60000000000);
    assert_true(info().calls == 0 && info().calls_per_second == 0);
    begin(50);
    use_times(50, 10000);
    take_window();
    assert_true(info().calls >= 50 && info().calls < 101);
    assert_true(info().calls_per_second > 99999 && info().calls_per_second < 100001);
}

int main(void)
{
#define RATE_TEST(function) cmocka_unit_test_setup_teardown(function, start, end)
    const struct CMUnitTest tests[] = {
        RATE_TEST(a_site_that_was_never_observed_tells_nothing),
        RATE_TEST(a_full_window_tells_the_rate_at_which_it_filled),
        RATE_TEST(a_window_that_was_ended_tells_by_how_long_it_was_open),
        RATE_TEST(a_site_that_falls_idle_is_told_so_by_its_next_window),
        RATE_TEST(a_site_that_was_reset_has_no_rate),
    };
    return cmocka_run_group_tests_name("rate", tests, NULL, NULL);
}
