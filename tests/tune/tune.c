/* SPDX-License-Identifier: MIT */
/* What is measured, chosen, pinned and kept, by a clock that the test moves. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <tidepool/profile.h>
#include <tidepool/tunable.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/tune/test_hooks.h"
#include "profiler/files/file.h"
#include "tests/support.h"

TIDE_VARIANTS(three, "three", "first", "second", "third");
TIDE_VARIANTS(many, "many", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12",
              "13", "14", "15");
TIDE_MEASURED(alone, "alone");
TIDE_KNOB(knob, "knob", 2, 1000, 10);

static uint64_t now = 1000;

static uint64_t test_clock(void)
{
    return now;
}

/* One use, of so many nanoseconds by each variant. */
static uint32_t use(tide_tunable *tunable, uint64_t key, const uint64_t *ns)
{
    TIDE_MEASURE(tunable, key, which);
    now += ns[which];
    return which;
}

static tide_tunable_row row_of(const tide_tunable *tunable, uint64_t key)
{
    tide_tunable_row row;
    for (uint32_t i = 0; tide_tunable_row_get(tunable, i, &row); i++)
        if (row.key == key)
            return row;
    memset(&row, 0, sizeof row);
    return row;
}

static int start(void **state)
{
    (void)state;
    tide_tune_clock = test_clock;
    tide_tunable *const all[] = {&three, &many, &alone, &knob};
    tide_tunable_leave(all, all + 4); /* and come again, knowing nothing */
    assert_int_equal(tide_profile_read("tidepool profile 3\nend 0\n", 25, false), TIDE_OK);
    tide_tunable_enter(all, all + 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(tide_tunable_reset(all[i]), TIDE_OK);
    tide_tunable_leave(all, all + 4);
    tide_tunable_enter(all, all + 4);
    return 0;
}

static void the_fastest_is_kept(void **state)
{
    (void)state;
    uint64_t counts[3] = {0};
    for (int i = 0; i < 200; i++)
        counts[use(&three, 7, (uint64_t[]){1000, 300, 2000})]++;
    tide_tunable_row row = row_of(&three, 7);
    assert_true(row.settled && row.choice == 1 && !row.pinned && row.uses == 200);
    for (int i = 0; i < 3; i++)
        assert_true(row.candidates[i].uses >= 6 && row.candidates[i].error_ns == 0);
    assert_true(row.candidates[0].ns == 1000 && row.candidates[1].ns == 300);
    assert_true(counts[0] <= 16 && counts[2] <= 16); /* two turns and a half of each at most */
}

/* What the program says counts, not the clock. */
static void a_cost_may_be_told(void **state)
{
    (void)state;
    static const uint64_t costs[] = {900, 800, 10};
    for (int i = 0; i < 200; i++) {
        TIDE_MEASURE(&three, 7, which);
        TIDE_MEASURE_AS(which, costs[which]);
        now += 1000 * which;
    }
    tide_tunable_row row = row_of(&three, 7);
    assert_true(row.settled && row.choice == 2 && row.candidates[2].ns == 10);
}

static void keys_are_apart(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        use(&three, 1, (uint64_t[]){100, 200, 300});
        use(&three, 2, (uint64_t[]){300, 200, 100});
    }
    assert_int_equal(row_of(&three, 1).choice, 0);
    assert_int_equal(row_of(&three, 2).choice, 2);
}

static void keys_beyond_the_room_share_a_row(void **state)
{
    (void)state;
    tide_tunable_row row;
    uint32_t rows = 0;
    for (uint64_t key = 0; key < 2 * TIDE_TUNABLE_KEYS; key++)
        for (int i = 0; i < 4; i++)
            use(&three, key * key, (uint64_t[]){100, 200, 300});
    while (tide_tunable_row_get(&three, rows, &row))
        rows++;
    assert_int_equal(rows, TIDE_TUNABLE_KEYS + 1);
    assert_int_equal(row_of(&three, TIDE_TUNABLE_OTHER).uses, 4 * TIDE_TUNABLE_KEYS);
}

/* An interrupt now and then, longer than all else together, makes nobody the loser. */
static void noise_is_borne(void **state)
{
    (void)state;
    unsigned seed = 1;
    for (int i = 0; i < 2000; i++) {
        uint64_t more = (uint64_t)(rand_r(&seed) % 100) + (rand_r(&seed) % 20 == 0 ? 100000 : 0);
        use(&three, 0, (uint64_t[]){1000 + more, 1100 + more, 800 + more});
    }
    tide_tunable_row row = row_of(&three, 0);
    assert_true(row.settled && row.choice == 2);
    assert_true(row.candidates[2].error_ns > 0);
}

/* Nor does one that comes before all else. */
static void noise_at_first_is_borne(void **state)
{
    (void)state;
    int noise = 0;
    for (int i = 0; i < 2000; i++) {
        uint64_t ns[] = {1000, noise < 2 ? 1000000 : 800, 1000};
        noise += use(&three, 0, ns) == 1;
    }
    tide_tunable_row row = row_of(&three, 0);
    assert_true(row.settled && row.choice == 1 && row.candidates[1].ns == 800);
}

static void equals_end_too(void **state)
{
    (void)state;
    uint64_t ns[16];
    unsigned seed = 2;
    for (int i = 0; i < 16 * 100 * 2; i++) {
        for (int k = 0; k < 16; k++)
            ns[k] = 1000 + (uint64_t)(rand_r(&seed) % 50);
        use(&many, 0, ns);
    }
    assert_true(row_of(&many, 0).settled);
}

/* What is chosen is timed as often as costs a hundredth. */
static void a_chosen_one_is_timed_seldom_if_it_is_short(void **state)
{
    (void)state;
    for (int i = 0; i < 6400; i++)
        use(&alone, 1, (uint64_t[]){50});
    for (int i = 0; i < 6400; i++)
        use(&alone, 2, (uint64_t[]){50000});
    assert_in_range(row_of(&alone, 1).candidates[0].uses, 90, 110);
    assert_int_equal(row_of(&alone, 2).candidates[0].uses, 6400);
    assert_true(row_of(&alone, 2).candidates[0].ns == 50000);
}

static void pinned_and_reset(void **state)
{
    (void)state;
    assert_int_equal(tide_tunable_pin(&three, 5, "third"), TIDE_OK);
    for (int i = 0; i < 100; i++)
        assert_int_equal(use(&three, 5, (uint64_t[]){1, 1, 10}), 2);
    assert_true(row_of(&three, 5).pinned);
    assert_int_equal(tide_tunable_pin(&three, 5, "fourth"), TIDE_ERROR_NAME);
    assert_int_equal(tide_tunable_pin(&knob, 5, "first"), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_tunable_pin(NULL, 5, "first"), TIDE_ERROR_ARGUMENT);
    assert_true(row_of(&three, 5).pinned);
    assert_int_equal(tide_tunable_reset(&three), TIDE_OK);
    assert_false(row_of(&three, 5).pinned);
    assert_int_equal(row_of(&three, 5).candidates[2].uses, 0);
}

static void knobs(void **state)
{
    (void)state;
    assert_int_equal(tide_tunable_value(&knob), 10);
    assert_int_equal(tide_tunable_set(&knob, 1000), TIDE_OK);
    assert_int_equal(tide_tunable_set(&knob, 1001), TIDE_ERROR_SIZE);
    assert_int_equal(tide_tunable_set(&knob, 1), TIDE_ERROR_SIZE);
    assert_int_equal(tide_tunable_set(&three, 1), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_tunable_set(NULL, 1), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_tunable_value(&knob), 1000);
    assert_ptr_equal(tide_tunable_find("knob"), &knob);
    assert_null(tide_tunable_find("no such"));
    assert_int_equal(tide_tunable_reset(&knob), TIDE_OK);
    assert_int_equal(tide_tunable_value(&knob), 10);
}

static char *written_by(tide_status (*write)(FILE *out))
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_int_equal(write(out), TIDE_OK);
    fclose(out);
    return text;
}

static char *profile(void)
{
    return written_by(tide_profile_write);
}

/* Has what this process itself has found these lines, or (NULL) nothing? */
static void own_is(const char *lines)
{
    char *text = written_by(tide_profile_write_own);
    if (lines == NULL)
        assert_string_equal(text, "tidepool profile 3\nend 0\n");
    else if (strstr(text, lines) == NULL)
        fail_msg("no '%s' in %s", lines, text);
    free(text);
}

static void load(const char *text)
{
    assert_int_equal(tide_profile_read(text, strlen(text), false), TIDE_OK);
}

static void profiles_have_them(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++)
        use(&three, 7, (uint64_t[]){1000, 300, 2000});
    tide_tunable_set(&knob, 77);
    char *text = profile();
    assert_non_null(strstr(text, "knob 77 \"knob\" \"tune.c\"\n"));
    assert_non_null(strstr(text, "tuned 7 1 \"three\" \"tune.c\"\n"));
    assert_non_null(strstr(text, " 300000 0 1 \"second\"\n"));
    start(state);
    assert_int_equal(tide_tunable_value(&knob), 10);
    load(text);
    assert_int_equal(tide_tunable_value(&knob), 77);
    assert_int_equal(use(&three, 7, (uint64_t[]){1, 1, 1}), 1);
    assert_true(row_of(&three, 7).candidates[2].ns == 2000); /* as the first run measured it */
    char *again = profile();
    assert_non_null(strstr(again, " 2000000 0 0 \"third\"\n"));
    free(text);
    free(again);
}

static void merged_by_their_uses(void **state)
{
    (void)state;
    static const char one[] =
        "tidepool profile 3\ntuned 1 1 \"three\" \"tune.c\"\n"
        "candidate 10 1000 10 1 \"first\"\ncandidate 10 2000 10 0 \"second\"\nend 0\n";
    static const char other[] =
        "tidepool profile 3\ntuned 1 1 \"three\" \"tune.c\"\n"
        "candidate 30 5000 10 0 \"first\"\ncandidate 30 2000 10 1 \"second\"\nend 0\n";
    load(one);
    assert_int_equal(tide_profile_read(other, strlen(other), true), TIDE_OK);
    char *text = profile();
    assert_non_null(strstr(text, "candidate 40 4000 10 0 \"first\"\n"));
    assert_non_null(strstr(text, "candidate 40 2000 10 1 \"second\"\n"));
    assert_int_equal(use(&three, 1, (uint64_t[]){1, 1, 1}), 1);
    free(text);
}

/* Only the chosen one is still timed, so its mean tells nothing against the others'. */
static void a_choice_outlives_its_mean(void **state)
{
    (void)state;
    static const char loaded[] =
        "tidepool profile 3\ntuned 1 1 \"three\" \"tune.c\"\ncandidate 60 1000000 0 1 \"first\"\n"
        "candidate 60 1100000 0 0 \"second\"\ntuned 2 0 \"three\" \"tune.c\"\nend 0\n";
    load(loaded);
    assert_int_equal(use(&three, 1, (uint64_t[]){61000, 1, 1}), 0); /* cold */
    char *text = profile();
    assert_non_null(strstr(text, "tuned 1 1 \"three\""));
    assert_non_null(strstr(text, "candidate 61 1983606 0 1 \"first\""));
    assert_non_null(strstr(text, "candidate 60 1100000 0 0 \"second\""));
    /* Added to what two others say, one of whom has chosen nothing, it stays, too. */
    assert_int_equal(tide_profile_read(text, strlen(text), true), TIDE_OK);
    load("tidepool profile 3\ntuned 1 0 \"three\" \"tune.c\"\ncandidate 9 9 0 0 \"second\"\nend "
         "0\n");
    assert_int_equal(tide_profile_read(text, strlen(text), true), TIDE_OK);
    assert_int_equal(tide_profile_read(text, strlen(text), true), TIDE_OK);
    free(text);
    text = profile();
    assert_non_null(strstr(text, " 1 \"first\""));
    free(text);
}

static void what_was_loaded_is_not_its_own(void **state)
{
    (void)state;
    own_is(NULL);
    load("tidepool profile 3\nknob 99 \"knob\" \"tune.c\"\ntuned 1 1 \"three\" \"tune.c\"\n"
         "candidate 60 1000 0 1 \"second\"\ntuned 2 2 \"three\" \"tune.c\"\n"
         "candidate 60 1000 0 1 \"third\"\nend 0\n");
    assert_int_equal(tide_tunable_value(&knob), 99);
    assert_true(row_of(&three, 3).key == 0);
    own_is(NULL);
    assert_int_equal(use(&three, 1, (uint64_t[]){1, 7, 1}), 1);
    assert_int_equal(use(&three, 2, (uint64_t[]){1, 1, 7}), 2);
    own_is("tuned 1 0 \"three\" \"tune.c\"\ncandidate 0 0 0 0 \"first\"\ncandidate 1 7000 0 0 "
           "\"second\"\n");
    own_is("tuned 2 0 \"three\" \"tune.c\"\n");
    assert_int_equal(tide_tunable_set(&knob, 98), TIDE_OK);
    assert_int_equal(tide_tunable_pin(&three, 1, "second"), TIDE_OK);
    own_is("knob 98 \"knob\" \"tune.c\"\n");
    own_is("tuned 1 2 \"three\" \"tune.c\"\n");
}

static void bad_lines_are_refused(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "knob 9007199254740992 \"knob\" \"tune.c\"\n",
        "knob -1 \"knob\" \"tune.c\"\n",
        "knob 20 \"knob\"\n",
        "knob 20 \"knob\" \"tune.c\"\nknob 20 \"knob\" \"tune.c\"\n",
        "tuned 1 3 \"three\" \"tune.c\"\n",
        "candidate 1 1 1 0 \"first\"\n",
        "knob 20 \"knob\" \"tune.c\"\ncandidate 1 1 1 0 \"first\"\n",
        "tuned 1 1 \"three\" \"tune.c\"\ncandidate 1 1 2 0 \"first\"\n",
        "tuned 1 1 \"three\" \"tune.c\"\ncandidate 1 1 1 1 \"first\"\ncandidate 1 1 1 1 "
        "\"second\"\n",
        "tuned 1 1 \"three\" \"tune.c\"\ncandidate 1 1 1 0 \"first\"\ncandidate 1 1 1 0 "
        "\"first\"\n",
        "tuned 1 1 \"three\" \"tune.c\"\ncandidate 1 2000000000000000 1 0 \"first\"\n",
        "knob 20 \"knob\" \"tune.c\"\nscope 12 300 0 \"\" \"work.c\" \"step\"\n",
        "tune 1\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[512];
        snprintf(text, sizeof text, "tidepool profile 3\nknob 30 \"other\" \"tune.c\"\n%send 0\n",
                 lines[i]);
        assert_int_equal(tide_profile_read(text, strlen(text), false), TIDE_ERROR_FILE);
    }
    static const char old[] = "tidepool profile 2\nknob 30 \"knob\" \"tune.c\"\nend 0\n";
    assert_int_equal(tide_profile_read(old, strlen(old), false), TIDE_ERROR_FILE);
    assert_int_equal(tide_tunable_value(&knob), 10);
    /* Well formed, and wrong of this program: it is not believed. */
    load("tidepool profile 3\nknob 99999 \"knob\" \"tune.c\"\n"
         "tuned 1 1 \"three\" \"tune.c\"\ncandidate 9 9 9 1 \"tenth\"\n"
         "tuned 2 2 \"three\" \"tune.c\"\nend 0\n");
    assert_int_equal(tide_tunable_value(&knob), 10);
    for (uint64_t key = 1; key <= 2; key++) {
        use(&three, key, (uint64_t[]){1, 1, 1});
        assert_false(row_of(&three, key).settled);
    }
}

static void a_module_that_comes_again_knows_what_it_knew(void **state)
{
    (void)state;
    tide_tunable *const list[] = {&three, &knob};
    for (int i = 0; i < 200; i++)
        use(&three, 7, (uint64_t[]){1000, 300, 2000});
    tide_tunable_set(&knob, 50);
    tide_tunable_leave(list, list + 2);
    assert_null(tide_tunable_find("three"));
    own_is("tuned 7 1 \"three\" \"tune.c\"\n");
    own_is("knob 50 \"knob\" \"tune.c\"\n");
    __atomic_store_n(&knob.value, knob.initial,
                     __ATOMIC_RELAXED); /* as it is when it is loaded anew */
    tide_tunable_enter(list, list + 2);
    assert_int_equal(tide_tunable_value(&knob), 50);
    assert_int_equal(use(&three, 7, (uint64_t[]){1, 1, 1}), 1);
    own_is("tuned 7 1 \"three\" \"tune.c\"\n");
    own_is("knob 50 \"knob\" \"tune.c\"\n");
    assert_int_equal(tide_tunable_reset(&three), TIDE_OK);
    assert_int_equal(tide_tunable_reset(&knob), TIDE_OK);
    own_is(NULL);
}

static void a_tuner_has_its_pointer(void **state)
{
    (void)state;
    int data = 1;
    assert_null(three.user);
    three.user = &data;
    use(&three, 0, (uint64_t[]){1, 2, 3});
    assert_int_equal(tide_tunable_reset(&three), TIDE_OK);
    assert_ptr_equal(tide_tunable_find("three")->user, &data);
    three.user = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_fastest_is_kept, start),
        cmocka_unit_test_setup(a_cost_may_be_told, start),
        cmocka_unit_test_setup(keys_are_apart, start),
        cmocka_unit_test_setup(keys_beyond_the_room_share_a_row, start),
        cmocka_unit_test_setup(noise_is_borne, start),
        cmocka_unit_test_setup(noise_at_first_is_borne, start),
        cmocka_unit_test_setup(equals_end_too, start),
        cmocka_unit_test_setup(a_chosen_one_is_timed_seldom_if_it_is_short, start),
        cmocka_unit_test_setup(pinned_and_reset, start),
        cmocka_unit_test_setup(knobs, start),
        cmocka_unit_test_setup(profiles_have_them, start),
        cmocka_unit_test_setup(merged_by_their_uses, start),
        cmocka_unit_test_setup(a_choice_outlives_its_mean, start),
        cmocka_unit_test_setup(what_was_loaded_is_not_its_own, start),
        cmocka_unit_test_setup(bad_lines_are_refused, start),
        cmocka_unit_test_setup(a_module_that_comes_again_knows_what_it_knew, start),
        cmocka_unit_test_setup(a_tuner_has_its_pointer, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
