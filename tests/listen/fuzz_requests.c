/* SPDX-License-Identifier: MIT */
/* A fuzzer of requests. An input is an edit of a good one: which (a byte), where (a byte), how many
 * bytes go (a byte), and what comes instead. Whatever comes gets an answer that is a line of JSON,
 * and what the library is asked for is something that it can be asked for. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/listen/server.h"

static const char *const good[] = {"{\"get\":\"facts\"}",
                                   "{\"get\":\"events\",\"since\":3}",
                                   "{\"follow\":\"events\",\"since\":3}",
                                   "{\"get\":\"profile\"}",
                                   "{\"explain\":7,\"kind\":\"scope\"}",
                                   "{\"explain\":\"name\"}",
                                   "{\"do\":\"pin\",\"site\":7,\"tier\":\"table\"}",
                                   "{\"do\":\"unpin\",\"site\":\"name\",\"kind\":\"frame\"}",
                                   "{\"do\":\"declare\",\"site\":7,\"types\":[\"f64\",\"i32\"]}",
                                   "{\"do\":\"compile-now\",\"site\":7}",
                                   "{\"do\":\"set\",\"key\":\"learn\",\"value\":0}",
                                   "{\"do\":\"profile-save\",\"path\":\"/nowhere\"}",
                                   "{\"do\":\"trim\",\"pool\":5}"};

static void need(bool holds)
{
    if (!holds)
        abort();
}

/* ---- in place of the library ---------------------------------------------------------------- */

static bool locked;

static void fake_lock(void)
{
    need(!locked);
    locked = true;
}

static void fake_unlock(void)
{
    need(locked);
    locked = false;
}

static tide_status fake_write(FILE *out)
{
    need(!locked);
    fputs("{\"format\":\"any\"}\n", out);
    return TIDE_OK;
}

static tide_status fake_write_event(FILE *out, const tide_event *event)
{
    (void)event;
    return fake_write(out);
}

static void need_site(const tide_listen_order *order)
{
    need((order->id != 0) != (order->name != NULL));
    need(order->name == NULL || strlen(order->name) < LISTEN_LINE_MAX);
}

static tide_status fake_write_spec(const tide_listen_order *order, FILE *out)
{
    need_site(order);
    return order->id == 7 ? fake_write(out) : TIDE_ERROR_ARGUMENT;
}

static tide_status fake_obey(const tide_listen_order *order)
{
    need(!locked && (unsigned)order->verb <= TIDE_LISTEN_TRIM);
    if (order->verb <= TIDE_LISTEN_COMPILE)
        need_site(order);
    for (size_t i = 0; i < order->type_count; i++)
        need(strlen(order->types[i]) < LISTEN_LINE_MAX);
    if (order->verb == TIDE_LISTEN_SET)
        need(order->key != NULL && order->value == order->value);
    if (order->verb == TIDE_LISTEN_SAVE)
        need(order->path != NULL);
    return order->id % 2 != 0 ? TIDE_OK : TIDE_ERROR_STATE;
}

static const char *fake_message(void)
{
    return "no \xff site \"of\" that\nname";
}

static const char *fake_status_name(tide_status status)
{
    need(status != TIDE_OK);
    return "state";
}

/* ---- the fuzzer ----------------------------------------------------------------------------- */

/* All that waits is lines, each a JSON object. */
static void check_answer(const listen_output *output)
{
    const char *from = output->bytes + output->first, *end = from + output->count;
    need(output->count > 0 && end[-1] == '\n');
    while (from < end) {
        const char *feed = memchr(from, '\n', (size_t)(end - from));
        json_t *line = json_loadb(from, (size_t)(feed - from), 0, NULL);
        need(json_is_object(line));
        json_decref(line);
        from = feed + 1;
    }
}

static void ask(const char *line, size_t length)
{
    static listen_client client;
    memset(&client, 0, sizeof client);
    need(listen_request_answer(&client, line, length));
    if (client.output.count > 0 || !client.follows) /* a follower is told later */
        check_answer(&client.output);
    listen_output_free(&client.output);
    need(!locked);
}

int LLVMFuzzerInitialize(int *count, char ***args);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *count, char ***args)
{
    static const tide_listen_host host = {fake_lock,        fake_unlock,  fake_write,
                                          fake_write_event, fake_write,   fake_write_spec,
                                          fake_obey,        fake_message, fake_status_name};
    static const tide_event event = {.name = "any"};
    (void)count;
    (void)args;
    listen_host = &host;
    for (int i = 0; i < 5; i++)
        listen_ring_hear(&event);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3 || size > LISTEN_LINE_MAX / 2)
        return 0;
    const char *line = good[data[0] % (sizeof good / sizeof *good)];
    size_t length = strlen(line), at = data[1] % (length + 1);
    size_t gone = data[2] % (length - at + 1), more = size - 3;
    char *text = malloc(length - gone + more + 1); /* exactly, so that reading past it is seen */
    need(text != NULL);
    memcpy(text, line, at);
    memcpy(text + at, data + 3, more);
    memcpy(text + at + more, line + at + gone, length - at - gone);
    length = length - gone + more;
    text[length] = '\0';
    if (memchr(text, '\n', length) == NULL)
        ask(text, length);
    free(text);
    return 0;
}
