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
 * the end. Of 4 sites with two plans each: eight times each, and once more in 448 rounds or so. */
enum { ATTEMPTS = 110, ROUNDS_FOR_ONE_MORE = 32 };

static const char *host;
static char folder[] = "/tmp/tidepool-sabotage-XXXXXX"; /* of the private directories */
static char tools[] = "/tmp/tidepool-tools-XXXXXX";
static uint64_t right_answer;

/* How a run is set up. What is NULL or 0 is as usual. */
typedef struct plot {
    const char *path;   /* PATH                                                    */
    const char *stager; /* TIDEPOOL_STAGER                                         */
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
    setenv("SABOTAGE_DEADLINE", p->impatient ? "40" : "1000000", 1);
    if (p->path != NULL)
        setenv("PATH", p->path, 1);
    if (p->stager != NULL)
        setenv("TIDEPOOL_STAGER", p->stager, 1);
    if (p->learn != NULL)
        setenv("TIDEPOOL_LEARN", p->learn, 1);
    execl(host, host, (char *)NULL);
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
    assert_int_equal(o.sites, 3);
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
#define HANGING "#!/bin/sh\nexec /bin/sleep 1000\n"
#define HANGING_BADLY                                      \
    "#!/bin/sh\ntrap '' TERM INT HUP\n/bin/sleep 1000 &\n" \
    "while :; do /bin/sleep 1; done\n"
#define OUTPUT  "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = -o ] && out=$2; shift; done\n"
#define GARBAGE OUTPUT "echo this is no object >\"$out\"\n"
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

/* ---- what is done to it ------------------------------------------------------------------ */

typedef struct row {
    const char *name;
    bool tools; /* it has these tools, and no others */
    const char *as, *ld;
    plot plot;
    bool may_compile;
} row;

static const row rows[] = {
    {"no assembler", .tools = true, .ld = REAL},
    {"no linker", .tools = true, .as = REAL},
    {"an assembler that fails", .tools = true, .as = FAILING, .ld = REAL},
    {"a linker that hangs", .tools = true, .as = REAL, .ld = HANGING, .plot.impatient = true},
    {"an assembler that will not be ended", .tools = true, .as = HANGING_BADLY, .ld = REAL,
     .plot.impatient = true},
    {"a linker that writes garbage", .tools = true, .as = REAL, .ld = GARBAGE},
    {"a linker that gives another library", .tools = true, .as = REAL, .ld = ANOTHER},
    {"there shall be no stager", .plot.stager = "none"},
    {"nothing may be executed there", .plot.mount = "noexec", .may_compile = true}, /* elsewhere */
    {"the disk is full", .plot.mount = "size=8k"},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void it_is_harmless(void **state)
{
    const row *r = *state;
    plot p = r->plot;
    if (p.stager == NULL)
        need_stager();
    if (r->tools)
        p.path = tools_with(r->as, r->ld);
    (void)expect_harmless(&p, r->may_compile);
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

static void with_a_thread_it_is_the_same(void **state)
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
    struct CMUnitTest tests[ROWS + 2] = {cmocka_unit_test(unharmed_it_compiles),
                                         cmocka_unit_test(with_a_thread_it_is_the_same)};
    for (size_t i = 0; i < ROWS; i++)
        tests[i + 2] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = it_is_harmless, .initial_state = (void *)&rows[i]};
    if (argc != 2)
        return 2;
    host = argv[1];
    return cmocka_run_group_tests_name("sabotage", tests, prepare, clean);
}
