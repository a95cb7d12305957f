/* SPDX-License-Identifier: MIT */
/* What is known of the process, said on the standard error when it ends: the setting `stats`. */
#ifndef TIDEPOOL_JIT_FACTS_STATS_H
#define TIDEPOOL_JIT_FACTS_STATS_H

enum { TIDE_STATS_NONE, TIDE_STATS_PAGE, TIDE_STATS_JSON };

/* Has it said at the end, as the setting then says. While the library is attached; may be
 * repeated. */
void tide_stats_prepare(void);

#endif
