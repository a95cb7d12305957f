/* SPDX-License-Identifier: MIT */
/* A fuzzer of profile files. An input is an edit of a good file: where (two bytes), how many bytes
 * go (two), and what comes instead. Whatever is accepted must come back the same when it is
 * written. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/profile.h>

#include "profiler/files/text.h"
#include "runtime/base/ring.h"

static const char good[] = "tidepool profile 3\n"
                           "type 8 8 \"f64\"\n"
                           "type 4 4 \"i32\"\n"
                           "type 24 8 \"struct \\\"p\\x01\"\n"
                           "type 0 8 \"bit\"\n"
                           "scope 12 300 4 \"name\" \"work.c\" \"step\"\n"
                           "uses 1 300 600 2\n"
                           "uses 2 200 200 1\n"
                           "scope 14 5 0 \"\" \"work.c\" \"step\"\n"
                           "uses 3 5 5 1\n"
                           "scope 0 5 0 \"named\" \"\" \"\"\n"
                           "knob 32 \"tile\" \"work.c\"\n"
                           "tuned 7 1 \"product\" \"work.c\"\n"
                           "candidate 60 8812 31 1 \"8x8\"\n"
                           "candidate 12 9900 80 0 \"4x4\"\n"
                           "end 3\n";

static void need(bool holds)
{
    if (!holds)
        abort();
}

/* What the text says; NULL: it was refused. */
static tide_profile_set *read_all(const char *bytes, size_t length)
{
    tide_profile_set *known = tide_profile_set_create("fuzz");
    need(known != NULL);
    if (tide_profile_text_read(bytes, length, known, "fuzz", "fuzz") == TIDE_OK)
        return known;
    tide_profile_set_destroy(known);
    return NULL;
}

static char *write_again(tide_profile_set *known, size_t *length)
{
    char *text;
    need(tide_profile_text_write(known, &text, length, "fuzz") == TIDE_OK);
    tide_profile_set_destroy(known);
    return text;
}

static void resolve_all(const tide_profile_set *known)
{
    tide_site_profile profile;
    for (uint32_t i = 0; i < known->site_count; i++)
        if (tide_profile_set_resolve(known, known->sites[i], &profile))
            need(profile.scopes == known->sites[i]->profile.scopes);
}

static void check(const char *bytes, size_t length)
{
    tide_profile_set *known = read_all(bytes, length);
    if (known == NULL)
        return;
    resolve_all(known);
    size_t length_once, length_twice;
    char *once = write_again(known, &length_once);
    known = read_all(once, length_once);
    need(known != NULL);
    char *twice = write_again(known, &length_twice);
    need(length_once == length_twice && memcmp(once, twice, length_once) == 0);
    free(once);
    free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tide_attach(); /* what reads the lines of tunables is of a room above */
    if (size < 4)
        return 0;
    size_t length = sizeof good - 1, at = (data[0] | (size_t)data[1] << 8) % (length + 1);
    size_t gone = (data[2] | (size_t)data[3] << 8) % (length - at + 1), more = size - 4;
    char *text = malloc(length - gone + more); /* exactly, so that reading past it is seen */
    need(text != NULL);
    memcpy(text, good, at);
    memcpy(text + at, data + 4, more);
    memcpy(text + at + more, good + at + gone, length - at - gone);
    check(text, length - gone + more);
    free(text);
    return 0;
}
