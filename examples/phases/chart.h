/* SPDX-License-Identifier: MIT */
/* The chart: a line for each interval, a cell for each site. */
#ifndef PHASES_CHART_H
#define PHASES_CHART_H

#include "work.h"

/* What a site did in one interval. */
typedef struct sample {
    tide_tier tier;
    bool observed;
    double ns; /* for one use */
} sample;

/* Colours and bars on a terminal, words elsewhere. */
void chart_begin(void);
void chart_line(size_t interval, const char *name, const sample samples[WORKS]);

#endif
