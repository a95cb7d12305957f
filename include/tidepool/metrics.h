/* SPDX-License-Identifier: MIT */
/* The figures of this process for Prometheus, for programs that have an HTTP endpoint of their own.
 *
 * In a component of its own, libtidepool-metrics.a (it reads documents by jansson): link
 * `-ltidepool-metrics -ltidepool -ljansson`. `tidepool metrics PID` prints the same from outside. */
#ifndef TIDEPOOL_METRICS_H
#define TIDEPOOL_METRICS_H

#include <stdio.h>
#include <tidepool/inline/config.h>
#include <tidepool/status.h>

TIDE_BEGIN_DECLS

/* Writes what tide_facts_write tells now in Prometheus's text format (Content-Type `text/plain;
 * version=0.0.4`). A family has at most 100 series of its own; the rest is summed as `other`. What gone
 * pools, buffers and sites had counted stays in the sums, if they were there in an earlier call.
 * TIDE_ERROR_ARGUMENT, TIDE_ERROR_MEMORY, TIDE_ERROR_FILE: what was written is not whole; no message.
 * Any thread, one at a time; not from a visitor of sites. */
tide_status tide_metrics_write(FILE *out);

TIDE_END_DECLS

#endif
