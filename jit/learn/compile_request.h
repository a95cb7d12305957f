/* SPDX-License-Identifier: MIT */
/* Compile requests: plans that are wanted as code. They are gathered with the registry locked, up to
 * `batch_max` at a time, sent to the stager, and get what comes back. */
#ifndef TIDEPOOL_JIT_LEARN_COMPILE_REQUEST_H
#define TIDEPOOL_JIT_LEARN_COMPILE_REQUEST_H

#include "jit/learn/learner.h"

/* Plans for which code is there get it; those that pay and that nothing forbids are taken note of.
 * Registry locked. */
void tide_compile_request_gather(uint64_t round);

/* Sends what was gathered, takes the answer to it, waiting at most so long, loads what that names,
 * and gives it to the sites that still exist. Is anything out, or did something find no room?
 * Registry not locked. */
bool tide_compile_request_attend(int timeout_ms, uint64_t round);

#endif
