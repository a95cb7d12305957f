/* SPDX-License-Identifier: MIT */
/* Settings from the environment. */
#ifndef TIDEPOOL_JIT_LEARN_TUNE_H
#define TIDEPOOL_JIT_LEARN_TUNE_H

/* Sets each setting that has a variable TIDEPOOL_NAME; says on stderr which of them cannot be used.
 * Once, while the hooks are attached. */
void tide_tune_read_environment(void);

#endif
