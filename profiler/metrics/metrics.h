/* SPDX-License-Identifier: MIT */
/* A facts document as metrics, in Prometheus's text format.
 *
 * Labels are bounded: a family has at most TIDE_METRICS_SERIES series of its own, the things that
 * the process knew first; the rest is summed under the label "other", counters and bytes only.
 * Which those are does not change while the process lives, so that a sum never goes back for that.
 * Pools of one name and device are one series. */
#ifndef TIDEPOOL_PROFILER_METRICS_METRICS_H
#define TIDEPOOL_PROFILER_METRICS_METRICS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum { TIDE_METRICS_SERIES = 100 };

#define TIDE_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8" /* of Content-Type */

/* What pools, buffers and sites that are gone had counted, so that counters do not go back, and
 * which series are of their own: kept from one document of a process to the next. */
typedef struct tide_metrics_memory tide_metrics_memory;

/* NULL without memory. */
tide_metrics_memory *tide_metrics_memory_new(void);
void tide_metrics_memory_free(tide_metrics_memory *memory);

/* Adds what is gone since the document before, and keeps this one (a reference: it must not
 * change). Of another process, or of a program that it executed, it forgets all. False without
 * memory: then sums may go back. */
bool tide_metrics_remember(tide_metrics_memory *memory, json_t *facts);

/* `memory` may be NULL. False without memory for it; then what was written is not whole. */
bool tide_metrics_of(FILE *out, const json_t *facts, const tide_metrics_memory *memory);

#endif
