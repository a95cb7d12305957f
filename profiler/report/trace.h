/* SPDX-License-Identifier: MIT */
/* A record as a trace for Perfetto and chrome://tracing: bytes of pools and buffers as counters,
 * the tiers of sites as slices, events as instants, on the program's own clock
 * (CLOCK_MONOTONIC). */
#ifndef TIDEPOOL_PROFILER_REPORT_TRACE_H
#define TIDEPOOL_PROFILER_REPORT_TRACE_H

#include <stdio.h>

#include "profiler/report/history.h"

void tide_trace_write(FILE *out, const tide_history *history);

#endif
