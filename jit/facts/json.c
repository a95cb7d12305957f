/* SPDX-License-Identifier: MIT */
/* Writes JSON. */
#include "jit/facts/json.h"

#include <inttypes.h>
#include <math.h>

#include "runtime/base/assert.h"

static void json_begin(tide_json *json, const char *key)
{
    if (json->follows)
        putc(',', json->out);
    json->follows = true;
    if (key != NULL)
        fprintf(json->out, "\"%s\":", key);
}

void tide_json_open(tide_json *json, const char *key, char bracket)
{
    tide_assert(bracket == '{' || bracket == '[');
    json_begin(json, key);
    putc(bracket, json->out);
    json->follows = false;
}

void tide_json_close(tide_json *json, char bracket)
{
    tide_assert(bracket == '}' || bracket == ']');
    putc(bracket, json->out);
    json->follows = true;
}

/* How many bytes of a character that starts so; 0: none does. `least` is the least that its second
 * byte may be, `most` the most: no overlong forms, no surrogates, nothing above U+10FFFF. */
static unsigned json_length(unsigned char first, unsigned char *least, unsigned char *most)
{
    *least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    *most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    return first < 0x80                    ? 1
           : first >= 0xC2 && first < 0xE0 ? 2
           : first >= 0xE0 && first < 0xF0 ? 3
           : first >= 0xF0 && first < 0xF5 ? 4
                                           : 0;
}

/* Bytes of the character at `text`, which has at least one; 0: it is none. A text's end is no byte
 * that follows another. */
static unsigned json_character(const unsigned char *text)
{
    unsigned char least, most;
    unsigned length = json_length(text[0], &least, &most);
    if (length >= 2 && (text[1] < least || text[1] > most))
        return 0;
    for (unsigned i = 2; i < length; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    return length;
}

static void json_put_byte(FILE *out, unsigned char byte)
{
    if (byte == '"' || byte == '\\')
        fprintf(out, "\\%c", byte);
    else if (byte < ' ' || byte == 0x7f)
        fprintf(out, "\\u%04x", byte);
    else
        putc(byte, out);
}

void tide_json_text(tide_json *json, const char *key, const char *text)
{
    json_begin(json, key);
    putc('"', json->out);
    const unsigned char *at = (const unsigned char *)(text != NULL ? text : "");
    while (*at != '\0') {
        unsigned length = json_character(at);
        if (length == 0)
            fputs("\\ufffd", json->out);
        else if (length == 1)
            json_put_byte(json->out, *at);
        else
            fwrite(at, 1, length, json->out);
        at += length != 0 ? length : 1;
    }
    putc('"', json->out);
}

void tide_json_count(tide_json *json, const char *key, uint64_t count)
{
    json_begin(json, key);
    fprintf(json->out, "%" PRIu64, count <= INT64_MAX ? count : (uint64_t)INT64_MAX);
}

void tide_json_number(tide_json *json, const char *key, double number)
{
    json_begin(json, key);
    fprintf(json->out, "%.15g", isfinite(number) ? number : 0.);
}

void tide_json_flag(tide_json *json, const char *key, bool flag)
{
    json_begin(json, key);
    fputs(flag ? "true" : "false", json->out);
}
