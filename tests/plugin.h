/* SPDX-License-Identifier: MIT */
/* What the plugins offer to the programs that load them. */
#ifndef TIDEPOOL_TESTS_PLUGIN_H
#define TIDEPOOL_TESTS_PLUGIN_H

#include <tidepool/tidepool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs every scope of the plugin once; the number of arrays that it could acquire. */
__attribute__((visibility("default"))) size_t plugin_run(tide_pool *pool);

/* The id of a type that only the plugin knows. */
__attribute__((visibility("default"))) tide_type plugin_type(void);

/* As above, in the calling thread's own pool: for hosts that have no pool to give. */
__attribute__((visibility("default"))) size_t plugin_run_alone(void);

enum { PLUGIN_SITES = 4, PLUGIN_ARRAYS = 6 };

#ifdef __cplusplus
}
#endif

#endif
