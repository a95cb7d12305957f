/* SPDX-License-Identifier: MIT */
/* Parses the text of a profile. A file may hold anything, so every word is checked before it is
 * used; bad text is refused with its line and the reason. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/files/text.h"
#include "profiler/files/tokenizer.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/pool/core.h"

_Static_assert(TIDE_TEXT_COUNT_MAX <= UINT64_MAX / TIDE_ROW_MAX, "uses times slots fit 64 bits");

typedef struct reader {
    tide_tokens tokens;
    tide_profile_set *set; /* its table is the file's */
    bool in_site, tuned;   /* a line of a tunable has come */
    uint32_t sites;
    tide_key key;
    tide_site_profile profile;
    char name[TIDE_KEY_STRING_MAX + 1], file[TIDE_KEY_STRING_MAX + 1],
        function[TIDE_KEY_STRING_MAX + 1], type_name[TIDE_TEXT_TYPE_NAME + 1];
} reader;

/* ---- lines ------------------------------------------------------------------------------ */

/* Could a program have registered such a type? Bits are the one type without a size. */
static bool read_type_possible(const tide_type_facts *facts)
{
    bool bit = facts->size == 0 && facts->align == 8 && strcmp(facts->name, "bit") == 0;
    return facts->name[0] != '\0' && (facts->align & (facts->align - 1)) == 0 &&
           (bit || (facts->size != 0 && facts->size % facts->align == 0));
}

static bool read_type(reader *r)
{
    uint64_t size, align;
    if (r->in_site || r->sites != 0)
        return tide_tokens_bad(&r->tokens, "a type after the first scope");
    if (!tide_tokens_number(&r->tokens, "the size", 0, INT64_MAX, &size) ||
        !tide_tokens_number(&r->tokens, "the alignment", 1, 4096, &align) ||
        !tide_tokens_string(&r->tokens, "the name", TIDE_TEXT_TYPE_NAME, r->type_name))
        return false;
    tide_type_facts facts = {r->type_name, size, align};
    if (!read_type_possible(&facts))
        return tide_tokens_bad(&r->tokens, "no type has this name, size and alignment");
    uint32_t count = r->set->type_count, id = tide_profile_set_type(r->set, &facts, r->tokens.call);
    tide_assert(id <= r->set->type_count && r->set->type_count <= TIDE_PROFILE_SET_TYPES);
    if (id == 0)
        return tide_tokens_failed(&r->tokens);
    return id > count ? tide_tokens_nothing_more(&r->tokens)
                      : tide_tokens_bad(&r->tokens, "the type was named before, as number %u", id);
}

/* The site has been read: adds it to the set. */
static bool read_finish_site(reader *r)
{
    if (!r->in_site)
        return true;
    tide_assert(r->profile.scopes >= 1);
    r->in_site = false;
    return tide_profile_set_add(r->set, &r->key, &r->profile, r->set, r->tokens.call) == TIDE_OK ||
           tide_tokens_failed(&r->tokens);
}

static bool read_scope(reader *r)
{
    uint64_t line;
    tide_site_profile *profile = &r->profile;
    if (!read_finish_site(r))
        return false;
    memset(profile, 0, sizeof *profile);
    if (!tide_tokens_number(&r->tokens, "the line", 0, UINT32_MAX, &line) ||
        !tide_tokens_number(&r->tokens, "the count of uses", 1, TIDE_TEXT_COUNT_MAX,
                            &profile->scopes) ||
        !tide_tokens_number(&r->tokens, "the count of others", 0, TIDE_TEXT_COUNT_MAX,
                            &profile->other) ||
        !tide_tokens_string(&r->tokens, "the name", TIDE_KEY_STRING_MAX, r->name) ||
        !tide_tokens_string(&r->tokens, "the file", TIDE_KEY_STRING_MAX, r->file) ||
        !tide_tokens_string(&r->tokens, "the function", TIDE_KEY_STRING_MAX, r->function))
        return false;
    r->key = (tide_key){(uint32_t)line, r->name, r->file, r->function};
    r->in_site = true;
    r->sites++;
    return tide_tokens_nothing_more(&r->tokens);
}

static bool read_uses(reader *r)
{
    tide_site_profile *profile = &r->profile;
    uint64_t type, scopes, slots, most;
    if (!r->in_site)
        return tide_tokens_bad(&r->tokens, "uses of no scope");
    if (profile->type_count == TIDE_PROFILE_TYPES)
        return tide_tokens_bad(&r->tokens, "more than %d types", TIDE_PROFILE_TYPES);
    if (!tide_tokens_number(&r->tokens, "the type", 1, r->set->type_count, &type) ||
        !tide_tokens_number(&r->tokens, "the count of uses", 1, profile->scopes, &scopes) ||
        !tide_tokens_number(&r->tokens, "the count of slots", scopes, scopes * TIDE_ROW_MAX,
                            &slots) ||
        !tide_tokens_number(&r->tokens, "the most slots", (slots + scopes - 1) / scopes,
                            TIDE_ROW_MAX, &most))
        return false;
    for (uint32_t i = 0; i < profile->type_count; i++)
        if (profile->types[i].type == type)
            return tide_tokens_bad(&r->tokens, "type %" PRIu64 " for the second time", type);
    tide_assert(slots >= scopes && most <= TIDE_ROW_MAX &&
                profile->type_count < TIDE_PROFILE_TYPES);
    profile->types[profile->type_count++] =
        (tide_profile_type){(tide_type)type, (uint32_t)most, scopes, slots};
    return tide_tokens_nothing_more(&r->tokens);
}

static bool read_end(reader *r)
{
    uint64_t count;
    if (!read_finish_site(r) ||
        !tide_tokens_number(&r->tokens, "the count of scopes", 0, UINT32_MAX, &count))
        return false;
    if (count != r->sites)
        return tide_tokens_bad(&r->tokens, "%" PRIu64 " scopes were announced, %u came", count,
                               r->sites);
    if (r->tokens.next != r->tokens.text_end)
        return tide_tokens_bad(&r->tokens, "more after the end");
    return tide_tokens_nothing_more(&r->tokens);
}

/* ---- the whole text --------------------------------------------------------------------- */

static bool read_header(reader *r)
{
    if (!tide_tokens_line(&r->tokens))
        return false;
    if (!tide_tokens_starts(&r->tokens, "tidepool") ||
        !tide_tokens_blank(&r->tokens, "what it is") || !tide_tokens_starts(&r->tokens, "profile"))
        return tide_tokens_bad(&r->tokens, "not a profile");
    uint64_t version;
    if (!tide_tokens_number(&r->tokens, "the version", 0, UINT32_MAX, &version) ||
        !tide_tokens_nothing_more(&r->tokens))
        return false;
    return version == TIDE_TEXT_VERSION ||
           tide_tokens_bad(&r->tokens,
                           "a profile of version %" PRIu64 ", this library reads version %d",
                           version, TIDE_TEXT_VERSION);
}

/* Any line but the first and the last. */
static bool read_line(reader *r)
{
    static const struct {
        const char *word;
        bool (*read)(reader *r);
    } lines[] = {{"type", read_type}, {"scope", read_scope}, {"uses", read_uses}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (tide_tokens_starts(&r->tokens, lines[i].word))
            return r->tuned ? tide_tokens_bad(&r->tokens, "a scope after the first tunable")
                            : lines[i].read(r);
    r->tuned = true;
    return read_finish_site(r) && tide_profile_more.read(&r->set->more, &r->tokens);
}

static bool read_lines(reader *r)
{
    for (;;) {
        if (!tide_tokens_line(&r->tokens))
            return false;
        if (tide_tokens_starts(&r->tokens, "end"))
            return read_end(r);
        if (!read_line(r))
            return false;
    }
}

tide_status tide_profile_text_read(const char *bytes, size_t length, tide_profile_set *set,
                                   const char *path, const char *call)
{
    tide_assert(set->type_count == 0 && set->site_count == 0 && set->more == NULL);
    reader *r = tide_os_resize(NULL, sizeof *r);
    if (r == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, call, "no memory to read '%.200s'", path);
    memset(r, 0, sizeof *r);
    r->tokens.call = call;
    r->tokens.path = path;
    r->tokens.next = bytes;
    r->tokens.text_end = bytes + length;
    r->set = set;
    bool well = read_header(r) && read_lines(r);
    tide_assert(well == (r->tokens.status == TIDE_OK));
    tide_status status = well ? TIDE_OK : r->tokens.status;
    tide_os_free(r);
    return status;
}
