/* SPDX-License-Identifier: MIT */
/* columns: expressions over the columns of a CSV file. */
#include "compare.h"
#include "error.h"
#include "print.h"
#include "progress.h"
#include "report.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { DEFAULT_ROWS = 20, DEFAULT_TIMES = 4000, FAILED = 1, REFUSED = 2 };

typedef struct options {
    const char *path;
    const char *trace; /* file for what is acquired and released, or NULL */
    char *query;       /* NULL: none was given */
    size_t rows;       /* to show; 0: all */
    size_t times;      /* to repeat the table */
    bool csv, report, compare, elements, help;
    bool by_default; /* there were no arguments */
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
    "  --csv       prints all rows as CSV instead of a table\n"
    "  --report    prints what each call site acquired, and what it became\n"
    "  --repeat N  the rows N times over\n"
    "  --compare   runs the job with temporaries from malloc, static buffers and Tidepool\n"
    "  --trace F   writes what is acquired and released to F, for tidepool-replay\n"
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
static bool add_to_query(options *o, const char *argument, columns_error *error)
{
    size_t used = o->query == NULL ? 0 : strlen(o->query);
    char *query = realloc(o->query, used + strlen(argument) + 3);
    if (query == NULL)
        return columns_no_memory(error);
    const char *between = used == 0 ? "" : begins_clause(argument) ? " " : ", ";
    sprintf(query + used, "%s%s", between, argument);
    o->query = query;
    return true;
}

typedef enum option { ROWS, REPEAT, CSV, REPORT, COMPARE, TRACE, ELEMENTS, HELP } option;

static const struct {
    const char *name;
    bool takes_value;
} known[] = {
    [ROWS] = {"--rows", true},          [REPEAT] = {"--repeat", true},
    [CSV] = {"--csv", false},           [REPORT] = {"--report", false},
    [COMPARE] = {"--compare", false},   [TRACE] = {"--trace", true},
    [ELEMENTS] = {"--elements", false}, [HELP] = {"--help", false},
};

static bool apply(options *o, option which, const char *text, columns_error *error)
{
    switch (which) {
    case ROWS:
        o->rows = 0;
        return strcmp(text, "all") == 0 || read_count(text, 1, &o->rows) ||
               columns_fail(error, "--rows takes a number or all, not %s", text);
    case REPEAT:
        return read_count(text, 1, &o->times) ||
               columns_fail(error, "--repeat takes a number, not %s", text);
    case CSV: o->csv = true; break;
    case REPORT: o->report = true; break;
    case COMPARE: o->compare = true; break;
    case TRACE: o->trace = text; break;
    case ELEMENTS: o->elements = true; break;
    case HELP: o->help = true; break;
    }
    return true;
}

/* --name, --name value or --name=value. Steps over a value that is an argument of its own. */
static bool read_option(options *o, char ***at, columns_error *error)
{
    const char *argument = **at;
    size_t length = strcspn(argument, "=");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strlen(known[i].name) != length || strncmp(argument, known[i].name, length) != 0)
            continue;
        const char *text = argument[length] == '=' ? argument + length + 1 : NULL;
        if (known[i].takes_value && text == NULL)
            text = (*at)[1] == NULL ? NULL : *++*at;
        if (known[i].takes_value != (text != NULL))
            return columns_fail(error, "%s takes %s value", known[i].name,
                                text == NULL ? "a" : "no");
        return apply(o, (option)i, text, error);
    }
    return columns_fail(error, "there is no option %s; try columns --help", argument);
}

/* The first argument that is no option is the file; what follows are expressions, which may
 * begin with a minus. */
static bool read_arguments(options *o, char **arguments, columns_error *error)
{
    for (char **at = arguments; *at != NULL; at++) {
        bool ok = true;
        if (strncmp(*at, "--", 2) == 0 && isalpha((unsigned char)(*at)[2]))
            ok = read_option(o, &at, error);
        else if (o->path == NULL && !o->elements)
            o->path = *at;
        else
            ok = add_to_query(o, *at, error);
        if (!ok)
            return false;
    }
    if (o->help)
        return true;
    if (o->path != NULL && o->elements)
        return columns_fail(error, "either --elements or a file: what is %s?", o->path);
    if (o->path == NULL && !o->elements)
        return columns_fail(error, "no file is given; try columns --help");
    if (o->query == NULL && (o->csv || o->report || o->compare))
        return columns_fail(error, "no expression is given; try columns --help");
    return true;
}

/* ---- work ---- */

static columns_table *load(const options *o, columns_error *error)
{
    columns_table *table =
        o->elements ? columns_table_elements(error) : columns_table_load(o->path, error);
    if (table == NULL || o->times == 1)
        return table;
    columns_table *repeated = columns_table_repeat(table, o->times, error);
    columns_table_destroy(table);
    return repeated;
}

static bool print_result(FILE *out, const options *o, const columns_table *result, size_t found,
                         columns_error *error)
{
    if (!o->csv)
        return print_table(out, result, found, error);
    print_csv(out, result);
    return true;
}

/* Each acquire of a disabled pool is one of a buffer, each rewind a release: the trace is that of
 * the program's temporaries. */
static columns_table *run_on_buffers(columns_job *job, FILE *trace, columns_error *error)
{
    columns_table *result = NULL;
    tide_buffers *buffers = tide_buffers_create(
        NULL, &(tide_buffers_options){.hook = tide_buffer_trace, .user = trace});
    tide_pool *pool = buffers == NULL
                          ? NULL
                          : tide_pool_create(&(tide_pool_options){
                                .name = "traced", .buffers = buffers, .disabled = true});
    if (pool == NULL)
        columns_exhaust(error, "no trace", tide_error_message());
    else
        result = columns_run_tide(job, pool, error);
    tide_pool_destroy(pool);
    tide_buffers_destroy(buffers);
    return result;
}

static columns_table *run_traced(const options *o, columns_job *job, columns_error *error)
{
    FILE *trace = fopen(o->trace, "w");
    if (trace == NULL) {
        columns_exhaust(error, o->trace, strerror(errno));
        return NULL;
    }
    columns_table *result = run_on_buffers(job, trace, error);
    bool whole = ferror(trace) == 0;
    if ((fclose(trace) != 0 || !whole) && result != NULL) {
        columns_table_destroy(result);
        columns_exhaust(error, o->trace, "it cannot be written");
        return NULL;
    }
    return result;
}

static bool run(FILE *out, const options *o, columns_job *job, columns_error *error)
{
    if (o->report && tide_profile_observe(true) != TIDE_OK)
        return columns_exhaust(error, "no report", tide_error_message());
    columns_table *result = o->trace != NULL ? run_traced(o, job, error)
                                             : columns_run_tide(job, tide_pool_local(), error);
    tide_profile_observe(false);
    if (result == NULL)
        return false;
    progress_stop();
    bool printed = print_result(out, o, result, columns_job_found(job), error);
    columns_table_destroy(result);
    if (printed && o->report) {
        fputc('\n', out);
        printed = print_report(out, error);
    }
    if (printed && o->compare) {
        progress_start();
        fputc('\n', out);
        return compare(out, job, error);
    }
    return printed;
}

static bool answer(FILE *out, const options *o, columns_table *table, columns_error *error)
{
    if (o->query == NULL) {
        print_columns(out, table);
        return true;
    }
    columns_job *job = columns_job_create(table, o->query, o->csv ? 0 : o->rows, error);
    bool ok = job != NULL && run(out, o, job, error);
    columns_job_destroy(job);
    return ok;
}

/* Exit status. */
static int work(FILE *out, const options *o, columns_error *error)
{
    if (o->by_default)
        fprintf(out, "The chemical elements, %d times over:\n\n%s\n\n", DEFAULT_TIMES,
                columns_default_query);
    progress_start();
    columns_table *table = load(o, error);
    bool ok = table != NULL && answer(out, o, table, error);
    columns_table_destroy(table);
    progress_stop();
    return ok ? 0 : columns_exhausted() ? FAILED : REFUSED;
}

static int output_failed(void)
{
    fprintf(stderr, "columns: standard output: %s\n", strerror(errno));
    return FAILED;
}

static int no_temporary_file(void)
{
    fprintf(stderr, "columns: no temporary file can be made, written and read in %s\n", P_tmpdir);
    return FAILED;
}

/* Nothing reaches stdout before all went well. */
static int print_all(FILE *out)
{
    char part[BUFSIZ];
    size_t length;
    if (fflush(out) != 0 || ferror(out) || fseek(out, 0, SEEK_SET) != 0)
        return no_temporary_file();
    while ((length = fread(part, 1, sizeof part, out)) > 0)
        if (fwrite(part, 1, length, stdout) != length)
            return output_failed();
    if (ferror(out))
        return no_temporary_file();
    return fflush(stdout) == 0 ? 0 : output_failed();
}

/* ---- the program ---- */

/* What `columns` does without arguments: a job on the elements, long enough to be measured. */
static bool take_default_job(options *o, columns_error *error)
{
    o->by_default = o->elements = o->compare = true;
    o->times = DEFAULT_TIMES;
    return add_to_query(o, columns_default_query, error);
}

/* Files that are opened must not get the numbers of streams that the caller has closed. To what
 * stands there now nothing can be written, and that is seen. */
static void take_closed_streams(void)
{
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++)
        if (fcntl(number, F_GETFD) < 0)
            (void)open("/", O_PATH | O_CLOEXEC); /* the lowest number that is free */
}

static int help(void)
{
    return fputs(usage, stdout) >= 0 && fflush(stdout) == 0 ? 0 : output_failed();
}

/* Exit status. What is to be printed waits in a file: a stream in memory (open_memstream) does not
 * say when it had no memory for a part. */
static int work_and_print(const options *o, columns_error *error)
{
    FILE *out = tmpfile();
    if (out == NULL)
        return no_temporary_file();
    int status = work(out, o, error);
    if (status == 0)
        status = print_all(out);
    else
        fprintf(stderr, "%s\n", error->text);
    fclose(out);
    return status;
}

int main(int count, char **arguments)
{
    options o = {.rows = DEFAULT_ROWS, .times = 1};
    columns_error error = {"out of memory"};
    int status;
    take_closed_streams();
    if (count == 1 ? take_default_job(&o, &error) : read_arguments(&o, arguments + 1, &error)) {
        status = o.help ? help() : work_and_print(&o, &error);
    } else {
        status = columns_exhausted() ? FAILED : REFUSED;
        fprintf(stderr, "%s\n", error.text);
    }
    free(o.query);
    return status;
}
