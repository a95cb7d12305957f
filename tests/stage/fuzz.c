/* SPDX-License-Identifier: MIT */
/* Any bytes as a spec: what is accepted is written again as it was, byte by byte. */
#include <stdlib.h>
#include <string.h>

#include "jit/spec/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const char *text)
{
    static char again[TIDE_SPEC_SITE_BYTES];
    tide_spec spec;
    tide_spec_reader reader = {.text = text};
    for (const char *start = text; tide_spec_read(&reader, &spec); start = reader.text) {
        if (spec.item_count == 0)
            return;
        size_t length = (size_t)(reader.text - start);
        if (tide_spec_write(&spec, again, sizeof again) != length ||
            memcmp(again, start, length) != 0)
            abort();
    }
    if (reader.error[0] == '\0')
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + 1);
    uint64_t layout;
    if (text == NULL)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    read_all(text);
    tide_spec_reader reader = {.text = text};
    if (tide_spec_read_head(&reader, &layout))
        read_all(reader.text);
    free(text);
    return 0;
}
