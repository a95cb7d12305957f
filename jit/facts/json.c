/* SPDX-License-Identifier: MIT */
/* Writes JSON. */
#include "jit/facts/json.h"

#include <inttypes.h>
#include <math.h>

#include "runtime/base/assert.h"
#include "runtime/base/utf8.h"

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
    const char *at = text != NULL ? text : "";
    while (*at != '\0') {
        unsigned length = tide_utf8_length(at);
        if (length == 0)
            fputs("\\ufffd", json->out);
        else if (length == 1)
            json_put_byte(json->out, (unsigned char)*at);
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
