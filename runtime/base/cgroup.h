/* SPDX-License-Identifier: MIT */
/* What the control groups of the process let it have of memory: its own and those above it. */
#ifndef TIDEPOOL_RUNTIME_BASE_CGROUP_H
#define TIDEPOOL_RUNTIME_BASE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tide_cgroup {
    size_t max, high; /* bytes: the least on the path of memory.max (of version 1:
                         memory.limit_in_bytes) and of memory.high; SIZE_MAX: none      */
    unsigned stalled; /* percent of the last ten seconds in which some thread of the own group
                         waited for memory; of the machine, where the group does not say */
} tide_cgroup;

/* Reads files of /proc and /sys/fs/cgroup, where the groups are usually mounted. Without them there
 * is no limit. False: a limit could not be read (no descriptor is free; another root). errno stays. */
bool tide_cgroup_read(tide_cgroup *out);

#endif
