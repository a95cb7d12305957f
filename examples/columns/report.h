/* SPDX-License-Identifier: MIT */
/* What became of the call sites. */
#ifndef COLUMNS_REPORT_H
#define COLUMNS_REPORT_H

#include "engine.h"

/* What each site acquired, and its life: which plan it runs now, and why. False: no memory. */
bool print_report(FILE *out, columns_error *error);

#endif
