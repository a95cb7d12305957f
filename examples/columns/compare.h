/* SPDX-License-Identifier: MIT */
/* The same job with temporaries from malloc, from static buffers and from Tidepool. */
#ifndef COLUMNS_COMPARE_H
#define COLUMNS_COMPARE_H

#include "engine.h"

/* Runs the job each way, in processes of their own and in turn, and prints a table. */
bool compare(FILE *out, columns_job *job, columns_error *error);

#endif
