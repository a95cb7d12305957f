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

#include "jit/events/event.h"
#include "runtime/base/test_hooks.h"

/* ---- settings ---------------------------------------------------------------------------- */

static bool check_entry(const tide_tune_entry *entry, void *user)
{
    unsigned *count = user;
    double value = -1;
    ++*count;
    assert_true(entry->name[0] != '\0' && strlen(entry->meaning) > 10);
    assert_true(entry->min <= entry->initial && entry->initial <= entry->max);
    expect_ok(tide_tune_get(entry->name, &value));
    assert_true(value == entry->value);
    expect_ok(tide_tune_set(entry->name, entry->min));
    expect_ok(tide_tune_set(entry->name, entry->max));
    expect_status(tide_tune_set(entry->name, entry->max + 1), TIDE_ERROR_SIZE);
    expect_status(tide_tune_set(entry->name, entry->min - 1), TIDE_ERROR_SIZE);
    expect_ok(tide_tune_get(entry->name, &value));
    assert_true(value == entry->max);
    expect_ok(tide_tune_set(entry->name, entry->initial));
    return true;
}

static void every_setting_is_listed_with_its_meaning_and_can_be_set(void **state)
{
    (void)state;
    static const char *const of_learning[] = {"learn", "background", "trial", "break_even"};
    unsigned count = 0;
    double value;
    tide_tune_each(check_entry, &count);
    assert_in_range(count, 15, 24);
    for (unsigned i = 0; i < sizeof of_learning / sizeof *of_learning; i++)
        expect_ok(tide_tune_get(of_learning[i], &value));
}

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
    use u = use_of("events: life", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    listen_to(u.site);
    until(&u, TIDE_TIER_COMPILED);
    unsigned found = next_told(0, TIDE_EVENT_FOUND);
    unsigned table = next_told(found, TIDE_EVENT_PUBLISHED);
    unsigned staged = next_told(found, TIDE_EVENT_STAGED);
    assert_int_equal(told.all[table].tier, TIDE_TIER_TABLE);
    unsigned compiled = next_told(staged, TIDE_EVENT_PUBLISHED);
    assert_int_equal(told.all[compiled].tier, TIDE_TIER_COMPILED);
    assert_string_equal(told.all[compiled].reason, "compiled code was adopted without a trial");
    until_compiled_for(&u, TIDE_I32);
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
    use u = use_of("events: gave up", TIDE_KIND_ACQUIRE, learning_pool, 1, TIDE_F64);
    listen_to(u.site);
    for (unsigned i = 0; i < 600; i++) {
        u.types[0] = i % 2 == 0 ? TIDE_F64 : TIDE_I32;
        use_times(&u, 1);
        if (i % 100 == 99)
            settle();
    }
    unsigned at = next_told(0, TIDE_EVENT_GAVE_UP);
    assert_string_equal(told.all[at].reason,
                        "more different types or shapes than are worth testing for");
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

static void events_have_names(void **state)
{
    (void)state;
    static const char *const names[] = {"found", "staged", "published", "missed", "gave up"};
    for (unsigned i = 0; i < 5; i++)
        assert_string_equal(tide_event_name((tide_event_kind)i), names[i]);
    assert_string_equal(tide_event_name((tide_event_kind)77), "unknown");
}

/* ---- listeners that do things ------------------------------------------------------------ */

static struct {
    unsigned calls, depth;
    tide_status stop;
} busy;

/* Everything that a listener may do, and what it may not. */
static void do_everything(const tide_event *event, void *user)
{
    (void)user;
    busy.calls++;
    if (event->site == NULL || busy.depth > 2)
        return;
    busy.depth++;
    switch (busy.calls % 5) {
    case 0: expect_ok(tide_site_pin(event->site, TIDE_TIER_FULL)); break;
    case 1: expect_ok(tide_site_unpin(event->site)); break;
    case 2: expect_ok(tide_site_reset(event->site)); break;
    case 3: expect_ok(tide_step()); break;
    default: busy.stop = tide_background_stop(); tide_event_set_handler(do_everything, NULL);
    }
    use u = use_of("events: within", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_I64);
    use_times(&u, 30);
    busy.depth--;
}

static void a_listener_may_step_pin_reset_and_use_sites(void **state)
{
    (void)state;
    need_stager();
    set("window_every", 1);
    tide_event_set_handler(do_everything, NULL);
    use u = use_of("events: listened", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    for (unsigned i = 0; i < 30; i++) {
        use_times(&u, 200);
        expect_ok(tide_step());
        settle();
        expect_ok(tide_site_reset(u.site));
    }
    assert_true(busy.calls > 20);
    expect_ok(busy.stop);
    tide_event_set_handler(NULL, NULL);
    expect_ok(tide_site_reset(u.site));
    set("window_every", 100);
    until(&u, TIDE_TIER_COMPILED);
    expect_executed(&u, 100);
}

static void step_and_note(const tide_event *event, void *user)
{
    note_event(event, user);
    expect_ok(tide_step());
}

/* Each event is told once, however many rounds are made while it is told. */
static void a_listener_may_step_at_every_event(void **state)
{
    (void)state;
    enum { MANY = 20 };
    told.count = 0;
    told.site = NULL;
    tide_event_set_handler(step_and_note, &told);
    for (unsigned i = 0; i < MANY; i++) {
        char name[64];
        snprintf(name, sizeof name, "events: stepped at %u", i);
        use u = use_of(name, TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
        use_times(&u, 1);
    }
    expect_ok(tide_step());
    assert_int_equal(found_events(), MANY);
}

static struct {
    unsigned count;
    uint64_t last;
    bool in_order;
} beside;

static void hear_beside(const tide_event *event)
{
    beside.in_order = beside.in_order && event->serial > beside.last;
    beside.last = event->serial;
    beside.count++;
}

static void step_behind_it(const tide_event *event, void *user)
{
    assert_true(beside.last >= event->serial); /* it has been told already */
    step_and_note(event, user);
}

/* Whoever hears beside the handler hears in order, whatever the handler does. */
static void others_hear_in_order_whatever_a_listener_does(void **state)
{
    (void)state;
    enum { MANY = 20 };
    void (*before)(const tide_event *) = tide_events_also;
    beside.in_order = true;
    told.count = 0;
    told.site = NULL;
    tide_event_set_handler(step_behind_it, &told);
    __atomic_store_n(&tide_events_also, hear_beside, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < MANY; i++) {
        char name[64];
        snprintf(name, sizeof name, "events: beside %u", i);
        use u = use_of(name, TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
        use_times(&u, 1);
    }
    expect_ok(tide_step());
    __atomic_store_n(&tide_events_also, before, __ATOMIC_RELEASE);
    tide_event_set_handler(NULL, NULL);
    assert_true(beside.count >= MANY && beside.in_order);
    assert_int_equal(beside.count, told.count);
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
        (void)tide_constant_set("misses", 1 + i % 100);
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

/* ---- fork ----------------------------------------------------------------------------------- */

static void count_event(const tide_event *event, void *count)
{
    (void)event;
    ++*(unsigned *)count;
}

/* What was noted in the parent the parent tells. */
static void a_child_tells_nothing_of_its_parents(void **state)
{
    (void)state;
    unsigned count = 0;
    tide_event_set_handler(count_event, &count);
    for (int i = 0; i < 3; i++)
        tide_event_note(TIDE_EVENT_MISSED, NULL, TIDE_TIER_FULL, 0, "before");
    tide_events_end_round(1);
    pid_t child = fork_child(100);
    if (child == 0) {
        CHILD_MUST(tide_event_deliver() == 0 && count == 0);
        _exit(0);
    }
    expect_child_ends_well(child);
    assert_int_equal(tide_event_deliver(), 3);
    assert_int_equal(tide_event_deliver(), 0);
    assert_int_equal(count, 3);
    tide_event_set_handler(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(every_setting_is_listed_with_its_meaning_and_can_be_set),
        LEARNING_TEST(learning_can_be_switched_off_and_on),
        LEARNING_TEST(every_reason_has_a_code_and_words),
        LEARNING_TEST(a_sites_life_is_told_in_order),
        LEARNING_TEST(giving_up_is_told_with_the_reason),
        LEARNING_TEST(events_have_names),
        LEARNING_TEST(each_event_is_a_line_if_it_is_wanted),
        LEARNING_TEST(events_have_times_and_serials),
        LEARNING_TEST(a_listener_may_step_pin_reset_and_use_sites),
        LEARNING_TEST(a_listener_may_step_at_every_event),
        LEARNING_TEST(others_hear_in_order_whatever_a_listener_does),
        LEARNING_TEST(pins_and_resets_may_come_at_any_time),
        LEARNING_TEST(a_child_tells_nothing_of_its_parents),
        LEARNING_TEST(events_beyond_what_is_kept_are_counted),
    };
    return cmocka_run_group_tests_name("learning: events", tests, learning_make_pool,
                                       learning_drop_pool);
}
