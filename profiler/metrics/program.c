/* SPDX-License-Identifier: MIT */
/* tidepool-metrics: what the command `tidepool metrics` has done in C. Each line of the standard input is a
 * facts document; its answer is a line with a number, and so many bytes of metrics. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "profiler/metrics/metrics.h"
#include "runtime/base/assert.h"

/* False where the line is no document, or there is no memory. */
static bool program_answer(const char *line, size_t length, tide_metrics_memory *memory)
{
    char *text = NULL;
    size_t bytes = 0;
    json_t *facts = json_loadb(line, length, 0, NULL);
    FILE *out = open_memstream(&text, &bytes);
    bool good = json_is_object(facts) && out != NULL && tide_metrics_remember(memory, facts) &&
                tide_metrics_of(out, facts, memory);
    good = (out == NULL || fclose(out) == 0) && text != NULL && good;
    tide_assert(!good || bytes > 0);
    if (good)
        printf("%zu\n%s", bytes, text);
    free(text);
    json_decref(facts);
    return good && fflush(stdout) == 0;
}

int main(void)
{
    tide_metrics_memory *memory = tide_metrics_memory_new();
    char *line = NULL;
    size_t room = 0;
    ssize_t length = 0;
    while (memory != NULL && (length = getline(&line, &room, stdin)) > 0)
        if (!program_answer(line, (size_t)length, memory))
            break;
    free(line);
    tide_metrics_memory_free(memory);
    return memory != NULL && length <= 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
