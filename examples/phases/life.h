/* SPDX-License-Identifier: MIT */
/* What the library says it did, kept as it is said, and told by site at the end. */
#ifndef PHASES_LIFE_H
#define PHASES_LIFE_H

#include "work.h"

/* From now on events are kept. */
void life_begin(void);

/* Prints the life of each site, and what learning did in all. False: events were lost for want of
 * memory. */
bool life_print(void);

#endif
