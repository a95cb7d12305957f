/* SPDX-License-Identifier: MIT */
/* Ratios, the table that people read, and the JSON lines that programs read. */
#include "report.h"

#include <stdio.h>
#include <string.h>

/* --- ratios ----------------------------------------------------------------------------- */

static const bench_result *find(const bench_result *results, size_t count, const bench_case *job,
                                const char *variant)
{
    for (size_t i = 0; i < count; i++)
        if (results[i].ran && results[i].job == job &&
            strcmp(results[i].variant->name, variant) == 0)
            return &results[i];
    return NULL;
}

void bench_compare(bench_result *results, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bench_result *result = &results[i];
        const bench_result *base = find(results, count, result->job, result->job->base);
        const bench_result *least = find(results, count, result->job, "floor");
        if (!result->ran)
            continue;
        result->ratio_base = base ? result->ns_min / base->ns_min : 0;
        result->ratio_floor = least ? result->ns_min / least->ns_min : 0;
    }
}

/* --- for people ------------------------------------------------------------------------- */

void bench_print_list(const bench_result *results, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const bench_result *result = &results[i];
        if (i == 0 || results[i - 1].job != result->job)
            printf("# %s: %s\n", result->job->name, result->job->about);
        if (result->variant->missing != NULL)
            printf("# ");
        printf("%s %s", result->job->name, result->variant->name);
        if (result->variant->missing != NULL)
            printf(" (%s)", result->variant->missing);
        putchar('\n');
    }
}

static void print_header(const bench_result *result)
{
    const bench_case *job = result->job;
    char base[32];
    snprintf(base, sizeof base, "/%s", job->base);
    printf("\n%-15s %-19s %12s %12s %8s %8s\n", "case", "variant", "ns min", "ns median", "/floor",
           base);
}

static void print_ratio(double ratio)
{
    if (ratio > 0)
        printf(" %8.2f", ratio);
    else
        printf(" %8s", "-");
}

static void print_row(const bench_result *result)
{
    printf("%-15s %-19s", result->job->name, result->variant->name);
    if (!result->ran) {
        printf(" %12s   %s\n", "-",
               result->variant->missing ? result->variant->missing : "did not run");
        return;
    }
    printf(" %12.2f %12.2f", result->ns_min, result->ns_median);
    print_ratio(result->ratio_floor);
    print_ratio(result->ratio_base);
    for (size_t i = 0; i < result->figure_count; i++)
        printf("  %s %g", result->figures[i].name, result->figures[i].value);
    putchar('\n');
}

/* ns are per operation; ratios are of the least times. */
void bench_print_table(const bench_result *results, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || results[i - 1].job != results[i].job)
            print_header(&results[i]);
        print_row(&results[i]);
    }
    fflush(stdout);
}

/* --- for programs ----------------------------------------------------------------------- */

static void print_figure(const char *name, double value)
{
    printf(",\"%s\":%.6g", name, value);
}

/* Names hold letters, digits and hyphens only: nothing to escape. */
static void print_object(const bench_result *result)
{
    printf("{\"case\":\"%s\",\"variant\":\"%s\",\"ns_min\":%.4f,\"ns_median\":%.4f,\"unit\":\"%s\","
           "\"n\":%llu",
           result->job->name, result->variant->name, result->ns_min, result->ns_median,
           result->job->unit, (unsigned long long)result->operations);
    printf(",\"rounds\":%u", result->rounds);
    if (result->ratio_floor > 0)
        print_figure("ratio_floor", result->ratio_floor);
    if (result->ratio_base > 0)
        printf(",\"base\":\"%s\",\"ratio_base\":%.6g", result->job->base, result->ratio_base);
    for (size_t i = 0; i < result->figure_count; i++)
        print_figure(result->figures[i].name, result->figures[i].value);
    puts("}");
}

void bench_print_json(const bench_result *results, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (results[i].ran)
            print_object(&results[i]);
    fflush(stdout);
}
