/* SPDX-License-Identifier: MIT */
/* Profiles in files: what one process saw another knows; bad files are refused and change nothing.
 *
 * Run with arguments the program is that other process: see play(). */
#define _GNU_SOURCE
#include "forms.h"
#include "hooks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tidepool/dynamic.h>
#include <tidepool/generic.h>
#include <tidepool/profile.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>

static const char *own_path; /* of this program */
static char folder[256];

/* ---- files ------------------------------------------------------------------------------- */

/* The same string for the same name, for good. */
static const char *path_of(const char *name)
{
    enum { PATHS = 64 };
    static struct {
        char name[64], path[512];
    } paths[PATHS];
    unsigned i = 0;
    while (i < PATHS - 1 && paths[i].name[0] != '\0' && strcmp(paths[i].name, name) != 0)
        i++;
    snprintf(paths[i].name, sizeof paths[i].name, "%s", name);
    snprintf(paths[i].path, sizeof paths[i].path, "%s/%s", folder, name);
    return paths[i].path;
}

typedef struct text {
    char *bytes;
    size_t length;
} text;

static text read_text(const char *path)
{
    text t = {NULL, 0};
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t room = 4 << 20;
    t.bytes = malloc(room);
    assert_non_null(t.bytes);
    t.length = fread(t.bytes, 1, room - 1, file);
    t.bytes[t.length] = '\0';
    assert_int_equal(fclose(file), 0);
    return t;
}

static void write_bytes(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static const char *write_text(const char *name, const char *words)
{
    const char *path = path_of(name);
    write_bytes(path, words, strlen(words));
    return path;
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

static bool has_prior(tide_site *site)
{
    tide_site_profile prior;
    return profile_loaded_for(site, &prior);
}

static void expect_prior(tide_site *site, uint64_t scopes, tide_type type, uint64_t slots)
{
    tide_site_profile prior;
    assert_true(profile_loaded_for(site, &prior));
    assert_int_equal(prior.scopes, scopes);
    assert_int_equal(prior.types[0].type, type);
    assert_int_equal(prior.types[0].scopes, scopes);
    assert_int_equal(prior.types[0].slots, slots);
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
    expect_ok(tide_profile_load(write_text("nothing", "tidepool profile 3\nend 0\n")));
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
    text first = read_text(path);
    run_other("record", path); /* over the old file */
    text second = read_text(path);
    assert_string_equal(first.bytes, second.bytes);
    free(first.bytes);
    free(second.bytes);
}

/* ---- keys -------------------------------------------------------------------------------- */

static char file_words[2048];

/* A profile of one scope of a site, which touched so many doubles. */
static const char *one_site(const char *name, uint32_t line, const char *file, const char *function,
                            unsigned uses)
{
    snprintf(file_words, sizeof file_words,
             "tidepool profile 3\ntype 8 8 \"f64\"\nscope %u %u 0 \"%s\" \"%s\" \"%s\"\n"
             "uses 1 %u %u 2\nend 1\n",
             line, uses, name, file, function, uses, 2 * uses);
    return file_words;
}

static const char particle_name[] = "particles \\\"\\\\\\n\\t\\x01\\x7f \xc3\xa9";

static void a_site_is_found_though_lines_and_folders_moved(void **state)
{
    (void)state;
    tide_site *site = find("particles", TIDE_KIND_SCOPE, 0);
    const char *moved = one_site(particle_name, 7, "/elsewhere/profile_files.c", "particles", 9);
    expect_ok(tide_profile_load(write_text("moved", moved)));
    expect_prior(site, 9, TIDE_F64, 18);
    expect_ok(tide_profile_load(
        write_text("renamed", one_site(particle_name, 7, "other_files.c", "particles", 9))));
    assert_false(has_prior(site));
}

static void a_loose_key_of_two_sites_names_none(void **state)
{
    (void)state;
    tide_site *first = find("step", TIDE_KIND_SCOPE, 0), *second = find("step", TIDE_KIND_SCOPE, 1);
    expect_ok(
        tide_profile_load(write_text("moved", one_site("", 7, "profile_files.c", "step", 9))));
    assert_false(has_prior(first));
    assert_false(has_prior(second));
    expect_ok(tide_profile_load(
        write_text("exact", one_site("", second->place.line, second->place.file, "step", 9))));
    assert_false(has_prior(first));
    expect_prior(second, 9, TIDE_F64, 18);
}

/* ---- knowing and having seen ------------------------------------------------------------- */

static void loading_replaces_and_merging_adds(void **state)
{
    (void)state;
    tide_site *site = tide_site_register("merged");
    const char *path = write_text("merged", one_site("merged", 0, "", "", 9));
    expect_ok(tide_profile_load(path));
    expect_prior(site, 9, TIDE_F64, 18);
    expect_ok(tide_profile_merge(path));
    expect_ok(tide_profile_merge(path));
    expect_prior(site, 27, TIDE_F64, 54);
    expect_ok(tide_profile_load(path));
    expect_prior(site, 9, TIDE_F64, 18);
}

static void what_the_program_saw_itself_comes_first(void **state)
{
    (void)state;
    tide_site *site = find("particles", TIDE_KIND_SCOPE, 0);
    expect_ok(tide_profile_load(write_text(
        "own", one_site(particle_name, site->place.line, site->place.file, "particles", 9))));
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
    expect_ok(tide_profile_load(write_text("late", one_site("late", 0, "", "", 9))));
    expect_ok(tide_profile_merge(write_text("gone", one_site("gone", 5, "gone.c", "gone", 3))));
    expect_ok(tide_profile_merge(
        write_text("ran", one_site(particle_name, 1, "old/profile_files.c", "particles", 1000))));
    run_program(6);
    expect_ok(tide_profile_save(path_of("kept")));
    text kept = read_text(path_of("kept"));
    assert_non_null(strstr(kept.bytes, "scope 5 3 0 \"gone\" \"gone.c\" \"gone\"\n"));
    assert_null(strstr(kept.bytes, "old/profile_files.c"));
    free(kept.bytes);
    start_anew(NULL);
    assert_false(has_prior(late));
    expect_ok(tide_profile_load(path_of("kept")));
    expect_prior(late, 9, TIDE_F64, 18);
    expect_prior(ran, 6, tide_type_of(struct particle), 6);
}

/* The text of a stream and of a file are one, and either way reads it. */
static void a_text_goes_where_the_program_likes(void **state)
{
    (void)state;
    tide_site *site = tide_site_register("sent");
    const char *words = one_site("sent", 0, "", "", 9);
    expect_ok(tide_profile_read(words, strlen(words), false));
    expect_prior(site, 9, TIDE_F64, 18);
    expect_ok(tide_profile_read(words, strlen(words), true));
    expect_prior(site, 18, TIDE_F64, 36);
    char *bytes = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&bytes, &length);
    assert_non_null(stream);
    expect_ok(tide_profile_write(stream));
    assert_int_equal(fclose(stream), 0);
    expect_ok(tide_profile_save(path_of("sent")));
    text saved = read_text(path_of("sent"));
    assert_int_equal(length, saved.length);
    assert_memory_equal(bytes, saved.bytes, length);
    free(saved.bytes);
    expect_ok(tide_profile_read(words, strlen(words), false));
    expect_ok(tide_profile_read(bytes, length, false));
    expect_prior(site, 18, TIDE_F64, 36);
    free(bytes);
}

/* A name may be any bytes; what is written is UTF-8 all the same, and found by that name again. */
static void names_that_are_no_utf8_are_escaped(void **state)
{
    (void)state;
    static const char odd[] = "odd \xff \xc3\xa9 \xed\xa0\x80";
    tide_site *site = tide_site_register(odd);
    const char *words = one_site(odd, 0, "", "", 9);
    expect_ok(tide_profile_read(words, strlen(words), false));
    expect_prior(site, 9, TIDE_F64, 18);
    expect_ok(tide_profile_save(path_of("odd")));
    text saved = read_text(path_of("odd"));
    assert_non_null(strstr(saved.bytes, "\"odd \\xff \xc3\xa9 \\xed\\xa0\\x80\""));
    free(saved.bytes);
    expect_ok(tide_site_reset(site));
    expect_ok(tide_profile_load(path_of("odd")));
    expect_prior(site, 9, TIDE_F64, 18);
}

static void a_profile_of_nothing_is_a_file_too(void **state)
{
    (void)state;
    const char *path = path_of("empty");
    expect_ok(tide_profile_save(path));
    text empty = read_text(path);
    assert_string_equal(empty.bytes, "tidepool profile 3\nend 0\n");
    free(empty.bytes);
    expect_ok(tide_profile_load(path));
    expect_ok(tide_profile_merge(path));
    assert_false(has_prior(find("step", TIDE_KIND_SCOPE, 0)));
}

static void types_are_those_of_this_process(void **state)
{
    (void)state;
    tide_site *site = tide_site_register("a set");
    tide_site_profile prior;
    expect_ok(tide_profile_load(
        write_text("set", "tidepool profile 3\ntype 8 8 \"f64\"\ntype 4 4 \"i32\"\n"
                          "scope 0 9 0 \"a set\" \"\" \"\"\nuses 1 9 9 1\nuses 2 9 9 1\nend 1\n")));
    assert_true(profile_loaded_for(site, &prior));
    assert_int_equal(prior.type_count, 2);
    assert_int_equal(prior.types[0].type, TIDE_I32); /* as frequent: the smaller number first */
    assert_int_equal(prior.types[1].type, TIDE_F64);
}

/* ---- bad files --------------------------------------------------------------------------- */

static const struct {
    const char *words, *says;
} bad_files[] = {
    {"", "line 1: the end is missing"},
    {"tidepool profile 3", "line 1: the line does not end"},
    {"tidepool profile 3\n", "line 2: the end is missing"},
    {"tidepool profile 2\nend 0\n", "line 1: a profile of version 2, this library reads version 3"},
    {"tidepool profile 4\nend 0\n", "line 1: a profile of version 4, this library reads version 3"},
    {"tidepool profile\nend 0\n", "line 1: a blank and the version are missing"},
    {"tidepool\nend 0\n", "line 1"},
    {"{\"profile\": 1}\n", "line 1: not a profile"},
    {"tidepool profile 3\r\nend 0\r\n", "line 1: the version is not a number"},
    {"tidepool profile 3\n\nend 0\n", "line 2: does not start with a word that is known"},
    {"tidepool profile 3\nend 0\n\n", "line 2: more after the end"},
    {"tidepool profile 3\nend 1\n", "line 2: 1 scopes were announced, 0 came"},
    {"tidepool profile 3\nend  0\n", "line 2: the count of scopes is not a number"},
    {"tidepool profile 3\nend 0 0\n", "line 2: more on the line than belongs there"},
    {"tidepool profile 3\nend -1\n", "line 2: the count of scopes is not a number"},
    {"tidepool profile 3\nend 99999999999999999999\n", "does not fit 64 bits"},
    {"tidepool profile 3\nuses 1 1 1 1\nend 0\n", "line 2: uses of no scope"},
    {"tidepool profile 3\ntype 8 8 \"\"\nend 0\n", "line 2: no type has this name, size and al"},
    {"tidepool profile 3\ntype 8 3 \"x\"\nend 0\n", "line 2: no type has this name, size and al"},
    {"tidepool profile 3\ntype 9 2 \"x\"\nend 0\n", "line 2: no type has this name, size and al"},
    {"tidepool profile 3\ntype 0 8 \"x\"\nend 0\n", "line 2: no type has this name, size and al"},
    {"tidepool profile 3\ntype 8 8192 \"x\"\nend 0\n", "line 2: the alignment is 8192, must be"},
    {"tidepool profile 3\ntype 8 8 x\nend 0\n", "line 2: the name does not start with a quote"},
    {"tidepool profile 3\ntype 8 8 \"x\nend 0\n", "line 2: the name does not end with a quote"},
    {"tidepool profile 3\ntype 8 8 \"x\\q\"\nend 0\n", "line 2: the name has an escape that is"},
    {"tidepool profile 3\ntype 8 8 \"x\\x00\"\nend 0\n", "line 2: the name has an escape that"},
    {"tidepool profile 3\ntype 8 8 \"x\\x4\"\nend 0\n", "line 2: the name has an escape that"},
    {"tidepool profile 3\ntype 8 8 \"x\"\ntype 8 8 \"x\"\nend 0\n", "named before, as number 1"},
    {"tidepool profile 3\nsite scope 1 1 0 0 \"\" \"\" \"\"\nend 1\n",
     "line 2: does not start with a word"},
    {"tidepool profile 3\nscope 1 0 0 \"\" \"\" \"\"\nend 1\n", "the count of uses is 0"},
    {"tidepool profile 3\nscope 1 100000000000001 0 \"\" \"\" \"\"\nend 1\n",
     "the count of uses is 100000000000001, must be from 1 to 100000000000000"},
    {"tidepool profile 3\nscope 1 1 0 \"\" \"\"\nend 1\n", "and the function are missing"},
    {"tidepool profile 3\nscope 1 1 0 \"\" \"\" \"\"\ntype 8 8 \"x\"\nend 1\n",
     "line 3: a type after the first scope"},
#define SCOPE                                                          \
    "tidepool profile 3\ntype 8 8 \"x\"\ntype 4 4 \"y\"\nscope 1 5 0 " \
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

static void expect_witness(void)
{
    expect_prior(witness, 9, TIDE_F64, 18);
}

static int load_witness(void **state)
{
    start_anew(state);
    witness = tide_site_register("witness");
    expect_ok(tide_profile_load(write_text("witness", one_site("witness", 0, "", "", 9))));
    expect_witness();
    return 0;
}

static void expect_refused(const char *path)
{
    uint32_t types = tide_type_count();
    expect_status(tide_profile_load(path), TIDE_ERROR_FILE);
    assert_non_null(strstr(tide_error_message(), "tide_profile_load: "));
    expect_status(tide_profile_merge(path), TIDE_ERROR_FILE);
    assert_non_null(strstr(tide_error_message(), "tide_profile_merge: "));
    assert_int_equal(tide_type_count(), types);
    expect_witness();
}

static void bad_text_is_refused_with_line_and_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
        const char *path = write_text("bad", bad_files[i].words);
        note("file %zu", i);
        expect_refused(path);
        if (strstr(tide_error_message(), bad_files[i].says) == NULL)
            fail_msg("file %zu: '%s' lacks '%s'", i, tide_error_message(), bad_files[i].says);
        assert_non_null(strstr(tide_error_message(), path));
    }
}

/* A file as a program leaves it. */
static text real_file(void)
{
    run_program(5);
    expect_ok(tide_profile_save(path_of("real")));
    forget_program();
    return read_text(path_of("real"));
}

static void a_file_cut_short_anywhere_is_refused(void **state)
{
    (void)state;
    const char *path = path_of("short");
    text real = real_file();
    assert_true(real.length > 300);
    load_witness(NULL);
    for (size_t length = 0; length < real.length; length++) {
        write_bytes(path, real.bytes, length);
        expect_refused(path);
    }
    write_bytes(path, real.bytes, real.length);
    expect_ok(tide_profile_load(path));
    free(real.bytes);
}

/* Writes a head, so many times a line with a number in it, and a tail. */
static const char *write_many(const char *name, const char *head, const char *line, unsigned times,
                              const char *tail)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(head, file);
    for (unsigned i = 0; i < times; i++)
        fprintf(file, line, i);
    fputs(tail, file);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void a_file_too_large_is_refused(void **state)
{
    (void)state;
    static const char head[] = "tidepool profile 3\n";
    static const char site[] = "scope 1 1 0 \"%u\" \"\" \"\"\n";
    const char *path = write_many("sites", head, site, 16384, "end 16384\n");
    expect_ok(tide_profile_load(path));
    run_program(1);
    /* What was seen has room before what was loaded. */
    expect_ok(tide_profile_save(path_of("full")));
    expect_ok(tide_profile_load(path_of("full")));
    text full = read_text(path_of("full"));
    assert_non_null(strstr(full.bytes, "end 16384\n"));
    assert_non_null(strstr(full.bytes, "\"particles"));
    free(full.bytes);
    load_witness(NULL);
    expect_status(tide_profile_merge(path), TIDE_ERROR_LIMIT); /* with what is known already */
    assert_non_null(strstr(tide_error_message(), "16384"));
    expect_witness();
    path = write_many("sites", head, site, 16385, "end 16385\n");
    expect_status(tide_profile_load(path), TIDE_ERROR_LIMIT);
    path = write_many("types", head, "type 8 8 \"%u\"\n", 8193, "end 0\n");
    expect_status(tide_profile_load(path), TIDE_ERROR_LIMIT);
    path = write_many("line", "tidepool profile 3\ntype 8 8 \"", "%u", 20000, "\"\nend 0\n");
    expect_refused(path);
    path = write_many("name", "tidepool profile 3\ntype 8 8 \"", "%u", 4500, "\"\nend 0\n");
    expect_refused(path);
    assert_non_null(strstr(tide_error_message(), "longer than 16000 bytes"));
    path = path_of("huge");
    write_bytes(path, "tidepool profile 3\n", 19);
    assert_int_equal(truncate(path, (off_t)1 << 40), 0); /* a hole */
    expect_refused(path);
    assert_non_null(strstr(tide_error_message(), "limit"));
    assert_int_equal(unlink(path), 0);
}

static void a_path_that_cannot_be_is_refused(void **state)
{
    (void)state;
    expect_status(tide_profile_load(NULL), TIDE_ERROR_ARGUMENT);
    expect_status(tide_profile_merge(NULL), TIDE_ERROR_ARGUMENT);
    expect_status(tide_profile_save(NULL), TIDE_ERROR_ARGUMENT);
    expect_refused(path_of("there is no such file"));
    assert_non_null(strstr(tide_error_message(), strerror(ENOENT)));
    expect_refused(folder);
    const char *pipe = path_of("pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    expect_refused(pipe);
    assert_int_equal(unlink(pipe), 0);
    unsigned before = files_in_folder();
    expect_status(tide_profile_save(path_of("no folder/file")), TIDE_ERROR_FILE);
    assert_non_null(strstr(tide_error_message(), strerror(ENOENT)));
    assert_int_equal(mkdir(path_of("a folder"), 0700), 0);
    expect_status(tide_profile_save(path_of("a folder")), TIDE_ERROR_FILE);
    assert_int_equal(rmdir(path_of("a folder")), 0);
    assert_int_equal(files_in_folder(), before); /* what was written beside is gone */
}

static void a_text_or_stream_that_cannot_be_is_refused(void **state)
{
    (void)state;
    load_witness(NULL);
    expect_status(tide_profile_read(NULL, 0, false), TIDE_ERROR_ARGUMENT);
    expect_status(tide_profile_read("x", (size_t)33 << 20, true), TIDE_ERROR_LIMIT);
    expect_status(tide_profile_read("tidepool profile 3\nend 1\n", 25, true), TIDE_ERROR_FILE);
    assert_non_null(strstr(tide_error_message(), "the text"));
    expect_status(tide_profile_read("", 0, false), TIDE_ERROR_FILE);
    expect_witness();
    expect_status(tide_profile_write(NULL), TIDE_ERROR_ARGUMENT);
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    expect_status(tide_profile_write(full), TIDE_ERROR_FILE);
    assert_non_null(strstr(tide_error_message(), strerror(ENOSPC)));
    (void)fclose(full);
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
    cmocka_unit_test_setup(a_site_is_found_though_lines_and_folders_moved, start_anew),
    cmocka_unit_test_setup(a_loose_key_of_two_sites_names_none, start_anew),
    cmocka_unit_test_setup(loading_replaces_and_merging_adds, start_anew),
    cmocka_unit_test_setup(what_the_program_saw_itself_comes_first, start_anew),
    cmocka_unit_test_setup(saving_keeps_what_was_loaded, start_anew),
    cmocka_unit_test_setup(a_text_goes_where_the_program_likes, start_anew),
    cmocka_unit_test_setup(a_text_or_stream_that_cannot_be_is_refused, start_anew),
    cmocka_unit_test_setup(names_that_are_no_utf8_are_escaped, start_anew),
    cmocka_unit_test_setup(a_profile_of_nothing_is_a_file_too, start_anew),
    cmocka_unit_test_setup(types_are_those_of_this_process, start_anew),
    cmocka_unit_test_setup(bad_text_is_refused_with_line_and_reason, load_witness),
    cmocka_unit_test_setup(a_file_cut_short_anywhere_is_refused, load_witness),
    cmocka_unit_test_setup(a_file_too_large_is_refused, load_witness),
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
