/* SPDX-License-Identifier: MIT */
/* The machine code of a record's sites. */
#define _GNU_SOURCE
#include "profiler/report/code.h"

#include <stdlib.h>

#include "profiler/record/value.h"
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

void tide_code_make(tide_history *history)
{
    char stager[PATH_MAX];
    bool found = tool_find_stager(stager);
    tide_history_sort(history);
    for (size_t i = 0; found && i < history->sites.count && i < TIDE_CODE_SITES; i++) {
        tide_thing *thing = history->sites.each[i];
        if (thing->code != NULL && thing->machine == NULL)
            thing->machine = code_of(stager, thing);
        tide_assert(thing->code == NULL || thing->machine != NULL);
    }
}
