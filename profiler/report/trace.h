/* SPDX-License-Identifier: MIT */
/* A record as a trace for Perfetto and chrome://tracing: bytes of pools and buffers as counters,
 * the tiers of sites as slices, events as instants, on the program's own clock
 * (CLOCK_MONOTONIC). */
#ifndef TIDEPOOL_PROFILER_REPORT_TRACE_H
#define TIDEPOOL_PROFILER_REPORT_TRACE_H

#include <stdbool.h>
#include <stdio.h>

#include "profiler/record/read.h"

/* Writes the trace of the record while it is read, so that a long one needs little memory. False if
 * the file is no record; then nothing was written. */
bool tide_trace_write(FILE *out, const char *path, tide_record_outcome *outcome);

#endif
