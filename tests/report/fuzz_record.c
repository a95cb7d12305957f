/* SPDX-License-Identifier: MIT */
/* A fuzzer of records. An input is an edit of a good one: where (two bytes), how many bytes go
 * (two), and what comes instead. Reading ends, says what is wrong in one line, and what is made of
 * it is whole. */
#define _GNU_SOURCE
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler/report/data.h"
#include "profiler/report/page.h"

static const char good[] =
    "{\"format\":\"tidepool-record\",\"format_version\":1,\"program\":[\"a\"],\"pid\":5}\n"
    "{\"format\":\"tidepool-event\",\"serial\":1,\"time_ns\":5,\"kind\":\"found\",\"site\":1,"
    "\"name\":\"solve\",\"tier\":\"full\",\"reason\":\"used\",\"detail\":\"\",\"round\":1}\n"
    "{\"format\":\"tidepool-facts\",\"format_version\":1,\"version\":\"0\",\"pid\":5,\"program\":"
    "\"a\",\"time_ns\":9,\"wall_ns\":9,\"process_cpu_ns\":9,\"pools\":[{\"id\":1,\"name\":\"p\","
    "\"thread\":5,\"thread_name\":\"m\",\"device\":\"host\",\"held_bytes\":4096,\"live_bytes\":8,"
    "\"limit_bytes\":0,\"types\":1,\"slots\":1}],\"sites\":[{\"id\":1,\"name\":\"solve\",\"file\":"
    "\"s.c\",\"line\":3,\"kind\":\"scope\",\"tier\":\"compiled\",\"generation\":2,\"types\":["
    "\"f64\"],\"uses\":10,\"use_ns\":4.5,\"rivals\":[{\"tier\":\"full\",\"ns\":9,\"measured\":"
    "true}]}],\"buffers\":[{\"id\":1,\"name\":\"b\",\"live_bytes\":1,\"cached_bytes\":2}],"
    "\"learning\":{\"compiled\":1}}\n"
    "{\"format\":\"tidepool-code\",\"site\":1,\"generation\":2,\"spec\":\"tidepool-spec 1\"}\n"
    "{\"gap\":3}\n"
    "{\"end\":{\"exit_status\":0}}\n";

static void need(bool holds)
{
    if (!holds)
        abort();
}

static void make_data(tide_history *history, const char *problem)
{
    static const tide_data_limits limits = {20, 20, 20, 50, 20, 20};
    json_t *data = tide_data_of(history, problem, &limits);
    char *text = tide_data_text(data);
    json_t *again = json_loads(text, 0, NULL);
    need(json_is_object(again));
    json_decref(again);
    json_decref(data);
    free(text);
    text = tide_page_data(history, problem);
    need(text != NULL && strlen(text) < TIDE_PAGE_BYTES);
    free(text);
}

static void check(const char *path)
{
    tide_history history = {0};
    tide_record_outcome outcome;
    bool read = tide_record_read(path, tide_history_add, &history, &outcome);
    need(outcome.whole == (outcome.problem[0] == '\0') && strchr(outcome.problem, '\n') == NULL);
    need(read || history.last == NULL);
    if (history.last != NULL)
        make_data(&history, outcome.problem);
    tide_history_free(&history);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int file = -1;
    static char path[40];
    if (file < 0) {
        file = memfd_create("record", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (size < 4)
        return 0;
    size_t length = sizeof good - 1, at = (data[0] | (size_t)data[1] << 8) % (length + 1);
    size_t gone = (data[2] | (size_t)data[3] << 8) % (length - at + 1), more = size - 4;
    size_t rest = length - at - gone;
    need(ftruncate(file, 0) == 0 && pwrite(file, good, at, 0) == (ssize_t)at &&
         pwrite(file, data + 4, more, (off_t)at) == (ssize_t)more &&
         pwrite(file, good + at + gone, rest, (off_t)(at + more)) == (ssize_t)rest);
    check(path);
    return 0;
}
