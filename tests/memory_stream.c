/* SPDX-License-Identifier: MIT */
/* A text in memory is whole or is not there, whichever request of memory is refused. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static int requests, refused_from; /* the first that is refused; 0: none is */

static void *refusing(void *memory, size_t bytes)
{
    requests++;
    return refused_from != 0 && requests >= refused_from ? NULL : realloc(memory, bytes);
}

#define malloc(bytes) refusing(NULL, bytes)
#define realloc       refusing
#include "runtime/base/memory_stream.h"
#undef malloc
#undef realloc

enum { LINES = 10000 };

/* Looks at no result, as those do who write a page of many parts. */
static bool write_lines(int lines, char **text, size_t *length)
{
    FILE *out = tide_memory_stream_open(text, length);
    assert_null(*text);
    for (int i = 0; out != NULL && i < lines; i++)
        fprintf(out, "%7d\n", i);
    return tide_memory_stream_close(out, text);
}

static void expect_lines(const char *text, size_t length, int lines)
{
    const char *at = text;
    assert_int_equal(length, lines * 8);
    for (int i = 0; i < lines; i++) {
        char *end;
        assert_int_equal(strtol(at, &end, 10), i);
        assert_int_equal(*end, '\n');
        at = end + 1;
    }
    assert_int_equal(*at, '\0');
    assert_int_equal(at - text, length);
}

static void a_text_of_any_length_is_whole(void **state)
{
    static const int lines[] = {0, 1, 127, 128, 129, 511, 512, 513, LINES};
    (void)state;
    refused_from = 0;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char *text;
        size_t length;
        assert_true(write_lines(lines[i], &text, &length));
        expect_lines(text, length, lines[i]);
        free(text);
    }
}

/* Bytes, not words: a zero is one of them. */
static void a_text_may_hold_any_bytes(void **state)
{
    (void)state;
    char *text, bytes[5000];
    size_t length;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i % 256);
    FILE *out = tide_memory_stream_open(&text, &length);
    assert_int_equal(fwrite(bytes, 1, sizeof bytes, out), sizeof bytes);
    assert_true(tide_memory_stream_close(out, &text));
    assert_int_equal(length, sizeof bytes);
    assert_memory_equal(text, bytes, sizeof bytes);
    free(text);
}

static void a_text_without_memory_is_not_there(void **state)
{
    (void)state;
    int refusals = 0;
    for (refused_from = 1;; refused_from++) {
        char *text;
        size_t length;
        requests = 0;
        if (write_lines(LINES, &text, &length)) {
            expect_lines(text, length, LINES);
            free(text);
            break;
        }
        assert_null(text);
        assert_int_equal(length, 0);
        assert_true(requests >= refused_from);
        refusals++;
    }
    assert_true(refusals > 3); /* it grew */
    assert_int_equal(requests, refusals);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_of_any_length_is_whole),
        cmocka_unit_test(a_text_may_hold_any_bytes),
        cmocka_unit_test(a_text_without_memory_is_not_there),
    };
    return cmocka_run_group_tests_name("memory_stream", tests, NULL, NULL);
}
