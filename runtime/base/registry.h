/* SPDX-License-Identifier: MIT */
/* The one lock of what is process-wide: types, plans, sites. All of it is cold: hot paths read
 * what was published, never the registry. Recursive, so that a visitor of sites may ask about
 * them; held across fork, so that a child finds the registry whole. */
#ifndef TIDEPOOL_RUNTIME_BASE_REGISTRY_H
#define TIDEPOOL_RUNTIME_BASE_REGISTRY_H

#include <stdbool.h>

#include <tidepool/status.h>

void tide_registry_lock(void);
void tide_registry_unlock(void);

/* Waits for nobody; false: another thread has it. */
bool tide_registry_try_lock(void);

/* Has this thread locked it? Whoever has must not call the dynamic linker, which runs constructors
 * of modules under a lock of its own, while these take the registry; nor may it wait for a
 * thread. */
bool tide_registry_held(void);

/* Refuses a call that must not be made then: TIDE_ERROR_STATE. Only a visitor of sites has it where
 * the program runs. */
tide_status tide_registry_admit(const char *call);

#endif
