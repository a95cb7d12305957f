/* SPDX-License-Identifier: MIT */
/* The machine code of a record's sites. */
#define _GNU_SOURCE
#include "profiler/report/code.h"

#include <stdlib.h>

#include "profiler/record/value.h"
#include "profiler/report/data.h"
#include "profiler/tool/launch.h"
#include "runtime/base/assert.h"

enum { CODE_BYTES = 6000 }; /* of one site's text */

/* JSON's null where the stager refuses: it is of another build, or the record is made up. */
static json_t *code_of(const char *stager, const tide_thing *thing)
{
    char *args[] = {"tidepool-stage", "--explain", "-", "--asm", NULL};
    char *text = tool_run_for_text(stager, args, tide_value_text(thing->code, "spec"));
    json_t *code = text != NULL ? tide_value_clipped(text, CODE_BYTES) : json_null();
    free(text);
    return code;
}

/* NULL: none has this id. */
static tide_thing *code_site(const tide_history *history, uint64_t id)
{
    for (size_t i = 0; i < history->sites.count; i++)
        if (history->sites.each[i]->id == id)
            return history->sites.each[i];
    return NULL;
}

void tide_code_make(tide_history *history)
{
    char stager[PATH_MAX];
    uint64_t ids[TIDE_CODE_SITES];
    size_t count = tide_data_first_sites(history, ids, TIDE_CODE_SITES);
    bool found = tool_find_stager(stager);
    tide_assert(count <= TIDE_CODE_SITES);
    for (size_t i = 0; found && i < count; i++) {
        tide_thing *thing = code_site(history, ids[i]);
        tide_assert(thing != NULL); /* the ids are of this history */
        if (thing->code != NULL && thing->machine == NULL)
            thing->machine = code_of(stager, thing);
    }
}
