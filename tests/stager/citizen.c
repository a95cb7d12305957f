/* SPDX-License-Identifier: MIT */
/* The stager as part of somebody else's program: nobody's child, no more privileged than the
 * program, not in its way, and gone when it has nothing to do. */
#define _GNU_SOURCE
#include "tests/stager/support.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/capability.h>

#include "jit/stager/directory.h"
#include "jit/stager/locate.h"
#include "jit/stager/test_hooks.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/settings.h"

enum { NOBODY = 65533 };

/* AddressSanitizer asks. It looks for leaks from another process, through /proc: as another user,
 * or in another root, it cannot. */
static int leaks_cannot_be_seen;

int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return leaks_cannot_be_seen;
}

static tide_stager_figures figures(void)
{
    tide_stager_figures now;
    tide_stager_figures_get(&now);
    return now;
}

/* In a child, which has no cmocka: the answer to this order; its path or error stays in *got. */
static bool ask(uint64_t id, const char *text, tide_stager_answer *got)
{
    order(id, text);
    return tide_stager_poll(got, PATIENCE) && got->request == id && got->result == TIDE_STAGER_OK;
}

/* What the fake tells of itself: the rest of the line that starts with this word. */
static const char *fact(const tide_stager_answer *answer, const char *word)
{
    static char lines[4][4096];
    static unsigned at;
    char *line = lines[at++ % 4];
    FILE *file = fopen(answer->path, "re");
    line[0] = '\0';
    if (file == NULL)
        return line;
    while (fgets(line, sizeof lines[0], file) != NULL && strncmp(line, word, strlen(word)) != 0)
        continue;
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return line[0] != '\0' ? line + strlen(word) + 1 : line;
}

#define NEED(condition)       \
    do {                      \
        if (!(condition))     \
            _exit(NO_RIGHTS); \
    } while (0)

/* Everybody may make folders where the private directory lies. */
static void open_to_all(void)
{
    NEED(geteuid() == 0);
    leaks_cannot_be_seen = 1;
    CHILD_MUST(chmod(folder(), 0755) == 0 && chmod(in_folder("bin"), 0755) == 0);
    CHILD_MUST(chmod(in_folder("run"), 01777) == 0);
}

/* ---- nobody's child ----------------------------------------------------------------------- */

static volatile sig_atomic_t children_ended;

static void count_child(int number)
{
    (void)number;
    children_ended++;
}

static void wait_for_all(void)
{
    tide_stager_answer answer;
    signal(SIGCHLD, count_child);
    CHILD_MUST(ask(1, "text", &answer));
    CHILD_MUST(tide_stager_process() > 0 && kill(tide_stager_process(), 0) == 0);
    CHILD_MUST(wait(NULL) == -1 && errno == ECHILD);
    kill(tide_stager_process(), SIGKILL);
    CHILD_MUST(ask(2, "text", &answer));
    tide_stager_stop(true);
    CHILD_MUST(wait(NULL) == -1 && errno == ECHILD);
    CHILD_MUST(children_ended == 0);
}

static void a_program_may_wait_for_all_its_children(void **state)
{
    (void)state;
    play(wait_for_all);
}

/* As it would be for a program that starts itself anew. */
static void execute_another(void)
{
    tide_stager_answer answer;
    CHILD_MUST(ask(1, "text", &answer));
    execl("/bin/true", "true", (char *)NULL);
    _exit(1);
}

static void a_program_may_execute_another(void **state)
{
    (void)state;
    play(execute_another);
    for (int i = 0; i < PATIENCE && count_processes() + count_directories() > 0; i++)
        usleep(1000);
    assert_int_equal(count_processes() + count_directories(), 0);
}

static size_t count_zombies(void)
{
    siginfo_t seen = {.si_pid = 0};
    return waitid(P_ALL, 0, &seen, WEXITED | WNOHANG | WNOWAIT) == 0 && seen.si_pid != 0;
}

/* Then orphans are its children: they are collected as soon as somebody looks. */
static void collect_orphans(void)
{
    tide_stager_answer answer;
    CHILD_MUST(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    for (uint64_t id = 1; id <= 3; id++) {
        CHILD_MUST(ask(id, "text", &answer));
        int process = tide_stager_process();
        CHILD_MUST(have_children() && kill(process, SIGKILL) == 0);
        for (int i = 0; i < PATIENCE && tide_stager_process() == process; i++)
            tide_stager_tend(), usleep(1000);
        for (int i = 0; i < PATIENCE && have_children(); i++)
            tide_stager_tend(), usleep(1000);
        CHILD_MUST(tide_stager_process() == 0 && count_zombies() == 0);
        CHILD_MUST(wait(NULL) == -1 && errno == ECHILD);
    }
}

static void a_program_that_gets_orphans_gets_no_zombies(void **state)
{
    (void)state;
    play(collect_orphans);
}

/* ---- idleness ----------------------------------------------------------------------------- */

static void what_an_idle_one_was_sent_is_not_lost(void **state)
{
    (void)state;
    tide_stager_figures before = figures();
    use_fake("idles-once");
    for (uint64_t id = 1; id <= 3; id++)
        order(id, "text");
    for (uint64_t id = 1; id <= 3; id++)
        expect_answer(id, TIDE_STAGER_OK);
    assert_int_equal(figures().idle, before.idle + 1);
    assert_int_equal(figures().died, before.died);
    assert_int_equal(figures().started, before.started + 2);
}

static void stagers_that_are_always_idle_are_not_tried_for_ever(void **state)
{
    (void)state;
    tide_stager_figures before = figures();
    use_fake("idles");
    order(1, "text");
    expect_answer(1, TIDE_STAGER_DIED);
    assert_int_equal(figures().idle, before.idle + 3);
    tide_stager_stop(true);
    use_fake("good");
    order(2, "text");
    expect_answer(2, TIDE_STAGER_OK);
}

/* ---- how it is started -------------------------------------------------------------------- */

static tide_stager_answer ask_facts(void)
{
    use_fake("tells");
    order(1, "text");
    tide_stager_answer answer = next();
    assert_int_equal(answer.result, TIDE_STAGER_OK);
    return answer;
}

static void it_works_in_its_own_folder(void **state)
{
    (void)state;
    tide_stager_answer answer = ask_facts();
    assert_string_equal(fact(&answer, "session"), "1");
    const char *cwd = fact(&answer, "cwd");
    assert_int_equal(strncmp(answer.path, cwd, strlen(cwd)), 0);
    assert_int_equal(strchr(answer.path + strlen(cwd) + 1, '/') == NULL, 1);
}

static void ask_with_lists(const char *path, const char *libraries, tide_stager_answer *answer)
{
    char before[4096];
    snprintf(before, sizeof before, "%s", getenv("PATH"));
    setenv("PATH", path, 1);
    if (libraries != NULL)
        setenv("LD_LIBRARY_PATH", libraries, 1);
    else
        unsetenv("LD_LIBRARY_PATH"); /* Valgrind has one */
    *answer = ask_facts();
    setenv("PATH", before, 1);
    unsetenv("LD_LIBRARY_PATH");
}

static void its_path_has_absolute_folders_only(void **state)
{
    (void)state;
    tide_stager_answer answer;
    ask_with_lists(":.:/usr/bin::bin:/bin:", NULL, &answer);
    assert_string_equal(fact(&answer, "path"), "/usr/bin:/bin");
    assert_string_equal(fact(&answer, "libraries"), "-");
    tide_stager_stop(true);
    ask_with_lists(".", "/opt/lib::lib:/usr/local/lib", &answer);
    assert_string_equal(fact(&answer, "path"), "/usr/local/bin:/usr/bin:/bin");
    assert_string_equal(fact(&answer, "libraries"), "/opt/lib:/usr/local/lib");
}

static void be_hot(void)
{
    cpu_set_t all, one;
    struct sched_param first = {.sched_priority = 1};
    tide_stager_answer answer;
    char processors[16];
    CPU_ZERO(&one);
    CHILD_MUST(sched_getaffinity(0, sizeof all, &all) == 0);
    snprintf(processors, sizeof processors, "%d", CPU_COUNT(&all));
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    NEED(setpriority(PRIO_PROCESS, 0, -5) == 0);
    NEED(sched_setscheduler(0, SCHED_FIFO, &first) == 0);
    CHILD_MUST(sched_setaffinity(0, sizeof one, &one) == 0);
    use_fake("tells");
    CHILD_MUST(ask(1, "text", &answer));
    CHILD_MUST(strcmp(fact(&answer, "policy"), "0") == 0);
    CHILD_MUST(strcmp(fact(&answer, "nice"), "0") == 0);
    CHILD_MUST(strcmp(fact(&answer, "processors"), processors) == 0);
}

static void it_is_not_as_urgent_as_the_program(void **state)
{
    (void)state;
    play(be_hot);
}

/* ---- privileges --------------------------------------------------------------------------- */

static bool runs_as(const tide_stager_answer *answer, unsigned user)
{
    char ids[64];
    snprintf(ids, sizeof ids, "%u %u %u", user, user, user);
    return strcmp(fact(answer, "users"), ids) == 0 && strcmp(fact(answer, "groups"), ids) == 0;
}

/* Root for a while somebody else, who may be root again. */
static void be_somebody_else_for_now(void)
{
    tide_stager_answer answer;
    open_to_all();
    CHILD_MUST(setgroups(0, NULL) == 0 && setegid(NOBODY) == 0 && seteuid(NOBODY) == 0);
    use_fake("tells");
    CHILD_MUST(ask(1, "text", &answer));
    CHILD_MUST(runs_as(&answer, NOBODY) && strcmp(fact(&answer, "capabilities"), "0") == 0);
    tide_stager_stop(true);
}

/* Root for good somebody else: the stager of before is gone, and so is its directory. */
static void become_somebody_else(void)
{
    tide_stager_answer answer;
    char old[512];
    open_to_all();
    use_fake("tells");
    CHILD_MUST(ask(1, "text", &answer) && runs_as(&answer, 0));
    int process = tide_stager_process();
    snprintf(old, sizeof old, "%s", answer.path);
    *strrchr(old, '/') = '\0';
    CHILD_MUST(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
    for (int i = 0; i < PATIENCE && tide_stager_process() != 0; i++)
        tide_stager_tend(), usleep(1000);
    CHILD_MUST(tide_stager_process() == 0);
    for (int i = 0; i < PATIENCE && access(old, F_OK) == 0; i++)
        usleep(1000);
    for (int i = 0; i < PATIENCE && process_runs(process); i++)
        usleep(1000);
    CHILD_MUST(!process_runs(process));
    CHILD_MUST(access(old, F_OK) != 0);
    CHILD_MUST(ask(2, "text", &answer) && runs_as(&answer, NOBODY));
    CHILD_MUST(strcmp(fact(&answer, "capabilities"), "0") == 0);
    tide_stager_stop(true);
}

/* The same at exit, without a look before; or when no stager is left that may remove it. */
static bool its_stager_was_idle;

static void become_somebody_else_and_leave(void)
{
    tide_stager_answer answer;
    open_to_all();
    CHILD_MUST(ask(1, "text", &answer));
    if (its_stager_was_idle)
        tide_stager_stop(false);
    CHILD_MUST(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
}

/* Root without the rights of root: what it starts gets them back by being root's, or not. */
static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    tide_stager_answer answer;
    NEED(geteuid() == 0);
    use_fake("tells");
    CHILD_MUST(ask(1, "text", &answer));
    NEED(strcmp(fact(&answer, "capabilities"), "0") != 0);
    leaks_cannot_be_seen = 1;
    CHILD_MUST(syscall(SYS_capset, &header, none) == 0);
    CHILD_MUST(ask(2, "text", &answer) && runs_as(&answer, 0));
    CHILD_MUST(strcmp(fact(&answer, "capabilities"), "0") == 0);
    tide_stager_stop(true);
}

static void it_has_no_privilege_that_the_program_gave_up(void **state)
{
    (void)state;
    play(be_somebody_else_for_now);
    play(become_somebody_else);
    play(become_somebody_else_and_leave);
    for (int i = 0; i < PATIENCE && count_directories() > 0; i++)
        usleep(1000);
    assert_int_equal(count_directories(), 0);
    play(drop_capabilities);
}

static void the_next_process_of_root_removes_what_it_left(void **state)
{
    (void)state;
    its_stager_was_idle = true;
    play(become_somebody_else_and_leave);
    assert_int_equal(count_directories(), 1); /* the limit that jit/README.md states */
    order(1, "text");
    expect_answer(1, TIDE_STAGER_OK);
    assert_int_equal(count_directories(), 1); /* ours */
}

/* ---- descriptors -------------------------------------------------------------------------- */

enum { FILES = 64 };

/* The program's own files, at the numbers that were free before: content and position. */
static void take_numbers(int files[FILES])
{
    char path[64];
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/own-%d", folder(), i);
        files[i] = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        CHILD_MUST(files[i] >= 0 && write(files[i], "precious", 8) == 8);
        CHILD_MUST(lseek(files[i], 3, SEEK_SET) == 3);
    }
}

static void expect_untouched(int files[FILES])
{
    for (int i = 0; i < FILES; i++) {
        char text[16];
        CHILD_MUST(lseek(files[i], 0, SEEK_CUR) == 3);
        CHILD_MUST(pread(files[i], text, sizeof text, 0) == 8 && memcmp(text, "precious", 8) == 0);
        CHILD_MUST(close(files[i]) == 0);
        char path[64];
        snprintf(path, sizeof path, "%s/own-%d", folder(), i);
        CHILD_MUST(unlink(path) == 0);
    }
}

/* An order may be lost with the stager that had it, or with its directory: that is said. */
static bool ended_in_order(const tide_stager_answer *answer)
{
    return answer->result == TIDE_STAGER_OK || strlen(answer->error) > 0;
}

static void close_all_and_go_on(void)
{
    enum { TIMES = 4 };
    tide_stager_answer answer;
    int files[FILES];
    for (int when = 0; when < TIMES; when++) {
        for (uint64_t id = 1; id <= 8; id++)
            order(id, "text");
        for (int i = 0; i < when * 2; i++)
            CHILD_MUST(tide_stager_poll(&answer, PATIENCE));
        close_every_descriptor();
        take_numbers(files);
        for (int i = when * 2; i < 8; i++) {
            CHILD_MUST(tide_stager_poll(&answer, PATIENCE));
            CHILD_MUST(ended_in_order(&answer));
        }
        CHILD_MUST(ask(9, "text", &answer));
        usleep(20000); /* so that this looks, and not only at the clock */
        tide_stager_tend();
        expect_untouched(files);
    }
    close_every_descriptor();
    take_numbers(files);
    tide_stager_stop(true);
    expect_untouched(files);
    CHILD_MUST(count_directories() == 0);
}

/* All is there at exit, too, when the last destructors run. */
static void close_all_and_leave(void)
{
    tide_stager_answer answer;
    int files[FILES];
    CHILD_MUST(ask(1, "text", &answer));
    close_every_descriptor();
    take_numbers(files);
}

/* The stager is at rest, so that nobody else takes the directory away. */
static void close_all_while_nothing_runs(void)
{
    tide_stager_answer answer;
    int files[FILES];
    char first[512];
    use_fake("idles-once");
    order(1, "text");
    CHILD_MUST(tide_stager_poll(&answer, PATIENCE));
    snprintf(first, sizeof first, "%s", answer.path);
    tide_stager_stop(false);
    close_every_descriptor();
    take_numbers(files);
    CHILD_MUST(ask(2, "text", &answer));
    CHILD_MUST(count_directories() == 1 && access(first, R_OK) == 0);
    expect_untouched(files);
}

static void a_program_may_close_every_descriptor(void **state)
{
    (void)state;
    play(close_all_and_go_on);
    play(close_all_and_leave);
    assert_int_equal(count_directories(), 0);
    play(close_all_while_nothing_runs);
    assert_int_equal(count_directories(), 0);
}

/* A file system may give the next file the inode of one that was removed. */
static void a_file_with_the_inode_of_another_is_not_taken_for_it(void **state)
{
    enum { TRIES = 1000 };
    struct stat before, after;
    bool again = false;
    (void)state;
    const char *path = in_folder("held");
    for (int i = 0; i < TRIES && !again; i++) {
        assert_int_equal(mkdir(path, 0700), 0);
        int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        tide_descriptor held = tide_descriptor_hold(directory);
        assert_int_equal(tide_descriptor_get(&held), directory);
        assert_int_equal(fstat(directory, &before), 0);
        close(directory);
        assert_int_equal(tide_descriptor_get(&held), -1);
        assert_int_equal(rmdir(path), 0);
        int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(file, directory);
        assert_int_equal(fstat(file, &after), 0);
        assert_int_equal(tide_descriptor_get(&held), -1);
        tide_descriptor_close(&held);
        assert_int_equal(close(file), 0); /* it was left open */
        assert_int_equal(unlink(path), 0);
        again = before.st_ino == after.st_ino;
    }
    if (!again)
        skip(); /* this one does not */
}

/* ---- where the directory lies ------------------------------------------------------------- */

static void change_root(void)
{
    tide_stager_answer answer;
    CHILD_MUST(mkdir(in_folder("root"), 0700) == 0 || errno == EEXIST);
    NEED(geteuid() == 0);
    CHILD_MUST(ask(1, "text", &answer));
    leaks_cannot_be_seen = 1;
    NEED(chroot(in_folder("root")) == 0 && chdir("/") == 0);
    CHILD_MUST(access(answer.path, F_OK) != 0);
}

static void after_a_change_of_root_nothing_is_left(void **state)
{
    (void)state;
    play(change_root);
    assert_int_equal(count_directories(), 0);
    assert_int_equal(rmdir(in_folder("root")), 0); /* nor in the new one */
}

static void what_killed_processes_left_is_removed(void **state)
{
    (void)state;
    pid_t child = fork_child(60);
    if (child == 0) {
        tide_stager_answer answer;
        CHILD_MUST(ask(1, "text", &answer) && kill(tide_stager_process(), SIGKILL) == 0);
        raise(SIGKILL);
    }
    assert_int_equal(wait_for_child(child), 128 + SIGKILL);
    assert_int_equal(count_directories(), 1);
    order(1, "text"); /* the next process of the user */
    expect_answer(1, TIDE_STAGER_OK);
    assert_int_equal(count_directories(), 1);
}

/* A file system of its own where no program may be executed; seen by this child only. */
static void forbid_execution(void)
{
    tide_stager_answer answer;
    char said[1024];
    int ends[2], saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
    NEED(unshare(CLONE_NEWNS) == 0 && mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0 &&
         mount("none", in_folder("run"), "tmpfs", MS_NOEXEC, "size=1m") == 0);
    CHILD_MUST(mkdir(in_folder("run/other"), 0700) == 0 && pipe2(ends, O_CLOEXEC) == 0);
    CHILD_MUST(mkdir(in_folder("good"), 0700) == 0 && dup2(ends[1], STDERR_FILENO) == 2);
    setenv("TMPDIR", in_folder("good"), 1);
    tide_locate_environment_forget();
    for (uint64_t id = 1; id <= 2; id++) {
        CHILD_MUST(ask(id, "text", &answer));
        CHILD_MUST(strncmp(answer.path, in_folder("good/"), strlen(in_folder("good/"))) == 0);
        tide_stager_stop(true);
    }
    dup2(saved, STDERR_FILENO);
    close(ends[1]);
    read_to_end(ends[0], said, sizeof said);
    CHILD_MUST(strstr(said, "noexec") != NULL && strstr(said, in_folder("run")) != NULL);
    CHILD_MUST(strchr(said, '\n') == strrchr(said, '\n')); /* once */
    CHILD_MUST(rmdir(in_folder("good")) == 0);
}

static void a_folder_that_cannot_be_executed_from_is_passed_over(void **state)
{
    (void)state;
    play(forbid_execution);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        STAGER_TEST(a_program_may_wait_for_all_its_children),
        STAGER_TEST(a_program_may_execute_another),
        STAGER_TEST(a_program_that_gets_orphans_gets_no_zombies),
        STAGER_TEST(what_an_idle_one_was_sent_is_not_lost),
        STAGER_TEST(stagers_that_are_always_idle_are_not_tried_for_ever),
        STAGER_TEST(it_works_in_its_own_folder),
        STAGER_TEST(its_path_has_absolute_folders_only),
        STAGER_TEST(it_is_not_as_urgent_as_the_program),
        STAGER_TEST(it_has_no_privilege_that_the_program_gave_up),
        STAGER_TEST(the_next_process_of_root_removes_what_it_left),
        STAGER_TEST(a_program_may_close_every_descriptor),
        STAGER_TEST(a_file_with_the_inode_of_another_is_not_taken_for_it),
        STAGER_TEST(after_a_change_of_root_nothing_is_left),
        STAGER_TEST(what_killed_processes_left_is_removed),
        STAGER_TEST(a_folder_that_cannot_be_executed_from_is_passed_over),
    };
    return SUPPORT_MAIN(tests);
}
