/* SPDX-License-Identifier: MIT */
/* Writes a set of profiles as text that read.c accepts. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "profiler/text.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/utf8.h"
#include "runtime/pool/core.h"

/* ---- a buffer that grows ---------------------------------------------------------------- */

static bool write_reserve(tide_text_writer *w, size_t more)
{
    tide_profile_text *text = w->text;
    if (w->status != TIDE_OK)
        return false;
    if (text->length + more > TIDE_TEXT_BYTES) {
        w->status =
            tide_fail(TIDE_ERROR_LIMIT, w->call, "the profile exceeds %zu bytes", TIDE_TEXT_BYTES);
        return false;
    }
    tide_assert(text->length <= text->room);
    if (text->length + more <= text->room)
        return true;
    size_t room = 2 * text->room + more + 4096;
    tide_assert(room - text->length >= more);
    char *bytes = tide_os_resize(text->bytes, room);
    if (bytes == NULL) {
        w->status = tide_fail(TIDE_ERROR_MEMORY, w->call, "no memory for %zu bytes of text", room);
        return false;
    }
    text->bytes = bytes;
    text->room = room;
    return true;
}

void tide_text_format(tide_text_writer *w, const char *format, ...)
{
    enum { MOST = 256 };
    if (!write_reserve(w, MOST))
        return;
    va_list arguments;
    va_start(arguments, format);
    int wrote = vsnprintf(w->text->bytes + w->text->length, MOST, format, arguments);
    va_end(arguments);
    tide_assert(wrote >= 0 && wrote < MOST);
    w->text->length += (size_t)wrote;
}

/* One byte of a string, escaped where it must be. */
static void write_byte(tide_text_writer *w, unsigned char byte)
{
    if (byte == '"' || byte == '\\')
        tide_text_format(w, "\\%c", byte);
    else if (byte == '\n' || byte == '\t')
        tide_text_format(w, byte == '\n' ? "\\n" : "\\t");
    else if (byte < ' ' || byte == 0x7f)
        tide_text_format(w, "\\x%02x", byte);
    else
        tide_text_format(w, "%c", byte);
}

/* The character at `text`, or a byte that is none. Returns how many bytes it has. */
static unsigned write_character(tide_text_writer *w, const char *text)
{
    unsigned length = tide_utf8_length(text);
    tide_assert(*text != '\0' && length <= 4);
    if (length == 0)
        tide_text_format(w, "\\x%02x", (unsigned char)*text);
    else if (length == 1)
        write_byte(w, (unsigned char)*text);
    else
        tide_text_format(w, "%.*s", (int)length, text);
    return length > 0 ? length : 1;
}

void tide_text_string(tide_text_writer *w, const char *text)
{
    tide_text_format(w, " \"");
    while (*text != '\0')
        text += write_character(w, text);
    tide_text_format(w, "\"");
}

/* ---- figures ---------------------------------------------------------------------------- */

static uint64_t write_at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

/* What was added up may be more than the reader takes. Of each figure it is then the most, and the rest
 * is put in step. */
static void write_type(tide_text_writer *w, const tide_profile_type *type, uint64_t uses)
{
    uint64_t scopes = write_at_most(type->scopes, uses);
    tide_assert(scopes != 0);
    uint64_t slots = write_at_most(type->slots, scopes * TIDE_ROW_MAX);
    slots = slots < scopes ? scopes : slots;
    uint64_t least = (slots + scopes - 1) / scopes;
    uint64_t most = write_at_most(type->slots_max, TIDE_ROW_MAX);
    tide_text_format(w, "uses %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", type->type,
                     scopes, slots, most < least ? least : most);
}

static void write_scope(tide_text_writer *w, const tide_profile_set_site *site)
{
    const tide_site_profile *profile = &site->profile;
    uint64_t uses = write_at_most(profile->scopes, TIDE_TEXT_COUNT_MAX);
    tide_assert(uses != 0 && profile->type_count <= TIDE_PROFILE_TYPES);
    tide_text_format(w, "scope %" PRIu32 " %" PRIu64 " %" PRIu64, site->key.line, uses,
                     write_at_most(profile->other, TIDE_TEXT_COUNT_MAX));
    tide_text_string(w, site->key.name);
    tide_text_string(w, site->key.file);
    tide_text_string(w, site->key.function);
    tide_text_format(w, "\n");
    for (uint32_t i = 0; i < profile->type_count; i++)
        write_type(w, &profile->types[i], uses);
}

/* What could not be read again is not written. */
static void write_type_facts(tide_text_writer *w, const tide_type_facts *facts)
{
    size_t length = strlen(facts->name);
    if (w->status != TIDE_OK)
        return;
    if (length > TIDE_TEXT_TYPE_NAME) {
        w->status = tide_fail(TIDE_ERROR_LIMIT, w->call,
                              "the name of a type has %zu bytes, most is %zu: '%.60s…'", length,
                              TIDE_TEXT_TYPE_NAME, facts->name);
        return;
    }
    tide_text_format(w, "type %zu %zu", facts->size, facts->align);
    tide_text_string(w, facts->name);
    tide_text_format(w, "\n");
}

tide_status tide_profile_text_write(const tide_profile_set *set, tide_profile_text *out,
                                    const char *call)
{
    tide_text_writer w = {out, call, TIDE_OK};
    *out = (tide_profile_text){0};
    tide_text_format(&w, "tidepool profile %d\n", TIDE_TEXT_VERSION);
    for (uint32_t i = 0; i < set->type_count; i++)
        write_type_facts(&w, &set->types[i]);
    for (uint32_t i = 0; i < set->site_count; i++)
        write_scope(&w, set->sites[i]);
    if (set->more != NULL)
        tide_profile_more.write(set->more, &w);
    tide_text_format(&w, "end %" PRIu32 "\n", set->site_count);
    tide_assert(w.status != TIDE_OK || out->length <= TIDE_TEXT_BYTES);
    return w.status;
}
