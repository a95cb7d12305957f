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
        json_t *line;
        good = tool_client_object(&look->client, look->timeout_ms, &line) == TOOL_OK;
        more = json_object_get(line, "end") == NULL;
        good = good && (!more || look_event(look, line, visit, user));
        json_decref(line);
    }
    return good && (!more || look_refuse(look, "its answer has no end"));
}

/* Is this plan of the site one that was not asked for? It is taken as asked for from now on. */
static bool codes_are_new(tide_codes *codes, uint64_t site, uint64_t generation)
{
    size_t i = 0;
    while (i < codes->count && codes->asked[i].site != site)
        i++;
    if (i == TIDE_CODES_MAX || (i < codes->count && codes->asked[i].generation == generation))
        return false;
    codes->asked[i].site = site;
    codes->asked[i].generation = generation;
    codes->count += i == codes->count;
    tide_assert(codes->count <= TIDE_CODES_MAX);
    return true;
}

static bool codes_ask_site(tool_client *client, const json_t *site, tide_record_visit *visit,
                           void *user)
{
    json_t *answer;
    json_int_t id = (json_int_t)tide_value_count(site, "id");
    int code = tool_client_ask(client, json_pack("{s:I}", "explain", id), &answer);
    if (code != TOOL_OK)
        return code == TOOL_NO; /* its code is gone, or no text */
    json_t *line = json_pack("{s:s,s:I,s:I,s:s}", "format", "tidepool-code", "site", id,
                             "generation", (json_int_t)tide_value_count(site, "generation"), "spec",
                             tide_value_text(answer, "text"));
    bool good = line != NULL && visit(TIDE_RECORD_CODE, line, user);
    json_decref(line);
    json_decref(answer);
    return good;
}

/* Asks for the spec of each compiled site of the document that has another plan than when it was
 * asked for last, and calls `visit` with it. A process may refuse: it is not asked again for that
 * plan. False where it gives no good answer, or `visit` says so. */
static bool codes_ask(tide_codes *codes, tool_client *client, const json_t *facts,
                      tide_record_visit *visit, void *user)
{
    size_t i;
    json_t *site;
    json_array_foreach(json_object_get(facts, "sites"), i, site)
    {
        if (strcmp(tide_value_text(site, "tier"), "compiled") == 0 &&
            codes_are_new(codes, tide_value_count(site, "id"),
                          tide_value_count(site, "generation")) &&
            !codes_ask_site(client, site, visit, user))
            return false;
    }
    return true;
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
           codes_ask(&look->codes, &look->client, facts, visit, user);
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
