/* SPDX-License-Identifier: MIT */
/* One line of a client, and its answer. Nothing of it is believed: it may be any bytes. */
#define _GNU_SOURCE
#include <jansson.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/listen/server.h"
#include "runtime/base/assert.h"
#include "runtime/base/memory_stream.h"

enum { TYPES_MAX = 64 };

/* Takes the reference. */
static bool request_reply(listen_client *client, json_t *answer)
{
    char *text = answer != NULL ? json_dumps(answer, JSON_COMPACT) : NULL;
    json_decref(answer);
    bool good = text != NULL && listen_output_add(&client->output, text, strlen(text)) &&
                listen_output_add(&client->output, "\n", 1);
    free(text);
    return good;
}

/* The text may quote what the client sent, cut in the middle of a character. */
bool listen_request_refuse(listen_client *client, const char *what, const char *code)
{
    char clean[600];
    size_t i = 0;
    for (; what[i] != '\0' && i < sizeof clean - 1; i++)
        clean[i] = (unsigned char)what[i] < 0x80 ? what[i] : '?';
    clean[i] = '\0';
    json_t *answer = json_pack("{s:s}", "error", clean);
    if (code != NULL && answer != NULL)
        json_object_set_new(answer, "code", json_string(code));
    return request_reply(client, answer);
}

/* The library's own words: "TIDE_ERROR_NAME". */
static bool request_refuse_status(listen_client *client, tide_status status)
{
    char code[40] = "TIDE_ERROR_";
    size_t at = strlen(code);
    tide_assert(status != TIDE_OK);
    for (const char *c = listen_host->status_name(status); *c != '\0' && at < sizeof code - 1; c++)
        code[at++] = (char)toupper((unsigned char)*c);
    return listen_request_refuse(client, listen_host->message(), code);
}

/* ---- documents ---------------------------------------------------------------------------- */

/* What `write` writes, in memory; NULL with the status. */
static char *request_collect(tide_status (*write)(FILE *out), size_t *length, tide_status *status)
{
    char *text = NULL;
    FILE *out = tide_memory_stream_open(&text, length);
    *status = TIDE_ERROR_MEMORY;
    if (out == NULL)
        return NULL;
    *status = write(out);
    bool good = tide_memory_stream_close(out, &text);
    if (good && *status == TIDE_OK)
        return text;
    if (*status == TIDE_OK)
        *status = TIDE_ERROR_MEMORY;
    free(text);
    return NULL;
}

static bool request_get_facts(listen_client *client)
{
    size_t length = 0;
    tide_status status;
    char *text = request_collect(listen_host->write_facts, &length, &status);
    bool good = text != NULL ? listen_output_add(&client->output, text, length)
                             : request_refuse_status(client, status);
    free(text);
    return good;
}

static bool request_get_profile(listen_client *client)
{
    size_t length = 0;
    tide_status status;
    char *text = request_collect(listen_host->write_profile, &length, &status);
    if (text == NULL)
        return request_refuse_status(client, status);
    json_t *whole = json_stringn(text, length);
    free(text);
    return whole != NULL ? request_reply(client, json_pack("{s:o}", "profile", whole))
                         : listen_request_refuse(client, "a name in the profile is no UTF-8", NULL);
}

/* False: no number of 0 or more. */
static bool request_read_serial(const json_t *request, uint64_t *since)
{
    const json_t *given = json_object_get(request, "since");
    *since = given != NULL ? (uint64_t)json_integer_value(given) : 0;
    return given == NULL || (json_is_integer(given) && json_integer_value(given) >= 0);
}

/* The end names the last that was told: events may have come since. */
static bool request_get_events(listen_client *client, const json_t *request)
{
    uint64_t since;
    if (!request_read_serial(request, &since))
        return listen_request_refuse(client, "since: no number of an event", NULL);
    uint64_t last = listen_ring_last();
    bool asks = since < last;
    if (asks && !listen_ring_tell(&client->output, &since, false))
        return false;
    return request_reply(client, json_pack("{s:I}", "end", (json_int_t)(asks ? since : last)));
}

static bool request_get(listen_client *client, const char *what, const json_t *request)
{
    if (strcmp(what, "facts") == 0)
        return request_get_facts(client);
    if (strcmp(what, "events") == 0)
        return request_get_events(client, request);
    if (strcmp(what, "profile") == 0)
        return request_get_profile(client);
    return listen_request_refuse(client, "get: facts, events or profile", NULL);
}

static bool request_follow(listen_client *client, const char *what, const json_t *request)
{
    uint64_t since;
    if (strcmp(what, "events") != 0 || !request_read_serial(request, &since))
        return listen_request_refuse(client, "follow: events, and since: a number", NULL);
    client->follows = true;
    client->fresh = json_object_get(request, "since") == NULL;
    client->told = client->fresh ? listen_ring_last() : since;
    return true;
}

/* ---- orders ------------------------------------------------------------------------------- */

/* A site is named by its number or its name. False: neither is there. */
static bool request_read_site(const json_t *site, tide_listen_order *order)
{
    if (json_is_integer(site) && json_integer_value(site) > 0)
        order->id = (uint64_t)json_integer_value(site);
    else
        order->name = json_string_value(site);
    return order->id != 0 || order->name != NULL;
}

static bool request_read_types(const json_t *list, tide_listen_order *order,
                               const char *names[TYPES_MAX])
{
    size_t i;
    json_t *one;
    if (!json_is_array(list) || json_array_size(list) > TYPES_MAX)
        return false;
    json_array_foreach(list, i, one) if ((names[i] = json_string_value(one)) == NULL) return false;
    order->types = names;
    order->type_count = json_array_size(list);
    return true;
}

/* What is missing, in words; NULL: nothing. */
static const char *request_read_rest(const json_t *request, tide_listen_order *order,
                                     const char *names[TYPES_MAX])
{
    const json_t *value = json_object_get(request, "value");
    order->kind = json_string_value(json_object_get(request, "kind"));
    order->tier = json_string_value(json_object_get(request, "tier"));
    order->key = json_string_value(json_object_get(request, "key"));
    order->path = json_string_value(json_object_get(request, "path"));
    order->value = json_number_value(value);
    switch (order->verb) {
    case TIDE_LISTEN_SET:
        return order->key != NULL && json_is_number(value) ? NULL : "set: key and value";
    case TIDE_LISTEN_SAVE:
        return order->path != NULL && order->path[0] == '/' ? NULL : "profile-save: absolute path";
    case TIDE_LISTEN_TRIM:
        return request_read_site(json_object_get(request, "pool"), order) && order->id != 0
                   ? NULL
                   : "trim: pool, a number";
    case TIDE_LISTEN_DECLARE:
        if (!request_read_types(json_object_get(request, "types"), order, names))
            return "declare: types, names in a list";
        break;
    case TIDE_LISTEN_PIN:
        if (order->tier == NULL)
            return "pin: tier";
        break;
    default: break;
    }
    return request_read_site(json_object_get(request, "site"), order) ? NULL
                                                                      : "site: a number or a name";
}

static bool request_do(listen_client *client, const char *what, const json_t *request)
{
    static const char *const verbs[] = {[TIDE_LISTEN_PIN] = "pin",
                                        [TIDE_LISTEN_UNPIN] = "unpin",
                                        [TIDE_LISTEN_RESET] = "reset",
                                        [TIDE_LISTEN_DECLARE] = "declare",
                                        [TIDE_LISTEN_COMPILE] = "compile-now",
                                        [TIDE_LISTEN_SET] = "set",
                                        [TIDE_LISTEN_SAVE] = "profile-save",
                                        [TIDE_LISTEN_TRIM] = "trim"};
    const char *names[TYPES_MAX];
    tide_listen_order order = {0};
    size_t verb = 0;
    while (verb < sizeof verbs / sizeof *verbs && strcmp(verbs[verb], what) != 0)
        verb++;
    if (verb == sizeof verbs / sizeof *verbs)
        return listen_request_refuse(client, "do: no such verb", NULL);
    order.verb = (tide_listen_verb)verb;
    const char *missing = request_read_rest(request, &order, names);
    if (missing != NULL)
        return listen_request_refuse(client, missing, NULL);
    tide_status status = listen_host->obey(&order);
    return status == TIDE_OK ? request_reply(client, json_pack("{s:b}", "ok", 1))
                             : request_refuse_status(client, status);
}

/* The text of the spec; what it means, and as machine code, the stager's --explain tells. */
static bool request_explain(listen_client *client, const json_t *request)
{
    tide_listen_order order = {.kind = json_string_value(json_object_get(request, "kind"))};
    char *text = NULL;
    size_t length = 0;
    if (!request_read_site(json_object_get(request, "explain"), &order))
        return listen_request_refuse(client, "explain: a number or a name of a site", NULL);
    FILE *out = tide_memory_stream_open(&text, &length);
    tide_status status = out != NULL ? listen_host->write_spec(&order, out) : TIDE_ERROR_MEMORY;
    bool good = tide_memory_stream_close(out, &text) && status == TIDE_OK;
    bool sent = good
                    ? request_reply(client, json_pack("{s:s}", "text", text))
                    : request_refuse_status(client, status != TIDE_OK ? status : TIDE_ERROR_MEMORY);
    free(text);
    return sent;
}

bool listen_request_answer(listen_client *client, const char *line, size_t length)
{
    json_error_t error;
    json_t *request = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
    const char *get = json_string_value(json_object_get(request, "get"));
    const char *follow = json_string_value(json_object_get(request, "follow"));
    const char *what = json_string_value(json_object_get(request, "do"));
    bool good;
    tide_assert(line[length] == '\0');
    if (request == NULL)
        good = listen_request_refuse(client, error.text, NULL);
    else if (get != NULL)
        good = request_get(client, get, request);
    else if (follow != NULL)
        good = request_follow(client, follow, request);
    else if (what != NULL)
        good = request_do(client, what, request);
    else if (json_object_get(request, "explain") != NULL)
        good = request_explain(client, request);
    else
        good = listen_request_refuse(client, "no request: get, follow, do or explain", NULL);
    json_decref(request);
    return good;
}
