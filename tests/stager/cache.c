/* SPDX-License-Identifier: MIT */
/* Artefacts kept between runs: found again, and refused wherever somebody else could have written,
 * or something is not as it was. */
#define _GNU_SOURCE
#include "tests/stager/support.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "jit/cache/cache.h"
#include "jit/cache/store.h"
#include "jit/cache/test_hooks.h"
#include "jit/stager/directory.h"
#include "jit/stager/locate.h"
#include "jit/stager/privilege.h"
#include "jit/stager/test_hooks.h"
#include "runtime/base/settings.h"

enum { STRANGER = 65533 };

static tide_artefact_cache_figures figures(void)
{
    tide_artefact_cache_figures now;
    tide_artefact_cache_figures_get(&now);
    return now;
}

static tide_spec spec_of(const char *stem)
{
    tide_spec spec = {.kind = TIDE_KIND_SCOPE, .item_count = 1};
    snprintf(spec.stem, sizeof spec.stem, "%s", stem);
    spec.items[0] = (tide_spec_item){.type = TIDE_F64, .name = "f64"};
    return spec;
}

/* ---- a store ------------------------------------------------------------------------------ */

static void use_store(const char *start, const char *cache)
{
    tide_store_start = start;
    setenv("XDG_CACHE_HOME", cache, 1);
    tide_locate_environment_forget();
}

static int begin_keep(void **state)
{
    begin_test(state);
    tide_setting_set(TIDE_SETTING_artefact_cache, 1);
    tide_setting_set(TIDE_SETTING_artefact_cache_max, 64);
    use_store(folder(), in_folder("cache"));
    return 0;
}

static int end_keep(void **state)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", in_folder("cache"));
    assert_int_equal(system(command), 0);
    assert_int_equal(tide_artefact_count(), 0);
    return end_test(state);
}

#define KEEP_TEST(function) cmocka_unit_test_setup_teardown(function, begin_keep, end_keep)

/* An artefact as the stager would leave it, so many bytes longer than it need be. */
static void make_artefact(char path[512], size_t longer)
{
    static int count;
    char command[1200], error[256];
    struct stat seen;
    order(1, "text"); /* so that a stager has said hello */
    expect_answer(1, TIDE_STAGER_OK);
    snprintf(path, 512, "%s/made-%d.so", tide_directory_get(error, sizeof error), count++);
    snprintf(command, sizeof command, "cp '%s/artefact-right.so' '%s'", support_argument(2), path);
    assert_int_equal(system(command), 0);
    assert_int_equal(stat(path, &seen), 0);
    assert_int_equal(truncate(path, seen.st_size + (off_t)longer), 0);
}

static void store_as(const char *stem, size_t longer)
{
    char path[512];
    tide_spec spec = spec_of(stem);
    uint64_t before = figures().stored;
    make_artefact(path, longer);
    tide_artefact_cache_store(path, &spec, 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(figures().stored, before + 1);
}

static bool is_found(const char *stem)
{
    tide_spec spec = spec_of(stem);
    tide_artefact *artefact = tide_artefact_cache_find(&spec);
    bool found = artefact != NULL;
    if (found) {
        assert_non_null(tide_artefact_find(artefact, stem, "_enter"));
        tide_artefact_drop(artefact);
    }
    return found;
}

static void expect_refused(const char *stem)
{
    uint64_t before = figures().refused;
    assert_false(is_found(stem));
    assert_int_equal(figures().refused, before + 1);
}

/* The file of the store with this ending. */
static const char *file_with(const char *ending)
{
    static char path[600];
    DIR *list = opendir(in_folder("cache/tidepool"));
    assert_non_null(list);
    path[0] = '\0';
    for (struct dirent *entry; (entry = readdir(list)) != NULL;)
        if (strlen(entry->d_name) >= strlen(ending) &&
            strcmp(entry->d_name + strlen(entry->d_name) - strlen(ending), ending) == 0)
            snprintf(path, sizeof path, "%s/%s", in_folder("cache/tidepool"), entry->d_name);
    closedir(list);
    assert_int_not_equal(path[0], '\0');
    return path;
}

/* ---- found again -------------------------------------------------------------------------- */

static void in_a_process_of_its_own(void (*work)(void))
{
    pid_t child = fork_child(0);
    if (child == 0) {
        work();
        exit(0);
    }
    expect_child_ends_well(child);
}

static void store_x(void)
{
    store_as("x", 0);
    CHILD_MUST(figures().stored == 1 && figures().failed == 0);
}

/* No stager is started for it. */
static void find_x(void)
{
    CHILD_MUST(strcmp(tide_stager_version(), "") == 0);
    CHILD_MUST(is_found("x"));
    CHILD_MUST(!is_found("y"));
    CHILD_MUST(figures().found == 1 && figures().missing == 1 && figures().refused == 0);
    CHILD_MUST(strcmp(tide_stager_version(), "") == 0);
}

/* This must come first: later on this process has heard a stager's hello. */
static void found_by_the_next_process(void **state)
{
    (void)state;
    assert_string_equal(tide_stager_version(), "");
    in_a_process_of_its_own(store_x);
    in_a_process_of_its_own(find_x);
}

static void refuse_x(void)
{
    CHILD_MUST(strcmp(tide_stager_version(), "") == 0);
    CHILD_MUST(!is_found("x") && figures().refused == 1);
}

static void another_compiler_puts_it_out_of_use(void **state)
{
    (void)state;
    in_a_process_of_its_own(store_x);
    FILE *file = fopen(in_folder("cache/tidepool/compiler"), "w");
    assert_non_null(file);
    fputs("fake 2", file);
    fclose(file);
    in_a_process_of_its_own(refuse_x);
    in_a_process_of_its_own(store_x); /* by "fake 1" again, which takes over */
    in_a_process_of_its_own(find_x);
}

static void one_artefact_serves_all_its_sites(void **state)
{
    (void)state;
    char path[512];
    tide_spec specs[] = {spec_of("x"), spec_of("y")};
    make_artefact(path, 0);
    tide_artefact_cache_store(path, specs, 2);
    assert_int_equal(unlink(path), 0);
    tide_artefact *x = tide_artefact_cache_find(&specs[0]),
                  *y = tide_artefact_cache_find(&specs[1]);
    assert_non_null(x);
    assert_ptr_equal(x, y);
    assert_int_equal(tide_artefact_count(), 1);
    tide_artefact_drop(x);
    tide_artefact_drop(y);
}

static void another_spec_is_missing(void **state)
{
    (void)state;
    uint64_t missing = figures().missing;
    store_as("x", 0);
    tide_spec other = spec_of("x");
    other.items[0].type = TIDE_F32;
    assert_null(tide_artefact_cache_find(&other));
    other = spec_of("x");
    other.count = true;
    assert_null(tide_artefact_cache_find(&other));
    assert_int_equal(figures().missing, missing + 2);
    assert_true(is_found("x"));
}

/* Its code is not there, though its entry says so. */
static void an_artefact_without_the_code_is_refused(void **state)
{
    (void)state;
    store_as("z", 0);
    expect_refused("z");
}

static void nothing_is_kept_unless_wanted(void **state)
{
    (void)state;
    char path[512];
    tide_spec spec = spec_of("x");
    tide_setting_set(TIDE_SETTING_artefact_cache, 0);
    make_artefact(path, 0);
    tide_artefact_cache_store(path, &spec, 1);
    assert_false(is_found("x"));
    assert_int_not_equal(access(in_folder("cache"), F_OK), 0);
    assert_int_equal(unlink(path), 0);
}

/* ---- damage ------------------------------------------------------------------------------- */

static void flip(const char *path, off_t at)
{
    unsigned char byte;
    int file = open(path, O_RDWR);
    assert_true(file >= 0);
    assert_int_equal(pread(file, &byte, 1, at), 1);
    byte ^= (unsigned char)(1u << (at / 64 % 8));
    assert_int_equal(pwrite(file, &byte, 1, at), 1);
    close(file);
}

static void flip_everywhere(const char *ending, off_t step)
{
    char path[600];
    struct stat seen;
    snprintf(path, sizeof path, "%s", file_with(ending));
    assert_int_equal(stat(path, &seen), 0);
    assert_true(seen.st_size > step);
    for (off_t at = 0; at < seen.st_size; at += step) {
        flip(path, at);
        expect_refused("x");
        flip(path, at);
    }
    assert_true(is_found("x"));
}

static void a_flipped_bit_is_refused(void **state)
{
    (void)state;
    store_as("x", 0);
    flip_everywhere(".code", 64);
    flip_everywhere(".spec", 1);
}

static void another_length_is_refused(void **state)
{
    static const char *const endings[] = {".code", ".spec", "compiler"};
    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (int longer = 0; longer < 2; longer++) {
            struct stat seen;
            store_as("x", 0);
            const char *path = file_with(endings[i]);
            assert_int_equal(stat(path, &seen), 0);
            assert_int_equal(truncate(path, longer ? seen.st_size + 1 : seen.st_size - 1), 0);
            if (i < 2)
                expect_refused("x");
            assert_int_equal(truncate(path, 0), 0);
            if (i < 2)
                expect_refused("x");
        }
    store_as("x", 0);
    assert_true(is_found("x"));
}

/* ---- who could have written --------------------------------------------------------------- */

static void expect_refused_with_mode(const char *path, mode_t wrong)
{
    struct stat seen;
    assert_int_equal(stat(path, &seen), 0);
    assert_int_equal(chmod(path, wrong), 0);
    expect_refused("x");
    assert_int_equal(chmod(path, seen.st_mode & 07777), 0);
    assert_true(is_found("x"));
}

/* Folders that are made in one of a group's are of that group, too. */
static void a_group_of_the_folder_around_is_no_wrong_mode(void **state)
{
    (void)state;
    struct stat seen;
    assert_int_equal(mkdir(in_folder("cache"), 0700), 0);
    assert_int_equal(chmod(in_folder("cache"), 02700), 0);
    store_as("x", 0);
    assert_int_equal(stat(in_folder("cache/tidepool"), &seen), 0);
    assert_int_equal(seen.st_mode & 07777, 02700);
    assert_true(is_found("x"));
}

static void wrong_modes_are_refused(void **state)
{
    (void)state;
    store_as("x", 0);
    expect_refused_with_mode(file_with(".code"), 0644);
    expect_refused_with_mode(file_with(".code"), 0620);
    expect_refused_with_mode(file_with(".spec"), 0640);
    expect_refused_with_mode(in_folder("cache/tidepool"), 0755);
    expect_refused_with_mode(in_folder("cache/tidepool"), 01700);
    expect_refused_with_mode(in_folder("cache"), 0770);
    expect_refused_with_mode(in_folder("cache"), 01777);
    expect_refused_with_mode(folder(), 0777);
}

static void expect_refused_with_owner(const char *path)
{
    assert_int_equal(chown(path, STRANGER, STRANGER), 0);
    expect_refused("x");
    assert_int_equal(chown(path, 0, 0), 0);
    assert_true(is_found("x"));
}

static void wrong_owners_are_refused(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    store_as("x", 0);
    expect_refused_with_owner(file_with(".code"));
    expect_refused_with_owner(file_with(".spec"));
    expect_refused_with_owner(in_folder("cache/tidepool"));
    expect_refused_with_owner(in_folder("cache"));
    expect_refused_with_owner(folder());
}

static void links_are_refused(void **state)
{
    static const char *const places[] = {"cache", "cache/tidepool"};
    (void)state;
    store_as("x", 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(rename(in_folder(places[i]), in_folder("elsewhere")), 0);
        assert_int_equal(symlink(in_folder("elsewhere"), in_folder(places[i])), 0);
        expect_refused("x");
        assert_int_equal(unlink(in_folder(places[i])), 0);
        assert_int_equal(rename(in_folder("elsewhere"), in_folder(places[i])), 0);
        assert_true(is_found("x"));
    }
    const char *code = file_with(".code");
    assert_int_equal(link(code, in_folder("second-name")), 0);
    expect_refused("x");
    assert_int_equal(unlink(code), 0);
    assert_int_equal(symlink(in_folder("second-name"), code), 0);
    expect_refused("x");
    assert_int_equal(unlink(code), 0);
    assert_int_equal(mkfifo(code, 0600), 0);
    expect_refused("x"); /* and nobody waits for a writer */
    assert_int_equal(unlink(in_folder("second-name")), 0);
}

static void places_anybody_can_write_are_refused(void **state)
{
    (void)state;
    store_as("x", 0);
    use_store("/", in_folder("cache")); /* below /tmp */
    expect_refused("x");
    uint64_t failed = figures().failed;
    char path[512];
    tide_spec spec = spec_of("x");
    make_artefact(path, 0);
    tide_artefact_cache_store(path, &spec, 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(figures().failed, failed + 1);
    use_store(folder(), in_folder("cache/../cache"));
    expect_refused("x");
    use_store(folder(), in_folder("cache"));
    assert_true(is_found("x"));
}

static void a_relative_path_is_no_path(void **state)
{
    (void)state;
    setenv("HOME", in_folder("cache"), 1);
    use_store(folder(), "cache");
    assert_int_equal(mkdir(in_folder("cache"), 0700), 0);
    store_as("x", 0);
    assert_int_equal(access(in_folder("cache/.cache/tidepool/compiler"), F_OK), 0);
    assert_true(is_found("x"));
}

static bool raised(void)
{
    return true;
}

static void raised_privileges_keep_nothing(void **state)
{
    (void)state;
    char path[512];
    tide_spec spec = spec_of("x");
    store_as("x", 0);
    make_artefact(path, 0);
    uint64_t failed = figures().failed;
    tide_privileges_hook = raised;
    expect_refused("x");
    tide_artefact_cache_store(path, &spec, 1);
    tide_privileges_hook = NULL;
    assert_int_equal(figures().failed, failed + 1);
    assert_int_equal(unlink(path), 0);
    assert_true(is_found("x"));
}

/* ---- room --------------------------------------------------------------------------------- */

static uint64_t store_bytes(size_t *left_over)
{
    uint64_t bytes = 0;
    DIR *list = opendir(in_folder("cache/tidepool"));
    assert_non_null(list);
    *left_over = 0;
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        struct stat seen;
        if (entry->d_name[0] == '.') {
            *left_over += strlen(entry->d_name) > 2;
            continue;
        }
        assert_int_equal(fstatat(dirfd(list), entry->d_name, &seen, 0), 0);
        bytes += (uint64_t)seen.st_blocks * 512;
    }
    closedir(list);
    return bytes;
}

/* Full of zeros it would be a file of holes: it is written out when it is stored. */
static void the_oldest_go(void **state)
{
    (void)state;
    size_t left_over;
    tide_setting_set(TIDE_SETTING_artefact_cache_max, 1);
    for (size_t i = 0; i < 10; i++) {
        store_as("x", 200000 + i);
        assert_in_range(store_bytes(&left_over), 1, 1 << 20);
        assert_int_equal(left_over, 0);
        assert_true(is_found("x"));
        usleep(20000); /* more than the grain of a file's time */
    }
    assert_in_range(store_bytes(&left_over), 512 << 10, 1 << 20);
}

static void a_full_disk_is_harmless(void **state)
{
    (void)state;
    char path[512];
    size_t left_over;
    struct rlimit limit, little = {4096, 4096};
    tide_spec spec = spec_of("x");
    uint64_t failed = figures().failed;
    make_artefact(path, 0);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    little.rlim_max = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    tide_artefact_cache_store(path, &spec, 1);
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(figures().failed, failed + 1);
    store_bytes(&left_over);
    assert_int_equal(left_over, 0);
    assert_false(is_found("x"));
}

static void what_a_crash_left_is_removed(void **state)
{
    (void)state;
    size_t left_over;
    struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    store_as("x", 0);
    int file = open(in_folder("cache/tidepool/.new-1-1"), O_CREAT | O_WRONLY, 0600);
    assert_true(file >= 0);
    store_as("x", 0);
    store_bytes(&left_over);
    assert_int_equal(left_over, 1); /* its writer may be at work */
    assert_int_equal(futimens(file, old), 0);
    close(file);
    store_as("x", 0);
    store_bytes(&left_over);
    assert_int_equal(left_over, 0);
}

/* In a child: only the first refusal of a process is said. */
static void that_it_is_refused_is_said_once(void **state)
{
    (void)state;
    char said[1024];
    int ends[2];
    store_as("x", 0);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(chmod(in_folder("cache"), 0770), 0);
    pid_t child = fork_child(0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        for (int i = 0; i < 3; i++)
            CHILD_MUST(!is_found("x"));
        _exit(0);
    }
    close(ends[1]);
    read_to_end(ends[0], said, sizeof said);
    expect_child_ends_well(child);
    assert_string_equal(said, "tidepool: compiled code is not kept: its folder 'cache' can be "
                              "written by others\n");
    assert_int_equal(chmod(in_folder("cache"), 0700), 0);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        KEEP_TEST(found_by_the_next_process),
        KEEP_TEST(another_compiler_puts_it_out_of_use),
        KEEP_TEST(that_it_is_refused_is_said_once),
        KEEP_TEST(one_artefact_serves_all_its_sites),
        KEEP_TEST(another_spec_is_missing),
        KEEP_TEST(an_artefact_without_the_code_is_refused),
        KEEP_TEST(nothing_is_kept_unless_wanted),
        KEEP_TEST(a_flipped_bit_is_refused),
        KEEP_TEST(another_length_is_refused),
        KEEP_TEST(a_group_of_the_folder_around_is_no_wrong_mode),
        KEEP_TEST(wrong_modes_are_refused),
        KEEP_TEST(wrong_owners_are_refused),
        KEEP_TEST(links_are_refused),
        KEEP_TEST(places_anybody_can_write_are_refused),
        KEEP_TEST(a_relative_path_is_no_path),
        KEEP_TEST(raised_privileges_keep_nothing),
        KEEP_TEST(the_oldest_go),
        KEEP_TEST(a_full_disk_is_harmless),
        KEEP_TEST(what_a_crash_left_is_removed),
    };
    return SUPPORT_MAIN(tests);
}
