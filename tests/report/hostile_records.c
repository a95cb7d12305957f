/* SPDX-License-Identifier: MIT */
/* hostile_records SAMPLE: records that are cut, changed and mixed up, by a fixed seed. Whatever
 * comes, reading ends, says what is wrong in one line, and what is made of it is whole JSON. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "profiler/metrics/metrics.h"
#include "profiler/record/read.h"
#include "profiler/report/advice.h"
#include "profiler/report/data.h"
#include "profiler/report/pprof.h"
#include "tests/random.h"
#include "tests/support.h"

static const char *sample_path;
static char *sample;
static size_t sample_bytes;

static void read_sample(void)
{
    FILE *file = fopen(sample_path, "re");
    assert_non_null(file);
    sample = malloc(1 << 20);
    sample_bytes = fread(sample, 1, 1 << 20, file);
    fclose(file);
    assert_in_range(sample_bytes, 10000, (1 << 20) - 1);
}

static const char *const pieces[] = {"null",
                                     "-1",
                                     "1e308",
                                     "-1e308",
                                     "9223372036854775807",
                                     "\"\\u0001\"",
                                     "[]",
                                     "{}",
                                     "\"</script>\"",
                                     "true",
                                     "0",
                                     "[[[[[[[[",
                                     "\"\\ud800\"",
                                     "18446744073709551616"};

/* A copy with a few changes: bytes, cuts, values of members, lines that change places. */
static size_t mutate(rng *random, char *out)
{
    size_t from = rng_below(random, 4) == 0 ? 0 : rng_below(random, 3), bytes;
    const char *line = sample;
    for (size_t i = 0; i < from; i++) /* some begin later, and are none */
        line = strchr(line, '\n') + 1;
    if (from != 0 && rng_below(random, 8) != 0)
        line = sample;
    bytes = sample_bytes - (size_t)(line - sample);
    if (bytes > 30000)
        bytes = rng_below(random, 30000) + 1;
    memcpy(out, line, bytes);
    for (uint64_t changes = rng_below(random, 6); changes > 0; changes--) {
        size_t at = rng_below(random, bytes);
        const char *piece = pieces[rng_below(random, sizeof pieces / sizeof *pieces)];
        char *colon = memchr(out + at, ':', bytes - at);
        if (rng_below(random, 2) == 0) {
            out[at] = (char)rng_next(random);
        } else if (colon != NULL) { /* the value of a member */
            size_t place = (size_t)(colon - out) + 1, old = 0, length = strlen(piece);
            while (place + old < bytes && strchr(",}]\n", out[place + old]) == NULL)
                old++;
            memmove(out + place + length, out + place + old, bytes - place - old);
            memcpy(out + place, piece, length);
            bytes = bytes - old + length;
        }
    }
    return bytes;
}

static void check_json(char *text)
{
    json_t *read = json_loads(text, 0, NULL);
    assert_non_null(read);
    json_decref(read);
    free(text);
}

/* All that is made of a history. */
static void make_all(tide_history *history, const char *problem)
{
    static const tide_data_limits limits = {20, 20, 20, 50, 20, 20};
    static tide_advice_list list;
    char *text = NULL;
    size_t bytes = 0;
    json_t *data = tide_data_of(history, problem, &limits);
    check_json(tide_data_text(data));
    json_decref(data);
    tide_advice_of(history, &list);
    if (history->last == NULL)
        return;
    FILE *out = open_memstream(&text, &bytes);
    tide_pprof_write(out, history);
    fclose(out);
    assert_true(bytes > 0);
    free(text);
    out = open_memstream(&text, &bytes);
    assert_true(tide_metrics_of(out, history->last, NULL));
    fclose(out);
    free(text);
}

static bool try_one(const char *path)
{
    tide_history history = {0};
    tide_record_outcome outcome;
    bool good = tide_record_read(path, tide_history_add, &history, &outcome);
    assert_true(outcome.whole == (outcome.problem[0] == 0));
    assert_null(strchr(outcome.problem, '\n'));
    assert_true(good || (history.head == NULL && history.last == NULL));
    if (good)
        make_all(&history, outcome.problem);
    tide_history_free(&history);
    return outcome.whole;
}

static void hostile_records_harm_nobody(void **state)
{
    rng random = {20240229};
    char path[] = "/tmp/tide-hostile-XXXXXX", *bytes = malloc(1 << 17);
    int fd = mkstemp(path), rounds = (int)scaled(3000, 300), partly = 0;
    (void)state;
    assert_true(fd >= 0);
    for (int i = 0; i < rounds; i++) {
        size_t count = mutate(&random, bytes);
        assert_true(ftruncate(fd, 0) == 0 && pwrite(fd, bytes, count, 0) == (ssize_t)count);
        partly += !try_one(path);
    }
    assert_true(partly > rounds / 2); /* they are damaged indeed */
    close(fd);
    unlink(path);
    free(bytes);
}

static void the_sample_is_whole(void **state)
{
    (void)state;
    assert_true(try_one(sample_path));
}

int main(int count, char **args)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sample_is_whole),
        cmocka_unit_test(hostile_records_harm_nobody),
    };
    if (count != 2)
        return 2;
    sample_path = args[1];
    read_sample();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(sample);
    return failed;
}
