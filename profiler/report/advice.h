/* SPDX-License-Identifier: MIT */
/* What is slow in a record, why, and what to write instead, in words; worst first. */
#ifndef TIDEPOOL_PROFILER_REPORT_ADVICE_H
#define TIDEPOOL_PROFILER_REPORT_ADVICE_H

#include "profiler/report/advice_list.h"

/* All that is to be said about a record. */
void tide_advice_of(const tide_history *history, tide_advice_list *out);

/* Its parts, which add to the list: profiler/report/advice_sites.c, advice_memory.c. */
void tide_advice_of_sites(const tide_history *history, tide_advice_list *out);
void tide_advice_of_memory(const tide_history *history, tide_advice_list *out);

#endif
