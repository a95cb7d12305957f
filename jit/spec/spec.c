/* SPDX-License-Identifier: MIT */
/* Specs as text: one writer and one strict reader. The reader accepts what the writer writes and
 * nothing else, so two specs are the same if and only if their texts are. */
#include "jit/spec/spec.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tidepool/inline/map.h>

#include "jit/spec/text.h"
#include "runtime/base/assert.h"
#include "runtime/scope/compiled.h"
#include "runtime/scope/kind.h"

enum { LINE_MAX = 512, NAME_MOST = TIDE_SPEC_NAME };

_Static_assert(sizeof "array  65535 8\n" + NAME_MOST + 20 * TIDE_NDIM_MAX < LINE_MAX,
               "the longest line of a site can be read again");
_Static_assert(TIDE_SPEC_ITEMS *(sizeof "array  65535 8\n" + NAME_MOST + 20 * TIDE_NDIM_MAX) + 256 <
                   TIDE_SPEC_SITE_BYTES,
               "the longest site fits the room that callers must give");
_Static_assert(TIDE_SPEC_KINDS == 4 && TIDE_KIND_COUNT == 5, "most_items has a row for each kind");
_Static_assert(TIDE_TYPED_MAX <= TIDE_SPEC_ITEMS, "a spec has room for any frame");

/* The kinds as they stand in the text. */
#define SPEC_KIND_NAME(K, name, ...) [TIDE_KIND_##K] = name,
static const char *const kinds[TIDE_KIND_COUNT] = {TIDE_KINDS(SPEC_KIND_NAME)};

const char *tide_spec_suffix(tide_kind kind)
{
#define SPEC_SUFFIX(K, name, member, ...) [TIDE_KIND_##K] = "_" #member,
    static const char *const suffixes[TIDE_KIND_COUNT] = {TIDE_KINDS(SPEC_SUFFIX)};
    tide_assert((unsigned)kind < TIDE_KIND_COUNT);
    return suffixes[kind];
}

/* Most items of a site of each kind. A frame is limited by its macro. */
static const uint32_t most_items[TIDE_SPEC_KINDS] = {TIDE_SPEC_ITEMS, TIDE_TYPED_MAX,
                                                     TIDE_SPEC_ITEMS, TIDE_SPEC_ITEMS};

bool tide_spec_is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* ---- writing ------------------------------------------------------------------------------ */

/* Is it written as it is? */
static bool spec_is_plain(char c)
{
    return tide_spec_is_word_byte(c) || (c != '\0' && strchr(".-*", c) != NULL);
}

static void spec_put_name(tide_text *t, const char *name)
{
    tide_assert(memchr(name, '\0', TIDE_SPEC_NAME) != NULL);
    for (size_t i = 0; i < TIDE_SPEC_NAME && name[i] != '\0'; i++)
        tide_text_put(t, "%c", spec_is_plain(name[i]) ? name[i] : '_');
    if (name[0] == '\0')
        tide_text_put(t, "*"); /* no type has this name, and something must stand here */
}

size_t tide_spec_write_head(char *out, size_t room)
{
    tide_assert(room >= TIDE_SPEC_SITE_BYTES);
    tide_text t = {out, room, 0};
    tide_text_put(&t, "tidepool-spec 1\nlayout %016" PRIx64 "\n", tide_compiled_layout());
    return t.used;
}

size_t tide_spec_write(const tide_spec *spec, char *out, size_t room)
{
    tide_assert(room >= TIDE_SPEC_SITE_BYTES && spec->item_count <= TIDE_SPEC_ITEMS);
    tide_assert((unsigned)spec->kind < TIDE_SPEC_KINDS && spec->stem[0] != '\0');
    tide_text t = {out, room, 0};
    tide_text_put(&t, "site %s %s\n%s", kinds[spec->kind], spec->stem,
                  spec->count ? "count\n" : "");
    for (uint32_t i = 0; i < spec->item_count; i++) {
        const tide_spec_item *item = &spec->items[i];
        bool array = spec->kind == TIDE_KIND_ARRAY;
        tide_assert(!array || (item->ndim >= 0 && item->ndim <= TIDE_NDIM_MAX));
        tide_text_put(&t, array ? "array " : "type ");
        spec_put_name(&t, item->name);
        tide_text_put(&t, " %" PRIu32, item->type);
        if (array)
            tide_text_put(&t, " %d", item->ndim);
        for (int d = 0; array && d < item->ndim; d++)
            tide_text_put(&t, " %" PRId64, item->shape[d]);
        tide_text_put(&t, "\n");
    }
    tide_text_put(&t, "end\n");
    return t.used;
}

/* ---- reading lines and words -------------------------------------------------------------- */

/* Refuses the text: one line of printable characters in reader->error. Returns false. */
static __attribute__((format(printf, 2, 3))) bool spec_bad(tide_spec_reader *reader,
                                                           const char *format, ...)
{
    char what[160];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    for (char *c = what; *c != '\0'; c++) /* the text is not ours, the message is one line */
        if (*c < ' ' || *c > '~')
            *c = '?';
    snprintf(reader->error, sizeof reader->error, "line %" PRIu32 ": %s", reader->line, what);
    return false;
}

/* Copies the next line without its end, and moves past it. */
static bool spec_next_line(tide_spec_reader *reader, char line[LINE_MAX])
{
    const char *end = strchr(reader->text, '\n');
    reader->line++;
    if (end == NULL)
        return spec_bad(reader, "%s",
                        reader->text[0] == '\0' ? "the text ends too soon"
                                                : "the line does not end");
    size_t length = (size_t)(end - reader->text);
    if (length >= LINE_MAX)
        return spec_bad(reader, "%zu bytes, limit %d", length, LINE_MAX - 1);
    tide_assert(length < LINE_MAX && memchr(reader->text, '\0', length) == NULL);
    memcpy(line, reader->text, length);
    line[length] = '\0';
    reader->text = end + 1;
    return true;
}

/* Cuts the next word off *rest, which becomes NULL after the last word. Words stand one blank
 * apart. NULL: there is no word. */
static char *spec_next_word(char **rest)
{
    char *word = *rest;
    if (word == NULL || *word == '\0' || *word == ' ')
        return NULL;
    char *blank = strchr(word, ' ');
    *rest = blank != NULL ? blank + 1 : NULL;
    if (blank != NULL)
        *blank = '\0';
    return word;
}

/* Reads decimal digits without sign or leading zero. */
static bool spec_read_number(const char *word, uint64_t limit, uint64_t *out)
{
    *out = 0;
    if (word == NULL || (word[0] == '0' && word[1] != '\0'))
        return false;
    for (const char *c = word; *c != '\0'; c++)
        if (*c < '0' || *c > '9' || __builtin_mul_overflow(*out, 10u, out) ||
            __builtin_add_overflow(*out, (uint64_t)(*c - '0'), out))
            return false;
    return *out <= limit;
}

static bool spec_read_name(const char *word, char out[TIDE_SPEC_NAME])
{
    size_t length = word != NULL ? strlen(word) : 0;
    if (length == 0 || length >= TIDE_SPEC_NAME)
        return false;
    for (const char *c = word; *c != '\0'; c++)
        if (!spec_is_plain(*c))
            return false;
    memcpy(out, word, length + 1);
    return true;
}

static bool spec_is_identifier(const char *word)
{
    if (word == NULL || (word[0] >= '0' && word[0] <= '9') || strlen(word) >= TIDE_SPEC_STEM)
        return false;
    for (const char *c = word; *c != '\0'; c++)
        if (!tide_spec_is_word_byte(*c))
            return false;
    return true;
}

/* ---- reading ------------------------------------------------------------------------------ */

bool tide_spec_read_head(tide_spec_reader *reader, uint64_t *layout)
{
    char line[LINE_MAX];
    if (!spec_next_line(reader, line))
        return false;
    if (strcmp(line, "tidepool-spec 1") != 0)
        return spec_bad(reader, "'%.40s' is not 'tidepool-spec 1'", line);
    if (!spec_next_line(reader, line))
        return false;
    const char *digits = line + strlen("layout ");
    if (strncmp(line, "layout ", strlen("layout ")) != 0 || strlen(digits) != 16 ||
        strspn(digits, "0123456789abcdef") != 16)
        return spec_bad(reader, "'%.40s' is not 'layout' and 16 hex digits", line);
    return sscanf(digits, "%" SCNx64, layout) == 1;
}

static bool spec_read_site(tide_spec_reader *reader, char *rest, tide_spec *out)
{
    char *site = spec_next_word(&rest), *kind = spec_next_word(&rest),
         *stem = spec_next_word(&rest);
    if (site == NULL || strcmp(site, "site") != 0 || kind == NULL)
        return spec_bad(reader, "'%.40s' is not 'site', a kind and a stem",
                        site == NULL ? "" : site);
    while (out->kind < TIDE_SPEC_KINDS && strcmp(kinds[out->kind], kind) != 0)
        out->kind++;
    if (out->kind == TIDE_SPEC_KINDS)
        return spec_bad(reader, "'%.40s' is not a kind of site", kind);
    if (!spec_is_identifier(stem) || rest != NULL)
        return spec_bad(reader, "stem '%.70s' is not an identifier of 1 to %d bytes",
                        stem == NULL ? "" : stem, TIDE_SPEC_STEM - 1);
    tide_assert(strlen(stem) < sizeof out->stem);
    memcpy(out->stem, stem, strlen(stem) + 1);
    return true;
}

static bool spec_read_shape(tide_spec_reader *reader, char **rest, tide_spec_item *item)
{
    uint64_t value;
    if (!spec_read_number(spec_next_word(rest), TIDE_NDIM_MAX, &value))
        return spec_bad(reader, "the rank is not a number up to %d", TIDE_NDIM_MAX);
    item->ndim = (int)value;
    for (int d = 0; d < item->ndim; d++) {
        if (!spec_read_number(spec_next_word(rest), INT64_MAX, &value))
            return spec_bad(reader, "extent %d is not a number up to %" PRId64, d, INT64_MAX);
        item->shape[d] = (int64_t)value;
    }
    return true;
}

static bool spec_read_item(tide_spec_reader *reader, char *rest, tide_spec *out)
{
    const char *word = out->kind == TIDE_KIND_ARRAY ? "array" : "type",
               *got = spec_next_word(&rest);
    uint64_t type;
    if (got == NULL || strcmp(got, word) != 0)
        return spec_bad(reader, "'%.40s' where '%s' or 'end' should stand", got == NULL ? "" : got,
                        word);
    if (out->item_count == most_items[out->kind])
        return spec_bad(reader, "more than %" PRIu32 " items, the limit of a site of kind %s",
                        most_items[out->kind], kinds[out->kind]);
    tide_assert(out->item_count < TIDE_SPEC_ITEMS);
    tide_spec_item *item = &out->items[out->item_count];
    if (!spec_read_name(spec_next_word(&rest), item->name))
        return spec_bad(reader, "the name of the type cannot be read");
    if (!spec_read_number(spec_next_word(&rest), TIDE_TYPE_LIMIT - 1, &type) || type == 0)
        return spec_bad(reader, "the type is not a number from 1 to %u", TIDE_TYPE_LIMIT - 1);
    item->type = (tide_type)type;
    if (out->kind == TIDE_KIND_ARRAY && !spec_read_shape(reader, &rest, item))
        return false;
    if (rest != NULL)
        return spec_bad(reader, "'%.40s' after the end of the item", rest);
    out->item_count++;
    return true;
}

/* ---- what a site may be ------------------------------------------------------------------- */

static bool spec_same_item(const tide_spec_item *a, const tide_spec_item *b)
{
    tide_assert(a->ndim >= 0 && a->ndim <= TIDE_NDIM_MAX);
    return a->type == b->type && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof a->shape[0]) == 0;
}

/* Every rule that concerns more than one line of a site. */
static bool spec_check_site(tide_spec_reader *reader, const tide_spec *spec)
{
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < spec->item_count; i++) {
        uint32_t first = 0;
        while (!spec_same_item(&spec->items[first], &spec->items[i]))
            first++;
        distinct += first == i;
        if (first != i && spec->kind != TIDE_KIND_FRAME)
            return spec_bad(reader, "items %" PRIu32 " and %" PRIu32 " are the same", first, i);
        if (spec->kind == TIDE_KIND_SCOPE && i > 0 && spec->items[i].type < spec->items[i - 1].type)
            return spec_bad(reader, "the types of a scope do not ascend at %" PRIu32, i);
    }
    tide_assert(distinct <= spec->item_count);
    if (distinct == 0)
        return spec_bad(reader, "the site has no items");
    if (spec->kind == TIDE_KIND_FRAME && distinct > TIDE_SCOPE_SAVED)
        return spec_bad(reader, "%" PRIu32 " different types, a compiled frame has %d at most",
                        distinct, TIDE_SCOPE_SAVED);
    return true;
}

bool tide_spec_read(tide_spec_reader *reader, tide_spec *out)
{
    char line[LINE_MAX];
    tide_assert(reader->text != NULL);
    *out = (tide_spec){0};
    if (reader->text[0] == '\0')
        return true;
    if (!spec_next_line(reader, line) || !spec_read_site(reader, line, out))
        return false;
    while (spec_next_line(reader, line)) {
        if (strcmp(line, "end") == 0)
            return spec_check_site(reader, out);
        if (strcmp(line, "count") == 0 && out->item_count == 0 && !out->count)
            out->count = true;
        else if (!spec_read_item(reader, line, out))
            return false;
    }
    return false;
}
