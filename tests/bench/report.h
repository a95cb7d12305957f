/* SPDX-License-Identifier: MIT */
/* The results, for people and for programs. */
#ifndef TIDEPOOL_BENCH_REPORT_H
#define TIDEPOOL_BENCH_REPORT_H

#include "bench.h"

/* Fills in the ratios of one group's results. */
void bench_compare(bench_result *results, size_t count);

void bench_print_list(const bench_result *results, size_t count);
void bench_print_table(const bench_result *results, size_t count);
void bench_print_json(const bench_result *results, size_t count);

#endif
