/* SPDX-License-Identifier: MIT */
/* TIDEPOOL_PROFILE=FILE: profiles are loaded from there and saved there. */
#ifndef TIDEPOOL_JIT_TUNE_KEEP_H
#define TIDEPOOL_JIT_TUNE_KEEP_H

/* Loads the file, the first time in the process, if the environment names one that is there; it is
 * saved at exit, unless it was there and could not be loaded. Nothing locked. A failure is one line
 * on the standard error. */
void tide_keep_begin(void);

#endif
