/* SPDX-License-Identifier: MIT */
/* What became of the call sites. */
#ifndef COLUMNS_REPORT_H
#define COLUMNS_REPORT_H

#include <stdio.h>

/* What each site acquired, and its life: which plan it runs now, and why. */
void print_report(FILE *out);

#endif
