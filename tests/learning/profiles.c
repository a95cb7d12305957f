/* SPDX-License-Identifier: MIT */
/* What one process has learned another knows: its sites are compiled before they are observed.
 * And what is no profile changes nothing.
 *
 * Called with arguments, this program is the other process: profiles FILE WHAT. */
#define _GNU_SOURCE
#include "learning.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tidepool/learn.h>
#include <tidepool/profile.h>
#include <tidepool/site.h>
#include <tidepool/upkeep.h>

enum { SITES = TIDE_KIND_COUNT };

static use uses[SITES];

/* The same sites in every process. */
static void make_sites(void)
{
    for (tide_kind kind = 0; kind < TIDE_KIND_COUNT; kind++) {
        char name[64];
        snprintf(name, sizeof name, "profiles: %s", tide_kind_name(kind));
        uses[kind] = use_of(name, kind, learning_pool, 3, TIDE_F64, TIDE_I32, TIDE_F64);
    }
}

static const char *self; /* this program, as it was called: Valgrind is not what starts again */

/* ---- the other process ------------------------------------------------------------------- */

#define MUST(condition)                                                    \
    do {                                                                   \
        if (!(condition)) {                                                \
            fprintf(stderr, "%s: %s\n", #condition, tide_error_message()); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

/* Dispatches are of generic functions, which no file can name: they learn by themselves. */
static bool in_file(tide_kind kind)
{
    return kind != TIDE_KIND_DISPATCH;
}

/* A first window is open from the first use on, though rounds were done with the file before. */
static bool learns_by_itself(const use *u)
{
    enum { WINDOW = 200 };
    for (unsigned i = 0; i < WINDOW + 50; i++)
        MUST(use_once(u));
    return info_of(u->site).samples == WINDOW;
}

static void know_at_once(const char *path)
{
    MUST(tide_profile_load(path) == TIDE_OK);
    make_sites();
    MUST(tide_step() == TIDE_OK);
    for (tide_kind kind = 0; kind < TIDE_KIND_COUNT; kind++) /* arrives */
        MUST(in_file(kind) ? use_once(&uses[kind]) : learns_by_itself(&uses[kind]));
    for (unsigned i = 0; i < 20; i++) {
        MUST(tide_settle(PATIENCE_MS) == TIDE_OK);
        MUST(tide_step() == TIDE_OK);
    }
    for (tide_kind kind = 0; kind < TIDE_KIND_COUNT; kind++) {
        if (!in_file(kind)) {
            MUST(tier_of(uses[kind].site) == best_tier(kind));
            continue;
        }
        for (unsigned i = 0; i < 3; i++) /* first slots, headers */
            MUST(use_once(&uses[kind]));
        tide_site_information before = info_of(uses[kind].site);
        MUST(before.tier == TIDE_TIER_COMPILED);
        MUST(before.samples <= 4);
        for (unsigned i = 0; i < 100; i++)
            MUST(use_once(&uses[kind]));
        MUST(runs_of(uses[kind].site) == before.runs + 100);
    }
}

/* Uses until compiled code for the type is in force. */
static bool comes_to(const use *u, tide_type type)
{
    for (unsigned i = 0; i < 30000; i++) {
        MUST(use_once(u));
        if (i % 100 != 99)
            continue;
        MUST(tide_settle(PATIENCE_MS) == TIDE_OK);
        MUST(tide_step() == TIDE_OK);
        tide_site_information info = info_of(u->site);
        if (info.tier == best_tier(u->site->kind) &&
            (info.types[0] == type || info.types[1] == type))
            return true;
    }
    return false;
}

/* A file that lies, in good form: slower at first, never wrong, and found out. */
static void be_lied_to(const char *path)
{
    MUST(tide_profile_load(path) == TIDE_OK);
    make_sites();
    for (tide_kind kind = 0; kind < TIDE_KIND_COUNT; kind++) {
        uses[kind].types[0] = TIDE_U16;
        uses[kind].types[1] = TIDE_C64;
        uses[kind].types[2] = TIDE_U16;
        MUST(comes_to(&uses[kind], TIDE_U16));
    }
}

static int be_the_other(const char *path, const char *what)
{
    settings_of_tests();
    learning_pool = tide_pool_create(NULL);
    MUST(learning_pool != NULL);
    if (strcmp(what, "know") == 0)
        know_at_once(path);
    else
        be_lied_to(path);
    MUST(tide_pool_check(learning_pool) == TIDE_OK);
    return 0;
}

/* ---- this one ---------------------------------------------------------------------------- */

static char folder[] = "/tmp/tidepool-profiles-XXXXXX", good[64], bad[64];

static void in_another_process(const char *path, const char *what)
{
    pid_t child = fork_child(200);
    if (child == 0) {
        execl(self, "profiles", path, what, (char *)NULL);
        _exit(126);
    }
    expect_child_ends_well(child);
}

static void learn_and_save(void)
{
    need_stager();
    if (uses[0].site == NULL)
        make_sites();
    for (unsigned i = 0; i < SITES; i++)
        until(&uses[i], TIDE_TIER_COMPILED);
    expect_ok(tide_profile_save(good));
}

static void a_second_process_starts_compiled(void **state)
{
    (void)state;
    learn_and_save();
    in_another_process(good, "know");
}

/* What is known of too few uses decides nothing. */
static void a_profile_that_decides_nothing_leaves_the_site_to_learn(void **state)
{
    (void)state;
    static const char few[] = "tidepool profile 3\ntype 8 8 \"f64\"\n"
                              "scope 0 5 0 \"profiles: few\" \"\" \"\"\nuses 1 5 5 1\nend 1\n";
    expect_ok(tide_profile_read(few, strlen(few), false));
    use u = use_of("profiles: few", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    settle();
    assert_true(learns_by_itself(&u));
    settle();
    assert_int_not_equal(tier_of(u.site), TIDE_TIER_FULL);
}

static size_t read_file(const char *path, char *to, size_t room)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0);
    ssize_t got = read(file, to, room);
    assert_true(got > 0 && (size_t)got < room);
    close(file);
    return (size_t)got;
}

static void write_file(const char *path, const char *from, size_t bytes)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, from, bytes), bytes);
    close(file);
}

static char text[1 << 18];

static void expect_refused(const char *from, size_t bytes)
{
    write_file(bad, from, bytes);
    expect_status(tide_profile_load(bad), TIDE_ERROR_FILE);
    expect_status(tide_profile_merge(bad), TIDE_ERROR_FILE);
    assert_true(tide_error_message()[0] != '\0');
}

/* Cut short anywhere, and of another format. */
static void a_bad_file_is_refused(void **state)
{
    (void)state;
    static const char *const others[] = {"", "\n", "tidepool-profile 999\n", "\177ELF\002\001\001",
                                         "{\"sites\": []}\n"};
    learn_and_save();
    size_t bytes = read_file(good, text, sizeof text);
    expect_refused(text, bytes / 2);
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
        expect_refused(others[i], strlen(others[i]));
    text[bytes / 3] = '\0';
    expect_refused(text, bytes);
}

static void a_file_that_lies_costs_speed_only(void **state)
{
    (void)state;
    learn_and_save();
    in_another_process(good, "lie");
}

static int prepare(void **state)
{
    assert_non_null(mkdtemp(folder));
    snprintf(good, sizeof good, "%s/good", folder);
    snprintf(bad, sizeof bad, "%s/bad", folder);
    return learning_make_pool(state);
}

static int clean(void **state)
{
    unlink(good);
    unlink(bad);
    rmdir(folder);
    return learning_drop_pool(state);
}

int main(int argc, char **argv)
{
    self = argv[0];
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(a_second_process_starts_compiled),
        LEARNING_TEST(a_profile_that_decides_nothing_leaves_the_site_to_learn),
        LEARNING_TEST(a_bad_file_is_refused),
        LEARNING_TEST(a_file_that_lies_costs_speed_only),
    };
    if (argc == 3)
        return be_the_other(argv[1], argv[2]);
    return cmocka_run_group_tests_name("learning: profiles", tests, prepare, clean);
}
