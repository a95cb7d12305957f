/* SPDX-License-Identifier: MIT */
/* Writes a set of profiles as text that read.c accepts. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/files/text.h"
#include "runtime/base/assert.h"
#include "runtime/base/document.h"
#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/pool/core.h"

/* ---- strings ---------------------------------------------------------------------------- */

/* One byte of a string, escaped where it must be. */
static void write_byte(FILE *out, unsigned char byte)
{
    if (byte == '"' || byte == '\\')
        fprintf(out, "\\%c", byte);
    else if (byte == '\n' || byte == '\t')
        fputs(byte == '\n' ? "\\n" : "\\t", out);
    else if (byte < ' ' || byte == 0x7f)
        fprintf(out, "\\x%02x", byte);
    else
        fputc(byte, out);
}

/* The character at `text`, or a byte that is none. Returns how many bytes it has. */
static unsigned write_character(FILE *out, const char *text)
{
    unsigned length = tide_utf8_length(text);
    tide_assert(*text != '\0' && length <= 4);
    if (length == 0)
        fprintf(out, "\\x%02x", (unsigned char)*text);
    else if (length == 1)
        write_byte(out, (unsigned char)*text);
    else
        fwrite(text, 1, length, out);
    return length > 0 ? length : 1;
}

void tide_text_string(FILE *out, const char *text)
{
    fputs(" \"", out);
    while (*text != '\0')
        text += write_character(out, text);
    fputs("\"", out);
}

/* ---- figures ---------------------------------------------------------------------------- */

static uint64_t write_at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

/* What was added up may be more than the reader takes. Of each figure it is then the most, and the rest
 * is put in step. */
static void write_type(FILE *out, const tide_profile_type *type, uint64_t uses)
{
    uint64_t scopes = write_at_most(type->scopes, uses);
    tide_assert(scopes != 0);
    uint64_t slots = write_at_most(type->slots, scopes * TIDE_ROW_MAX);
    slots = slots < scopes ? scopes : slots;
    uint64_t least = (slots + scopes - 1) / scopes;
    uint64_t most = write_at_most(type->slots_max, TIDE_ROW_MAX);
    fprintf(out, "uses %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", type->type, scopes,
            slots, most < least ? least : most);
}

static void write_scope(FILE *out, const tide_profile_set_site *site)
{
    const tide_site_profile *profile = &site->profile;
    uint64_t uses = write_at_most(profile->scopes, TIDE_TEXT_COUNT_MAX);
    tide_assert(uses != 0 && profile->type_count <= TIDE_PROFILE_TYPES);
    fprintf(out, "scope %" PRIu32 " %" PRIu64 " %" PRIu64, site->key.line, uses,
            write_at_most(profile->other, TIDE_TEXT_COUNT_MAX));
    tide_text_string(out, site->key.name);
    tide_text_string(out, site->key.file);
    tide_text_string(out, site->key.function);
    fputc('\n', out);
    for (uint32_t i = 0; i < profile->type_count; i++)
        write_type(out, &profile->types[i], uses);
}

static void write_all(FILE *out, const tide_profile_set *set)
{
    fprintf(out, "tidepool profile %d\n", TIDE_TEXT_VERSION);
    for (uint32_t i = 0; i < set->type_count; i++) {
        fprintf(out, "type %zu %zu", set->types[i].size, set->types[i].align);
        tide_text_string(out, set->types[i].name);
        fputc('\n', out);
    }
    for (uint32_t i = 0; i < set->site_count; i++)
        write_scope(out, set->sites[i]);
    if (set->more != NULL)
        tide_profile_more.write(set->more, out);
    fprintf(out, "end %" PRIu32 "\n", set->site_count);
}

/* What could not be read again is not written. */
static tide_status write_check_types(const tide_profile_set *set, const char *call)
{
    for (uint32_t i = 0; i < set->type_count; i++) {
        const char *name = set->types[i].name;
        if (strlen(name) > TIDE_TEXT_TYPE_NAME)
            return tide_fail(TIDE_ERROR_LIMIT, call,
                             "the name of a type has %zu bytes, most is %zu: '%.60s…'",
                             strlen(name), TIDE_TEXT_TYPE_NAME, name);
    }
    return TIDE_OK;
}

tide_status tide_profile_text_write(const tide_profile_set *set, char **text, size_t *length,
                                    const char *call)
{
    tide_document document;
    *text = NULL;
    TIDE_FORWARD(write_check_types(set, call));
    TIDE_FORWARD(tide_document_begin(&document, call));
    write_all(document.page, set);
    TIDE_FORWARD(tide_document_take(&document, call));
    *length = document.length;
    if (*length <= TIDE_TEXT_BYTES) {
        *text = document.text;
        return TIDE_OK;
    }
    free(document.text);
    return tide_fail(TIDE_ERROR_LIMIT, call, "the profile has %zu bytes, limit %zu", *length,
                     TIDE_TEXT_BYTES);
}
