/* SPDX-License-Identifier: MIT */
/* Does learning pay? Runs whole programs as processes: with learning, and as each static tier.
 *
 *   tidepool-pays                       all programs, five rounds
 *   tidepool-pays --rounds 9 hot short  these, nine
 *   tidepool-pays --slowest 25 [N]      the slowest of a process's N scopes (ten million): so many
 *                                       rounds
 *
 * The rounds are interleaved. What is printed is the median of the processor's seconds, user and
 * system, of the program and of everything that it started: this process is the reaper of what they
 * leave behind, the stager too. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidepool/learn.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>

#include "programs.h"
#include "slowest.h"

enum { ROUNDS_MAX = 99, PROGRAMS_MAX = 32 };

typedef enum mode { FULL, NOTHING, TABLE, LEARNING, MODES } mode;
static const char *const mode_names[MODES] = {"full", "nothing", "table", "learning"};

/* ---- one program, in a process of its own --------------------------------------------------- */

static void die(const char *what)
{
    fprintf(stderr, "tidepool-pays: %s: %s\n", what, tide_error_message());
    exit(3);
}

static void must(tide_status status, const char *what)
{
    if (status != TIDE_OK)
        die(what);
}

static tide_type type_of_letter(char letter)
{
    switch (letter) {
    case 'd': return TIDE_F64;
    case 'i': return TIDE_I32;
    case 'f': return TIDE_F32;
    case 'l': return TIDE_I64;
    case 'b': return TIDE_U8;
    case 's': return TIDE_I16;
    case 'g': return TIDE_I8;
    case 'h': return TIDE_U16;
    case 'c': return TIDE_C64;
    case 'u': return TIDE_U32;
    default: die("no such letter"); return 0;
    }
}

static bool tell_types(tide_site *site, void *unused)
{
    tide_type types[16];
    size_t count = 0;
    (void)unused;
    const char *letters = site->name != NULL ? strchr(site->name, ':') : NULL;
    if (letters == NULL || site->kind != TIDE_KIND_SCOPE)
        return true;
    for (letters++; *letters != '\0'; letters++)
        types[count++] = type_of_letter(*letters);
    must(tide_site_declare(site, types, count), "declaring");
    return true;
}

static int run_program(const pays_program *program, mode how)
{
    if (how != LEARNING)
        must(tide_tune_set("learn", 0), "tuning");
    if (how == NOTHING)
        must(tide_tune_set("tier", 1), "tuning");
    if (how == TABLE)
        tide_site_each(tell_types, NULL);
    tide_pool *pool = tide_pool_create(NULL);
    if (pool == NULL)
        die("a pool");
    program->run(pool, program->uses);
    must(tide_pool_destroy(pool), "the end");
    return 0;
}

/* ---- as a process ---------------------------------------------------------------------------- */

static double seconds_of(const struct rusage *usage)
{
    return (double)usage->ru_utime.tv_sec + 1e-6 * (double)usage->ru_utime.tv_usec +
           (double)usage->ru_stime.tv_sec + 1e-6 * (double)usage->ru_stime.tv_usec;
}

/* Until everything has ended that the program started. */
static double wait_for_all(pid_t program)
{
    double seconds = 0;
    struct rusage usage;
    int status;
    for (pid_t ended; (ended = wait4(-1, &status, 0, &usage)) > 0 || errno == EINTR;) {
        if (ended <= 0)
            continue;
        seconds += seconds_of(&usage);
        if (ended == program && status != 0)
            die("a program failed");
    }
    return seconds;
}

static double measure(const pays_program *program, mode how, const char *self)
{
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0) {
        execl(self, self, "--run", program->name, mode_names[how], (char *)NULL);
        _exit(127);
    }
    return wait_for_all(child);
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *figures, int count)
{
    qsort(figures, (size_t)count, sizeof *figures, compare);
    return figures[count / 2];
}

static void report(const pays_program *program, double figures[MODES][ROUNDS_MAX], int rounds)
{
    double is[MODES], best = 1e9;
    for (int how = 0; how < MODES; how++) {
        is[how] = median(figures[how], rounds);
        if (how != LEARNING && is[how] < best)
            best = is[how];
    }
    printf("%-12s %8.3f %8.3f %8.3f %8.3f %12.2f %12.2f  %s\n", program->name, is[FULL],
           is[NOTHING], is[TABLE], is[LEARNING], is[LEARNING] / best, is[FULL] / is[LEARNING],
           program->meaning);
    fflush(stdout);
}

static void compare_modes(const pays_program *program, int rounds, const char *self)
{
    static double figures[MODES][ROUNDS_MAX];
    for (int round = 0; round < rounds; round++)
        for (int how = 0; how < MODES; how++) {
            mode which = (mode)((how + round) % MODES);
            figures[which][round] = measure(program, which, self);
        }
    report(program, figures, rounds);
}

/* ---- the command line ------------------------------------------------------------------------ */

static const pays_program *program_named(const char *name)
{
    for (const pays_program *p = pays_programs; p->name != NULL; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    fprintf(stderr, "tidepool-pays: no program '%s'\n", name);
    exit(2);
}

static mode mode_named(const char *name)
{
    for (int how = 0; how < MODES; how++)
        if (strcmp(mode_names[how], name) == 0)
            return (mode)how;
    fprintf(stderr, "tidepool-pays: no mode '%s'\n", name);
    exit(2);
}

int main(int count, char **arguments)
{
    if (count == 4 && strcmp(arguments[1], "--run") == 0)
        return run_program(program_named(arguments[2]), mode_named(arguments[3]));
    if (count == 4 && strcmp(arguments[1], "--run-slowest") == 0)
        return pays_slowest_run(arguments[2], arguments[3]);
    if ((count == 3 || count == 4) && strcmp(arguments[1], "--slowest") == 0) {
        const char *scopes = count == 4 ? arguments[3] : "10000000";
        return pays_slowest_compare(atoi(arguments[2]), scopes, "/proc/self/exe") ? 0 : 3;
    }
    int rounds = 5, first = 1;
    if (count > 2 && strcmp(arguments[1], "--rounds") == 0) {
        rounds = atoi(arguments[2]);
        first = 3;
    }
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "tidepool-pays: --rounds 1 to %d\n", ROUNDS_MAX);
        return 2;
    }
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        die("this process cannot wait for what its children leave");
    printf("%-12s %8s %8s %8s %8s %12s %12s\n", "program", "full", "nothing", "table", "learning",
           "learn/best", "full/learn");
    for (const pays_program *p = pays_programs; first == count && p->name != NULL; p++)
        compare_modes(p, rounds, "/proc/self/exe");
    for (int i = first; i < count; i++)
        compare_modes(program_named(arguments[i]), rounds, "/proc/self/exe");
    return 0;
}
