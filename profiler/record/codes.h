/* SPDX-License-Identifier: MIT */
/* What the compiled code of sites was made of: the spec, asked for once for each plan. */
#ifndef TIDEPOOL_PROFILER_RECORD_CODES_H
#define TIDEPOOL_PROFILER_RECORD_CODES_H

#include <stdbool.h>
#include <stdint.h>

#include "profiler/record/read.h"
#include "profiler/tool/client.h"

enum { TIDE_CODES_MAX = 256 }; /* sites; of more, the first ones */

typedef struct tide_codes {
    struct {
        uint64_t site, generation;
    } asked[TIDE_CODES_MAX];
    size_t count;
} tide_codes;

/* Asks for the spec of each compiled site of the document that has another plan than when it was
 * asked for last, and calls `visit` with it. A process may refuse: it is not asked again for that
 * plan. False where it gives no good answer, or `visit` says so. */
bool tide_codes_ask(tide_codes *codes, tool_client *client, const json_t *facts,
                    tide_record_visit *visit, void *user);

#endif
