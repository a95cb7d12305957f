/* SPDX-License-Identifier: MIT */
/* What is known, written as text that the reader will take. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "profiler/text.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/pool/core.h"

/* ---- a buffer that grows ---------------------------------------------------------------- */

/* A failure stays: what is written after it is nothing. */
typedef struct writer {
    tide_text *text;
    const char *call;
    tide_status status;
} writer;

static bool reserve(writer *w, size_t more)
{
    tide_text *text = w->text;
    if (w->status != TIDE_OK)
        return false;
    if (text->length + more > TIDE_TEXT_BYTES) {
        w->status = tide_fail(TIDE_ERROR_LIMIT, w->call, "the profile exceeds %zu bytes",
                              TIDE_TEXT_BYTES);
        return false;
    }
    if (text->length + more <= text->room)
        return true;
    size_t room = 2 * text->room + more + 4096;
    char *bytes = tide_os_resize(text->bytes, room);
    if (bytes == NULL) {
        w->status = tide_fail(TIDE_ERROR_MEMORY, w->call, "no memory for %zu bytes of text", room);
        return false;
    }
    text->bytes = bytes;
    text->room = room;
    return true;
}

static __attribute__((format(printf, 2, 3))) void put(writer *w, const char *format, ...)
{
    enum { MOST = 256 };
    if (!reserve(w, MOST))
        return;
    va_list arguments;
    va_start(arguments, format);
    w->text->length += (size_t)vsnprintf(w->text->bytes + w->text->length, MOST, format, arguments);
    va_end(arguments);
}

static void put_byte(writer *w, unsigned char byte)
{
    if (byte == '"' || byte == '\\')
        put(w, "\\%c", byte);
    else if (byte == '\n' || byte == '\t')
        put(w, byte == '\n' ? "\\n" : "\\t");
    else if (byte < ' ' || byte == 0x7f)
        put(w, "\\x%02x", byte);
    else
        put(w, "%c", byte);
}

static void put_string(writer *w, const char *text)
{
    put(w, " \"");
    for (; *text != '\0'; text++)
        put_byte(w, (unsigned char)*text);
    put(w, "\"");
}

/* ---- figures ---------------------------------------------------------------------------- */

static uint64_t at_max(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

/* Figures that were taken while uses were under way may be out of step by those uses; they are put
 * in step, for the reader takes nothing that cannot be. */
static void put_type(writer *w, const tide_profile_type *type, uint64_t uses)
{
    uint64_t scopes = at_max(type->scopes, uses);
    uint64_t slots = at_max(type->slots, scopes * TIDE_ROW_MAX);
    slots = slots < scopes ? scopes : slots;
    uint64_t least = (slots + scopes - 1) / scopes;
    uint64_t most = at_max(type->slots_max, TIDE_ROW_MAX);
    put(w, "uses %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", type->type, scopes, slots,
        most < least ? least : most);
}

/* `left`: uses that no pattern was shown for yet. */
static void put_pattern(writer *w, const tide_profile_pattern *pattern, uint64_t *left)
{
    uint64_t scopes = at_max(pattern->scopes, *left);
    if (scopes == 0)
        return;
    *left -= scopes;
    put(w, "pattern %" PRIu64, scopes);
    for (uint32_t i = 0; i < pattern->length; i++)
        put(w, " %" PRId64, pattern->words[i]);
    put(w, "\n");
}

static void put_site(writer *w, const tide_profile_set_site *site)
{
    const tide_site_profile *profile = &site->profile;
    uint64_t uses = at_max(profile->scopes, TIDE_TEXT_COUNT_MAX), left = uses;
    uint64_t pattern_other = at_max(profile->pattern_other, left);
    left -= pattern_other;
    put(w, "site %s %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64, tide_kind_name(site->key.kind),
        site->key.line, uses, at_max(profile->other, TIDE_TEXT_COUNT_MAX), pattern_other);
    put_string(w, site->key.name);
    put_string(w, site->key.file);
    put_string(w, site->key.function);
    put(w, "\n");
    if (profile->nested != 0 && site->key.kind == TIDE_KIND_SCOPE)
        put(w, "nested %" PRIu64 "\n", at_max(profile->nested, uses));
    for (uint32_t i = 0; i < profile->type_count; i++)
        put_type(w, &profile->types[i], uses);
    for (uint32_t i = 0; i < profile->pattern_count; i++)
        put_pattern(w, &profile->patterns[i], &left);
}

tide_status tide_text_write(const tide_profile_set *known, tide_text *out, const char *call)
{
    writer w = {out, call, TIDE_OK};
    *out = (tide_text){0};
    put(&w, "tidepool profile 1\n");
    for (uint32_t i = 0; i < known->type_count; i++) {
        put(&w, "type %zu %zu", known->types[i].size, known->types[i].align);
        put_string(&w, known->types[i].name);
        put(&w, "\n");
    }
    for (uint32_t i = 0; i < known->site_count; i++)
        put_site(&w, known->sites[i]);
    put(&w, "end %" PRIu32 "\n", known->site_count);
    return w.status;
}
