/* SPDX-License-Identifier: MIT */
/* Profiles in files: what one process saw another knows, by which keys, and what stands in a file.
 *
 * Run with arguments the program is that other process: see play(). */
#define _GNU_SOURCE
#include "profile_text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tidepool/dynamic.h>
#include <tidepool/generic.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>

static const char *own_path; /* of this program */
static char folder[256];

/* ---- files ------------------------------------------------------------------------------- */

/* Until some further calls. */
static const char *path_of(const char *name)
{
    enum { PATHS = 8 };
    static char paths[PATHS][512];
    static unsigned turn;
    char *path = paths[turn++ % PATHS];
    snprintf(path, sizeof *paths, "%s/%s", folder, name);
    return path;
}

/* To be freed. */
static char *read_file(const char *path)
{
    enum { ROOM = 4 << 20 };
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *words = malloc(ROOM);
    assert_non_null(words);
    words[fread(words, 1, ROOM - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    return words;
}

static void write_file(const char *path, const char *words)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(words, 1, strlen(words), file), strlen(words));
    assert_int_equal(fclose(file), 0);
}

static unsigned files_in_folder(void)
{
    unsigned count = 0;
    DIR *open = opendir(folder);
    assert_non_null(open);
    while (readdir(open) != NULL)
        count++;
    assert_int_equal(closedir(open), 0);
    return count;
}

/* ---- a program with sites ---------------------------------------------------------------- */

struct particle {
    double place[3];
};

enum { KEYS = 60000 };

static tide_generic *generic, *keyed;

static void method(void *args)
{
    ++*(unsigned *)args;
}

/* Two scopes of one function, which have no names. */
static void step(tide_pool *pool, bool again)
{
    TIDE_SCOPE(pool);
    assert_non_null(tide_acquire(pool, double, 3));
    assert_non_null(tide_acquire(pool, double, 3));
    if (again) {
        TIDE_SCOPE(pool);
        assert_non_null(tide_acquire(pool, int32_t, 3));
    }
}

/* No type has the greater number. */
static void by_key(unsigned *called)
{
    static tide_type key;
    key = key == 0 ? KEYS - 1 : 0;
    TIDE_DISPATCH(keyed, key, called);
}

static void others(tide_pool *pool)
{
    unsigned called = 0;
    tide_mark mark = tide_checkpoint(pool);
    TIDE_DISPATCH(generic, TIDE_U8, &called);
    assert_int_equal(called, 1);
    by_key(&called);
    assert_int_equal(called, 2);
    expect_ok(tide_rewind(pool, mark));
}

static void particles(tide_pool *pool)
{
    TIDE_SCOPE_NAMED(pool, "particles \"\\\n\t\x01\x7f \xc3\xa9");
    assert_non_null(tide_acquire(pool, struct particle, 3));
}

/* Every site is used `times` times and observed. */
static void run_program(size_t times)
{
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    expect_ok(tide_profile_observe(true));
    for (size_t i = 0; i < times; i++) {
        step(pool, i % 2 == 0);
        others(pool);
        particles(pool);
    }
    expect_ok(tide_profile_observe(false));
    expect_ok(tide_pool_destroy(pool));
}

/* ---- asking for sites -------------------------------------------------------------------- */

struct query {
    const char *function;
    tide_kind kind;
    unsigned which; /* 0: the first of them in the source; else the last */
    tide_site *found;
};

static bool matches(tide_site *site, void *user)
{
    struct query *query = user;
    if (site->kind != query->kind || site->place.function == NULL ||
        strcmp(site->place.function, query->function) != 0)
        return true;
    bool earlier = query->found == NULL || site->place.line < query->found->place.line;
    if (query->found == NULL || earlier == (query->which == 0))
        query->found = site;
    return true;
}

static tide_site *find(const char *function, tide_kind kind, unsigned which)
{
    struct query query = {function, kind, which, NULL};
    tide_site_each(matches, &query);
    assert_non_null(query.found);
    return query.found;
}

static void forget_program(void)
{
    static const struct {
        const char *function;
        tide_kind kind;
        unsigned count;
    } sites[] = {{"step", TIDE_KIND_SCOPE, 2},
                 {"others", TIDE_KIND_DISPATCH, 1},
                 {"by_key", TIDE_KIND_DISPATCH, 1},
                 {"particles", TIDE_KIND_SCOPE, 1}};
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++)
        for (unsigned j = 0; j < sites[i].count; j++)
            expect_ok(tide_site_reset(find(sites[i].function, sites[i].kind, j)));
}

/* Neither seen nor loaded. */
static int start_anew(void **state)
{
    (void)state;
    forget_program();
    load_words(PROFILE_EMPTY);
    return 0;
}

/* ---- another process --------------------------------------------------------------------- */

/* Fails the test if the other process does. */
static void run_other(const char *role, const char *path)
{
    pid_t child = fork_child(0);
    if (child == 0) {
        execl(own_path, own_path, role, path, (char *)NULL);
        _exit(127);
    }
    expect_child_ends_well(child);
}

#define NEED(holds)                                                                               \
    do {                                                                                          \
        if (!(holds)) {                                                                           \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #holds, tide_error_message()); \
            return EXIT_FAILURE;                                                                  \
        }                                                                                         \
    } while (0)

static int record(const char *path)
{
    run_program(10);
    NEED(tide_profile_save(path) == TIDE_OK);
    return EXIT_SUCCESS;
}

/* Knows what the other saw, before anything ran. */
static int recall(const char *path)
{
    tide_site_profile prior;
    uint32_t types = tide_type_count();
    NEED(tide_profile_load(path) == TIDE_OK);
    NEED(profile_loaded_for(find("step", TIDE_KIND_SCOPE, 0), &prior));
    NEED(prior.scopes == 10 && prior.types[0].slots == 20 && prior.types[0].slots_max == 2);
    NEED(profile_loaded_for(find("step", TIDE_KIND_SCOPE, 1), &prior));
    NEED(prior.scopes == 5 && prior.types[0].type == TIDE_I32);
    NEED(!profile_loaded_for(find("others", TIDE_KIND_DISPATCH, 0), &prior));
    NEED(!profile_loaded_for(find("by_key", TIDE_KIND_DISPATCH, 0), &prior));
    tide_site *site = find("particles", TIDE_KIND_SCOPE, 0);
    NEED(!profile_loaded_for(site, &prior));
    NEED(tide_type_count() == types); /* nobody has registered the particle */
    tide_type particle = tide_type_of(struct particle);
    NEED(profile_loaded_for(site, &prior) && prior.types[0].type == particle && prior.scopes == 10);
    return EXIT_SUCCESS;
}

static int play(const char *role, const char *path)
{
    return strcmp(role, "record") == 0 ? record(path) : recall(path);
}

static void what_one_process_saw_another_knows(void **state)
{
    (void)state;
    const char *path = path_of("shared");
    run_other("record", path);
    run_other("recall", path);
    char *first = read_file(path);
    run_other("record", path); /* over the old file */
    char *second = read_file(path);
    assert_string_equal(first, second);
    free(first);
    free(second);
}

/* ---- keys -------------------------------------------------------------------------------- */

static const char particle_name[] = "particles \\\"\\\\\\n\\t\\x01\\x7f \xc3\xa9";

static void a_scope_is_found_though_lines_and_folders_moved(void **state)
{
    (void)state;
    tide_site *site = find("particles", TIDE_KIND_SCOPE, 0);
    load_words(one_scope(particle_name, 7, "/elsewhere/profile_files.c", "particles", 9));
    expect_prior(site, 9, TIDE_F64, 18);
    load_words(one_scope(particle_name, 7, "other_files.c", "particles", 9));
    assert_false(has_prior(site));
}

static void a_loose_key_of_two_scopes_names_none(void **state)
{
    (void)state;
    tide_site *first = find("step", TIDE_KIND_SCOPE, 0), *second = find("step", TIDE_KIND_SCOPE, 1);
    load_words(one_scope("", 7, "profile_files.c", "step", 9));
    assert_false(has_prior(first));
    assert_false(has_prior(second));
    load_words(one_scope("", second->place.line, second->place.file, "step", 9));
    assert_false(has_prior(first));
    expect_prior(second, 9, TIDE_F64, 18);
}

/* ---- knowing and having seen ------------------------------------------------------------- */

static void what_the_program_saw_itself_comes_first(void **state)
{
    (void)state;
    tide_site *site = find("particles", TIDE_KIND_SCOPE, 0);
    load_words(one_scope(particle_name, site->place.line, site->place.file, "particles", 9));
    assert_true(has_prior(site));
    run_program(1);
    assert_true(has_prior(site)); /* a window that is not full */
    tide_site_profile seen;
    profile_take_window(site, &seen);
    assert_int_equal(seen.scopes, 1);
    assert_false(has_prior(site));
    expect_ok(tide_site_reset(site));
    assert_true(has_prior(site));
}

/* What was loaded for code that did not run is not lost; for code that ran, what it did counts. */
static void saving_keeps_what_was_loaded(void **state)
{
    (void)state;
    tide_site *late = tide_site_register("late");
    tide_site *ran = find("particles", TIDE_KIND_SCOPE, 0);
    load_words(one_scope("late", 0, "", "", 9));
    merge_words(one_scope("gone", 5, "gone.c", "gone", 3));
    merge_words(one_scope(particle_name, 1, "old/profile_files.c", "particles", 1000));
    run_program(6);
    expect_ok(tide_profile_save(path_of("kept")));
    char *kept = read_file(path_of("kept"));
    assert_non_null(strstr(kept, "scope 5 3 0 \"gone\" \"gone.c\" \"gone\"\n"));
    assert_null(strstr(kept, "old/profile_files.c"));
    free(kept);
    start_anew(NULL);
    assert_false(has_prior(late));
    expect_ok(tide_profile_load(path_of("kept")));
    expect_prior(late, 9, TIDE_F64, 18);
    expect_prior(ran, 6, tide_type_of(struct particle), 6);
    expect_ok(tide_profile_merge(path_of("kept")));
    expect_prior(late, 18, TIDE_F64, 36);
}

/* ---- bad files --------------------------------------------------------------------------- */

static tide_site *witness; /* what was known of it must stay so */

static int load_witness(void **state)
{
    start_anew(state);
    witness = tide_site_register("witness");
    load_words(one_scope("witness", 0, "", "", 9));
    return 0;
}

static void expect_refused(const char *path, const char *says)
{
    expect_status(tide_profile_load(path), TIDE_ERROR_FILE);
    assert_non_null(strstr(tide_error_message(), "tide_profile_load: "));
    expect_status(tide_profile_merge(path), TIDE_ERROR_FILE);
    assert_non_null(strstr(tide_error_message(), "tide_profile_merge: "));
    assert_non_null(strstr(tide_error_message(), path));
    assert_non_null(strstr(tide_error_message(), says));
    expect_prior(witness, 9, TIDE_F64, 18);
}

static void a_file_of_something_else_is_refused(void **state)
{
    (void)state;
    const char *path = path_of("bad");
    write_file(path, "");
    expect_refused(path, "line 1: the end is missing");
    write_file(path, "tidepool profile 2\nend 0\n");
    expect_refused(path, "line 1: a profile of version 2, this library reads version 3");
    assert_int_equal(truncate(path, (off_t)1 << 40), 0); /* a hole */
    expect_refused(path, "limit");
    assert_int_equal(unlink(path), 0);
}

static void a_path_that_cannot_be_is_refused(void **state)
{
    (void)state;
    expect_status(tide_profile_load(NULL), TIDE_ERROR_ARGUMENT);
    expect_status(tide_profile_merge(NULL), TIDE_ERROR_ARGUMENT);
    expect_status(tide_profile_save(NULL), TIDE_ERROR_ARGUMENT);
    expect_refused(path_of("there is no such file"), strerror(ENOENT));
    expect_refused(folder, "not a plain file");
    const char *pipe = path_of("pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    expect_refused(pipe, "not a plain file");
    assert_int_equal(unlink(pipe), 0);
    unsigned before = files_in_folder();
    expect_status(tide_profile_save(path_of("no folder/file")), TIDE_ERROR_FILE);
    assert_non_null(strstr(tide_error_message(), strerror(ENOENT)));
    assert_int_equal(mkdir(path_of("a folder"), 0700), 0);
    expect_status(tide_profile_save(path_of("a folder")), TIDE_ERROR_FILE);
    assert_int_equal(rmdir(path_of("a folder")), 0);
    assert_int_equal(files_in_folder(), before); /* what was written beside is gone */
}

/* ---- the page ---------------------------------------------------------------------------- */

static void the_page_shows_what_was_observed(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "step (profile_files.c:",
        ", scope, full: 4 uses observed, 0 misses\n",
        "    f64              in 100.0 % of uses, 2.00 slots each, at most 2\n",
        "    i32              in 100.0 % of uses, 1.00 slots each, at most 1\n",
        ", dispatch, full: 4 uses observed, 0 misses\n",
        "    of generic of files()\n",
        "    u8               in 100.0 % of uses",
        "    key 59999        in  50.0 % of uses",
        "    struct particle  in 100.0 % of uses",
    };
    char *page = NULL;
    size_t length = 0;
    run_program(4);
    FILE *out = open_memstream(&page, &length);
    assert_non_null(out);
    expect_ok(tide_profile_print(out));
    assert_int_equal(fclose(out), 0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (strstr(page, lines[i]) == NULL)
            fail_msg("'%s' is not on the page:\n%s", lines[i], page);
    free(page);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(what_one_process_saw_another_knows, start_anew),
    cmocka_unit_test_setup(a_scope_is_found_though_lines_and_folders_moved, start_anew),
    cmocka_unit_test_setup(a_loose_key_of_two_scopes_names_none, start_anew),
    cmocka_unit_test_setup(what_the_program_saw_itself_comes_first, start_anew),
    cmocka_unit_test_setup(saving_keeps_what_was_loaded, start_anew),
    cmocka_unit_test_setup(a_file_of_something_else_is_refused, load_witness),
    cmocka_unit_test_setup(a_path_that_cannot_be_is_refused, load_witness),
    cmocka_unit_test_setup(the_page_shows_what_was_observed, start_anew),
};

static void remove_folder(void)
{
    DIR *open = opendir(folder);
    for (struct dirent *entry; open != NULL && (entry = readdir(open)) != NULL;)
        (void)unlinkat(dirfd(open), entry->d_name, 0);
    if (open != NULL)
        closedir(open);
    (void)rmdir(folder);
}

int main(int argc, char **argv)
{
    const char *parent = getenv("TMPDIR");
    own_path = argv[0];
    generic = tide_generic_create("generic of files");
    keyed = tide_generic_create_keys("generic by keys", KEYS);
    if (generic == NULL || tide_generic_add(generic, TIDE_U8, method) != TIDE_OK || keyed == NULL ||
        tide_generic_add(keyed, TIDE_ALL_TYPES, method) != TIDE_OK ||
        tide_tune_set("learn", 0) != TIDE_OK)
        return EXIT_FAILURE;
    if (argc == 3)
        return play(argv[1], argv[2]);
    snprintf(folder, sizeof folder, "%s/tidepool-profile-XXXXXX", parent != NULL ? parent : "/tmp");
    if (mkdtemp(folder) == NULL)
        return EXIT_FAILURE;
    int failures = cmocka_run_group_tests_name("profile_files", tests, NULL, NULL);
    remove_folder();
    return failures;
}
