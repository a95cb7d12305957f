/* SPDX-License-Identifier: MIT */
/* columns: expressions over the columns of a CSV file. */
#include "compare.h"
#include "error.h"
#include "print.h"
#include "progress.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { DEFAULT_ROWS = 20, DEFAULT_TIMES = 10000, FAILED = 1, REFUSED = 2 };

typedef struct options {
    const char *path; /* NULL: the elements */
    char *query;      /* NULL: none was given */
    size_t rows;      /* to show; 0: all */
    size_t times;     /* to repeat the table */
    bool csv, report, compare;
} options;

static const char usage[] =
    "columns [OPTION…] FILE.csv [EXPRESSION…]    evaluates expressions over a CSV file\n"
    "columns [OPTION…] --elements [EXPRESSION…]  the same over the chemical elements\n"
    "columns                                     a job of a second, then a comparison\n"
    "\n"
    "  columns weather.csv                       lists the columns and their types\n"
    "  columns weather.csv 'date, temp_max - temp_min as range where wind > 8'\n"
    "  columns weather.csv weather 'count(*)' 'avg(temp_max)' 'group by weather order by 2 desc'\n"
    "\n"
    "FILE may be - for standard input. Expressions are separated by commas or are arguments of\n"
    "their own; where, group by and order by come last. A column's name in \"quotes\" or\n"
    "[brackets] may hold anything; a text is in 'quotes'.\n"
    "\n"
    "  operators   + - * / %  = != < <= > >=  and or not  is null, is not null\n"
    "  functions   if(c, a, b) coalesce(a, b) int() real() bool() text() abs() sqrt() exp() ln()\n"
    "              floor() ceil() round() length() lower() upper() substr(text, first, count)\n"
    "  aggregates  count(*) count() sum() avg() min() max()\n"
    "\n"
    "  --rows N    rows to show, or all; aggregates are always shown whole (20)\n"
    "  --csv       prints CSV, all rows, instead of a table\n"
    "  --report    prints what each call site acquired\n"
    "  --repeat N  the rows N times over\n"
    "  --compare   runs the job with temporaries from malloc, static buffers and Tidepool\n"
    "  --elements  instead of a file: the chemical elements, built in\n"
    "  --help      prints this\n"
    "\n"
    "Exit status: 0; 1 if memory or output failed; 2 if the input or the query is wrong.\n";

/* ---- options ---- */

static bool read_count(const char *text, size_t least, size_t *out)
{
    char *end;
    unsigned long long count = strtoull(text, &end, 10);
    *out = (size_t)count;
    return *end == '\0' && text[0] >= '0' && text[0] <= '9' && count >= least &&
           count <= SIZE_MAX / 2;
}

static bool begins_clause(const char *text)
{
    static const char *const clauses[] = {"where", "group", "order"};
    text += strspn(text, " \t\n");
    for (size_t i = 0; i < sizeof clauses / sizeof *clauses; i++) {
        size_t length = strlen(clauses[i]);
        if (strncasecmp(text, clauses[i], length) == 0 && strchr(" \t\n", text[length]) != NULL)
            return true;
    }
    return false;
}

/* One query of all arguments: commas between expressions, none before a clause. */
static bool join(options *o, char **arguments, columns_error *error)
{
    size_t room = 1;
    for (char **a = arguments; *a != NULL; a++)
        room += strlen(*a) + 2;
    if (*arguments == NULL)
        return true;
    o->query = calloc(1, room);
    if (o->query == NULL)
        return columns_no_memory(error);
    char *to = o->query;
    for (char **a = arguments; *a != NULL; a++)
        to += sprintf(to, "%s%s", a == arguments ? "" : begins_clause(*a) ? " " : ", ", *a);
    return true;
}

static bool read_option(options *o, int option, columns_error *error)
{
    switch (option) {
    case 'r':
        o->rows = 0;
        if (strcmp(optarg, "all") != 0 && !read_count(optarg, 1, &o->rows))
            return columns_fail(error, "--rows takes a number or all, not %s", optarg);
        return true;
    case 't':
        return read_count(optarg, 1, &o->times) ||
               columns_fail(error, "--repeat takes a number, not %s", optarg);
    case 'v': o->csv = true; o->rows = 0; return true;
    case 'p': o->report = true; return true;
    case 'm': o->compare = true; return true;
    case 'e': o->path = NULL; return true;
    default: return columns_fail(error, "try columns --help");
    }
}

/* False when there is nothing more to do: *status is what to exit with. */
static bool read_options(options *o, int count, char **arguments, int *status,
                         columns_error *error)
{
    static const struct option known[] = {
        {"rows", required_argument, NULL, 'r'}, {"repeat", required_argument, NULL, 't'},
        {"csv", no_argument, NULL, 'v'},        {"report", no_argument, NULL, 'p'},
        {"compare", no_argument, NULL, 'm'},    {"elements", no_argument, NULL, 'e'},
        {"help", no_argument, NULL, 'h'},       {0},
    };
    bool elements = false;
    for (int option; (option = getopt_long(count, arguments, "", known, NULL)) != -1;) {
        if (option == 'h') {
            fputs(usage, stdout);
            *status = 0;
            return false;
        }
        elements = elements || option == 'e';
        *status = REFUSED;
        if (!read_option(o, option, error))
            return false;
    }
    if (!elements && optind < count)
        o->path = arguments[optind++];
    else if (!elements && count > 1) {
        columns_fail(error, "no file is given; try columns --help");
        *status = REFUSED;
        return false;
    }
    *status = FAILED;
    return join(o, arguments + optind, error);
}

/* ---- work ---- */

static columns_table *load(const options *o, columns_error *error)
{
    columns_table *table = o->path == NULL ? columns_table_elements(error)
                                           : columns_table_load(o->path, error);
    if (table == NULL || o->times == 1)
        return table;
    columns_table *repeated = columns_table_repeat(table, o->times, error);
    columns_table_destroy(table);
    return repeated;
}

static void print_result(FILE *out, const options *o, const columns_table *result, size_t found)
{
    if (o->csv)
        print_csv(out, result);
    else
        print_table(out, result, found);
}

static bool run(FILE *out, const options *o, columns_job *job, columns_error *error)
{
    if (o->report && tide_profile_observe(true) != TIDE_OK)
        return columns_fail(error, "%s", tide_error_message());
    columns_table *result = columns_run_tide(job, tide_thread_pool(), error);
    tide_profile_observe(false);
    if (result == NULL)
        return false;
    progress_stop();
    print_result(out, o, result, columns_job_found(job));
    columns_table_destroy(result);
    if (o->report) {
        fputc('\n', out);
        tide_profile_print(out);
    }
    if (o->compare) {
        progress_start();
        fputc('\n', out);
        return compare(out, job, error);
    }
    return true;
}

/* Exit status. What is to be printed goes to `out`, which is memory. */
static int work(FILE *out, const options *o, columns_error *error)
{
    columns_table *table = load(o, error);
    if (table == NULL)
        return REFUSED;
    int status = 0;
    if (o->query == NULL) {
        print_columns(out, table);
    } else {
        columns_job *job = columns_job_create(table, o->query, o->rows, error);
        status = job == NULL ? REFUSED : run(out, o, job, error) ? 0 : FAILED;
        columns_job_destroy(job);
    }
    columns_table_destroy(table);
    return status;
}

/* Nothing reaches stdout before all went well. */
static int print_all(const char *text, size_t length)
{
    if (fwrite(text, 1, length, stdout) == length && fflush(stdout) == 0)
        return 0;
    perror("columns: standard output");
    return FAILED;
}

static void default_job(options *o)
{
    o->times = DEFAULT_TIMES;
    o->compare = true;
    o->query = strdup(columns_default_query);
    printf("The %d rows of elements.csv, %d times over:\n\n%s\n\n", 118, DEFAULT_TIMES,
           columns_default_query);
    fflush(stdout);
}

int main(int count, char **arguments)
{
    options o = {.rows = DEFAULT_ROWS, .times = 1};
    columns_error error = {""};
    int status = 0;
    if (count == 1)
        default_job(&o);
    else if (!read_options(&o, count, arguments, &status, &error)) {
        if (error.text[0] != '\0')
            fprintf(stderr, "%s\n", error.text);
        return status;
    }
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    progress_start();
    status = out == NULL ? FAILED : work(out, &o, &error);
    progress_stop();
    if (out == NULL || fclose(out) != 0)
        status = FAILED;
    if (status == 0)
        status = print_all(text, length);
    else
        fprintf(stderr, "%s\n", error.text);
    free(text);
    free(o.query);
    return status;
}
