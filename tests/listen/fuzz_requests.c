/* SPDX-License-Identifier: MIT */
/* A fuzzer of requests. An input is an edit of a good one: which (a byte), where (a byte), how many
 * bytes go (a byte), and what comes instead. Whatever comes gets an answer that is a line of JSON,
 * and what the library is asked for is something that it can be asked for. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <tidepool/learn.h>

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
                                   "{\"do\":\"trim\",\"pool\":5}"};

static void need(bool holds)
{
    if (!holds)
        abort();
}

/* ---- in place of the library ---------------------------------------------------------------- */

static tide_status fake_write(FILE *out)
{
    fputs("{\"format\":\"any\"}\n", out);
    return TIDE_OK;
}

static tide_status fake_write_event(FILE *out, const tide_event *event)
{
    (void)event;
    return fake_write(out);
}

static tide_status fake_write_spec(const tide_listen_order *order, FILE *out)
{
    return order->id == 7 ? fake_write(out) : TIDE_ERROR_ARGUMENT;
}

static tide_status fake_obey(const tide_listen_order *order)
{
    need(order->verb != NULL && order->type_count <= sizeof order->types / sizeof *order->types);
    for (size_t i = 0; i < order->type_count; i++)
        need(order->types[i] == NULL || strlen(order->types[i]) < LISTEN_LINE_MAX);
    return order->id % 2 != 0 ? TIDE_OK : TIDE_ERROR_STATE;
}

static const char *fake_message(void)
{
    return "no \xff site \"of\" that\nname";
}

/* ---- the fuzzer ----------------------------------------------------------------------------- */

/* All that comes is lines, each a JSON object. */
static void check_answer(const char *from, size_t count)
{
    const char *end = from + count;
    need(count > 0 && end[-1] == '\n');
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
    static char answer[LISTEN_LINE_MAX];
    static int ends[2];
    if (client.number == 0) {
        need(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        client.number = ends[0];
    }
    client.follows = false;
    need(listen_request_answer(&client, line, length));
    ssize_t got = recv(ends[1], answer, sizeof answer, MSG_DONTWAIT);
    if (got > 0 || !client.follows) /* there may be nothing to tell */
        check_answer(answer, (size_t)got);
}

int LLVMFuzzerInitialize(int *count, char ***args);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *count, char ***args)
{
    static const tide_listen_host host = {.write_facts = fake_write,
                                          .write_event = fake_write_event,
                                          .write_profile = fake_write,
                                          .write_spec = fake_write_spec,
                                          .obey = fake_obey,
                                          .message = fake_message};
    (void)count;
    (void)args;
    listen_host = &host;
    for (uint64_t serial = 1; serial <= 5; serial++)
        listen_ring_hear(&(tide_event){.serial = serial, .name = "any"});
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
