/* SPDX-License-Identifier: MIT */
/* phases: a program whose types change while it runs, and how its call sites follow. */
#include "chart.h"
#include "life.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tidepool/learn.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>

static const char usage[] =
    "phases [OPTION…]   draws, while its types change, what its call sites cost and which plans\n"
    "                   they run; then prints the life of each site\n"
    "\n"
    "  --seconds N      runs for so long (12)\n"
    "  --steps N        runs so many intervals of always the same work instead, does a round of\n"
    "                   learning after each and waits for its compiles: no clock decides anything\n"
    "  --by-hand        no background thread: the program does the rounds of learning itself\n"
    "  --help           prints this\n"
    "\n"
    "TIDEPOOL_STAGER=none in the environment shows the same without a compiler.\n";

typedef struct options {
    double seconds;
    size_t steps; /* 0: by the clock */
    bool by_hand, help;
} options;

enum { BATCH = 500, INTERVALS_A_PHASE = 12 };
static const double INTERVAL = 0.2; /* seconds */

/* ---- time ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- an interval ---- */

static const phase *phase_of(size_t interval)
{
    return &phases[interval / INTERVALS_A_PHASE % PHASES];
}

/* Every kind of work in turn, a batch of each at a time, until the time is over; `steps`: once. */
static void work_on(const options *o, tide_pool *pool, const phase *p, sample samples[WORKS])
{
    double spent[WORKS] = {0}, end = now() + INTERVAL, at;
    size_t batches = 0;
    do {
        for (size_t i = 0; i < WORKS; i++) {
            at = now();
            works[i].use(pool, p, BATCH);
            spent[i] += now() - at;
        }
        batches++;
    } while (o->steps == 0 && now() < end);
    for (size_t i = 0; i < WORKS; i++)
        samples[i].ns = spent[i] * 1e9 / (double)(batches * BATCH);
}

static void look_at_sites(sample samples[WORKS])
{
    for (size_t i = 0; i < WORKS; i++) {
        tide_site_information info = {0};
        tide_site *site = work_site(&works[i]);
        if (site != NULL)
            tide_site_info(site, &info);
        samples[i].tier = info.tier;
        samples[i].observed = info.observed;
    }
}

/* A round looks at what was observed, decides, sends to the compiler, takes what it has finished.
 * The background thread does one every few milliseconds; by hand, it is for the program to say when.
 * tide_settle does as many as it takes until nothing is pending. */
static bool learn(const options *o)
{
    enum { PATIENCE_MS = 60000 };
    if (o->steps != 0)
        return tide_settle(PATIENCE_MS) == TIDE_OK;
    return !o->by_hand || tide_step() == TIDE_OK;
}

static bool run(const options *o)
{
    tide_pool *pool = tide_pool_local();
    double end = now() + o->seconds;
    chart_begin();
    for (size_t i = 0; o->steps != 0 ? i < o->steps : now() < end; i++) {
        sample samples[WORKS];
        work_on(o, pool, phase_of(i), samples);
        look_at_sites(samples);
        chart_line(i, phase_of(i)->name, samples);
        if (work_failed() || !learn(o))
            return false;
    }
    return true;
}

/* ---- options ---- */

/* A trial times both plans and adopts the faster one: where no clock may decide, there is none.
 * Code is shown whether it would pay in these few seconds or not. */
static bool settle_settings(const options *o)
{
    bool by_hand = o->by_hand || o->steps != 0;
    return tide_tune_set("break_even", 0) == TIDE_OK &&
           (!by_hand || tide_tune_set("background", 0) == TIDE_OK) &&
           (o->steps == 0 || tide_tune_set("trial", 0) == TIDE_OK);
}

static bool read_options(int count, char **words, options *o)
{
    static const struct option known[] = {{"seconds", 1, NULL, 's'},
                                          {"steps", 1, NULL, 'n'},
                                          {"by-hand", 0, NULL, 'b'},
                                          {"help", 0, NULL, 'h'},
                                          {0}};
    char *rest = "";
    for (int c; (c = getopt_long(count, words, "", known, NULL)) != -1 && *rest == '\0';) {
        switch (c) {
        case 's': o->seconds = strtod(optarg, &rest); break;
        case 'n': o->steps = strtoul(optarg, &rest, 10); break;
        case 'b': o->by_hand = true; break;
        case 'h': o->help = true; break;
        default: return false;
        }
        if (*rest != '\0' || (c == 'n' && o->steps == 0) || (c == 's' && !(o->seconds > 0))) {
            fprintf(stderr, "phases: what is %s?\n", optarg);
            return false;
        }
    }
    if (optind < count)
        fprintf(stderr, "phases: what is %s?\n", words[optind]);
    return optind == count;
}

/* The exit status. */
static int failed(const char *why)
{
    fprintf(stderr, "phases: %s\n", why);
    return 1;
}

static int finish(bool all_told)
{
    if (!all_told)
        return failed("no memory for all that sites told");
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : failed("the output cannot be written");
}

int main(int count, char **words)
{
    options o = {.seconds = 12};
    if (!read_options(count, words, &o)) {
        fputs("try phases --help\n", stderr);
        return 2;
    }
    if (o.help) {
        (void)fputs(usage, stdout);
        return finish(true);
    }
    life_begin(); /* before the first use of a site, or nobody hears that it was found */
    if (!settle_settings(&o) || !work_prepare() || tide_pool_local() == NULL || !run(&o))
        return failed(tide_error_message());
    tide_background_stop(); /* nothing is told any more while the lives are printed */
    return finish(life_print());
}
