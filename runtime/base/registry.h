/* SPDX-License-Identifier: MIT */
/* The one lock of what is process-wide: types, plans, sites. All of it is cold: hot paths read
 * what was published, never the registry. Recursive, so that a visitor of sites may ask about
 * them; held across fork, so that a child finds the registry whole. */
#ifndef TIDEPOOL_RUNTIME_BASE_REGISTRY_H
#define TIDEPOOL_RUNTIME_BASE_REGISTRY_H

void tide_registry_lock(void);
void tide_registry_unlock(void);

#endif
