/* SPDX-License-Identifier: MIT */
/* Runs with temporaries from a stand-in for Tidepool; compiled once for each. */
#include "run.h"

#ifdef COLUMNS_STAND_IN_HEAP
columns_table *columns_run_heap(columns_job *job, const columns_heap *heap, columns_error *error)
{
    stand_in pool = {.heap = heap};
    return columns_run(job, &pool, error);
}
#else
columns_table *columns_run_static(columns_job *job, const columns_region *region,
                                  columns_error *error)
{
    stand_in pool = {.memory = region->memory, .bytes = region->bytes};
    return columns_run(job, &pool, error);
}
#endif
