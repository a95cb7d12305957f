/* SPDX-License-Identifier: MIT */
/* Events as clients are told of them, with a library that is none: what comes while they are told,
 * and what is told without memory. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/listen/server.h"

static unsigned locks, hears_after, fails_within; /* which lock; 0: none */
static bool no_memory;
static uint64_t base; /* serials of this test come after it; they are written from 1 on */

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return no_memory ? NULL : __real_malloc(bytes);
}

static void hear(uint64_t serial)
{
    tide_event event = {.serial = base + serial, .name = "", .detail = ""};
    listen_ring_hear(&event);
}

static void take_lock(void)
{
    no_memory = ++locks == fails_within;
}

/* The next event comes right behind the lock that was named. */
static void let_go(void)
{
    no_memory = false;
    if (locks == hears_after) {
        hears_after = 0;
        hear(4);
    }
}

static tide_status write_event(FILE *out, const tide_event *event)
{
    return fprintf(out, "{\"serial\":%" PRIu64 "}\n", event->serial - base) > 0 ? TIDE_OK
                                                                                : TIDE_ERROR_MEMORY;
}

static const tide_listen_host host = {
    .lock = take_lock, .unlock = let_go, .write_event = write_event};

/* Serials 1 to 3 are the last that are kept. */
static int begin_with_three(void **state)
{
    (void)state;
    listen_host = &host;
    base += 1000;
    hears_after = fails_within = 0;
    for (uint64_t serial = 1; serial <= 3; serial++)
        hear(serial);
    locks = 0;
    return 0;
}

/* What who asks for the events after that one gets; NULL: the client goes. */
static const char *events_since(uint64_t serial)
{
    static listen_client client;
    static char answer[1024];
    char request[100];
    snprintf(request, sizeof request, "{\"get\":\"events\",\"since\":%" PRIu64 "}", base + serial);
    listen_output_free(&client.output);
    if (!listen_request_answer(&client, request, strlen(request)))
        return NULL;
    assert_true(client.output.count < sizeof answer);
    memcpy(answer, client.output.bytes + client.output.first, client.output.count);
    answer[client.output.count] = '\0';
    return answer;
}

static void expect_events(uint64_t since, const char *lines, uint64_t end)
{
    char wanted[1024];
    snprintf(wanted, sizeof wanted, "%s{\"end\":%" PRIu64 "}\n", lines, base + end);
    const char *told = events_since(since);
    assert_non_null(told);
    assert_string_equal(told, wanted);
}

/* Who asks again for what came after the end misses nothing. */
static void the_end_is_the_last_that_was_told(void **state)
{
    (void)state;
    hears_after = 5; /* one for the last serial, three for events, and one that finds no more */
    expect_events(0, "{\"serial\":1}\n{\"serial\":2}\n{\"serial\":3}\n", 3);
    expect_events(3, "{\"serial\":4}\n", 4);
    expect_events(4, "", 4);
}

static void what_is_missing_is_said(void **state)
{
    (void)state;
    hear(9);
    expect_events(2, "{\"serial\":3}\n{\"gap\":5}\n{\"serial\":9}\n", 9);
}

/* An event that cannot be told is not the end of them. */
static void without_memory_no_end_is_told(void **state)
{
    (void)state;
    fails_within = 3;
    assert_null(events_since(0));
}

/* Serials count events that nobody heard, too. */
static void from_now_on_nothing_before_is_missing(void **state)
{
    static listen_client client;
    static const char request[] = "{\"follow\":\"events\"}";
    (void)state;
    client.fresh = false;
    assert_true(listen_request_answer(&client, request, strlen(request)));
    assert_true(client.fresh && client.told == base + 3);
    assert_false(listen_ring_pass_gap(&client.told));
    hear(9);
    assert_true(listen_ring_pass_gap(&client.told));
    assert_true(client.told == base + 8);
    assert_true(listen_ring_tell(&client.output, &client.told, true));
    assert_memory_equal(client.output.bytes + client.output.first, "{\"serial\":9}\n",
                        client.output.count);
    listen_output_free(&client.output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_end_is_the_last_that_was_told, begin_with_three),
        cmocka_unit_test_setup(what_is_missing_is_said, begin_with_three),
        cmocka_unit_test_setup(without_memory_no_end_is_told, begin_with_three),
        cmocka_unit_test_setup(from_now_on_nothing_before_is_missing, begin_with_three),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
