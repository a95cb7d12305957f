/* SPDX-License-Identifier: MIT */
/* The background thread calls neither the program nor a driver: every event and every hook is heard
 * on a thread of the program's, and each event is told once, in order. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include <tidepool/buffers.h>
#include <tidepool/dynamic.h>
#include <tidepool/generic.h>
#include <tidepool/learn.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/tidepool.h>
#include <tidepool/tune.h>

#define expect_ok(call) assert_int_equal((call), TIDE_OK)

enum { KINDS = TIDE_EVENT_GAVE_UP + 1, PATIENCE_MS = 120000, WINDOW = 64 };

static pid_t program; /* its only thread */

static struct {
    unsigned kinds[KINDS], hooks, strangers, out_of_order;
    uint64_t last;
} heard;

static void note_thread(void)
{
    char name[16] = "";
    (void)prctl(PR_GET_NAME, name);
    if (gettid() != program || strcmp(name, "tide-background") == 0)
        heard.strangers++;
}

static void hear(const tide_event *event, void *user)
{
    assert_ptr_equal(user, &heard);
    note_thread();
    heard.out_of_order += event->serial <= heard.last;
    heard.last = event->serial;
    heard.kinds[event->kind]++;
    (void)tide_event_deliver(); /* in vain from here */
}

static void hear_buffer(const tide_buffer_event *event, void *user)
{
    (void)user;
    note_thread();
    heard.hooks += event->happening == TIDE_BUFFER_FREED;
}

static void use_site(tide_site *site, tide_pool *pool, const tide_type *types, size_t count)
{
    tide_scope scope;
    expect_ok(tide_scope_enter(pool, site, &scope));
    for (size_t i = 0; i < count; i++)
        assert_non_null(tide_acquire_type(pool, types[i], 10));
    expect_ok(tide_scope_leave(&scope));
}

static bool known(unsigned kind, tide_site *site)
{
    tide_site_information info;
    expect_ok(tide_site_info(site, &info));
    return heard.kinds[kind] != 0 && !info.observed;
}

/* Uses alone, and no call of learning's, bring the events: a use that fills a window hears them. */
static void use_until(unsigned kind, tide_site *site, tide_pool *pool, const tide_type *types,
                      size_t count)
{
    for (unsigned i = 0; i < PATIENCE_MS && !known(kind, site); i++) {
        for (unsigned j = 0; j < WINDOW; j++)
            use_site(site, pool, types, count);
        usleep(1000);
    }
    assert_true(heard.kinds[kind] != 0);
}

static bool stager_is_there(void)
{
    const char *stager = getenv("TIDEPOOL_STAGER");
    return stager == NULL || strcmp(stager, "none") != 0;
}

static void events_are_told_on_the_programs_threads(void **state)
{
    (void)state;
    static const tide_type first[] = {TIDE_F64, TIDE_I32};
    static const tide_type later[] = {TIDE_F32, TIDE_U8, TIDE_I64, TIDE_U16};
    tide_event_set_handler(hear, &heard);
    tide_pool *pool = tide_pool_create(NULL);
    tide_site *site = tide_site_register("contract: background");
    assert_true(pool != NULL && site != NULL);
    expect_ok(tide_background_start());
    use_until(TIDE_EVENT_FOUND, site, pool, first, 2);
    use_until(TIDE_EVENT_PUBLISHED, site, pool, first, 2);
    if (stager_is_there())
        use_until(TIDE_EVENT_STAGED, site, pool, first, 2);
    use_until(TIDE_EVENT_MISSED, site, pool, later, 4);
    assert_true(tide_background_running());
    expect_ok(tide_background_stop());
    expect_ok(tide_site_reset(site));
    expect_ok(tide_step());
    assert_int_equal(tide_event_deliver(), 0);
    assert_int_equal(heard.strangers, 0);
    assert_int_equal(heard.out_of_order, 0);
    tide_event_set_handler(NULL, NULL);
    expect_ok(tide_pool_destroy(pool));
}

/* A dispatch among too many types gives up. */
static void do_nothing(void *arguments)
{
    (void)arguments;
}

static void giving_up_is_told_there_too(void **state)
{
    (void)state;
    enum { TYPES = 40 };
    tide_generic *generic = tide_generic_create("contract: background");
    tide_site *site = tide_site_register_kind("contract: many", TIDE_KIND_DISPATCH);
    tide_type types[TYPES];
    assert_true(generic != NULL && site != NULL);
    for (int i = 0; i < TYPES; i++) {
        char name[32];
        snprintf(name, sizeof name, "contract type %d", i);
        types[i] = tide_type_register(name, 8, 8);
        expect_ok(tide_generic_add(generic, types[i], do_nothing));
    }
    tide_event_set_handler(hear, &heard);
    expect_ok(tide_background_start());
    for (unsigned i = 0; i < PATIENCE_MS && heard.kinds[TIDE_EVENT_GAVE_UP] == 0; i++) {
        for (int j = 0; j < 100 * TYPES; j++)
            tide_site_dispatch(site, generic, types[j % TYPES], NULL);
        usleep(1000);
    }
    expect_ok(tide_background_stop());
    assert_true(heard.kinds[TIDE_EVENT_GAVE_UP] != 0);
    assert_int_equal(heard.strangers, 0);
    tide_event_set_handler(NULL, NULL);
}

/* Old buffers with a hook wait for a step, whatever the thread does meanwhile. */
static void hooks_are_called_on_the_programs_threads(void **state)
{
    (void)state;
    tide_buffers *buffers =
        tide_buffers_create(NULL, &(tide_buffers_options){.age_max = 1, .hook = hear_buffer});
    assert_non_null(buffers);
    heard.hooks = 0;
    tide_learning_statistics now;
    expect_ok(tide_learning_stats(&now));
    uint64_t rounds = now.rounds;
    expect_ok(tide_background_start());
    tide_buffer buffer = tide_buffer_acquire(buffers, 1 << 16);
    assert_true(buffer.generation != 0);
    expect_ok(tide_buffer_release(buffers, buffer));
    for (unsigned i = 0; i < PATIENCE_MS && now.rounds < rounds + 3; i++) {
        usleep(1000);
        expect_ok(tide_learning_stats(&now));
    }
    assert_true(now.rounds >= rounds + 3);
    for (unsigned i = 0; i < PATIENCE_MS && heard.hooks == 0; i++)
        expect_ok(tide_step());
    expect_ok(tide_background_stop());
    assert_true(heard.hooks != 0);
    assert_int_equal(heard.strangers, 0);
    expect_ok(tide_buffers_destroy(buffers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_told_on_the_programs_threads),
        cmocka_unit_test(giving_up_is_told_there_too),
        cmocka_unit_test(hooks_are_called_on_the_programs_threads),
    };
    program = gettid();
    (void)tide_tune_set("break_even", 0);
    (void)tide_tune_set("trial", 0);
    return cmocka_run_group_tests_name("contract: background", tests, NULL, NULL);
}
