/* SPDX-License-Identifier: MIT */
/* Settings from the environment. */
#ifndef TIDEPOOL_JIT_LEARN_TUNE_H
#define TIDEPOOL_JIT_LEARN_TUNE_H

/* Sets each setting that has a variable TIDEPOOL_NAME; complains on stderr of those that cannot be
 * used. Called once, while hooks are attached. */
void tide_tune_read_environment(void);

#endif
