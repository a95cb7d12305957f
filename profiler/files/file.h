/* SPDX-License-Identifier: MIT */
/* What tide_profile_read and tide_profile_write do not offer to programs. */
#ifndef TIDEPOOL_PROFILER_FILES_FILE_H
#define TIDEPOOL_PROFILER_FILES_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <tidepool/status.h>

/* tide_profile_read of a text that counts less than others: `weight` as in tide_profile_set_weigh. */
tide_status tide_profile_read_weighed(const char *bytes, size_t length, bool merge, double weight);

/* tide_profile_write without anything that was loaded: for who adds it to what was loaded. */
tide_status tide_profile_write_own(FILE *out);

#endif
