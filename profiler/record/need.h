/* SPDX-License-Identifier: MIT */
/* Memory that a command needs: without it the command ends. */
#ifndef TIDEPOOL_PROFILER_RECORD_NEED_H
#define TIDEPOOL_PROFILER_RECORD_NEED_H

#include <stdio.h>
#include <stdlib.h>

static inline void *tide_need(void *memory)
{
    if (memory == NULL) {
        fputs("tidepool: memory is short\n", stderr);
        exit(1);
    }
    return memory;
}

#endif
