/* SPDX-License-Identifier: MIT */
/* columns: expressions over the columns of a CSV file. */
#include "columns.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/buffers.h>

static const char usage[] =
    "columns [OPTION…] FILE.csv [ITEM…]    evaluates expressions over a CSV file (-: stdin)\n"
    "columns [OPTION…] --elements [ITEM…]  the same over the chemical elements\n"
    "columns                               a job on the elements, then the same 40 times more\n"
    "\n"
    "  columns weather.csv 'date, temp_max - temp_min as range where wind > 8'\n"
    "  columns weather.csv weather 'count(*)' 'avg(temp_max)'\n"
    "\n"
    "Items are separated by commas or are arguments of their own; without any the columns are\n"
    "listed. Where some are aggregates, the others are what it is grouped by. README.md has more.\n"
    "\n"
    "  --rows N      shows at most so many rows (20; 0: all)\n"
    "  --csv         writes the result as CSV, all rows\n"
    "  --repeat N    takes the file so many times over\n"
    "  --trace FILE  writes what is acquired and released, for tidepool-replay\n";

typedef struct options {
    const char *path, *trace;
    char query[4000];
    size_t rows, times;
    bool elements, csv, again;
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

/* Numbers to the right; texts may have bytes that begin no character. */
static void print_padded(const columns_vector *v, columns_text t)
{
    int pad = 16;
    bool right = v->kind == INTEGER || v->kind == REAL;
    for (size_t i = 0; i < t.length; i++)
        pad -= (t.start[i] & 0xC0) != 0x80;
    pad = pad > 0 ? pad : 0;
    printf("%*s%.*s%*s  ", right ? pad : 0, "", (int)t.length, t.start, right ? 0 : pad, "");
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

static void print_rows(const columns_table *t, size_t rows, bool as_csv)
{
    char room[32];
    rows = rows == 0 || rows > t->rows || as_csv ? t->rows : rows;
    for (size_t line = 0; line <= rows; line++) {
        for (size_t i = 0; i < t->count; i++) {
            const columns_vector *v = &t->columns[i];
            columns_text cell = line == 0 ? t->names[i] : show(v, line - 1, room);
            if (as_csv)
                print_field(cell, i + 1 == t->count);
            else
                print_padded(v, cell);
        }
        putchar('\n');
    }
    if (rows < t->rows)
        printf("… %zu more rows\n", t->rows - rows);
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
    if (o->query[0] == '\0') {
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
        print_rows(result, o->rows, o->csv);
    bool good = result != NULL && (!o->again || run_again(job, error));
    columns_table_destroy(result);
    columns_job_destroy(job);
    return good;
}

static bool add_argument(options *o, const char *text)
{
    if (o->path == NULL && !o->elements)
        return o->path = text, true;
    size_t used = strlen(o->query), room = sizeof o->query - used;
    const char *between = used == 0 ? "" : strncmp(text, "where ", 6) == 0 ? " " : ", ";
    int wrote = snprintf(o->query + used, room, "%s%s", between, text);
    return wrote >= 0 && (size_t)wrote < room;
}

/* False: the arguments make no sense. */
static bool read_arguments(options *o, char **at)
{
    for (; *at != NULL; at++) {
        const char *value = at[1] != NULL ? at[1] : "";
        bool takes = strcmp(*at, "--rows") == 0 || strcmp(*at, "--repeat") == 0 ||
                     strcmp(*at, "--trace") == 0;
        if (strcmp(*at, "--elements") == 0)
            o->elements = true;
        else if (strcmp(*at, "--csv") == 0)
            o->csv = true;
        else if (takes && (*at)[2] == 't')
            o->trace = value;
        else if (takes)
            *((*at)[4] == 'w' ? &o->rows : &o->times) = strtoul(value, NULL, 10);
        else if (strncmp(*at, "--", 2) == 0 || !add_argument(o, *at))
            return false;
        at += takes && at[1] != NULL;
    }
    return (o->path != NULL) != o->elements && o->times > 0;
}

int main(int count, char **arguments)
{
    options o = {.rows = 20, .times = 1};
    columns_error error = {"no memory"};
    bool help = count == 2 && strcmp(arguments[1], "--help") == 0;
    if (count == 1) {
        o.elements = o.again = true;
        o.times = 1000;
        strcpy(o.query, columns_default_query);
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
