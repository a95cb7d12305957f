/* SPDX-License-Identifier: MIT */
/* tidepool-bench: cases × variants, in one process, interleaved. */
#define _GNU_SOURCE
#include "bench.h"
#include "compiled.h"
#include "peers.h"
#include "report.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "tidepool-bench [option …]\n"
    "  --list            the cases and variants, and what is missing\n"
    "  --case GLOB       only these cases, as in 'scope4-*'\n"
    "  --variant GLOB    only these variants, as in 'tide-*'\n"
    "  --json            one object a line instead of the table\n"
    "  --quick           as little as proves that everything runs; the times mean nothing\n"
    "  --rounds N        rounds to measure (301)\n"
    "  --block US        microseconds that each block of a round lasts, at least (100)\n";

typedef struct command {
    bench_options options;
    int list, json, quick, help; /* as getopt sets them */
} command;

static uint32_t number(const char *text, const char *option)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || value < 1 || value > 1000000) {
        bench_complain("%s takes a number from 1 to 1000000, not \"%s\"", option, text);
        exit(2);
    }
    return (uint32_t)value;
}

/* The exit status. */
static int finish(bool good)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return good ? 0 : 1;
    bench_complain("the output cannot be written");
    return 1;
}

static _Noreturn void explain(FILE *out, int status)
{
    fputs(usage, out);
    exit(status != 0 ? status : finish(true));
}

/* One option that takes a value, by its letter in the table below. */
static void set_value(bench_options *options, int letter)
{
    switch (letter) {
    case 'c': options->case_glob = optarg; break;
    case 'v': options->variant_glob = optarg; break;
    case 'r': options->rounds = number(optarg, "--rounds"); break;
    case 'b': options->block_ns = 1e3 * number(optarg, "--block"); break;
    default: explain(stderr, 2);
    }
}

static command parse(int count, char **arguments)
{
    command c = {
        .options = {.case_glob = "*", .variant_glob = "*", .rounds = 301, .block_ns = 100e3}};
    const struct option known[] = {
        {"list", no_argument, &c.list, 1},
        {"case", required_argument, NULL, 'c'},
        {"variant", required_argument, NULL, 'v'},
        {"json", no_argument, &c.json, 1},
        {"quick", no_argument, &c.quick, 1},
        {"rounds", required_argument, NULL, 'r'},
        {"block", required_argument, NULL, 'b'},
        {"help", no_argument, &c.help, 1},
        {NULL, 0, NULL, 0},
    };
    for (int letter; (letter = getopt_long(count, arguments, "", known, NULL)) != -1;)
        if (letter != 0)
            set_value(&c.options, letter);
    if (c.help)
        explain(stdout, 0);
    if (optind < count)
        explain(stderr, 2);
    if (c.quick) {
        c.options.rounds = 2;
        c.options.block_ns = 0;
    }
    return c;
}

/* The selected pairs, group by group as they stand in the table. */
static size_t select_pairs(const bench_options *options, bench_result *out, size_t room)
{
    size_t count = 0;
    for (size_t i = 0; i < bench_case_count(); i++) {
        const bench_case *job = bench_case_at(i);
        for (const bench_variant *const *variant = job->variants; *variant != NULL; variant++) {
            if (!bench_selected(options, job, *variant))
                continue;
            if (count < room)
                out[count] = (bench_result){.job = job, .variant = *variant};
            count++;
        }
    }
    return count;
}

static size_t group_length(const bench_result *results, size_t count)
{
    size_t length = 1;
    while (length < count && strcmp(results[length].job->group, results[0].job->group) == 0)
        length++;
    return length;
}

static bool measure(bench_result *results, size_t count, const command *c)
{
    bool good = true;
    for (size_t i = 0, length; i < count; i += length) {
        length = group_length(&results[i], count - i);
        good = bench_measure(&results[i], length, &c->options) && good;
        bench_compare(&results[i], length);
        if (!c->json)
            bench_print_table(&results[i], length);
    }
    if (c->json)
        bench_print_json(results, count);
    return good;
}

int main(int count, char **arguments)
{
    command c = parse(count, arguments);
    size_t pairs = select_pairs(&c.options, NULL, 0);
    if (pairs == 0) {
        bench_complain("no case and variant of these names; see --list");
        return 2;
    }
    bench_result *results = bench_allocate_shared(pairs * sizeof *results);
    select_pairs(&c.options, results, pairs);
    if (c.list) {
        bench_print_list(results, pairs);
        return finish(true);
    }
    bench_make_room_for_peers(arguments);
    return finish(measure(results, pairs, &c));
}
