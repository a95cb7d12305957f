/* SPDX-License-Identifier: MIT */
/* Checks the profile: counts by hand what the scopes of the observed form acquire, and compares
 * that with what the profiler saw of their sites. */
#ifndef MODEL_WATCH_H
#define MODEL_WATCH_H

#include "oracle.h"

struct watch {
    tide_site *sites[MENU_COUNT];
    uint64_t scopes[MENU_COUNT];
    uint64_t slots[MENU_COUNT][MODEL_TYPES], touched[MENU_COUNT][MODEL_TYPES];
    uint32_t most[MENU_COUNT][MODEL_TYPES];
};

/* Forgets what was seen of a site, here and there. */
void watch_reset(struct watch *watch, unsigned menu);

/* A scope is about to end; nothing is counted if its level was taken away before. */
void watch_leave(struct watch *watch, const struct oracle *oracle, unsigned menu, uint64_t level);

/* Says through the oracle what the profiler saw otherwise. */
void watch_compare(const struct watch *watch, struct oracle *oracle);

#endif
