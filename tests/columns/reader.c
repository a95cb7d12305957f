/* SPDX-License-Identifier: MIT */
/* Reading CSV: quoting, line ends, inference, and every complaint with its place. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "table.h"

static columns_table *load(const char *text)
{
    columns_error error = {.text = ""};
    columns_table *table = columns_table_load(file_with(text, strlen(text)), &error);
    if (table == NULL)
        fail_msg("%s", error.text);
    return table;
}

/* The message without the name of the file. */
static void assert_refused(const char *text, size_t length, const char *message)
{
    columns_error error = {.text = ""};
    const char *path = file_with(text, length);
    columns_table *table = columns_table_load(path, &error);
    assert_null(table);
    assert_memory_equal(error.text, path, strlen(path));
    assert_string_equal(error.text + strlen(path), message);
}
#define ASSERT_REFUSED(text, message) assert_refused(text, sizeof(text) - 1, message)

static const char *text_at(const columns_table *table, size_t index, size_t row)
{
    assert_int_equal(table->columns[index].type, TIDE_I32);
    int32_t code = ((const int32_t *)table->columns[index].values)[row];
    return dictionary_words(table->words)[code].text;
}

static int64_t integer_at(const columns_table *table, size_t index, size_t row)
{
    assert_int_equal(table->columns[index].type, TIDE_I64);
    return ((const int64_t *)table->columns[index].values)[row];
}

static double real_at(const columns_table *table, size_t index, size_t row)
{
    assert_int_equal(table->columns[index].type, TIDE_F64);
    return ((const double *)table->columns[index].values)[row];
}

/* ---- form ---- */

static void quoted_fields_hold_anything(void **state)
{
    (void)state;
    columns_table *t = load("a,b\n\"x,y\",\"say \"\"hi\"\"\"\n\"two\nlines\",\"\"\"\"\n");
    assert_int_equal(t->rows, 2);
    assert_string_equal(text_at(t, 0, 0), "x,y");
    assert_string_equal(text_at(t, 1, 0), "say \"hi\"");
    assert_string_equal(text_at(t, 0, 1), "two\nlines");
    assert_string_equal(text_at(t, 1, 1), "\"");
    columns_table_destroy(t);
}

static void line_ends_may_be_crlf_and_are_kept_in_quotes(void **state)
{
    (void)state;
    columns_table *t = load("a,b\r\n1,\"x\r\ny\"\r\n2,z\r\n");
    assert_int_equal(t->rows, 2);
    assert_int_equal(integer_at(t, 0, 1), 2);
    assert_string_equal(text_at(t, 1, 0), "x\r\ny");
    assert_string_equal(t->columns[1].name, "b");
    columns_table_destroy(t);
}

static void the_last_line_need_not_end(void **state)
{
    (void)state;
    const char *const texts[] = {"a,b\n1,x\n2,y", "a,b\r\n1,x\r\n2,y", "a,b\n1,x\n2,\"y\""};
    for (size_t i = 0; i < 3; i++) {
        columns_table *t = load(texts[i]);
        assert_int_equal(t->rows, 2);
        assert_string_equal(text_at(t, 1, 1), "y");
        columns_table_destroy(t);
    }
    columns_table *t = load("a,b\n1,");
    assert_int_equal(t->rows, 1);
    assert_true(column_null(&t->columns[1], 0));
    columns_table_destroy(t);
}

static void a_byte_order_mark_is_no_part_of_the_name(void **state)
{
    (void)state;
    columns_table *t = load("\xef\xbb\xbf"
                            "a,b\n1,2\n");
    assert_string_equal(t->columns[0].name, "a");
    columns_table_destroy(t);
    t = load("\xef\xbb\xbf\"a\"\n1\n");
    assert_string_equal(t->columns[0].name, "a");
    columns_table_destroy(t);
}

static void empty_lines_are_skipped_unless_there_is_one_column(void **state)
{
    (void)state;
    columns_table *t = load("\n\na,b\n\n1,2\n\r\n3,4\n\n");
    assert_int_equal(t->rows, 2);
    assert_int_equal(integer_at(t, 1, 1), 4);
    columns_table_destroy(t);
    t = load("a\n1\n\n3\n");
    assert_int_equal(t->rows, 3);
    assert_true(column_null(&t->columns[0], 1));
    assert_int_equal(integer_at(t, 0, 2), 3);
    columns_table_destroy(t);
}

static void a_quote_inside_a_plain_field_is_a_character(void **state)
{
    (void)state;
    columns_table *t = load("size\n5\" pipe\n");
    assert_string_equal(text_at(t, 0, 0), "5\" pipe");
    columns_table_destroy(t);
}

static void a_header_alone_is_a_table_without_rows(void **state)
{
    (void)state;
    columns_table *t = load("a,,c\n");
    assert_int_equal(t->rows, 0);
    assert_int_equal(t->column_count, 3);
    assert_string_equal(t->columns[1].name, "column 2");
    columns_table_destroy(t);
}

/* ---- types ---- */

static void assert_inferred(const char *values, tide_type type)
{
    char text[300];
    snprintf(text, sizeof text, "x,end\n%s", values);
    columns_table *t = load(text);
    if (t->columns[0].type != type)
        fail_msg("%s is %s", values, type_word(t->columns[0].type));
    columns_table_destroy(t);
}

static void each_column_has_the_narrowest_type_that_holds_it(void **state)
{
    (void)state;
    assert_inferred("1,\n-2,\n+3,\n,\n", TIDE_I64);
    assert_inferred("1,\n2.5,\n", TIDE_F64);
    assert_inferred(".5,\n5.,\n1e3,\n-1.5E-7,\n", TIDE_F64);
    assert_inferred("true,\nFalse,\n,\n", TIDE_BOOL);
    assert_inferred("true,\n1,\n", TIDE_I32);
    assert_inferred("1,\n2,\nthree,\n", TIDE_I32);
    assert_inferred("1,\n0x10,\n", TIDE_I32);
    assert_inferred("inf,\n", TIDE_I32);
    assert_inferred("nan,\n", TIDE_I32);
    assert_inferred("1 2,\n", TIDE_I32);
    assert_inferred("1e,\n", TIDE_I32);
    assert_inferred("-,\n", TIDE_I32);
    assert_inferred(".,\n", TIDE_I32);
    assert_inferred("\"12\",\n\" 7 \",\n", TIDE_I64);
    assert_inferred(",\n,\n", TIDE_I32);
}

static void integers_that_do_not_fit_become_reals(void **state)
{
    (void)state;
    columns_table *t = load("a,b\n9223372036854775807,9223372036854775808\n"
                            "-9223372036854775808,1\n");
    assert_true(integer_at(t, 0, 0) == INT64_MAX);
    assert_true(integer_at(t, 0, 1) == INT64_MIN);
    assert_true(real_at(t, 1, 0) == 0x1p63);
    assert_true(real_at(t, 1, 1) == 1);
    columns_table_destroy(t);
}

static void numbers_of_any_length_are_read_in_full(void **state)
{
    (void)state;
    char text[700] = "x\n1";
    memset(text + 3, '0', 300);
    columns_table *t = load(text);
    assert_true(real_at(t, 0, 0) == 1e300);
    columns_table_destroy(t);
    memset(text + 3, '0', 600); /* longer than any number that means something */
    t = load(text);
    assert_int_equal(strlen(text_at(t, 0, 0)), 601);
    columns_table_destroy(t);
}

static void empty_fields_are_null_quoted_or_not(void **state)
{
    (void)state;
    columns_table *t = load("n,t\n1,x\n,\n\"\",\"\"\n");
    for (size_t i = 0; i < 2; i++) {
        assert_false(column_null(&t->columns[i], 0));
        assert_true(column_null(&t->columns[i], 1));
        assert_true(column_null(&t->columns[i], 2));
    }
    columns_table_destroy(t);
}

static void equal_texts_have_equal_codes_in_all_columns(void **state)
{
    (void)state;
    columns_table *t = load("a,b\nx,y\ny,x\nx,x\n");
    const int32_t *a = t->columns[0].values, *b = t->columns[1].values;
    assert_int_equal(a[0], b[1]);
    assert_int_equal(a[1], b[0]);
    assert_int_equal(a[2], b[2]);
    assert_int_not_equal(a[0], a[1]);
    columns_table_destroy(t);
}

static void thousands_of_texts_are_told_apart(void **state)
{
    (void)state;
    enum { TEXTS = 20000 };
    char *text = malloc(TEXTS * 8 + 8), *to = text;
    to += sprintf(to, "t\n");
    for (int i = 0; i < TEXTS; i++)
        to += sprintf(to, "w%d\n", i);
    columns_table *t = load(text);
    assert_int_equal(t->rows, TEXTS);
    for (int i = 0; i < TEXTS; i++) {
        char want[16];
        sprintf(want, "w%d", i);
        assert_string_equal(text_at(t, 0, (size_t)i), want);
    }
    columns_table_destroy(t);
    free(text);
}

static void a_repeated_table_has_its_rows_in_order(void **state)
{
    (void)state;
    columns_error error = {.text = ""};
    columns_table *once = load("n,t\n1,x\n,y\n"), *t = columns_table_repeat(once, 3, &error);
    assert_non_null(t);
    assert_int_equal(t->rows, 6);
    for (size_t row = 0; row < 6; row++) {
        assert_int_equal(column_null(&t->columns[0], row), row % 2);
        assert_string_equal(text_at(t, 1, row), row % 2 == 0 ? "x" : "y");
    }
    assert_false(columns_table_equal(once, t));
    columns_table_destroy(once); /* the dictionary is shared and stays */
    assert_string_equal(text_at(t, 1, 5), "y");
    columns_table_destroy(t);
}

static void the_elements_are_complete(void **state)
{
    (void)state;
    columns_error error = {.text = ""};
    columns_table *t = columns_table_elements(&error);
    assert_non_null(t);
    assert_int_equal(t->rows, 118);
    assert_int_equal(t->column_count, 13);
    double before = 0;
    for (size_t row = 0; row < 118; row++) {
        assert_int_equal(integer_at(t, 0, row), row + 1);
        double mass = real_at(t, 3, row);
        assert_true(mass > 1 && mass < 300 && mass > before - 6);
        before = mass;
    }
    columns_table_destroy(t);
}

/* ---- complaints ---- */

static void malformed_text_is_refused_with_its_place(void **state)
{
    (void)state;
    ASSERT_REFUSED("a,b\n1,\"x\n2,y\n", ":2:3: this quote is never closed");
    ASSERT_REFUSED("a,b\n1,\"x\"y\n", ":2:6: text after a closing quote");
    ASSERT_REFUSED("a,b\n1,2\n3\n4,5\n", ":3:2: this row has 1 field, the header has 2");
    ASSERT_REFUSED("a,b\r\n1,2\r\n3\r\n", ":3:2: this row has 1 field, the header has 2");
    ASSERT_REFUSED("a,b\n1,2\n3", ":3:2: this row has 1 field, the header has 2");
    ASSERT_REFUSED("a,b\n1,2,3,4\n", ":2:5: this row has more than 2 fields, the header has 2");
    ASSERT_REFUSED("a,b\n\"x\ny\",2\n3,4,\n",
                   ":4:5: this row has more than 2 fields, the header has 2");
    ASSERT_REFUSED("", ":1:1: empty: there is no header");
    ASSERT_REFUSED("\n\r\n", ":3:1: empty: there is no header");
    ASSERT_REFUSED("\xef\xbb\xbf", ":1:2: empty: there is no header");
    ASSERT_REFUSED("a,b\n1,\0\n", ":2:3: a NUL byte: this is not text");
}

static void columns_of_a_place_count_characters(void **state)
{
    (void)state;
    ASSERT_REFUSED("a,b\n\xc3\xa4\xc3\xb6,\"x\n", ":2:4: this quote is never closed");
}

static void a_file_that_cannot_be_read_is_named(void **state)
{
    (void)state;
    columns_error error = {.text = ""};
    assert_null(columns_table_load("/nowhere/at all.csv", &error));
    assert_string_equal(error.text, "/nowhere/at all.csv: No such file or directory");
    assert_null(columns_table_load("/", &error));
    assert_string_equal(error.text, "/: Is a directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quoted_fields_hold_anything),
        cmocka_unit_test(line_ends_may_be_crlf_and_are_kept_in_quotes),
        cmocka_unit_test(the_last_line_need_not_end),
        cmocka_unit_test(a_byte_order_mark_is_no_part_of_the_name),
        cmocka_unit_test(empty_lines_are_skipped_unless_there_is_one_column),
        cmocka_unit_test(a_quote_inside_a_plain_field_is_a_character),
        cmocka_unit_test(a_header_alone_is_a_table_without_rows),
        cmocka_unit_test(each_column_has_the_narrowest_type_that_holds_it),
        cmocka_unit_test(integers_that_do_not_fit_become_reals),
        cmocka_unit_test(numbers_of_any_length_are_read_in_full),
        cmocka_unit_test(empty_fields_are_null_quoted_or_not),
        cmocka_unit_test(equal_texts_have_equal_codes_in_all_columns),
        cmocka_unit_test(thousands_of_texts_are_told_apart),
        cmocka_unit_test(a_repeated_table_has_its_rows_in_order),
        cmocka_unit_test(the_elements_are_complete),
        cmocka_unit_test(malformed_text_is_refused_with_its_place),
        cmocka_unit_test(columns_of_a_place_count_characters),
        cmocka_unit_test(a_file_that_cannot_be_read_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
