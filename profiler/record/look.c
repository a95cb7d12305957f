/* SPDX-License-Identifier: MIT */
/* One look at a process that listens. */
#include "profiler/record/look.h"

#include <stdio.h>
#include <string.h>

#include "profiler/record/value.h"
#include "runtime/base/assert.h"

enum { LOOK_EVENTS_MAX = 65536 }; /* lines of one answer */

/* False. What was asked of the connection has said what is wrong; of what came over it nobody
 * has. */
static bool look_refuse(tide_look *look, const char *what)
{
    snprintf(look->client.error, sizeof look->client.error, "process %d: %s", (int)look->pid, what);
    return false;
}

static json_t *look_line(tide_look *look)
{
    const char *text;
    size_t length;
    if (tool_client_read(&look->client, look->timeout_ms, &text, &length) != TOOL_OK)
        return NULL;
    json_t *line = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(line))
        return line;
    (void)look_refuse(look, "its answer is no JSON object");
    json_decref(line);
    return NULL;
}

/* False for what is neither an event nor a gap. */
static bool look_event(tide_look *look, json_t *line, tide_record_visit *visit, void *user)
{
    if (json_is_integer(json_object_get(line, "gap")))
        return visit(TIDE_RECORD_GAP, line, user);
    if (strcmp(tide_value_text(line, "format"), "tidepool-event") != 0 ||
        tide_value_count(line, "time_ns") == 0)
        return look_refuse(look, "its answer is no event");
    json_int_t serial = (json_int_t)tide_value_count(line, "serial");
    look->serial = serial > look->serial ? serial : look->serial;
    return visit(TIDE_RECORD_EVENT, line, user);
}

static bool look_events(tide_look *look, tide_record_visit *visit, void *user)
{
    char request[80];
    bool good = true, more = true;
    snprintf(request, sizeof request, "{\"get\":\"events\",\"since\":%lld}",
             (long long)look->serial);
    if (tool_client_send(&look->client, request) != TOOL_OK)
        return false;
    for (int i = 0; i < LOOK_EVENTS_MAX && good && more; i++) {
        json_t *line = look_line(look);
        more = json_object_get(line, "end") == NULL;
        good = line != NULL && (!more || look_event(look, line, visit, user));
        json_decref(line);
    }
    return good && (!more || look_refuse(look, "its answer has no end"));
}

static bool look_facts(tide_look *look, tide_record_visit *visit, void *user)
{
    json_t *facts;
    if (tool_client_facts(&look->client, &facts) != TOOL_OK)
        return false;
    const char *why;
    bool good = tide_record_is_facts(facts, &why) || look_refuse(look, why);
    uint64_t since_ns = tide_value_count(facts, "since_ns");
    if (good && since_ns != look->since_ns) {
        look->since_ns = since_ns;
        look->serial = 0;
        look->codes.count = 0;
    }
    good = good && visit(TIDE_RECORD_FACTS, facts, user) &&
           tide_codes_ask(&look->codes, &look->client, facts, visit, user);
    json_decref(facts);
    return good;
}

/* A connection ends when the process executes another program, so here is where that is seen. */
static bool look_open(tide_look *look, tide_record_visit *visit, void *user)
{
    tide_assert(!look->open);
    look->code = tool_client_open(&look->client, look->pid, look->folder, look->timeout_ms);
    look->open = look->code == TOOL_OK;
    return look->open && look_facts(look, visit, user);
}

bool tide_look_once(tide_look *look, tide_record_visit *visit, void *user)
{
    tide_assert(look->pid > 0 && look->timeout_ms > 0);
    if ((look->open || look_open(look, visit, user)) && look_events(look, visit, user) &&
        look_facts(look, visit, user))
        return true;
    if (look->code == TOOL_OK) /* it was open: what it said was wrong, or there is no memory */
        look->code = TOOL_BROKEN;
    if (look->client.error[0] == '\0')
        (void)look_refuse(look, "what it said cannot be kept");
    tide_look_end(look);
    return false;
}

void tide_look_end(tide_look *look)
{
    if (look->open)
        tool_client_close(&look->client);
    look->open = false;
}
