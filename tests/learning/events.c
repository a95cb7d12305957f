/* SPDX-License-Identifier: MIT */
/* What a service that tunes a program sees and does: settings by name, pins and resets while
 * learning goes on, and events in their order, to listeners that do things themselves. */
#define _GNU_SOURCE
#include "learning.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <tidepool/learn.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

#include "tests/hooks.h"

/* ---- settings ---------------------------------------------------------------------------- */

/* Learning switched off leaves sites as they are; on again, they go on. */
static void learning_can_be_switched_off_and_on(void **state)
{
    (void)state;
    need_stager();
    set("learn", 0);
    use u = use_of("events: off", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    learn_windows(&u, 5);
    assert_int_equal(tier_of(u.site), TIDE_TIER_FULL);
    assert_int_equal(info_of(u.site).samples, 0);
    set("learn", 1);
    expect_ok(tide_site_reset(u.site));
    until(&u, TIDE_TIER_COMPILED);
    set("learn", 0);
    u.types[0] = TIDE_I32;
    learn_windows(&u, 5);
    assert_int_equal(tier_of(u.site), TIDE_TIER_COMPILED);
    expect_types(u.site, 1, TIDE_F64);
}

static bool check_reason(const char *code, const char *words, void *user)
{
    ++*(unsigned *)user;
    assert_true(code[0] != '\0' && words != NULL);
    return true;
}

static void every_reason_has_a_code_and_words(void **state)
{
    (void)state;
    unsigned count = 0;
    tide_reason_each(check_reason, &count);
    assert_true(count > 25);
}

/* ---- the sequence ------------------------------------------------------------------------ */

enum { TOLD = 4096 };

static struct {
    const tide_site *site; /* of which is noted; NULL: of all */
    unsigned count;
    struct told {
        tide_event_kind kind;
        tide_tier tier;
        char reason[96], detail[160];
        uint64_t round, serial, time_ns;
    } all[TOLD];
} told;

static void note_event(const tide_event *event, void *user)
{
    assert_ptr_equal(user, &told);
    assert_non_null(event->name);
    if ((told.site != NULL && event->site != told.site) || told.count == TOLD)
        return;
    struct told *t = &told.all[told.count++];
    t->kind = event->kind;
    t->tier = event->tier;
    t->round = event->round;
    t->serial = event->serial;
    t->time_ns = event->time_ns;
    snprintf(t->reason, sizeof t->reason, "%s", event->reason);
    snprintf(t->detail, sizeof t->detail, "%s", event->detail);
}

static void listen_to(const tide_site *site)
{
    told.site = site;
    told.count = 0;
    tide_event_set_handler(note_event, &told);
}

static unsigned found_events(void)
{
    unsigned found = 0;
    for (unsigned i = 0; i < told.count; i++)
        found += told.all[i].kind == TIDE_EVENT_FOUND;
    return found;
}

/* The place of the next event of that kind at or after `from`. */
static unsigned next_told(unsigned from, tide_event_kind kind)
{
    while (from < told.count && told.all[from].kind != kind)
        from++;
    if (from == told.count)
        fail_msg("no event '%s'", tide_event_name(kind));
    return from;
}

static void until_compiled_for(use *u, tide_type type)
{
    u->types[0] = type;
    while (tier_of(u->site) != TIDE_TIER_COMPILED || info_of(u->site).types[0] != type)
        until(u, TIDE_TIER_COMPILED);
}

static void a_sites_life_is_told_in_order(void **state)
{
    (void)state;
    need_stager();
    use u = use_of("events: life", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_U16);
    listen_to(u.site);
    until(&u, TIDE_TIER_COMPILED);
    unsigned found = next_told(0, TIDE_EVENT_FOUND);
    unsigned table = next_told(found, TIDE_EVENT_PUBLISHED);
    unsigned staged = next_told(found, TIDE_EVENT_STAGED);
    assert_int_equal(told.all[table].tier, TIDE_TIER_TABLE);
    unsigned compiled = next_told(staged, TIDE_EVENT_PUBLISHED);
    assert_int_equal(told.all[compiled].tier, TIDE_TIER_COMPILED);
    assert_string_equal(told.all[compiled].reason, "compiled code was adopted without a trial");
    until_compiled_for(&u, TIDE_I16); /* for which, as for the one before, no other site has code */
    unsigned missed = next_told(compiled, TIDE_EVENT_MISSED);
    unsigned again = next_told(missed, TIDE_EVENT_PUBLISHED);
    next_told(again, TIDE_EVENT_STAGED);
    for (unsigned i = 1; i < told.count; i++)
        assert_true(told.all[i].round >= told.all[i - 1].round);
}

static void giving_up_is_told_with_the_reason(void **state)
{
    (void)state;
    set("guards_max", 1);
    use u = use_of("events: gave up", TIDE_KIND_DISPATCH, learning_pool, 1, TIDE_F64);
    listen_to(u.site);
    for (unsigned i = 0; i < 600; i++) {
        u.types[0] = i % 2 == 0 ? TIDE_F64 : TIDE_I32;
        use_times(&u, 1);
        if (i % 100 == 99)
            settle();
    }
    unsigned at = next_told(0, TIDE_EVENT_GAVE_UP);
    assert_string_equal(told.all[at].reason, "more different types than are worth testing for");
    assert_int_equal(told.all[at].tier, TIDE_TIER_FULL);
}

/* Nobody listens: nothing is kept for later. Too many in one round: counted. */
static void events_beyond_what_is_kept_are_counted(void **state)
{
    (void)state;
    enum { MANY = 1500 };
    uint64_t untold = learned().untold;
    listen_to(NULL);
    for (unsigned i = 0; i < MANY; i++) {
        char name[64];
        snprintf(name, sizeof name, "events: many %u", i);
        use u = use_of(name, TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
        use_times(&u, 1);
    }
    expect_ok(tide_step());
    assert_int_equal(told.count, 1024);
    assert_true(learned().untold >= untold + MANY - 1024);
    untold = learned().untold;
    tide_event_set_handler(NULL, NULL);
    for (unsigned i = 0; i < MANY; i++) {
        char name[64];
        snprintf(name, sizeof name, "events: unheard %u", i);
        use u = use_of(name, TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
        use_times(&u, 1);
    }
    listen_to(NULL);
    expect_ok(tide_step());
    assert_int_equal(found_events(), 0);
    assert_int_equal(learned().untold, untold);
}

/* ---- lines ------------------------------------------------------------------------------- */

static char *lines; /* of the standard error */

/* What a step writes on the standard error. */
static void step_and_listen(void)
{
    static char text[1 << 16];
    FILE *file = tmpfile();
    assert_non_null(file);
    int kept = dup(STDERR_FILENO);
    fflush(stderr);
    assert_int_equal(dup2(fileno(file), STDERR_FILENO), STDERR_FILENO);
    tide_status status = tide_step();
    fflush(stderr);
    assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    close(kept);
    expect_ok(status);
    rewind(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    lines = text;
    assert_int_equal(fclose(file), 0);
}

static unsigned lines_with(const char *words)
{
    unsigned count = 0;
    for (const char *at = lines; (at = strstr(at, words)) != NULL; at++)
        count++;
    return count;
}

static void each_event_is_a_line_if_it_is_wanted(void **state)
{
    (void)state;
    use first = use_of("events: \"a\" line\n", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    use_times(&first, 1);
    step_and_listen();
    assert_string_equal(lines, "");
    set("verbose", 1);
    use second = use_of("events: \"b\" line\n\\", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    use_times(&second, 1);
    listen_to(second.site);
    step_and_listen();
    set("verbose", 0);
    assert_int_equal(found_events(), 1); /* the listener hears as before */
    assert_int_equal(
        lines_with("kind=\"found\" site=\"events: \\x22b\\x22 line\\x0a\\x5c\" reason="), 1);
    assert_int_equal(lines_with("\n"), lines_with("tidepool: event serial="));
    assert_int_equal(lines_with("\n"), lines_with(" tier="));
    tide_event_set_handler(NULL, NULL);
}

/* In the order in which things happened, on the clock that programs read. */
static void events_have_times_and_serials(void **state)
{
    (void)state;
    struct timespec before, after;
    listen_to(NULL);
    clock_gettime(CLOCK_MONOTONIC, &before);
    for (unsigned i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "events: timed %u", i);
        use u = use_of(name, TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
        use_times(&u, 1);
    }
    expect_ok(tide_step());
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_true(told.count >= 3);
    for (unsigned i = 0; i < told.count; i++) {
        uint64_t time = told.all[i].time_ns;
        assert_true(time >= (uint64_t)before.tv_sec * 1000000000 + (uint64_t)before.tv_nsec);
        assert_true(time <= (uint64_t)after.tv_sec * 1000000000 + (uint64_t)after.tv_nsec);
        assert_true(i == 0 || time >= told.all[i - 1].time_ns);
        assert_true(i == 0 || told.all[i].serial == told.all[i - 1].serial + 1);
    }
    uint64_t last = told.all[told.count - 1].serial;
    tide_event_set_handler(NULL, NULL);
    use unheard = use_of("events: timed unheard", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    use_times(&unheard, 1);
    expect_ok(tide_step());
    use heard = use_of("events: timed again", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    listen_to(heard.site);
    use_times(&heard, 1);
    expect_ok(tide_step());
    assert_true(told.count >= 1 && told.all[0].serial > last + 1);
    tide_event_set_handler(NULL, NULL);
}

/* ---- steering meanwhile ------------------------------------------------------------------ */

static bool stop_steering;

static void *steer(void *site)
{
    for (unsigned i = 0; !__atomic_load_n(&stop_steering, __ATOMIC_RELAXED); i++) {
        static const tide_tier tiers[] = {TIDE_TIER_FULL, TIDE_TIER_TABLE, TIDE_TIER_COMPILED};
        tide_site_information info;
        (void)tide_site_pin(site, tiers[i % 3]);
        (void)tide_site_info(site, &info);
        (void)tide_site_unpin(site);
        if (i % 50 == 0)
            (void)tide_site_reset(site);
        set_constant("misses", 1 + i % 100);
    }
    return NULL;
}

static void *use_on(void *shared)
{
    use u = *(const use *)shared;
    bool well = true;
    u.pool = tide_pool_create(NULL);
    while (!__atomic_load_n(&stop_steering, __ATOMIC_RELAXED))
        well = use_once(&u) && well;
    well = tide_pool_check(u.pool) == TIDE_OK && tide_pool_destroy(u.pool) == TIDE_OK && well;
    return (void *)(uintptr_t)well;
}

static void pins_and_resets_may_come_at_any_time(void **state)
{
    (void)state;
    need_stager();
    set("window_every", 1);
    set("window_calls", 60);
    for (tide_kind kind = 0; kind < TIDE_KIND_COUNT; kind++) {
        char name[64];
        pthread_t threads[3];
        void *well;
        snprintf(name, sizeof name, "events: steered %s", tide_kind_name(kind));
        use u = use_of(name, kind, learning_pool, 2, TIDE_F64, TIDE_I32);
        __atomic_store_n(&stop_steering, false, __ATOMIC_RELAXED);
        assert_int_equal(pthread_create(&threads[0], NULL, steer, u.site), 0);
        assert_int_equal(pthread_create(&threads[1], NULL, use_on, &u), 0);
        assert_int_equal(pthread_create(&threads[2], NULL, use_on, &u), 0);
        for (unsigned i = 0; i < scaled(300, 40); i++)
            expect_ok(tide_step());
        __atomic_store_n(&stop_steering, true, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(pthread_join(threads[i], &well), 0);
            assert_true(i == 0 || well != NULL);
        }
        set("misses", 53);
        set("window_every", 100);
        expect_ok(tide_site_reset(u.site));
        until(&u, TIDE_TIER_COMPILED);
        expect_executed(&u, 20);
        set("window_every", 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(learning_can_be_switched_off_and_on),
        LEARNING_TEST(every_reason_has_a_code_and_words),
        LEARNING_TEST(a_sites_life_is_told_in_order),
        LEARNING_TEST(giving_up_is_told_with_the_reason),
        LEARNING_TEST(each_event_is_a_line_if_it_is_wanted),
        LEARNING_TEST(events_have_times_and_serials),
        LEARNING_TEST(pins_and_resets_may_come_at_any_time),
        LEARNING_TEST(events_beyond_what_is_kept_are_counted),
    };
    return cmocka_run_group_tests_name("learning: events", tests, learning_make_pool,
                                       learning_drop_pool);
}
