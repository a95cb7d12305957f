/* SPDX-License-Identifier: MIT */
/* One line of a client, and its answer. Nothing of it is believed: it may be any bytes. */
#define _GNU_SOURCE
#include <jansson.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/listen/server.h"
#include "runtime/base/assert.h"
#include "runtime/base/memory_stream.h"

/* Takes the reference. */
static bool request_reply(const listen_client *client, json_t *answer)
{
    char *text = answer != NULL ? json_dumps(answer, JSON_COMPACT) : NULL;
    json_decref(answer);
    bool good =
        text != NULL && listen_send(client, text, strlen(text)) && listen_send(client, "\n", 1);
    free(text);
    return good;
}

/* The text may quote what the client sent, cut in the middle of a character. */
bool listen_request_refuse(const listen_client *client, const char *what)
{
    char clean[600];
    size_t i = 0;
    for (; what[i] != '\0' && i < sizeof clean - 1; i++)
        clean[i] = (unsigned char)what[i] < 0x80 ? what[i] : '?';
    clean[i] = '\0';
    return request_reply(client, json_pack("{s:s}", "error", clean));
}

/* What the library writes: of one site or tunable, else what `write` writes; as it is, or as one text of that
 * name. It is made whole first, so no lock waits for a client. */
static bool request_write(const listen_client *client, const tide_listen_order *of,
                          tide_status (*write_of)(const tide_listen_order *of, FILE *out),
                          tide_status (*write)(FILE *out), const char *name)
{
    char *text = NULL;
    size_t length = 0;
    tide_status status = TIDE_OK;
    FILE *out = tide_memory_stream_open(&text, &length);
    if (out != NULL)
        status = write_of != NULL ? write_of(of, out) : write(out);
    bool good = tide_memory_stream_close(out, &text);
    if (status != TIDE_OK || !good)
        good = listen_request_refuse(client, status != TIDE_OK ? listen_host->message()
                                                               : "no memory for the answer");
    else if (name == NULL)
        good = listen_send(client, text, length);
    else
        good = request_reply(client, json_pack("{s:s%}", name, text, length)) ||
               listen_request_refuse(client, "a name in it is no UTF-8");
    free(text);
    return good;
}

/* ---- events ------------------------------------------------------------------------------- */

/* The end names the last that was told: events may have come since. */
static bool request_events(listen_client *client, const json_t *request, bool follows)
{
    json_int_t since = json_integer_value(json_object_get(request, "since"));
    if (since < 0)
        return listen_request_refuse(client, "since: no number of an event");
    client->follows = client->follows || follows;
    client->told = (uint64_t)since;
    return listen_ring_tell(client) &&
           (follows || request_reply(client, json_pack("{s:I}", "end", (json_int_t)client->told)));
}

/* ---- orders ------------------------------------------------------------------------------- */

/* What is missing or of another type is NULL or no number: the library refuses that. */
static void request_read_order(const json_t *request, const json_t *site, tide_listen_order *order)
{
    size_t i;
    json_t *one, *value = json_object_get(request, "value");
    *order = (tide_listen_order){.name = json_string_value(site),
                                 .kind = json_string_value(json_object_get(request, "kind")),
                                 .tier = json_string_value(json_object_get(request, "tier")),
                                 .key = json_string_value(json_object_get(request, "key")),
                                 .tunable = json_string_value(json_object_get(request, "tunable")),
                                 .variant = json_string_value(json_object_get(request, "variant")),
                                 .value = json_is_number(value) ? json_number_value(value)
                                                                : (double)NAN};
    if (json_integer_value(json_object_get(request, "row")) > 0)
        order->row = (uint64_t)json_integer_value(json_object_get(request, "row"));
    if (json_integer_value(site) > 0)
        order->id = (uint64_t)json_integer_value(site);
    json_array_foreach(json_object_get(request, "types"), i, one)
    {
        if (i < sizeof order->types / sizeof *order->types)
            order->types[order->type_count++] = json_string_value(one);
    }
}

static bool request_do(const listen_client *client, const char *verb, const json_t *request)
{
    tide_listen_order order;
    const char *of = strcmp(verb, "trim") == 0 ? "pool" : "site";
    request_read_order(request, json_object_get(request, of), &order);
    order.verb = verb;
    tide_status status = listen_host->obey(&order);
    return status == TIDE_OK ? request_reply(client, json_pack("{s:b}", "ok", 1))
                             : listen_request_refuse(client, listen_host->message());
}

static bool request_is(const json_t *request, const char *member, const char *text)
{
    const char *value = json_string_value(json_object_get(request, member));
    return value != NULL && strcmp(value, text) == 0;
}

bool listen_request_answer(listen_client *client, const char *line, size_t length)
{
    json_error_t error;
    json_t *request = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
    const char *verb = json_string_value(json_object_get(request, "do"));
    tide_listen_order order;
    bool good;
    tide_assert(line[length] == '\0');
    if (request == NULL)
        good = listen_request_refuse(client, error.text);
    else if (request_is(request, "get", "facts"))
        good = request_write(client, NULL, NULL, listen_host->write_facts, NULL);
    else if (request_is(request, "get", "profile"))
        good = request_write(client, NULL, NULL,
                             json_is_true(json_object_get(request, "own"))
                                 ? listen_host->write_own
                                 : listen_host->write_profile,
                             "profile");
    else if (request_is(request, "get", "events") || request_is(request, "follow", "events"))
        good = request_events(client, request, request_is(request, "follow", "events"));
    else if (verb != NULL)
        good = request_do(client, verb, request);
    else if (json_object_get(request, "explain") != NULL) {
        request_read_order(request, json_object_get(request, "explain"), &order);
        good = request_write(client, &order, listen_host->write_spec, NULL, "text");
    } else if (json_is_string(json_object_get(request, "ask"))) {
        order = (tide_listen_order){.tunable = json_string_value(json_object_get(request, "ask"))};
        good = request_write(client, &order, listen_host->write_tunable, NULL, NULL);
    } else
        good = listen_request_refuse(
            client, "no request: get facts, events, profile; follow events; do; explain; ask");
    json_decref(request);
    return good;
}
