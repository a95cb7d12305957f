/* SPDX-License-Identifier: MIT */
/* Specs as text: one writer and one strict reader. The reader accepts what the writer writes and
 * nothing else, so two specs are the same if and only if their texts are. */
#include "jit/spec/spec.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/scope/compiled.h"

enum { LINE_MAX = 128 };

_Static_assert(sizeof "type  65535\n" + TIDE_SPEC_NAME < LINE_MAX,
               "the longest line of a site can be read again");
_Static_assert(TIDE_SPEC_ITEMS *(sizeof "type  65535\n" + TIDE_SPEC_NAME) + 256 <
                   TIDE_SPEC_SITE_BYTES,
               "the longest site fits the room that callers must give");

bool tide_spec_is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* ---- writing ------------------------------------------------------------------------------ */

/* A text in the making. Its room is enough for a site. */
typedef struct spec_text {
    char *out;
    size_t room, used;
} spec_text;

/* Appends, and a final 0. */
static __attribute__((format(printf, 2, 3))) void spec_put(spec_text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int wrote = vsnprintf(t->out + t->used, t->room - t->used, format, args);
    va_end(args);
    tide_assert(wrote >= 0 && (size_t)wrote < t->room - t->used);
    t->used += (size_t)wrote;
}

/* Is it written as it is? */
static bool spec_is_plain(char c)
{
    return tide_spec_is_word_byte(c) || (c != '\0' && strchr(".-*", c) != NULL);
}

static void spec_put_name(spec_text *t, const char *name)
{
    tide_assert(memchr(name, '\0', TIDE_SPEC_NAME) != NULL);
    for (size_t i = 0; i < TIDE_SPEC_NAME && name[i] != '\0'; i++)
        spec_put(t, "%c", spec_is_plain(name[i]) ? name[i] : '_');
    if (name[0] == '\0')
        spec_put(t, "*"); /* no type has this name, and something must stand here */
}

size_t tide_spec_write_head(char *out, size_t room)
{
    tide_assert(room >= TIDE_SPEC_SITE_BYTES);
    spec_text t = {out, room, 0};
    spec_put(&t, "tidepool-spec 1\nlayout %016" PRIx64 "\n", tide_compiled_layout());
    return t.used;
}

size_t tide_spec_write(const tide_spec *spec, char *out, size_t room)
{
    tide_assert(room >= TIDE_SPEC_SITE_BYTES && spec->item_count <= TIDE_SPEC_ITEMS);
    tide_assert(spec->stem[0] != '\0');
    spec_text t = {out, room, 0};
    spec_put(&t, "site scope %s\n%s", spec->stem, spec->count ? "count\n" : "");
    for (uint32_t i = 0; i < spec->item_count; i++) {
        spec_put(&t, "type ");
        spec_put_name(&t, spec->items[i].name);
        spec_put(&t, " %" PRIu32 "\n", spec->items[i].type);
    }
    spec_put(&t, "end\n");
    return t.used;
}

/* ---- reading ------------------------------------------------------------------------------ */

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
    memcpy(line, reader->text, length);
    line[length] = '\0';
    reader->text = end + 1;
    return true;
}

bool tide_spec_read_head(tide_spec_reader *reader, uint64_t *layout)
{
    char line[LINE_MAX], again[LINE_MAX];
    if (!spec_next_line(reader, line))
        return false;
    if (strcmp(line, "tidepool-spec 1") != 0)
        return spec_bad(reader, "'%.40s' is not 'tidepool-spec 1'", line);
    if (!spec_next_line(reader, line))
        return false;
    *layout = 0;
    (void)sscanf(line, "layout %" SCNx64, layout);
    snprintf(again, sizeof again, "layout %016" PRIx64, *layout);
    return strcmp(line, again) == 0 ||
           spec_bad(reader, "'%.40s' is not 'layout' and 16 hex digits", line);
}

static bool spec_is_identifier(const char *word)
{
    bool good = word[0] != '\0' && !(word[0] >= '0' && word[0] <= '9');
    while (good && *word != '\0')
        good = tide_spec_is_word_byte(*word++);
    return good;
}

static bool spec_read_site(tide_spec_reader *reader, const char *line, tide_spec *out)
{
    _Static_assert(TIDE_SPEC_STEM == 64 && TIDE_SPEC_NAME == 64, "what is scanned fits");
    if (strncmp(line, "site scope ", strlen("site scope ")) != 0)
        return spec_bad(reader, "'%.40s' is not 'site scope' and a stem", line);
    (void)sscanf(line, "site scope %63s", out->stem);
    return spec_is_identifier(out->stem) ||
           spec_bad(reader, "stem '%s' is not an identifier", out->stem);
}

static bool spec_read_item(tide_spec_reader *reader, const char *line, tide_spec *out)
{
    char word[8] = "";
    if (out->item_count == TIDE_SPEC_ITEMS)
        return spec_bad(reader, "more than %d types", TIDE_SPEC_ITEMS);
    tide_assert(out->item_count < TIDE_SPEC_ITEMS);
    tide_spec_item *item = &out->items[out->item_count++];
    int found = sscanf(line, "%7s %63s %" SCNu32, word, item->name, &item->type);
    if (strcmp(word, "type") != 0)
        return spec_bad(reader, "'%s' where 'type' or 'end' should stand", word);
    if (found != 3 || item->type == 0 || item->type >= TIDE_TYPE_LIMIT)
        return spec_bad(reader, "no type from 1 to %u with its name", TIDE_TYPE_LIMIT - 1);
    return true;
}

/* Is the text what is written of the site that was read of it? */
static bool spec_check_text(tide_spec_reader *reader, const char *text, const tide_spec *spec)
{
    char again[TIDE_SPEC_SITE_BYTES];
    size_t length = tide_spec_write(spec, again, sizeof again);
    return (length == (size_t)(reader->text - text) && memcmp(again, text, length) == 0) ||
           spec_bad(reader, "the site of stem '%s' is not written as the library does", spec->stem);
}

/* Every rule that concerns more than one line of a site. */
static bool spec_check_site(tide_spec_reader *reader, const tide_spec *spec)
{
    for (uint32_t i = 1; i < spec->item_count; i++)
        if (spec->items[i].type <= spec->items[i - 1].type)
            return spec_bad(reader, "the types of a scope do not ascend at %" PRIu32, i);
    return spec->item_count != 0 || spec_bad(reader, "the site has no items");
}

bool tide_spec_read(tide_spec_reader *reader, tide_spec *out)
{
    char line[LINE_MAX];
    const char *start = reader->text;
    *out = (tide_spec){0};
    if (start[0] == '\0')
        return true;
    if (!spec_next_line(reader, line) || !spec_read_site(reader, line, out))
        return false;
    while (spec_next_line(reader, line)) {
        if (strcmp(line, "end") == 0)
            return spec_check_site(reader, out) && spec_check_text(reader, start, out);
        if (strcmp(line, "count") == 0)
            out->count = true;
        else if (!spec_read_item(reader, line, out))
            return false;
    }
    return false;
}
