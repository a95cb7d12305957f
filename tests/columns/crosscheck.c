/* SPDX-License-Identifier: MIT */
/* Asks columns and another program the same questions, and compares what they say.
 *
 * usage: crosscheck CHECK PROGRAM SOURCE-TREE. Exit status 77: the other program, or the data,
 * is not here. Data that is no part of this repository is looked for in $TIDEPOOL_TEST_DATA,
 * or else beside the source tree. */
#include "answers.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SKIPPED = 77, LONGEST = 4096 };

static const char *program, *source_tree;
static const data_set *set;
static char data_file[LONGEST];

/* ---- the other program ---- */

static outcome ask_awk(const question *q)
{
    return run_program((const char *const[]){"awk", "-F,", q->other, data_file, NULL});
}

static outcome ask_sqlite(const question *q)
{
    char import[LONGEST + 40];
    snprintf(import, sizeof import, ".import '%s' t", data_file);
    return run_program((const char *const[]){"sqlite3", "-csv", "-cmd", ".mode csv", "-cmd", import,
                                             ":memory:", set->typed, q->other, NULL});
}

static outcome ask_columns(const question *q)
{
    return run_tested((const char *const[]){program, "--csv", data_file, q->query, NULL});
}

/* ---- comparing CSV ---- */

/* The next field, unquoted in place; *end is what ended it: ',', '\n', or '\0'. */
static char *next_field(char **at, char *end)
{
    bool quoted = **at == '"';
    char *field = *at += quoted, *to = field;
    for (; **at != '\0'; ++*at) {
        if (quoted && **at == '"') {
            ++*at;
            if (**at != '"')
                break;
        } else if (!quoted && (**at == ',' || **at == '\n' || **at == '\r')) {
            break;
        }
        *to++ = **at;
    }
    if (**at == '\r' && (*at)[1] == '\n')
        ++*at;
    *end = **at;
    if (*end != '\0')
        ++*at;
    *to = '\0';
    return field;
}

/* Equal texts, or numbers that agree to ten digits. */
static bool agree(const char *a, const char *b)
{
    if (strcmp(a, b) == 0)
        return true;
    char *end_a, *end_b;
    double x = strtod(a, &end_a), y = strtod(b, &end_b);
    if (*a == '\0' || *b == '\0' || *end_a != '\0' || *end_b != '\0')
        return false;
    return fabs(x - y) <= 1e-10 * fmax(fabs(x), fabs(y));
}

static size_t compare_answers(const question *q, char *ours, char *theirs)
{
    size_t rows = 0;
    while (*ours != '\0' && *theirs != '\0') {
        char end_a, end_b;
        size_t field = 0;
        rows++;
        do {
            char *a = next_field(&ours, &end_a), *b = next_field(&theirs, &end_b);
            field++;
            if (!agree(a, b) || end_a != end_b)
                fail_msg("%s\nrow %zu, field %zu: \"%s\", but the other says \"%s\"", q->query,
                         rows, field, a, b);
        } while (end_a == ',');
    }
    if (*ours != *theirs)
        fail_msg("%s\nafter %zu rows one of the answers ends:\n%s\n%s", q->query, rows, ours,
                 theirs);
    return rows;
}

static void both_say_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < set->count; i++) {
        const question *q = &set->questions[i];
        outcome ours = ask_columns(q);
        outcome theirs = set == &elements_awk ? ask_awk(q) : ask_sqlite(q);
        assert_string_equal(ours.err, "");
        assert_string_equal(theirs.err, "");
        assert_int_equal(ours.status, 0);
        assert_int_equal(theirs.status, 0);
        char end, *body = ours.out; /* past the header, which the other does not print */
        do
            next_field(&body, &end);
        while (end == ',');
        assert_true(compare_answers(q, body, theirs.out) > 0);
        outcome_free(&ours);
        outcome_free(&theirs);
    }
}

/* ---- what there is to compare ---- */

static bool find_data(void)
{
    const char *folder = getenv("TIDEPOOL_TEST_DATA");
    if (set->file == NULL)
        snprintf(data_file, sizeof data_file, "%s", file_with(messy_csv, strlen(messy_csv)));
    else if (strchr(set->file, '/') != NULL)
        snprintf(data_file, sizeof data_file, "%s/%s", source_tree, set->file);
    else if (folder != NULL)
        snprintf(data_file, sizeof data_file, "%s/%s", folder, set->file);
    else
        snprintf(data_file, sizeof data_file, "%s/../shared/data/%s", source_tree, set->file);
    return access(data_file, R_OK) == 0;
}

static const data_set *named(const char *name)
{
    static const data_set *const all[] = {&elements_awk, &elements_sql, &weather_sql,
                                          &birdstrikes_sql, &messy_sql};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

int main(int count, char **arguments)
{
    if (count != 4 || (set = named(arguments[1])) == NULL) {
        fputs("usage: crosscheck CHECK PROGRAM SOURCE-TREE\n", stderr);
        return 2;
    }
    program = arguments[2];
    source_tree = arguments[3];
    const char *other = set == &elements_awk ? "awk" : "sqlite3";
    if (!have_program(other) || !find_data()) {
        printf("skipped: %s or %s is not here\n", other, data_file);
        return SKIPPED;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_say_the_same)};
    return cmocka_run_group_tests_name(set->name, tests, NULL, NULL);
}
