/* SPDX-License-Identifier: MIT */
/* What the compiled code of sites was made of. */
#include "profiler/record/codes.h"

#include <string.h>

#include "profiler/record/value.h"
#include "runtime/base/assert.h"

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

bool tide_codes_ask(tide_codes *codes, tool_client *client, const json_t *facts,
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
