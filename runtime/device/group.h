/* SPDX-License-Identifier: MIT */
/* What the process's control groups allow, where process_limit is auto: looked at now and then, for
 * they may change. Any thread. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_GROUP_H
#define TIDEPOOL_RUNTIME_DEVICE_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that the process may hold, and beyond which what nobody uses goes back; SIZE_MAX: no limit. The
 * second is SIZE_MAX where process_limit is not auto, too. */
size_t tide_group_max(void);
size_t tide_group_high(void);

/* Looks at the files. Is memory short? After lock-down they are not read: what was found last stays.
 * So it does where they cannot be read. */
bool tide_group_look(void);

/* At the start and before lock-down, where process_limit is auto. */
void tide_group_look_first(void);

/* So many bytes were taken from the system. Has it been so much that a look is due? */
void tide_group_note_taken(size_t bytes);
bool tide_group_look_is_due(void);

/* So many rounds have passed. Do threads wait for memory? It is looked now and then. */
bool tide_group_is_tight(uint64_t rounds);

#endif
