/* SPDX-License-Identifier: MIT */
/* A record as a profile in the format of pprof (profile.proto), not compressed: uses, time, misses
 * and bytes acquired by site, most bytes by pool and by instance of buffers, and by place and stack
 * the bytes that were taken from devices, and what is held of them. */
#ifndef TIDEPOOL_PROFILER_REPORT_PPROF_H
#define TIDEPOOL_PROFILER_REPORT_PPROF_H

#include <stdio.h>

#include "profiler/report/history.h"

void tide_pprof_write(FILE *out, const tide_history *history);

#endif
