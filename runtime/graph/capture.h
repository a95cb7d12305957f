/* SPDX-License-Identifier: MIT */
/* Memory that a captured graph uses, in place of the pool (<tidepool/device.h>). */
#ifndef TIDEPOOL_RUNTIME_GRAPH_CAPTURE_H
#define TIDEPOOL_RUNTIME_GRAPH_CAPTURE_H

#include "runtime/pool/core.h"

/* The pool ends, perhaps in the middle of a capture: what that had taken goes back behind the work
 * in the pool's stream. */
void tide_capture_finish(tide_pool *pool);

#endif
