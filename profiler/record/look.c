/* SPDX-License-Identifier: MIT */
/* One look at a process that listens. */
#include "profiler/record/look.h"

#include <stdio.h>
#include <string.h>

#include "profiler/record/value.h"
#include "runtime/base/assert.h"

enum { LOOK_EVENTS_MAX = 65536 }; /* lines of one answer */

static json_t *look_line(tide_look *look)
{
    const char *text;
    size_t length;
    if (tool_client_read(&look->client, look->timeout_ms, &text, &length) != TOOL_OK)
        return NULL;
    return json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
}

/* False for what is neither an event nor a gap. */
static bool look_event(tide_look *look, json_t *line, tide_record_visit *visit, void *user)
{
    if (json_is_integer(json_object_get(line, "gap")))
        return visit(TIDE_RECORD_GAP, line, user);
    if (strcmp(tide_value_text(line, "format"), "tidepool-event") != 0 ||
        tide_value_count(line, "time_ns") == 0)
        return false;
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
        good = json_is_object(line) && (!more || look_event(look, line, visit, user));
        json_decref(line);
    }
    return good && !more;
}

static bool look_facts(tide_look *look, tide_record_visit *visit, void *user)
{
    json_t *facts;
    if (tool_client_facts(&look->client, &facts) != TOOL_OK)
        return false;
    bool good = tide_record_is_facts(facts, NULL);
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
    look->open =
        tool_client_open(&look->client, look->pid, look->folder, look->timeout_ms) == TOOL_OK;
    return look->open && look_facts(look, visit, user);
}

bool tide_look_once(tide_look *look, tide_record_visit *visit, void *user)
{
    tide_assert(look->pid > 0 && look->timeout_ms > 0);
    if ((look->open || look_open(look, visit, user)) && look_events(look, visit, user) &&
        look_facts(look, visit, user))
        return true;
    tide_look_end(look);
    return false;
}

void tide_look_end(tide_look *look)
{
    if (look->open)
        tool_client_close(&look->client);
    look->open = false;
}
