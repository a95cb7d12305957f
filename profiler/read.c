/* SPDX-License-Identifier: MIT */
/* Text from a file, which may be anything: every word is checked before it is believed, and what
 * cannot be is refused with its line and why. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/inline/map.h>

#include "profiler/text.h"
#include "runtime/array.h"
#include "runtime/error.h"
#include "runtime/os.h"
#include "runtime/pool.h"

typedef struct reader {
    const char *call, *path;
    const char *at, *end;         /* of the line: what is not read yet */
    const char *next, *text_end;  /* of the text                       */
    unsigned line;
    tide_status status;
    tide_known table; /* the file's types */
    tide_known *known;
    bool in_site;
    uint32_t sites;
    uint64_t patterned; /* uses of the site whose pattern was told */
    tide_key key;
    tide_site_profile profile;
    char name[TIDE_KEY_STRING_MOST + 1], file[TIDE_KEY_STRING_MOST + 1],
        function[TIDE_KEY_STRING_MOST + 1];
} reader;

/* Returns false, for the caller to return. */
static __attribute__((format(printf, 2, 3))) bool bad(reader *r, const char *format, ...)
{
    char reason[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    r->status = tide_fail(TIDE_ERROR_FILE, r->call, "'%.200s', line %u: %s", r->path, r->line,
                          reason);
    return false;
}

/* Something else failed, which said so. */
static bool failed(reader *r)
{
    r->status = tide_error_status();
    return false;
}

/* ---- words ------------------------------------------------------------------------------ */

static bool at_end(const reader *r)
{
    return r->at == r->end;
}

static bool blank(reader *r, const char *what)
{
    if (at_end(r) || *r->at != ' ')
        return bad(r, "a blank and %s are missing", what);
    r->at++;
    return true;
}

/* The line's first word, if it is this one. */
static bool starts(reader *r, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0 ||
        (r->at + length != r->end && r->at[length] != ' '))
        return false;
    r->at += length;
    return true;
}

static bool number(reader *r, const char *what, uint64_t least, uint64_t most, uint64_t *out)
{
    uint64_t value = 0;
    if (!blank(r, what))
        return false;
    const char *start = r->at;
    for (; !at_end(r) && *r->at >= '0' && *r->at <= '9'; r->at++) {
        uint64_t digit = (uint64_t)(*r->at - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return bad(r, "%s does not fit 64 bits", what);
        value = value * 10 + digit;
    }
    if (r->at == start || (!at_end(r) && *r->at != ' '))
        return bad(r, "%s is not a number", what);
    if (value < least || value > most)
        return bad(r, "%s is %" PRIu64 ", must be from %" PRIu64 " to %" PRIu64, what, value, least,
                   most);
    *out = value;
    return true;
}

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *found = c != '\0' ? strchr(digits, c) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

/* What follows a backslash. 0: nothing that can be. */
static char unescape(reader *r)
{
    if (at_end(r))
        return '\0';
    char c = *r->at++;
    if (c == 'n' || c == 't')
        return c == 'n' ? '\n' : '\t';
    if (c == '\\' || c == '"')
        return c;
    if (c != 'x' || r->end - r->at < 2)
        return '\0';
    int high = hex_digit(r->at[0]), low = hex_digit(r->at[1]);
    r->at += 2;
    return high >= 0 && low >= 0 ? (char)(high * 16 + low) : '\0';
}

/* `out` has room for TIDE_KEY_STRING_MOST bytes and the end. */
static bool string(reader *r, const char *what, char *out)
{
    size_t length = 0;
    if (!blank(r, what))
        return false;
    if (at_end(r) || *r->at++ != '"')
        return bad(r, "%s does not start with a quote", what);
    while (!at_end(r) && *r->at != '"') {
        char c = *r->at++;
        if (c == '\\' && (c = unescape(r)) == '\0')
            return bad(r, "%s has an escape that is none", what);
        else if (c == '\0')
            return bad(r, "%s has a byte 0", what);
        if (length == TIDE_KEY_STRING_MOST)
            return bad(r, "%s is longer than %d bytes", what, TIDE_KEY_STRING_MOST);
        out[length++] = c;
    }
    if (at_end(r))
        return bad(r, "%s does not end with a quote", what);
    r->at++;
    out[length] = '\0';
    return true;
}

static bool nothing_more(reader *r)
{
    return at_end(r) || bad(r, "more on the line than belongs there");
}

/* ---- lines ------------------------------------------------------------------------------ */

static bool type_possible(const tide_type_facts *facts)
{
    bool bit = facts->size == 0 && facts->align == 8 && strcmp(facts->name, "bit") == 0;
    return facts->name[0] != '\0' && (facts->align & (facts->align - 1)) == 0 &&
           (bit || (facts->size != 0 && facts->size % facts->align == 0));
}

static bool read_type(reader *r)
{
    uint64_t size, align;
    if (r->in_site || r->sites != 0)
        return bad(r, "a type after the first site");
    if (!number(r, "the size", 0, INT64_MAX, &size) ||
        !number(r, "the alignment", 1, 4096, &align) || !string(r, "the name", r->name))
        return false;
    tide_type_facts facts = {r->name, size, align};
    if (!type_possible(&facts))
        return bad(r, "no type has this name, size and alignment");
    uint32_t count = r->table.type_count, id = tide_known_type(&r->table, &facts, r->call);
    if (id == 0)
        return failed(r);
    return id > count ? nothing_more(r) : bad(r, "the type was named before, as number %u", id);
}

static bool read_kind(reader *r)
{
    if (!blank(r, "a kind"))
        return false;
    for (int kind = 0; kind < TIDE_KIND_COUNT; kind++)
        if (starts(r, tide_kind_name((tide_kind)kind))) {
            r->key.kind = (tide_kind)kind;
            return true;
        }
    return bad(r, "no such kind of site");
}

/* What was read of a site goes to what is known. */
static bool finish_site(reader *r)
{
    if (!r->in_site)
        return true;
    r->in_site = false;
    return tide_known_add(r->known, &r->key, &r->profile, &r->table, r->call) == TIDE_OK ||
           failed(r);
}

static bool read_site(reader *r)
{
    uint64_t line;
    tide_site_profile *profile = &r->profile;
    if (!finish_site(r))
        return false;
    memset(profile, 0, sizeof *profile);
    if (!read_kind(r) || !number(r, "the line", 0, UINT32_MAX, &line) ||
        !number(r, "the count of uses", 1, TIDE_TEXT_COUNT_MOST, &profile->scopes) ||
        !number(r, "the count of others", 0, TIDE_TEXT_COUNT_MOST, &profile->other) ||
        !number(r, "the count of other patterns", 0, profile->scopes, &profile->pattern_other) ||
        !string(r, "the name", r->name) || !string(r, "the file", r->file) ||
        !string(r, "the function", r->function))
        return false;
    r->key = (tide_key){r->key.kind, (uint32_t)line, r->name, r->file, r->function};
    r->patterned = profile->pattern_other;
    r->in_site = true;
    r->sites++;
    return nothing_more(r);
}

static bool read_nested(reader *r)
{
    if (!r->in_site || r->key.kind != TIDE_KIND_SCOPE || r->profile.nested != 0)
        return bad(r, "nested uses of no scope, or for the second time");
    return number(r, "the count of nested uses", 1, r->profile.scopes, &r->profile.nested) &&
           nothing_more(r);
}

static bool read_uses(reader *r)
{
    tide_site_profile *profile = &r->profile;
    uint64_t type, scopes, slots, most;
    if (!r->in_site)
        return bad(r, "uses of no site");
    if (profile->type_count == TIDE_PROFILE_TYPES)
        return bad(r, "more than %d types", TIDE_PROFILE_TYPES);
    if (!number(r, "the type", 1, r->table.type_count, &type) ||
        !number(r, "the count of uses", 1, profile->scopes, &scopes) ||
        !number(r, "the count of slots", scopes, scopes * TIDE_ROW_MOST, &slots) ||
        !number(r, "the most slots", (slots + scopes - 1) / scopes, TIDE_ROW_MOST, &most))
        return false;
    for (uint32_t i = 0; i < profile->type_count; i++)
        if (profile->types[i].type == type)
            return bad(r, "type %" PRIu64 " for the second time", type);
    profile->types[profile->type_count++] =
        (tide_profile_type){(tide_type)type, (uint32_t)most, scopes, slots};
    return nothing_more(r);
}

static bool read_types_of(reader *r, tide_profile_pattern *pattern, uint32_t most)
{
    uint64_t word;
    while (!at_end(r)) {
        if (pattern->length == most)
            return bad(r, "a pattern of more than %u types", most);
        if (!number(r, "the type", 1, r->table.type_count, &word))
            return false;
        for (uint32_t i = 0; r->key.kind == TIDE_KIND_SCOPE && i < pattern->length; i++)
            if (pattern->words[i] == (int64_t)word)
                return bad(r, "type %" PRIu64 " twice in a set", word);
        pattern->words[pattern->length++] = (int64_t)word;
    }
    return true;
}

static bool read_shape(reader *r, tide_profile_pattern *pattern)
{
    uint64_t type, rank, extent;
    size_t length;
    if (!number(r, "the type", 1, r->table.type_count, &type) ||
        !number(r, "the rank", 0, TIDE_NDIM_MOST, &rank))
        return false;
    pattern->words[pattern->length++] = (int64_t)type;
    pattern->words[pattern->length++] = (int64_t)rank;
    for (uint64_t i = 0; i < rank; i++) {
        if (!number(r, "the extent", 0, INT64_MAX, &extent))
            return false;
        pattern->words[pattern->length++] = (int64_t)extent;
    }
    if (tide_shape_length((int)rank, &pattern->words[2], &length, r->call) != TIDE_OK)
        return bad(r, "the extents overflow");
    return true;
}

static bool read_pattern(reader *r)
{
    tide_site_profile *profile = &r->profile;
    tide_profile_pattern pattern = {0};
    if (!r->in_site)
        return bad(r, "a pattern of no site");
    if (profile->pattern_count == TIDE_PROFILE_PATTERNS)
        return bad(r, "more than %d patterns", TIDE_PROFILE_PATTERNS);
    if (r->patterned == profile->scopes)
        return bad(r, "a pattern more than there were uses");
    if (!number(r, "the count of uses", 1, profile->scopes - r->patterned, &pattern.scopes))
        return false;
    r->patterned += pattern.scopes;
    if (r->key.kind == TIDE_KIND_ACQUIRE || r->key.kind == TIDE_KIND_DISPATCH)
        return bad(r, "sites of kind %s have no patterns", tide_kind_name(r->key.kind));
    if (r->key.kind == TIDE_KIND_ARRAY ? !read_shape(r, &pattern)
        : r->key.kind == TIDE_KIND_FRAME ? !read_types_of(r, &pattern, TIDE_TYPED_MOST)
                                         : !read_types_of(r, &pattern, TIDE_PATTERN_WORDS))
        return false;
    profile->patterns[profile->pattern_count++] = pattern;
    return nothing_more(r);
}

static bool read_end(reader *r)
{
    uint64_t count;
    if (!finish_site(r) || !number(r, "the count of sites", 0, UINT32_MAX, &count))
        return false;
    if (count != r->sites)
        return bad(r, "%" PRIu64 " sites were announced, %u came", count, r->sites);
    if (r->next != r->text_end)
        return bad(r, "more after the end");
    return nothing_more(r);
}

/* ---- the whole text --------------------------------------------------------------------- */

static bool next_line(reader *r)
{
    r->line++;
    size_t left = (size_t)(r->text_end - r->next);
    const char *end = left != 0 ? memchr(r->next, '\n', left) : NULL;
    if (end == NULL)
        return bad(r, left == 0 ? "the end is missing" : "the line does not end");
    if ((size_t)(end - r->next) > TIDE_TEXT_LINE)
        return bad(r, "longer than %zu bytes", TIDE_TEXT_LINE);
    r->at = r->next;
    r->end = end;
    r->next = end + 1;
    return true;
}

static bool read_header(reader *r)
{
    uint64_t version;
    if (!next_line(r))
        return false;
    if (!starts(r, "tidepool") || !blank(r, "what it is") || !starts(r, "profile"))
        return bad(r, "not a profile");
    return number(r, "the version", 1, 1, &version) && nothing_more(r);
}

static bool read_lines(reader *r)
{
    for (;;) {
        if (!next_line(r))
            return false;
        if (starts(r, "end"))
            return read_end(r);
        if (!(starts(r, "type")      ? read_type(r)
              : starts(r, "site")    ? read_site(r)
              : starts(r, "nested")  ? read_nested(r)
              : starts(r, "uses")    ? read_uses(r)
              : starts(r, "pattern") ? read_pattern(r)
                                     : bad(r, "does not start with a word that is known")))
            return false;
    }
}

static void drop_table(tide_known *table)
{
    for (uint32_t i = 0; i < table->type_count; i++)
        tide_os_free((char *)table->types[i].name);
    tide_os_free(table->types);
}

tide_status tide_text_read(const char *bytes, size_t length, tide_known *known, const char *path,
                           const char *call)
{
    reader *r = tide_os_resize(NULL, sizeof *r);
    if (r == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, call, "no memory to read '%.200s'", path);
    memset(r, 0, sizeof *r);
    r->call = call;
    r->path = path;
    r->next = bytes;
    r->text_end = bytes + length;
    r->known = known;
    bool well = read_header(r) && read_lines(r);
    tide_status status = well ? TIDE_OK : r->status;
    drop_table(&r->table);
    tide_os_free(r);
    return status;
}
