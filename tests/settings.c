/* SPDX-License-Identifier: MIT */
/* Settings: read and set by name, and from the environment of a process of its own. */
#define _GNU_SOURCE
#include "forms.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include <tidepool/site.h>
#include <tidepool/tune.h>

static const char *program, *child_does = "pool";

/* ---- by name ---- */

static bool check_entry(const tide_tune_entry *entry, void *user)
{
    double value = -1;
    ++*(size_t *)user;
    assert_true(strlen(entry->name) > 0 && strlen(entry->meaning) > 10);
    assert_true(entry->min <= entry->initial && entry->initial <= entry->max);
    expect_ok(tide_tune_get(entry->name, &value));
    assert_true(value == entry->value);
    expect_status(tide_tune_set(entry->name, entry->min - 1), TIDE_ERROR_SIZE);
    expect_status(tide_tune_set(entry->name, entry->max * 2 + 1), TIDE_ERROR_SIZE);
    expect_status(tide_tune_set(entry->name, NAN), TIDE_ERROR_SIZE);
    assert_non_null(strstr(tide_error_message(), entry->name));
    expect_ok(tide_tune_set(entry->name, entry->min));
    expect_ok(tide_tune_get(entry->name, &value));
    assert_true(value == entry->min);
    expect_ok(tide_tune_set(entry->name, entry->value));
    return true;
}

static void every_setting_keeps_to_its_range(void **state)
{
    size_t count = 0;
    (void)state;
    tide_tune_each(check_entry, &count);
    assert_true(count >= 7);
}

static bool stop_at_once(const tide_tune_entry *entry, void *user)
{
    (void)entry;
    ++*(size_t *)user;
    return false;
}

static void unknown_names_are_refused(void **state)
{
    double value = 7;
    size_t count = 0;
    (void)state;
    expect_status(tide_tune_get("no such setting", &value), TIDE_ERROR_NAME);
    expect_status(tide_tune_set("no such setting", 1), TIDE_ERROR_NAME);
    assert_non_null(strstr(tide_error_message(), "no such setting"));
    assert_true(value == 7);
    expect_status(tide_tune_get(NULL, &value), TIDE_ERROR_ARGUMENT);
    expect_status(tide_tune_get("check", NULL), TIDE_ERROR_ARGUMENT);
    tide_tune_each(stop_at_once, &count);
    assert_int_equal(count, 1);
}

/* ---- the environment ---- */

static int print_what_a_pool_is_like(void)
{
    tide_pool *pool = tide_pool_create(NULL);
    tide_pool_statistics stats;
    double check = -1;
    if (pool == NULL || tide_pool_stats(pool, &stats) != TIDE_OK)
        return EXIT_FAILURE;
    {
        TIDE_SCOPE_AT(scope, pool, "in the child");
        tide_acquire(pool, double, 10);
        tide_tune_get("check", &check);
        printf("tier %s\n", tide_tier_name(scope.plan->tier));
    }
    bool kept = tide_pool_stats(pool, &stats) == TIDE_OK && stats.bytes_held > 0;
    printf("check %g limit %zu kept %d\n", check, stats.bytes_limit, kept);
    return tide_pool_destroy(pool) == TIDE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Runs this program again with one more variable; what it says on both outputs. */
static void run_with(const char *name, const char *value, char *said, size_t room)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork_child(0);
    if (child == 0) {
        setenv(name, value, 1);
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        execl(program, program, child_does, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    read_to_end(ends[0], said, room);
    expect_child_ends_well(child);
}

static void expect_said(const char *name, const char *value, const char *words)
{
    char said[2048];
    run_with(name, value, said, sizeof said);
    if (strstr(said, words) == NULL)
        fail_msg("with %s=%s: no '%s' in:\n%s", name, value, words, said);
}

static void the_environment_sets_the_defaults(void **state)
{
    (void)state;
    expect_said("TIDEPOOL_NOTHING", "1", "tier full\ncheck 0 limit 0 kept 1\n");
    expect_said("TIDEPOOL_CHECK", "1", "check 1 limit 0 kept 1\n");
    expect_said("TIDEPOOL_LIMIT", "3", "limit 3145728 kept 1\n");
    expect_said("TIDEPOOL_DISABLE", "1", "check 0 limit 0 kept 0\n");
    expect_said("TIDEPOOL_TIER", "1", "tier table\n");
    expect_said("TIDEPOOL_TIER", "on", "tier table\n");
    expect_said("TIDEPOOL_CHECK", "YES", "check 1 limit 0 kept 1\n");
    expect_said("TIDEPOOL_DISABLE", "true", "check 0 limit 0 kept 0\n");
    expect_said("TIDEPOOL_DISABLE", "off", "check 0 limit 0 kept 1\n");
}

static void a_value_that_cannot_be_is_ignored_aloud(void **state)
{
    static const char *const bad[] = {"", "maybe", "1x", "17", "-1", "nan", "inf", "0,5"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        expect_said("TIDEPOOL_CHECK", bad[i], "tidepool: TIDEPOOL_CHECK=");
        expect_said("TIDEPOOL_CHECK", bad[i], "check 0 limit 0 kept 1\n");
    }
    expect_said("TIDEPOOL_CHECK", "3",
                "TIDEPOOL_CHECK=3 ignored: check = 3 is not within 0 to 2\n");
    expect_said("TIDEPOOL_CHECK", "", "TIDEPOOL_CHECK= ignored: '' is no number,");
}

static void the_message_has_the_users_own_word(void **state)
{
    (void)state;
    expect_said("TIDEPOOL_LEARN", "maybe", "'maybe' is no number");
    expect_said("TIDEPOOL_LIMIT", "0,5", "'0,5' is no number");
}

/* A program that has taken the user's locale before its first pool. */
static int read_with_a_decimal_comma(void)
{
    double factor = -1;
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL || *localeconv()->decimal_point != ',')
        return EXIT_FAILURE;
    tide_pool *pool = tide_pool_create(NULL);
    if (pool == NULL || tide_tune_get("break_even", &factor) != TIDE_OK)
        return EXIT_FAILURE;
    printf("factor: %s\n", factor == 0.5 ? "a half" : factor == 1 ? "one" : "wrong");
    return tide_pool_destroy(pool) == TIDE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void numbers_are_read_without_the_locale(void **state)
{
    (void)state;
    bool known = setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
    setlocale(LC_ALL, "C");
    if (!known) {
        print_message("no locale has a decimal comma here (Debian: locales)\n");
        skip();
    }
    child_does = "commas";
    expect_said("TIDEPOOL_BREAK_EVEN", "0.5", "factor: a half\n");
    expect_said("TIDEPOOL_BREAK_EVEN", "0,5", "'0,5' is no number");
    expect_said("TIDEPOOL_BREAK_EVEN", "0,5", "factor: one\n");
    child_does = "pool";
}

static void levels_of_checks_are_numbers_everywhere(void **state)
{
    (void)state;
    for (int level = 1; level <= 2; level++) {
        tide_pool *pool = tide_pool_create(&(tide_pool_options){.check = (tide_check)level});
        assert_non_null(pool);
        assert_int_equal((int)check_of(pool), level);
        expect_ok(tide_pool_destroy(pool));
    }
    assert_int_equal(TIDE_CHECK_DEFAULT, 0); /* what a structure of zeros asks for */
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting_keeps_to_its_range),
        cmocka_unit_test(unknown_names_are_refused),
        cmocka_unit_test(the_environment_sets_the_defaults),
        cmocka_unit_test(a_value_that_cannot_be_is_ignored_aloud),
        cmocka_unit_test(the_message_has_the_users_own_word),
        cmocka_unit_test(numbers_are_read_without_the_locale),
        cmocka_unit_test(levels_of_checks_are_numbers_everywhere),
    };
    program = arguments[0];
    if (count > 1)
        return strcmp(arguments[1], "commas") == 0 ? read_with_a_decimal_comma()
                                                   : print_what_a_pool_is_like();
    return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
