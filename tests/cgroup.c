/* SPDX-License-Identifier: MIT */
/* process_limit=auto: limits and pressure of control groups, from files as the kernel writes them,
 * in a folder that stands for the root of the file system. */
#define _GNU_SOURCE
#include "arrays_support.h"
#include "hooks.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tidepool/buffers.h>
#include <tidepool/learn.h>
#include <tidepool/limit.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

enum { MIB = 1 << 20, ROUNDS = 100 /* from one look to the next */ };

#define CALM                                                                                   \
    "some avg10=9.99 avg60=40.00 avg300=0.00 total=7\nfull avg10=9.00 avg60=0.00 avg300=0.00 " \
    "total=1\n"
#define SHORT                                                                                  \
    "some avg10=10.00 avg60=0.50 avg300=0.00 total=9\nfull avg10=0.00 avg60=0.00 avg300=0.00 " \
    "total=2\n"
#define NO_MAX "9223372036854771712\n" /* of version 1 */

static char root[] = "/tmp/tidepool-cgroup-XXXXXX";

/* ---- files ---- */

static void write_file(const char *path, const char *text)
{
    char whole[512];
    assert_true(snprintf(whole, sizeof whole, "%s%s", root, path) < (int)sizeof whole);
    for (char *at = strchr(whole + strlen(root) + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(whole, 0700);
        *at = '/';
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void write_bytes(const char *path, size_t bytes)
{
    char text[32];
    snprintf(text, sizeof text, "%zu\n", bytes);
    write_file(path, text);
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about, (void)kind;
    return where->level == 0 ? 0 : remove(path);
}

static void look(void)
{
    for (int i = 0; i < ROUNDS; i++)
        expect_ok(tide_step());
}

static tide_limit_statistics limits(void)
{
    tide_limit_statistics stats;
    expect_ok(tide_limit_stats(&stats));
    return stats;
}

static int set_up(void **state)
{
    (void)state;
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    look();
    return 0;
}

/* ---- which limits hold ---- */

typedef struct file {
    const char *path, *text;
} file;

typedef struct layout {
    const char *what;
    file files[8];
    size_t max, high; /* 0: none */
} layout;

static const layout layouts[] = {
    {"nothing", {{"/etc/none", "-"}}, 0, 0},
    {"a container of version 2",
     {{"/proc/self/cgroup", "0::/\n"},
      {"/sys/fs/cgroup/memory.max", "67108864\n"},
      {"/sys/fs/cgroup/memory.high", "max\n"}},
     67108864,
     0},
    {"version 2, nested: the least on the path",
     {{"/proc/self/cgroup", "0::/kube.slice/pod1/c\n"},
      {"/sys/fs/cgroup/kube.slice/pod1/c/memory.max", "9000000\n"},
      {"/sys/fs/cgroup/kube.slice/pod1/c/memory.high", "8000000\n"},
      {"/sys/fs/cgroup/kube.slice/pod1/memory.max", "5000000\n"},
      {"/sys/fs/cgroup/kube.slice/pod1/memory.high", "max\n"},
      {"/sys/fs/cgroup/kube.slice/memory.max", "max\n"},
      {"/sys/fs/cgroup/kube.slice/memory.high", "4000000\n"}},
     5000000,
     4000000},
    {"version 1, with controllers together",
     {{"/proc/self/cgroup", "12:cpu,cpuacct:/\n4:hugetlb,memory:/a/b\n3:memoryless:/\n0::/\n"},
      {"/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", NO_MAX},
      {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "7000000\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", NO_MAX}},
     7000000,
     0},
    {"version 1 in a container that is told the host's path",
     {{"/proc/self/cgroup", "4:memory:/docker/0123\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "6000000\n"}},
     6000000,
     0},
    {"both versions, as systemd mounts them",
     {{"/proc/self/cgroup", "4:memory:/a\n0::/a\n"},
      {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "6500000\n"},
      {"/sys/fs/cgroup/unified/a/memory.high", "3000000\n"}},
     6500000,
     3000000},
    {"lines that are none",
     {{"/proc/self/cgroup", "memory\n4:memory\n:::\n"}, {"/sys/fs/cgroup/none", "-"}},
     0,
     0},
};

static void the_least_limit_on_the_path_holds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        const layout *l = &layouts[i];
        set_up(NULL);
        for (const file *f = l->files; f < l->files + 8 && f->path != NULL; f++)
            write_file(f->path, f->text);
        look();
        tide_limit_statistics found = limits();
        if (found.hard_bytes != l->max || found.soft_bytes != l->high)
            fail_msg("%s: %zu and %zu", l->what, found.hard_bytes, found.soft_bytes);
    }
}

/* ---- what follows from them ---- */

static void use_and_free(tide_pool *pool, size_t bytes)
{
    TIDE_SCOPE(pool);
    take(pool, TIDE_U8, bytes, 1);
}

static void beyond_max_memory_is_refused(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    write_file("/proc/self/cgroup", "0::/\n");
    write_bytes("/sys/fs/cgroup/memory.max", limits().bytes_held + MIB);
    look();
    assert_null(tide_acquire(pool, uint8_t, 2 * MIB));
    expect_error(TIDE_ERROR_LIMIT, "the process");
    write_file("/sys/fs/cgroup/memory.max", "max\n"); /* the container grows */
    look();
    assert_non_null(tide_acquire(pool, uint8_t, 2 * MIB));
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

static void beyond_high_goes_what_nobody_uses_and_nothing_is_refused(void **state)
{
    (void)state;
    tide_pool *idle = pool_of(TIDE_CHECK_NONE), *pool = pool_of(TIDE_CHECK_NONE);
    use_and_free(idle, 4 * MIB);
    write_file("/proc/self/cgroup", "0::/\n");
    write_bytes("/sys/fs/cgroup/memory.high", limits().bytes_held + MIB);
    look();
    uint64_t pressed = limits().pressed;
    take(pool, TIDE_U8, 2 * MIB, 2);
    assert_int_equal(stats_of(idle).bytes_held, 0);
    assert_int_equal(limits().pressed, pressed + 1);
    take(pool, TIDE_F64, 2 * MIB, 3); /* live, all of it */
    assert_true(limits().bytes_held > limits().soft_bytes);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_pool_destroy(idle));
}

/* The pool that wants the memory has some itself that nobody uses. */
static void beyond_high_the_own_pool_goes_first(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    use_and_free(pool, 4 * MIB);
    write_file("/proc/self/cgroup", "0::/\n");
    write_bytes("/sys/fs/cgroup/memory.high", limits().bytes_held - MIB);
    look();
    take(pool, TIDE_F64, 2 * MIB / 8, 3);
    assert_true(stats_of(pool).bytes_held < 3 * MIB);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

/* As where the kernel was started without it: a folder can be opened, and not read. */
static void pressure_that_cannot_be_read_says_nothing(void **state)
{
    (void)state;
    write_file("/proc/self/cgroup", "0::/\n");
    write_file("/sys/fs/cgroup/memory.pressure/x", "");
    write_file("/sys/fs/cgroup/memory.max", "80000000\n");
    look();
    write_file("/sys/fs/cgroup/memory.max", "90000000\n");
    look();
    assert_int_equal(limits().hard_bytes, 90000000);
}

/* As in a process whose descriptors are all in use, or that has changed its root: to a folder without
 * /proc, or with it alone. */
static void what_cannot_be_read_changes_nothing(void **state)
{
    static const file files[] = {
        {"/sys/fs/cgroup/memory.max", "90000000\n"},
        {"/proc/self/cgroup", "0::/\n"},
        {"/sys/fs/cgroup/memory.max/x", ""}}; /* a folder: opened, not read */
    write_file("/proc/self/cgroup", "0::/\n");
    write_file("/sys/fs/cgroup/memory.max", "80000000\n");
    look();
    for (int i = 0; i < 3; i++) {
        if (i < 2)
            (void)set_up(state);
        write_file(files[i].path, files[i].text);
        look();
        assert_int_equal(limits().hard_bytes, 80000000);
    }
}

/* ---- pressure ---- */

static tide_buffers *cache_something(tide_pool *pool)
{
    tide_buffers *buffers = tide_buffers_create(NULL, NULL);
    tide_buffer b = tide_buffer_acquire(buffers, 3 * MIB);
    assert_true(b.generation != 0);
    expect_ok(tide_buffer_release(buffers, b));
    use_and_free(pool, 2 * MIB);
    return buffers;
}

static void under_pressure_steps_give_back_what_nobody_uses(void **state)
{
    (void)state;
    size_t before = limits().bytes_held;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    tide_buffers *buffers = cache_something(pool);
    write_file("/proc/self/cgroup", "0::/a/b\n");
    write_file("/sys/fs/cgroup/a/memory.pressure", SHORT); /* of others, too */
    write_file("/sys/fs/cgroup/a/b/memory.pressure", CALM);
    look();
    assert_int_equal(limits().bytes_held - before, 5 * MIB);
    write_file("/sys/fs/cgroup/a/b/memory.pressure", SHORT);
    look();
    assert_int_equal(limits().bytes_held, before);
    expect_ok(tide_buffers_destroy(buffers));
    expect_ok(tide_pool_destroy(pool));
}

static void locked_down_no_file_is_read(void **state)
{
    (void)state;
    write_file("/proc/self/cgroup", "0::/\n");
    write_file("/sys/fs/cgroup/memory.max", "80000000\n");
    look();
    expect_ok(tide_tune_set("locked", 1));
    write_file("/sys/fs/cgroup/memory.max", "90000000\n");
    look();
    assert_int_equal(limits().hard_bytes, 80000000); /* what was known */
    expect_ok(tide_tune_set("locked", 0));
    look();
    assert_int_equal(limits().hard_bytes, 90000000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(the_least_limit_on_the_path_holds, set_up, tear_down),
    cmocka_unit_test_setup_teardown(beyond_max_memory_is_refused, set_up, tear_down),
    cmocka_unit_test_setup_teardown(beyond_high_goes_what_nobody_uses_and_nothing_is_refused,
                                    set_up, tear_down),
    cmocka_unit_test_setup_teardown(beyond_high_the_own_pool_goes_first, set_up, tear_down),
    cmocka_unit_test_setup_teardown(pressure_that_cannot_be_read_says_nothing, set_up, tear_down),
    cmocka_unit_test_setup_teardown(what_cannot_be_read_changes_nothing, set_up, tear_down),
    cmocka_unit_test_setup_teardown(under_pressure_steps_give_back_what_nobody_uses, set_up,
                                    tear_down),
    cmocka_unit_test_setup_teardown(locked_down_no_file_is_read, set_up, tear_down),
};

int main(void)
{
    if (mkdtemp(root) == NULL)
        return 1;
    set_cgroup_root(root);
    if (setenv("TIDEPOOL_PROCESS_LIMIT", "auto", 1) != 0) /* as a program is started */
        return 1;
    setenv("TIDEPOOL_BACKGROUND", "0", 1); /* looks are counted */
    int failed = cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
    (void)rmdir(root);
    return failed;
}
