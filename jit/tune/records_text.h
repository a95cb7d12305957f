/* SPDX-License-Identifier: MIT */
/* Lines of records in a profile (profiler/files/text.h): written, and read without trust. */
#ifndef TIDEPOOL_JIT_TUNE_RECORDS_TEXT_H
#define TIDEPOOL_JIT_TUNE_RECORDS_TEXT_H

#include "jit/tune/records.h"
#include "profiler/files/text.h"
#include "profiler/files/tokenizer.h"

#define TIDE_RECORD_PS_MAX 1000000000000000 /* picoseconds: a use of a quarter of an hour */

bool tide_records_read(tide_tuned_set **set, tide_tokens *tokens);
void tide_records_write(const tide_tuned_set *set, FILE *out);

#endif
