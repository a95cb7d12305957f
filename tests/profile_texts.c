/* SPDX-License-Identifier: MIT */
/* Profiles as text: what is loaded and merged of one, and which are refused and change nothing. */
#define _GNU_SOURCE
#include "profile_text.h"

#include <errno.h>

#include <tidepool/dynamic.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>

/* What is written of all that is known; to be freed. */
static char *written(void)
{
    char *bytes = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&bytes, &length);
    assert_non_null(stream);
    expect_ok(tide_profile_write(stream));
    assert_int_equal(fclose(stream), 0);
    return bytes;
}

static int start_anew(void **state)
{
    (void)state;
    load_words(PROFILE_EMPTY);
    return 0;
}

/* ---- what is loaded ----------------------------------------------------------------------- */

static void loading_replaces_and_merging_adds(void **state)
{
    (void)state;
    tide_site *site = tide_site_register("merged");
    const char *words = one_scope("merged", 0, "", "", 9);
    load_words(words);
    expect_prior(site, 9, TIDE_F64, 18);
    merge_words(words);
    merge_words(words);
    expect_prior(site, 27, TIDE_F64, 54);
    load_words(words);
    expect_prior(site, 9, TIDE_F64, 18);
}

static void what_was_written_is_read_again(void **state)
{
    (void)state;
    tide_site *site = tide_site_register("sent");
    load_words(one_scope("sent", 0, "", "", 9));
    char *words = written();
    load_words(PROFILE_EMPTY);
    assert_false(has_prior(site));
    load_words(words);
    expect_prior(site, 9, TIDE_F64, 18);
    free(words);
}

static void nothing_is_a_profile_too(void **state)
{
    (void)state;
    char *words = written();
    assert_string_equal(words, PROFILE_EMPTY);
    load_words(words);
    merge_words(words);
    free(words);
}

/* A name may be any bytes; what is written is UTF-8 all the same, and found by that name again. */
static void names_that_are_no_utf8_are_escaped(void **state)
{
    (void)state;
    static const char odd[] = "odd \xff \xc3\xa9 \xed\xa0\x80";
    tide_site *site = tide_site_register(odd);
    load_words(one_scope(odd, 0, "", "", 9));
    expect_prior(site, 9, TIDE_F64, 18);
    char *words = written();
    assert_non_null(strstr(words, "\"odd \\xff \xc3\xa9 \\xed\\xa0\\x80\""));
    load_words(words);
    expect_prior(site, 9, TIDE_F64, 18);
    free(words);
}

static void types_are_those_of_this_process(void **state)
{
    (void)state;
    tide_site *site = tide_site_register("a set");
    tide_site_profile prior;
    load_words(PROFILE_HEAD "type 8 8 \"f64\"\ntype 4 4 \"i32\"\nscope 0 9 0 \"a set\" \"\" \"\"\n"
                            "uses 1 9 9 1\nuses 2 9 9 1\nend 1\n");
    assert_true(profile_loaded_for(site, &prior));
    assert_int_equal(prior.type_count, 2);
    assert_int_equal(prior.types[0].type, TIDE_I32); /* as frequent: the smaller number first */
    assert_int_equal(prior.types[1].type, TIDE_F64);
}

/* ---- what is refused ---------------------------------------------------------------------- */

static const struct {
    const char *words, *says;
} bad_texts[] = {
    {"", "line 1: the end is missing"},
    {"tidepool profile 3", "line 1: the line does not end"},
    {PROFILE_HEAD, "line 2: the end is missing"},
    {"tidepool profile 2\nend 0\n", "line 1: a profile of version 2, this library reads version 3"},
    {"tidepool profile 4\nend 0\n", "line 1: a profile of version 4, this library reads version 3"},
    {"tidepool profile\nend 0\n", "line 1: a blank and the version are missing"},
    {"tidepool\nend 0\n", "line 1"},
    {"{\"profile\": 1}\n", "line 1: not a profile"},
    {"tidepool profile 3\r\nend 0\r\n", "line 1: the version is not a number"},
    {PROFILE_HEAD "\nend 0\n", "line 2: does not start with a word that is known"},
    {PROFILE_HEAD "end 0\n\n", "line 2: more after the end"},
    {PROFILE_HEAD "end 1\n", "line 2: 1 scopes were announced, 0 came"},
    {PROFILE_HEAD "end  0\n", "line 2: the count of scopes is not a number"},
    {PROFILE_HEAD "end 0 0\n", "line 2: more on the line than belongs there"},
    {PROFILE_HEAD "end -1\n", "line 2: the count of scopes is not a number"},
    {PROFILE_HEAD "end 99999999999999999999\n", "does not fit 64 bits"},
    {PROFILE_HEAD "uses 1 1 1 1\nend 0\n", "line 2: uses of no scope"},
    {PROFILE_HEAD "type 8 8 \"\"\nend 0\n", "line 2: no type has this name, size and al"},
    {PROFILE_HEAD "type 8 3 \"x\"\nend 0\n", "line 2: no type has this name, size and al"},
    {PROFILE_HEAD "type 9 2 \"x\"\nend 0\n", "line 2: no type has this name, size and al"},
    {PROFILE_HEAD "type 0 8 \"x\"\nend 0\n", "line 2: no type has this name, size and al"},
    {PROFILE_HEAD "type 8 8192 \"x\"\nend 0\n", "line 2: the alignment is 8192, must be"},
    {PROFILE_HEAD "type 8 8 x\nend 0\n", "line 2: the name does not start with a quote"},
    {PROFILE_HEAD "type 8 8 \"x\nend 0\n", "line 2: the name does not end with a quote"},
    {PROFILE_HEAD "type 8 8 \"x\\q\"\nend 0\n", "line 2: the name has an escape that is"},
    {PROFILE_HEAD "type 8 8 \"x\\x00\"\nend 0\n", "line 2: the name has an escape that"},
    {PROFILE_HEAD "type 8 8 \"x\\x4\"\nend 0\n", "line 2: the name has an escape that"},
    {PROFILE_HEAD "type 8 8 \"x\"\ntype 8 8 \"x\"\nend 0\n", "named before, as number 1"},
    {PROFILE_HEAD "site scope 1 1 0 0 \"\" \"\" \"\"\nend 1\n",
     "line 2: does not start with a word"},
    {PROFILE_HEAD "scope 1 0 0 \"\" \"\" \"\"\nend 1\n", "the count of uses is 0"},
    {PROFILE_HEAD "scope 1 100000000000001 0 \"\" \"\" \"\"\nend 1\n",
     "the count of uses is 100000000000001, must be from 1 to 100000000000000"},
    {PROFILE_HEAD "scope 1 1 0 \"\" \"\"\nend 1\n", "and the function are missing"},
    {PROFILE_HEAD "scope 1 1 0 \"\" \"\" \"\"\ntype 8 8 \"x\"\nend 1\n",
     "line 3: a type after the first scope"},
#define SCOPE                                                   \
    PROFILE_HEAD "type 8 8 \"x\"\ntype 4 4 \"y\"\nscope 1 5 0 " \
                 "\"\" \"\" \"\"\n"
    {SCOPE "uses 3 1 1 1\nend 1\n", "line 5: the type is 3, must be from 1 to 2"},
    {SCOPE "uses 0 1 1 1\nend 1\n", "line 5: the type is 0"},
    {SCOPE "uses 1 6 6 1\nend 1\n", "line 5: the count of uses is 6, must be from 1"},
    {SCOPE "uses 1 5 4 1\nend 1\n", "line 5: the count of slots is 4, must be from 5"},
    {SCOPE "uses 1 5 11 2\nend 1\n", "line 5: the most slots is 2, must be from 3"},
    {SCOPE "uses 1 5 5 65536\nend 1\n", "line 5: the most slots is 65536"},
    {SCOPE "uses 1 5 5 1\nuses 1 5 5 1\nend 1\n", "type 1 for the second time"},
};

static tide_site *witness; /* what was known of it must stay so */

static int load_witness(void **state)
{
    (void)state;
    witness = tide_site_register("witness");
    load_words(one_scope("witness", 0, "", "", 9));
    return 0;
}

static void expect_refused(const char *words, size_t length, tide_status status)
{
    uint32_t types = tide_type_count();
    expect_status(tide_profile_read(words, length, false), status);
    expect_status(tide_profile_read(words, length, true), status);
    assert_non_null(strstr(tide_error_message(), "tide_profile_read: "));
    assert_int_equal(tide_type_count(), types);
    expect_prior(witness, 9, TIDE_F64, 18);
}

static void bad_text_is_refused_with_line_and_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_texts / sizeof *bad_texts; i++) {
        note("text %zu", i);
        expect_refused(bad_texts[i].words, strlen(bad_texts[i].words), TIDE_ERROR_FILE);
        if (strstr(tide_error_message(), bad_texts[i].says) == NULL)
            fail_msg("text %zu: '%s' lacks '%s'", i, tide_error_message(), bad_texts[i].says);
    }
}

static void a_text_cut_short_anywhere_is_refused(void **state)
{
    (void)state;
    static const char whole[] =
        PROFILE_HEAD "type 8 8 \"f64\"\ntype 4 4 \"i32\"\nscope 12 300 4 \"\" \"work.c\" \"step\"\n"
                     "uses 1 300 600 2\nuses 2 20 20 1\nscope 0 5 0 \"named\" \"\" \"\"\n"
                     "knob 32 \"tile\" \"work.c\"\ntuned 7 1 \"product\" \"work.c\"\n"
                     "candidate 60 8812 31 1 \"8x8\"\nend 2\n";
    for (size_t length = 0; length < sizeof whole - 1; length++)
        expect_refused(whole, length, TIDE_ERROR_FILE);
    expect_ok(tide_profile_read(whole, sizeof whole - 1, false));
}

static const char scope_line[] = "scope 1 1 0 \"%u\" \"\" \"\"\n";

/* A head, so many times a line with a number in it, and a tail; to be freed. */
static char *many(const char *head, const char *line, unsigned times, const char *tail)
{
    char *words = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&words, &length);
    assert_non_null(out);
    fputs(head, out);
    for (unsigned i = 0; i < times; i++)
        fprintf(out, line, i);
    fputs(tail, out);
    assert_int_equal(fclose(out), 0);
    return words;
}

static void a_text_of_too_much_is_refused(void **state)
{
    (void)state;
    static const char type[] = "type 8 8 \"%u\"\n";
    static const struct {
        const char *head, *line;
        unsigned times;
        const char *tail;
        tide_status status;
        const char *says;
    } texts[] = {
        {PROFILE_HEAD, scope_line, 16385, "end 16385\n", TIDE_ERROR_LIMIT, "16384"},
        {PROFILE_HEAD, type, 8193, "end 0\n", TIDE_ERROR_LIMIT, "8192"},
        {PROFILE_HEAD "type 8 8 \"", "%u", 20000, "\"\nend 0\n", TIDE_ERROR_FILE, "longer than"},
        {PROFILE_HEAD "type 8 8 \"", "%u", 4500, "\"\nend 0\n", TIDE_ERROR_FILE,
         "longer than 16000 bytes"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *words = many(texts[i].head, texts[i].line, texts[i].times, texts[i].tail);
        expect_refused(words, strlen(words), texts[i].status);
        assert_non_null(strstr(tide_error_message(), texts[i].says));
        free(words);
    }
}

/* A text has 16384 scopes at most. What was seen has room before what was loaded. */
static void the_most_scopes_are_kept_and_no_more(void **state)
{
    (void)state;
    char *words = many(PROFILE_HEAD, scope_line, 16384, "end 16384\n");
    expect_status(tide_profile_read(words, strlen(words), true), TIDE_ERROR_LIMIT);
    expect_prior(witness, 9, TIDE_F64, 18);
    load_words(words);
    free(words);
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    tide_scope scope;
    expect_ok(tide_profile_observe(true));
    expect_ok(tide_scope_enter(pool, witness, &scope));
    expect_ok(tide_scope_leave(&scope));
    expect_ok(tide_profile_observe(false));
    expect_ok(tide_pool_destroy(pool));
    words = written();
    assert_non_null(strstr(words, "end 16384\n"));
    assert_non_null(strstr(words, "\"witness\""));
    free(words);
    expect_ok(tide_site_reset(witness));
}

static void a_text_or_stream_that_cannot_be_is_refused(void **state)
{
    (void)state;
    expect_status(tide_profile_read(NULL, 0, false), TIDE_ERROR_ARGUMENT);
    expect_refused("x", (size_t)33 << 20, TIDE_ERROR_LIMIT);
    expect_refused(PROFILE_HEAD "end 1\n", 25, TIDE_ERROR_FILE);
    assert_non_null(strstr(tide_error_message(), "the text"));
    expect_status(tide_profile_write(NULL), TIDE_ERROR_ARGUMENT);
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    expect_status(tide_profile_write(full), TIDE_ERROR_FILE);
    assert_non_null(strstr(tide_error_message(), strerror(ENOSPC)));
    expect_status(tide_profile_print(full), TIDE_ERROR_FILE);
    assert_non_null(strstr(tide_error_message(), strerror(ENOSPC)));
    (void)fclose(full);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(loading_replaces_and_merging_adds, start_anew),
    cmocka_unit_test_setup(what_was_written_is_read_again, start_anew),
    cmocka_unit_test_setup(nothing_is_a_profile_too, start_anew),
    cmocka_unit_test_setup(names_that_are_no_utf8_are_escaped, start_anew),
    cmocka_unit_test_setup(types_are_those_of_this_process, start_anew),
    cmocka_unit_test_setup(bad_text_is_refused_with_line_and_reason, load_witness),
    cmocka_unit_test_setup(a_text_cut_short_anywhere_is_refused, load_witness),
    cmocka_unit_test_setup(a_text_of_too_much_is_refused, load_witness),
    cmocka_unit_test_setup(the_most_scopes_are_kept_and_no_more, load_witness),
    cmocka_unit_test_setup(a_text_or_stream_that_cannot_be_is_refused, load_witness),
};

int main(void)
{
    if (tide_tune_set("learn", 0) != TIDE_OK)
        return EXIT_FAILURE;
    return cmocka_run_group_tests_name("profile_texts", tests, NULL, NULL);
}
