/* SPDX-License-Identifier: MIT */
/* columns: expressions over the columns of a CSV file. */
#include "columns.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/buffers.h>

static const char usage[] =
    "columns [OPTION…] FILE.csv [QUERY]    evaluates expressions over a CSV file (-: stdin)\n"
    "columns [OPTION…] --elements [QUERY]  the same over the chemical elements\n"
    "columns                               a job on the elements, then the same 40 times more\n"
    "\n"
    "  columns weather.csv 'date, temp_max - temp_min as range where wind > 8'\n"
    "  columns weather.csv 'weather, count(*), avg(temp_max)'\n"
    "\n"
    "The result is CSV, too. Without a query the columns are listed. Where some items of it are\n"
    "aggregates, the others are what it is grouped by. README.md has more.\n"
    "\n"
    "  --repeat N    takes the file so many times over\n"
    "  --trace FILE  writes what is acquired and released, for tidepool-replay\n";

static const char default_query[] =
    "category, count(*) as elements, avg(mass) as mean_mass, avg(density * 1.02) as mean_density,\n"
    "sum(number % 10) as digits, max(electronegativity / period) as pull,\n"
    "max(length(name)) as longest, min(name) as first\n"
    "where phase != 'gas' and (density > 1 or not stable) or melting < 300 or melting is null";

typedef struct options {
    const char *path, *query, *trace;
    size_t times;
} options;

/* ---- the result ----------------------------------------------------------------------------- */

/* A value as text, in `room` or where it lies. */
static columns_text show(const columns_vector *v, size_t row, char room[32])
{
    columns_value value = columns_value_at(v, row);
    if (v->nulls[row])
        return (columns_text){"", 0};
    if (v->kind == TEXT)
        return value.text;
    int length = v->kind == INTEGER ? snprintf(room, 32, "%" PRId64, value.integer)
                 : v->kind == REAL  ? snprintf(room, 32, "%.15g", value.real)
                                    : snprintf(room, 32, "%s", value.boolean ? "true" : "false");
    return (columns_text){room, (size_t)length};
}

static void print_field(columns_text t, bool last)
{
    bool quote = false;
    for (size_t i = 0; i < t.length; i++)
        quote |= strchr(",\"\r\n", t.start[i]) != NULL;
    fputs(quote ? "\"" : "", stdout);
    for (size_t i = 0; i < t.length; i++)
        printf(t.start[i] == '"' ? "\"\"" : "%c", t.start[i]);
    fputs(quote ? "\"" : "", stdout);
    fputs(last ? "" : ",", stdout);
}

static void print_rows(const columns_table *t)
{
    char room[32];
    for (size_t line = 0; line <= t->rows; line++) {
        for (size_t i = 0; i < t->count; i++)
            print_field(line == 0 ? t->names[i] : show(&t->columns[i], line - 1, room),
                        i + 1 == t->count);
        putchar('\n');
    }
}

static void print_columns(const columns_table *t)
{
    static const char *const kinds[] = {"integer", "real", "boolean", "text"};
    for (size_t i = 0; i < t->count; i++)
        printf("%-8s %.*s\n", kinds[t->columns[i].kind], (int)t->names[i].length,
               t->names[i].start);
    printf("%zu rows\n", t->rows);
}

/* ---- runs ----------------------------------------------------------------------------------- */

/* The same once more, RUNS times: what did the pool take from the system for it? */
static bool run_again(const columns_job *job, columns_error *error)
{
    enum { RUNS = 40 };
    tide_pool_statistics first, last;
    tide_pool *pool = tide_pool_local();
    bool good = tide_pool_stats(pool, &first) == TIDE_OK;
    for (int i = 0; good && i < RUNS; i++) {
        columns_table *result = columns_run(job, pool, error);
        good = result != NULL;
        columns_table_destroy(result);
    }
    if (good && tide_pool_stats(pool, &last) == TIDE_OK)
        printf("\nTemporaries: %" PRIu64 " allocations in this run, %" PRIu64
               " in %d runs after it\n",
               first.allocations, last.allocations - first.allocations, RUNS);
    return good;
}

/* Each acquire of a disabled pool is one of a buffer, each rewind a release: the trace is that of the
 * program's temporaries. */
static columns_table *run_traced(const columns_job *job, const char *path, columns_error *error)
{
    columns_table *result = NULL;
    FILE *trace = fopen(path, "w");
    tide_buffers *buffers =
        trace == NULL ? NULL
                      : tide_buffers_create(NULL, &(tide_buffers_options){.hook = tide_buffer_trace,
                                                                          .user = trace});
    tide_pool *pool = tide_pool_create(
        &(tide_pool_options){.name = "traced", .buffers = buffers, .disabled = true});
    snprintf(error->text, sizeof error->text, "%s cannot be written", path);
    if (buffers != NULL && pool != NULL)
        result = columns_run(job, pool, error);
    tide_pool_destroy(pool);
    tide_buffers_destroy(buffers);
    if (trace != NULL && (ferror(trace) | fclose(trace)) != 0) {
        columns_table_destroy(result);
        result = NULL;
    }
    return result;
}

/* ---- the program ---------------------------------------------------------------------------- */

static bool answer(const options *o, columns_table *table, columns_error *error)
{
    if (o->query == NULL) {
        print_columns(table);
        columns_table_destroy(table);
        return true;
    }
    columns_job *job = columns_job_create(table, o->query, error);
    if (job == NULL)
        return false;
    columns_table *result = o->trace != NULL ? run_traced(job, o->trace, error)
                                             : columns_run(job, tide_pool_local(), error);
    if (result != NULL)
        print_rows(result);
    bool good = result != NULL && (o->query != default_query || run_again(job, error));
    columns_table_destroy(result);
    columns_job_destroy(job);
    return good;
}

/* False: the arguments make no sense. */
static bool read_arguments(options *o, char **at)
{
    for (; *at != NULL; at++)
        if (strcmp(*at, "--elements") == 0 && o->path == NULL)
            o->path = COLUMNS_ELEMENTS;
        else if (strcmp(*at, "--trace") == 0 && at[1] != NULL)
            o->trace = *++at;
        else if (strcmp(*at, "--repeat") == 0 && at[1] != NULL)
            o->times = strtoul(*++at, NULL, 10);
        else if (strncmp(*at, "--", 2) == 0 || o->query != NULL)
            return false;
        else
            *(o->path == NULL ? &o->path : &o->query) = *at;
    return o->path != NULL && o->times > 0;
}

int main(int count, char **arguments)
{
    options o = {.times = 1};
    columns_error error = {"no memory"};
    bool help = count == 2 && strcmp(arguments[1], "--help") == 0;
    if (count == 1) {
        o = (options){COLUMNS_ELEMENTS, default_query, NULL, 1000};
        printf("The chemical elements, %zu times over:\n\n%s\n\n", o.times, o.query);
    } else if (!help && !read_arguments(&o, arguments + 1)) {
        fprintf(stderr, "%s", usage);
        return 2;
    }
    if (help) {
        fputs(usage, stdout);
    } else {
        columns_table *table = columns_table_load(o.path, o.times, &error);
        if (table == NULL || !answer(&o, table, &error)) {
            fprintf(stderr, "%s\n", error.text);
            return 2;
        }
    }
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return 0;
    perror("columns: standard output");
    return 1;
}
