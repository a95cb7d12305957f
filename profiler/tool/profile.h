/* SPDX-License-Identifier: MIT */
/* tidepool-profile: what its parts share. */
#ifndef TIDEPOOL_PROFILER_TOOL_PROFILE_H
#define TIDEPOOL_PROFILER_TOOL_PROFILE_H

/* What it ends with; tidepool ends with the same. */
enum { PROFILE_OK = 0, PROFILE_NO = 1, PROFILE_USAGE = 2 };

/* One line on the standard error. Returns `code`. */
__attribute__((format(printf, 2, 3))) int profile_complain(int code, const char *format, ...);

/* The profiles that the library has, to the standard output. */
int profile_write(void);

/* "push", "pull" or "watch", with what follows (profiler/fleet). */
int profile_share(char **args);

#endif
