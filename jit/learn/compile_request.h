/* SPDX-License-Identifier: MIT */
/* Compile requests: plans that are wanted as code. They are gathered into batches with the registry
 * locked; each batch is then sent to the stager. What comes back is handed to the sites, if those
 * still exist. */
#ifndef TIDEPOOL_JIT_LEARN_COMPILE_REQUEST_H
#define TIDEPOOL_JIT_LEARN_COMPILE_REQUEST_H

#include "jit/learn/learner.h"

/* Before the sites of a round are gathered: each that wants code is weighed, so that those that are
 * compiled together share what that costs. Registry locked. */
void tide_compile_request_weigh(const tide_site *site, uint64_t round);

/* Takes note of the site's wanted plan, if it pays and nothing forbids it. Registry locked. */
void tide_compile_request_gather(tide_site *site, uint64_t round);

/* Sends what was gathered. Registry not locked, nor for the next three. */
void tide_compile_request_send(void);

/* Takes the stager's answers and loads what they name; waits at most so long for the first. */
void tide_compile_request_receive(int timeout_ms, uint64_t round);

/* Looks up the code of what has come, which is a matter of the dynamic linker. */
void tide_compile_request_find_code(void);

/* Is anything out or waiting to be installed? */
bool tide_compile_request_pending(void);

/* Gives the sites what has come and was looked up. Registry locked. */
void tide_compile_request_install(uint64_t round);

#endif
