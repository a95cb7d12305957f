/* SPDX-License-Identifier: MIT */
/* A program runs while everything it learns by is missing, failing, hanging, lying or taken
 * away. In each case: the right answer, exit 0, at most one line on stderr, a bounded number of
 * attempts, and neither a process nor a file left behind.
 *
 *   test-sabotage HOST */
#define _GNU_SOURCE
#include "../forms.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Each plan that fails is left alone for 8 rounds, then for twice as long each time, for 1024 in
 * the end. Of 7 sites with two plans each: eight times each, and once more in 448 rounds or so. */
enum { ATTEMPTS = 110, ROUNDS_FOR_ONE_MORE = 32 };

static const char *host;
static char folder[] = "/tmp/tidepool-sabotage-XXXXXX"; /* of the private directories */
static char tools[] = "/tmp/tidepool-tools-XXXXXX";
static uint64_t right_answer;

/* How a run is set up. What is NULL or 0 is as usual. */
typedef struct plot {
    const char *path;   /* PATH                                                    */
    const char *stager; /* TIDEPOOL_STAGER                                         */
    const char *how;    /* the host's argument                                     */
    const char *mount;  /* options of a tmpfs that is mounted over the folder      */
    const char *learn;  /* TIDEPOOL_LEARN                                          */
    const char *keeper; /* TIDEPOOL_BACKGROUND                                         */
    bool impatient;     /* nothing good is to be waited for                        */
} plot;

typedef struct outcome {
    bool skipped;
    int status;
    char out[4096], err[4096];
    uint64_t answer, runs, ordered, compiled, failed, stagers;
    uint64_t rounds; /* by hand; the background thread counts time: one in 10 ms */
    unsigned sites, compiled_sites, lines_said;
} outcome;

/* ---- running ----------------------------------------------------------------------------- */

enum { CANNOT_MOUNT = 77 };

static void write_text(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    if (file < 0 || write(file, text, strlen(text)) < 0)
        _exit(126);
    close(file);
}

/* In a namespace of its own, if the system lets us. */
static void mount_small(const char *options)
{
    unsigned long flags = strstr(options, "noexec") != NULL ? MS_NOEXEC : 0;
    const char *size = strstr(options, "size=");
    char map[64];
    snprintf(map, sizeof map, "0 %d 1", (int)geteuid());
    if (unshare(CLONE_NEWNS) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
            _exit(CANNOT_MOUNT);
        int file = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
        if (file < 0 || write(file, map, strlen(map)) < 0)
            _exit(CANNOT_MOUNT);
        close(file);
    }
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", folder, "tmpfs", flags, size != NULL ? size : "") != 0)
        _exit(CANNOT_MOUNT);
}

static void become_host(const plot *p, const int out[2], const int err[2])
{
    alarm(250);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    if (p->mount != NULL)
        mount_small(p->mount);
    setenv("TMPDIR", folder, 1);
    unsetenv("XDG_RUNTIME_DIR");
    setenv("TIDEPOOL_BACKGROUND", p->keeper != NULL ? p->keeper : "0", 1);
    setenv("TIDEPOOL_TRIAL", "0", 1);
    setenv("TIDEPOOL_COUNT_RUNS", "1", 1);
    setenv("TIDEPOOL_STAGER_DEADLINE", p->impatient ? "40" : "1000000", 1);
    setenv("TIDEPOOL_STAGER_IDLE", "0", 1); /* else a slow machine would start one more */
    if (p->path != NULL)
        setenv("PATH", p->path, 1);
    if (p->stager != NULL)
        setenv("TIDEPOOL_STAGER", p->stager, 1);
    if (p->learn != NULL)
        setenv("TIDEPOOL_LEARN", p->learn, 1);
    execl(host, host, p->how, (char *)NULL);
    _exit(125);
}

static uint64_t figure(const outcome *o, const char *name)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\": ", name);
    const char *at = strstr(o->out, quoted);
    if (at == NULL)
        fail_msg("no %s in '%s'; stderr: %s", name, o->out, o->err);
    return strtoull(at + strlen(quoted), NULL, 10);
}

static void read_figures(outcome *o)
{
    o->answer = figure(o, "answer");
    o->runs = figure(o, "runs");
    o->ordered = figure(o, "ordered");
    o->compiled = figure(o, "compiled");
    o->failed = figure(o, "failed");
    o->stagers = figure(o, "stagers");
    o->rounds += figure(o, "rounds");
    o->sites = (unsigned)figure(o, "sites");
    o->compiled_sites = (unsigned)figure(o, "compiled_sites");
    for (const char *c = o->err; *c != '\0'; c++)
        o->lines_said += *c == '\n';
}

static uint64_t now_in_keepers_rounds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 100 + (uint64_t)now.tv_nsec / 10000000;
}

static outcome run(const plot *p)
{
    outcome o = {0};
    int out[2], err[2];
    uint64_t begun = now_in_keepers_rounds();
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    pid_t child = fork_child(0);
    if (child == 0)
        become_host(p, out, err);
    close(out[1]);
    close(err[1]);
    read_to_end(out[0], o.out, sizeof o.out);
    o.status = wait_for_child(child);
    while (waitpid(-1, NULL, 0) > 0) /* what it left has become ours, and must end by itself */
        continue;
    read_to_end(err[0], o.err, sizeof o.err);
    o.skipped = o.status == CANNOT_MOUNT;
    o.rounds = p->keeper != NULL ? now_in_keepers_rounds() - begun : 0;
    if (o.status == 0)
        read_figures(&o);
    return o;
}

/* Whether anything may be compiled. */
static outcome expect_harmless(const plot *p, bool may_compile)
{
    outcome o = run(p);
    if (o.skipped) {
        print_message("no mounts here: %s\n", strerror(EPERM));
        skip();
    }
    if (o.status != 0 || o.answer != right_answer || o.lines_said > 1)
        fail_msg("status %d, answer %" PRIu64 " (right: %" PRIu64 "), said: %s", o.status, o.answer,
                 right_answer, o.err);
    if (!may_compile && (o.compiled_sites != 0 || o.runs != 0))
        fail_msg("%u sites are compiled", o.compiled_sites);
    uint64_t attempts = ATTEMPTS + o.rounds / ROUNDS_FOR_ONE_MORE;
    if (o.ordered > attempts || o.stagers > attempts)
        fail_msg("%" PRIu64 " orders, %" PRIu64 " stagers in %" PRIu64 " rounds", o.ordered,
                 o.stagers, o.rounds);
    assert_int_equal(o.sites, 7);
    assert_int_equal(count_entries(folder, NULL), 0);
    if (getenv("TIDE_TEST_TELL") != NULL)
        print_message("%s%s", o.out, o.err);
    return o;
}

/* ---- tools ------------------------------------------------------------------------------- */

/* A folder of tools: each is a script, or the real one, or missing. */
static const char *tools_with(const char *as, const char *ld)
{
    static unsigned made;
    static char path[128];
    const char *const names[] = {"as", "ld"}, *const scripts[] = {as, ld};
    char file[160], real[64];
    snprintf(path, sizeof path, "%s/%u", tools, made++);
    assert_int_equal(mkdir(path, 0700), 0);
    for (unsigned i = 0; i < 2; i++) {
        snprintf(file, sizeof file, "%s/%s", path, names[i]);
        snprintf(real, sizeof real, "/usr/bin/%s", names[i]);
        if (scripts[i] != NULL && scripts[i][0] == '#')
            write_text(file, scripts[i]);
        else if (scripts[i] != NULL)
            assert_int_equal(symlink(real, file), 0);
    }
    return path;
}

#define REAL    "real"
#define FAILING "#!/bin/sh\nexit 1\n"
#define DYING   "#!/bin/sh\nkill -SEGV $$\n"
#define HANGING "#!/bin/sh\nexec /bin/sleep 1000\n"
#define HANGING_BADLY                                      \
    "#!/bin/sh\ntrap '' TERM INT HUP\n/bin/sleep 1000 &\n" \
    "while :; do /bin/sleep 1; done\n"
#define CHATTY         \
    "#!/bin/sh\ni=0\n" \
    "while [ $i -lt 500 ]; do echo ok 1 /tmp/x >&2; echo garbage; i=$((i+1)); done\nexit 1\n"
#define OUTPUT  "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = -o ] && out=$2; shift; done\n"
#define GARBAGE OUTPUT "echo this is no object >\"$out\"\n"
#define EMPTY   OUTPUT ": >\"$out\"\n"
#define NOTHING "#!/bin/sh\nexit 0\n"
#define ANOTHER                                                                    \
    OUTPUT "for l in /lib/*/libm.so.6 /usr/lib/*/libm.so.6 /lib64/libm.so.6; do\n" \
           "[ -e $l ] && /bin/cat $l >\"$out\" && exit 0; done\nexit 1\n"

static void need_stager(void)
{
    if (!have_stager()) {
        print_message("no stager in this build\n");
        skip();
    }
}

static void with_tools(const char *as, const char *ld)
{
    need_stager();
    bool hangs =
        (as != NULL && strstr(as, "sleep") != NULL) || (ld != NULL && strstr(ld, "sleep") != NULL);
    expect_harmless(&(plot){.path = tools_with(as, ld), .impatient = hangs}, false);
}

#define TOOL_TEST(name, as, ld)    \
    static void name(void **state) \
    {                              \
        (void)state;               \
        with_tools(as, ld);        \
    }
TOOL_TEST(no_assembler, NULL, REAL)
TOOL_TEST(no_linker, REAL, NULL)
TOOL_TEST(no_tools_at_all, NULL, NULL)
TOOL_TEST(an_assembler_that_fails, FAILING, REAL)
TOOL_TEST(a_linker_that_fails, REAL, FAILING)
TOOL_TEST(an_assembler_that_dies, DYING, REAL)
TOOL_TEST(a_linker_that_dies, REAL, DYING)
TOOL_TEST(an_assembler_that_hangs, HANGING, REAL)
TOOL_TEST(a_linker_that_hangs, REAL, HANGING)
TOOL_TEST(an_assembler_that_will_not_be_ended, HANGING_BADLY, REAL)
TOOL_TEST(an_assembler_that_talks, CHATTY, REAL)
TOOL_TEST(an_assembler_that_writes_garbage, GARBAGE, REAL)
TOOL_TEST(a_linker_that_writes_garbage, REAL, GARBAGE)
TOOL_TEST(a_linker_that_writes_an_empty_file, REAL, EMPTY)
TOOL_TEST(tools_that_write_nothing, NOTHING, NOTHING)
TOOL_TEST(a_linker_that_gives_another_library, REAL, ANOTHER)

/* ---- stagers ----------------------------------------------------------------------------- */

#define STAGER_TEST(name, path)                            \
    static void name(void **state)                         \
    {                                                      \
        (void)state;                                       \
        expect_harmless(&(plot){.stager = (path)}, false); \
    }
STAGER_TEST(there_shall_be_no_stager, "none")
STAGER_TEST(the_stager_is_absent, "/nonexistent/tidepool-stage")
STAGER_TEST(the_stager_is_a_folder, "/tmp")
STAGER_TEST(the_stager_cannot_be_executed, "/etc/passwd")
STAGER_TEST(the_stager_is_false, "/bin/false")
STAGER_TEST(the_stager_is_true, "/bin/true")
STAGER_TEST(the_stager_is_cat, "/bin/cat")
STAGER_TEST(the_stager_is_yes, "/usr/bin/yes")

static void the_stager_sleeps(void **state)
{
    (void)state;
    char path[160];
    snprintf(path, sizeof path, "%s/sleeper", tools);
    write_text(path, HANGING);
    expect_harmless(&(plot){.stager = path, .impatient = true}, false);
}

static void the_stager_is_killed_at_random(void **state)
{
    (void)state;
    need_stager();
    outcome o = expect_harmless(&(plot){.how = "kill"}, true);
    assert_true(o.stagers > 1);
}

/* ---- places ------------------------------------------------------------------------------ */

static void the_directory_is_removed(void **state)
{
    (void)state;
    need_stager();
    expect_harmless(&(plot){.how = "remove"}, true);
}

static void the_directory_lets_nothing_be_executed(void **state)
{
    (void)state;
    need_stager();
    expect_harmless(&(plot){.mount = "noexec"}, true); /* in another place */
}

static void the_disk_is_full(void **state)
{
    (void)state;
    need_stager();
    expect_harmless(&(plot){.mount = "size=8k"}, false);
}

static void the_disk_becomes_full(void **state)
{
    (void)state;
    need_stager();
    expect_harmless(&(plot){.mount = "size=1m", .how = "fill"}, true);
}

/* ---- nothing at all ---------------------------------------------------------------------- */

static void unharmed_it_compiles(void **state)
{
    (void)state;
    need_stager();
    outcome o = run(&(plot){0});
    assert_int_equal(o.status, 0);
    assert_string_equal(o.err, "");
    assert_true(o.answer == right_answer);
    assert_int_equal(o.compiled_sites, o.sites);
    assert_true(o.runs > 10000);
    assert_int_equal(o.failed, 0);
    assert_int_equal(o.stagers, 1);
    assert_int_equal(count_entries(folder, NULL), 0);
}

static void with_a_keeper_it_is_the_same(void **state)
{
    (void)state;
    need_stager();
    expect_harmless(&(plot){.keeper = "1"}, true);
    expect_harmless(&(plot){.keeper = "1", .path = tools_with(HANGING, REAL), .impatient = true},
                    false);
}

static int prepare(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_non_null(mkdtemp(tools));
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    outcome o = run(&(plot){.learn = "0"});
    if (o.status != 0)
        print_error("the host does not run: %d %s\n", o.status, o.err);
    right_answer = o.answer;
    return o.status;
}

static int clean(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s %s", folder, tools);
    return system(command);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unharmed_it_compiles),
        cmocka_unit_test(with_a_keeper_it_is_the_same),
        cmocka_unit_test(no_assembler),
        cmocka_unit_test(no_linker),
        cmocka_unit_test(no_tools_at_all),
        cmocka_unit_test(an_assembler_that_fails),
        cmocka_unit_test(a_linker_that_fails),
        cmocka_unit_test(an_assembler_that_dies),
        cmocka_unit_test(a_linker_that_dies),
        cmocka_unit_test(an_assembler_that_hangs),
        cmocka_unit_test(a_linker_that_hangs),
        cmocka_unit_test(an_assembler_that_will_not_be_ended),
        cmocka_unit_test(an_assembler_that_talks),
        cmocka_unit_test(an_assembler_that_writes_garbage),
        cmocka_unit_test(a_linker_that_writes_garbage),
        cmocka_unit_test(a_linker_that_writes_an_empty_file),
        cmocka_unit_test(tools_that_write_nothing),
        cmocka_unit_test(a_linker_that_gives_another_library),
        cmocka_unit_test(there_shall_be_no_stager),
        cmocka_unit_test(the_stager_is_absent),
        cmocka_unit_test(the_stager_is_a_folder),
        cmocka_unit_test(the_stager_cannot_be_executed),
        cmocka_unit_test(the_stager_is_false),
        cmocka_unit_test(the_stager_is_true),
        cmocka_unit_test(the_stager_is_cat),
        cmocka_unit_test(the_stager_is_yes),
        cmocka_unit_test(the_stager_sleeps),
        cmocka_unit_test(the_stager_is_killed_at_random),
        cmocka_unit_test(the_directory_is_removed),
        cmocka_unit_test(the_directory_lets_nothing_be_executed),
        cmocka_unit_test(the_disk_is_full),
        cmocka_unit_test(the_disk_becomes_full),
    };
    if (argc != 2)
        return 2;
    host = argv[1];
    return cmocka_run_group_tests_name("sabotage", tests, prepare, clean);
}
