/* SPDX-License-Identifier: MIT */
/* Queries on small tables: what every operator gives, nulls included, and what is refused. */
#include "support.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

static const char numbers[] = "i,j,r,b,t,u\n"
                              "7,2,1.5,true,alpha,alpha\n"
                              "-7,2,-2.5,false,beta,alpha\n"
                              "5,0,0,true,gamma,delta\n"
                              ",3,,,,x\n"
                              "9223372036854775807,1,1e300,false,12,true\n";

static void append_value(char *to, const columns_table *t, size_t index, size_t row)
{
    const struct column *c = &t->columns[index];
    to += strlen(to);
    if (column_null(c, row))
        strcpy(to, "null");
    else if (c->type == TIDE_I64)
        sprintf(to, "%" PRId64, ((const int64_t *)c->values)[row]);
    else if (c->type == TIDE_F64)
        sprintf(to, "%.12g", ((const double *)c->values)[row]);
    else if (c->type == TIDE_BOOL)
        strcpy(to, ((const bool *)c->values)[row] ? "true" : "false");
    else
        strcpy(to, dictionary_words(t->words)[((const int32_t *)c->values)[row]].text);
}

static columns_table *load(const char *csv)
{
    columns_error error = {.text = ""};
    columns_table *table = columns_table_load(file_with(csv, strlen(csv)), &error);
    if (table == NULL)
        fail_msg("%s", error.text);
    return table;
}

/* The result as text: fields separated by "|", rows by "; ". */
static void assert_result(const char *csv, const char *query, const char *want)
{
    char got[4000] = "";
    columns_error error = {.text = ""};
    columns_table *table = load(csv);
    columns_job *job = columns_job_create(table, query, 0, &error);
    columns_table *result = job == NULL ? NULL : columns_run_tide(job, tide_pool_local(), &error);
    if (result == NULL)
        fail_msg("%s\n%s", query, error.text);
    for (size_t row = 0; row < result->rows; row++) {
        for (size_t i = 0; i < result->column_count; i++) {
            strcat(got, i > 0 ? "|" : row > 0 ? "; " : "");
            append_value(got, result, i, row);
        }
    }
    if (strcmp(got, want) != 0)
        fail_msg("%s\n  gives   %s\n  but not %s", query, got, want);
    columns_table_destroy(result);
    columns_job_destroy(job);
    columns_table_destroy(table);
}

static void assert_values(const char *expression, const char *want)
{
    assert_result(numbers, expression, want);
}

static void assert_refused(const char *query, const char *message)
{
    columns_error error = {.text = ""};
    columns_table *table = load(numbers);
    columns_job *job = columns_job_create(table, query, 0, &error);
    if (job != NULL || strcmp(error.text, message) != 0)
        fail_msg("%s\nis answered with\n%s\nbut not with\n%s", query, error.text, message);
    columns_table_destroy(table);
}

/* ---- operators ---- */

static void integer_arithmetic(void **state)
{
    (void)state;
    assert_values("i + j", "9; -5; 5; null; null"); /* the last does not fit */
    assert_values("i - j", "5; -9; 5; null; 9223372036854775806");
    assert_values("i * j", "14; -14; 0; null; 9223372036854775807");
    assert_values("i * 2", "14; -14; 10; null; null");
    assert_values("2 - i", "-5; 9; -3; null; -9223372036854775805");
    assert_values("i % j", "1; -1; null; null; 0");
    assert_values("i % -1", "0; 0; 0; null; 0");
    assert_values("-i", "-7; 7; -5; null; -9223372036854775807");
    assert_values("-9223372036854775807 - i where i = 5", "null");
    assert_values("1 + 2 * 3 - 4 where j = 3", "3");
    assert_values("(1 + 2) * 3 where j = 3", "9");
    assert_values("10 - 4 - 3 where j = 3", "3");
}

static void division_is_real_and_by_zero_null(void **state)
{
    (void)state;
    assert_values("i / j", "3.5; -3.5; null; null; 9.22337203685e+18");
    assert_values("i / 0", "null; null; null; null; null");
    assert_values("1 / r", "0.666666666667; -0.4; null; null; 1e-300");
    assert_values("i % 0", "null; null; null; null; null");
    assert_values("r % 1", "0.5; -0.5; 0; null; 0");
    assert_values("7 / 2 where j = 0", "3.5");
}

static void integers_meet_reals(void **state)
{
    (void)state;
    assert_values("i + r where j < 3 and i < 100", "8.5; -9.5; 5");
    assert_values("i + 0.5 where j = 0", "5.5");
    assert_values("r < j", "true; true; false; null; false");
    assert_values("if(b, i, r) where j < 3 and i < 100", "7; -2.5; 5");
}

static void comparisons(void **state)
{
    (void)state;
    assert_values("i = 7", "true; false; false; null; false");
    assert_values("i != 7", "false; true; true; null; true");
    assert_values("i <> 7", "false; true; true; null; true");
    assert_values("i < j", "false; true; false; null; false");
    assert_values("i <= 7", "true; true; true; null; false");
    assert_values("7 <= i", "true; false; false; null; true");
    assert_values("i >= j", "true; false; true; null; true");
    assert_values("j > i", "false; true; false; null; false");
    assert_values("b = true", "true; false; true; null; false");
    assert_values("b > false", "true; false; true; null; false");
    assert_values("r == 0", "false; false; true; null; false");
    assert_values("3 > 2 where j = 3", "true");
    assert_values("i = null", "null; null; null; null; null");
}

static void texts_compare_by_bytes(void **state)
{
    (void)state;
    assert_values("t = 'beta'", "false; true; false; null; false");
    assert_values("t != 'beta'", "true; false; true; null; true");
    assert_values("t < 'beta'", "true; false; false; null; true");
    assert_values("t >= 'beta'", "false; true; true; null; false");
    assert_values("t = u", "true; false; false; null; false");
    assert_values("t > u", "false; true; true; null; false");
    assert_values("t = 'nowhere in the table'", "false; false; false; null; false");
    assert_values("'it''s' = 'it''s' where j = 3", "true");
    assert_result("t\nab\nabc\na\n", "t order by t", "a; ab; abc");
}

static void logic_knows_the_unknown(void **state)
{
    (void)state;
    const char *truth = "a,b\ntrue,true\ntrue,false\ntrue,\nfalse,true\nfalse,false\nfalse,\n"
                        ",true\n,false\n,\n";
    assert_result(truth, "a and b", "true; false; null; false; false; false; null; false; null");
    assert_result(truth, "a or b", "true; true; true; true; false; null; true; null; null");
    assert_result(truth, "not a", "false; false; false; true; true; true; null; null; null");
    assert_result(truth, "a and true", "true; true; true; false; false; false; null; null; null");
    assert_result(truth, "null or a", "true; true; true; null; null; null; null; null; null");
    assert_result(truth, "not a or b where a is null", "true; null; null");
    assert_result(truth, "count(*) where a", "3");
    assert_result(truth, "count(*) where not a", "3");
    assert_result(truth, "count(*) where null", "0");
}

static void null_tests_and_replacement(void **state)
{
    (void)state;
    assert_values("i is null", "false; false; false; true; false");
    assert_values("i + 1 is not null", "true; true; true; false; false");
    assert_values("coalesce(t, 'none')", "alpha; beta; gamma; none; 12");
    assert_values("coalesce(r, j) where i is null", "3");
    assert_values("coalesce(null, i) where j = 0", "5");
    assert_values("null where j = 0", "null");
    assert_values("j is null", "false; false; false; false; false");
}

static void conditions(void **state)
{
    (void)state;
    assert_values("if(b, 'yes', 'no')", "yes; no; yes; no; no"); /* null counts as false */
    assert_values("if(i > 0, i, null)", "7; null; 5; null; 9223372036854775807");
    assert_values("if(b, r, -1)", "1.5; -1; 0; -1; -1");
    assert_values("if(true, i, j)", "7; -7; 5; null; 9223372036854775807");
    assert_values("if(i is null, if(u = 'x', 1, 2), 3)", "3; 3; 3; 1; 3");
}

static void casts(void **state)
{
    (void)state;
    assert_values("int(r)", "1; -2; 0; null; null");
    assert_values("int(b)", "1; 0; 1; null; 0");
    assert_values("int(t)", "null; null; null; null; 12");
    assert_values("int('-3.9') where j = 0", "-3");
    assert_values("real(i) / 2 where j = 2", "3.5; -3.5");
    assert_values("real(t)", "null; null; null; null; 12");
    assert_values("bool(i)", "true; true; true; null; true");
    assert_values("bool(r)", "true; true; false; null; true");
    assert_values("bool(u)", "null; null; null; null; true");
    assert_values("text(i)", "7; -7; 5; null; 9223372036854775807");
    assert_values("text(r) where j < 3", "1.5; -2.5; 0.0; 1e+300");
    assert_values("text(b)", "true; false; true; null; false");
    assert_values("int(9.3e18) where j = 0", "null");
    assert_values("int(-9223372036854775808.0) where j = 0", "-9223372036854775808");
}

static void functions_of_numbers(void **state)
{
    (void)state;
    assert_values("abs(i) where j < 3", "7; 7; 5; 9223372036854775807");
    assert_values("abs(r) where j < 3", "1.5; 2.5; 0; 1e+300");
    assert_values("abs(-9223372036854775807 - 1) where j = 0", "null");
    assert_values("sqrt(i) where j < 3 and i < 10", "2.64575131106; null; 2.2360679775");
    assert_values("floor(r) where j = 2", "1; -3");
    assert_values("ceil(r) where j = 2", "2; -2");
    assert_values("round(r) where j = 2", "2; -3");
    assert_values("floor(i) where j = 0", "5");
    assert_values("ln(r) where j < 3", "0.405465108108; null; null; 690.775527898");
    assert_values("exp(r) where j = 0", "1");
}

static void functions_of_texts(void **state)
{
    (void)state;
    assert_values("length(t)", "5; 4; 5; null; 2");
    assert_values("upper(t)", "ALPHA; BETA; GAMMA; null; 12");
    assert_values("lower(upper(t))", "alpha; beta; gamma; null; 12");
    assert_values("substr(t, 2, 3)", "lph; eta; amm; null; 2");
    assert_values("substr(t, 0, 3) where j = 0", "ga");
    assert_values("substr(t, -5, 3) where j = 0", "");
    assert_values("substr(t, 9, 3) where j = 0", "");
    assert_values("substr(t, 2, -1) where j = 0", "");
    assert_values("substr(t, j, 1) where i = 7", "l");
    assert_result("t\n\xc3\xa4\xc3\xb6\xc3\xbc\n", "length(t), substr(t, 2, 1)", "3|\xc3\xb6");
}

/* ---- names ---- */

static void columns_are_named_in_three_ways(void **state)
{
    (void)state;
    const char *csv = "Cost Total $,x,X,is,a \"b\"\n5,1,2,3,4\n";
    assert_result(csv, "\"Cost Total $\", [Cost Total $], \"cost total $\"", "5|5|5");
    assert_result(csv, "x, X, \"is\", \"a \"\"b\"\"\"", "1|2|3|4");
    assert_result(csv, "*", "5|1|2|3|4");
    assert_result(csv, "[is], *", "3|5|1|2|3|4");
}

/* ---- aggregates ---- */

static void aggregates_leave_nulls_out(void **state)
{
    (void)state;
    const char *csv = "n,r,t,b\n1,0.5,x,true\n2,,y,false\n,1.5,,\n6,4,a,true\n";
    assert_result(csv, "count(*), count(n), sum(n), avg(n), min(n), max(n)", "4|3|9|3|1|6");
    assert_result(csv, "count(r), sum(r), avg(r), min(r), max(r)", "3|6|2|0.5|4");
    assert_result(csv, "count(t), min(t), max(t), min(b), max(b)", "3|a|y|false|true");
    assert_result(csv, "sum(n) / count(*) + 1", "3.25");
    assert_result(csv, "sum(int(b)), avg(n * 2)", "2|6");
    assert_result(csv, "count(1), sum(1), max('z'), count(null)", "4|4|z|0");
}

static void aggregates_of_nothing(void **state)
{
    (void)state;
    const char *csv = "n,t\n1,x\n,y\n";
    assert_result(csv, "count(*), count(n), sum(n), avg(n), min(t) where t = 'z'",
                  "0|0|null|null|null");
    assert_result(csv, "t, sum(n), min(n), avg(n) group by t order by t",
                  "x|1|1|1; y|null|null|null");
    assert_result(csv, "t, count(*) where t = 'z' group by t", "");
    assert_result("n\n", "count(*), max(n)", "0|null");
    assert_result("n\n", "n", "");
}

static void integer_sums_are_exact_and_null_if_they_do_not_fit(void **state)
{
    (void)state;
    const char *big = "n\n9223372036854775807\n9223372036854775807\n-9223372036854775807\n";
    assert_result(big, "sum(n)", "9223372036854775807");
    assert_result(big, "sum(n), avg(n) where n > 0", "null|9.22337203685e+18");
}

static void real_sums_do_not_drift(void **state)
{
    (void)state;
    assert_result("x\n1\n1e100\n1\n-1e100\n", "sum(x)", "2");
    assert_result("x\n1e308\n1e308\n", "sum(x)", "inf");
}

static void groups_of_every_type(void **state)
{
    (void)state;
    const char *csv = "n,r,t,b,v\n1,0.5,x,true,1\n2,0.5,y,false,2\n1,,x,,3\n,0.5,,true,4\n";
    assert_result(csv, "n, sum(v) group by n order by n", "null|4; 1|4; 2|2");
    assert_result(csv, "r, sum(v) group by r order by r", "null|3; 0.5|7");
    assert_result(csv, "t, sum(v) group by t order by t desc", "y|2; x|4; null|4");
    assert_result(csv, "b, sum(v) group by b order by b", "null|3; false|2; true|5");
    assert_result(csv, "n, t, count(*) group by n, t order by n, t", "null|null|1; 1|x|2; 2|y|1");
    assert_result(csv, "n > 1, sum(v) group by n > 1 order by 1", "null|4; false|4; true|2");
    assert_result("z,v\n0.0,1\n-0.0,2\n1,3\n", "sum(v) group by z order by 1", "3; 3");
}

static void groups_by_label_and_position(void **state)
{
    (void)state;
    const char *csv = "d,v\n2012-01,1\n2012-02,2\n2013-01,4\n";
    assert_result(csv, "substr(d, 1, 4) as year, sum(v) group by year order by year",
                  "2012|3; 2013|4");
    assert_result(csv, "substr(d, 1, 4), sum(v) group by 1 order by 2 desc", "2013|4; 2012|3");
    assert_result(csv, "sum(v) + length(substr(d, 1, 4)) group by substr(d, 1, 4) order by 1",
                  "7; 8");
    assert_result(csv, "max(v) group by 'x'", "4");
}

static void thousands_of_groups(void **state)
{
    (void)state;
    enum { GROUPS = 9000, ROWS = 30000 };
    char *csv = malloc(ROWS * 8 + 8), *to = csv;
    to += sprintf(to, "g\n");
    for (int i = 0; i < ROWS; i++)
        to += sprintf(to, "%d\n", i * 7 % GROUPS);
    columns_error error = {.text = ""};
    columns_table *t = load(csv);
    columns_job *job =
        columns_job_create(t, "g, sum(g) / count(*), count(*) group by g order by g", 0, &error);
    columns_table *result = columns_run_tide(job, tide_pool_local(), &error);
    assert_non_null(result);
    assert_int_equal(result->rows, GROUPS);
    int64_t rows = 0;
    for (size_t i = 0; i < GROUPS; i++) {
        assert_int_equal(((int64_t *)result->columns[0].values)[i], i);
        assert_true(((double *)result->columns[1].values)[i] == (double)i);
        rows += ((int64_t *)result->columns[2].values)[i];
    }
    assert_int_equal(rows, ROWS);
    columns_table_destroy(result);
    columns_job_destroy(job);
    columns_table_destroy(t);
    free(csv);
}

/* ---- order and batches ---- */

static void order_by_several_keys(void **state)
{
    (void)state;
    const char *csv = "a,b\n2,x\n1,y\n2,\n1,x\n,z\n";
    assert_result(csv, "a, b order by a, b desc", "null|z; 1|y; 1|x; 2|x; 2|null");
    assert_result(csv, "b order by a desc, 1", "null; x; x; y; z");
    assert_result(csv, "b as name order by name desc, a", "z; y; x; x; null");
    assert_result(csv, "a order by -a", "null; 2; 2; 1; 1");
    assert_result(csv, "b, count(*) group by b order by sum(a) desc, b", "x|2; null|1; y|1; z|1");
}

static void batches_join_without_a_seam(void **state)
{
    (void)state;
    enum { ROWS = 10000 }; /* two full batches and a part of one */
    char *csv = malloc(ROWS * 14 + 8), *to = csv, want[100];
    to += sprintf(to, "n,m\n");
    for (int i = 0; i < ROWS; i++)
        to += sprintf(to, "%d,%s\n", i, i % 3 == 0 ? "" : "1");
    int64_t all = (int64_t)ROWS * (ROWS - 1) / 2, some = 0, count = 0;
    for (int i = 0; i < ROWS; i++)
        if (i % 3 != 0 && i % 2 == 0) {
            some += i;
            count++;
        }
    sprintf(want, "%d|%" PRId64 "|%d", ROWS, all, ROWS - (ROWS + 2) / 3);
    assert_result(csv, "count(*), sum(n), count(m)", want);
    sprintf(want, "%" PRId64 "|%" PRId64, count, some);
    assert_result(csv, "count(*), sum(n * m) where m = 1 and n % 2 = 0", want);
    assert_result(csv, "n where n % 2500 = 2499", "2499; 4999; 7499; 9999");
    free(csv);
}

static void only_the_rows_wanted_are_kept_but_all_are_found(void **state)
{
    (void)state;
    char csv[60000] = "n\n", *to = csv + 2;
    for (int i = 0; i < 9000; i++)
        to += sprintf(to, "%d\n", i);
    const struct {
        const char *query;
        size_t rows, found;
        int64_t first;
    } cases[] = {{"n", 5, 9000, 0},
                 {"n where n >= 100", 5, 8900, 100},
                 {"n order by n desc", 5, 9000, 8999},
                 {"n where n < 3", 3, 3, 0},
                 {"n % 10, count(*) group by 1", 10, 10, 0}};
    columns_table *t = load(csv);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        columns_error error = {.text = ""};
        columns_job *job = columns_job_create(t, cases[i].query, 5, &error);
        columns_table *result = columns_run_tide(job, tide_pool_local(), &error);
        assert_non_null(result);
        assert_int_equal(result->rows, cases[i].rows);
        assert_int_equal(columns_job_found(job), cases[i].found);
        assert_int_equal(*(int64_t *)result->columns[0].values, cases[i].first);
        columns_table_destroy(result);
        columns_job_destroy(job);
    }
    columns_table_destroy(t);
}

/* ---- complaints ---- */

static void syntax_errors_show_their_place(void **state)
{
    (void)state;
    assert_refused("i +", "query:1:4: a value expected, but the query ends\n  i +\n     ^");
    assert_refused("", "query:1:1: a value expected, but the query ends\n  \n  ^");
    assert_refused("i i", "query:1:3: an operator or a clause expected, not i\n  i i\n    ^");
    assert_refused("(i", "query:1:3: ) expected, but the query ends\n  (i\n    ^");
    assert_refused("i,", "query:1:3: a value expected, but the query ends\n  i,\n    ^");
    assert_refused("i where", "query:1:8: a value expected, but the query ends\n"
                              "  i where\n         ^");
    assert_refused("i group i", "query:1:9: by expected, not i\n  i group i\n          ^");
    assert_refused("i is 3", "query:1:6: null expected, not 3\n  i is 3\n       ^");
    assert_refused("i as 3", "query:1:6: a name expected, not 3\n  i as 3\n       ^");
    assert_refused("i ? j", "query:1:3: unexpected character\n  i ? j\n    ^");
    assert_refused("'abc", "query:1:1: this ' is never closed\n  'abc\n  ^");
    assert_refused("i + \"abc", "query:1:5: this \" is never closed\n  i + \"abc\n      ^");
    assert_refused("[abc", "query:1:1: this [ is never closed\n  [abc\n  ^");
    assert_refused("1.2.3", "query:1:4: unexpected character in a number\n  1.2.3\n     ^");
    assert_refused("1x", "query:1:2: unexpected character in a number\n  1x\n   ^");
    assert_refused("i order by i, j desc x",
                   "query:1:22: nothing more expected, not x\n  i order by i, j desc x\n"
                   "                       ^");
    assert_refused("i < j < r", "query:1:7: an operator or a clause expected, not <\n"
                                "  i < j < r\n        ^");
    assert_refused("i,\n  j +\nwhere b", "query:3:1: a value expected, not where\n"
                                         "  where b\n  ^");
    assert_refused("'\xc3\xa4' + ?", "query:1:7: unexpected character\n"
                                     "  '\xc3\xa4' + ?\n        ^");
}

static void names_and_types_are_checked(void **state)
{
    (void)state;
    assert_refused("wind", "query:1:1: there is no column wind; there are i, j, r, b, t, u\n"
                           "  wind\n  ^");
    assert_refused("foo(i)", "query:1:1: there is no function foo\n  foo(i)\n  ^");
    assert_refused("sqrt(i, j)", "query:1:7: sqrt takes 1 argument\n  sqrt(i, j)\n        ^");
    assert_refused("if(b, i)", "query:1:8: if takes 3 arguments\n  if(b, i)\n         ^");
    assert_refused("i + t", "query:1:5: arithmetic needs numbers, this is text\n"
                            "  i + t\n      ^");
    assert_refused("sqrt(t)", "query:1:6: sqrt needs a number, this is text\n"
                              "  sqrt(t)\n       ^");
    assert_refused("length(i)", "query:1:8: length needs text, this is integer\n"
                                "  length(i)\n         ^");
    assert_refused("i and b", "query:1:1: and needs boolean, this is integer\n"
                              "  i and b\n  ^");
    assert_refused("not t", "query:1:5: not needs boolean, this is text\n  not t\n      ^");
    assert_refused("i = t", "query:1:5: comparison: integer on one side, text on the other\n"
                            "  i = t\n      ^");
    assert_refused("if(b, i, t)", "query:1:10: if: integer on one side, text on the other\n"
                                  "  if(b, i, t)\n           ^");
    assert_refused("i where i", "query:1:9: where needs boolean, this is integer\n"
                                "  i where i\n          ^");
    assert_refused("sum(t)", "query:1:5: sum needs a number, this is text\n"
                             "  sum(t)\n      ^");
    assert_refused("* + 1", "query:1:3: an operator or a clause expected, not +\n"
                            "  * + 1\n    ^");
    assert_refused("sum(*)", "query:1:5: a value expected, not *\n  sum(*)\n      ^");
}

static void aggregates_are_refused_where_they_make_no_sense(void **state)
{
    (void)state;
    assert_refused("i, count(*)", "query:1:1: i is neither in an aggregate nor in group by\n"
                                  "  i, count(*)\n  ^");
    assert_refused("*, count(*) group by i",
                   "query:1:1: j is neither in an aggregate nor in group by\n"
                   "  *, count(*) group by i\n  ^");
    assert_refused("sum(avg(i))", "query:1:5: an aggregate inside an aggregate\n"
                                  "  sum(avg(i))\n      ^");
    assert_refused("i where sum(i) > 3", "query:1:9: an aggregate inside where\n"
                                         "  i where sum(i) > 3\n          ^");
    assert_refused("sum(i) as s group by s", "query:1:1: an aggregate inside group by\n"
                                             "  sum(i) as s group by s\n  ^");
    assert_refused("i order by 2", "query:1:12: there is no item number 2\n"
                                   "  i order by 2\n             ^");
    assert_refused("i, sum(j) group by 3", "query:1:20: there is no item number 3\n"
                                           "  i, sum(j) group by 3\n                     ^");
}

static void ambiguous_names_are_refused(void **state)
{
    (void)state;
    columns_error error = {.text = ""};
    columns_table *t = load("a,a,B,b\n1,2,3,4\n");
    assert_null(columns_job_create(t, "a", 0, &error));
    assert_string_equal(error.text, "query:1:1: there are several columns a\n  a\n  ^");
    columns_job *job = columns_job_create(t, "b, B, *", 0, &error);
    assert_non_null(job);
    columns_job_destroy(job);
    columns_table_destroy(t);
}

/* `open` so many times, `middle`, `close` as many times. */
static void assert_too_deep(const char *open, const char *middle, const char *close)
{
    enum { DEEP = 5000 };
    size_t one = strlen(open) + strlen(close);
    char *query = calloc(1, DEEP * one + strlen(middle) + 1), *to = query;
    for (int i = 0; i < DEEP; i++)
        to = stpcpy(to, open);
    to = stpcpy(to, middle);
    for (int i = 0; i < DEEP; i++)
        to = stpcpy(to, close);
    columns_error error = {.text = ""};
    columns_table *t = load(numbers);
    assert_null(columns_job_create(t, query, 0, &error));
    assert_memory_equal(error.text, "query:1:", 8);
    columns_table_destroy(t);
    free(query);
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    assert_too_deep("(", "i", ")");
    assert_too_deep("", "i", " + i");
    assert_too_deep("- ", "i", "");
    assert_too_deep("not ", "b", "");
    assert_too_deep("abs(", "i", ")");
    assert_too_deep("if(b, i, ", "i", ")");
    assert_too_deep("", "b", " and b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integer_arithmetic),
        cmocka_unit_test(division_is_real_and_by_zero_null),
        cmocka_unit_test(integers_meet_reals),
        cmocka_unit_test(comparisons),
        cmocka_unit_test(texts_compare_by_bytes),
        cmocka_unit_test(logic_knows_the_unknown),
        cmocka_unit_test(null_tests_and_replacement),
        cmocka_unit_test(conditions),
        cmocka_unit_test(casts),
        cmocka_unit_test(functions_of_numbers),
        cmocka_unit_test(functions_of_texts),
        cmocka_unit_test(columns_are_named_in_three_ways),
        cmocka_unit_test(aggregates_leave_nulls_out),
        cmocka_unit_test(aggregates_of_nothing),
        cmocka_unit_test(integer_sums_are_exact_and_null_if_they_do_not_fit),
        cmocka_unit_test(real_sums_do_not_drift),
        cmocka_unit_test(groups_of_every_type),
        cmocka_unit_test(groups_by_label_and_position),
        cmocka_unit_test(thousands_of_groups),
        cmocka_unit_test(order_by_several_keys),
        cmocka_unit_test(batches_join_without_a_seam),
        cmocka_unit_test(only_the_rows_wanted_are_kept_but_all_are_found),
        cmocka_unit_test(syntax_errors_show_their_place),
        cmocka_unit_test(names_and_types_are_checked),
        cmocka_unit_test(aggregates_are_refused_where_they_make_no_sense),
        cmocka_unit_test(ambiguous_names_are_refused),
        cmocka_unit_test(nesting_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
