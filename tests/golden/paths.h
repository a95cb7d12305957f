/* SPDX-License-Identifier: MIT */
/* The paths whose instructions are counted. */
#ifndef TIDEPOOL_GOLDEN_PATHS_H
#define TIDEPOOL_GOLDEN_PATHS_H

#include <tidepool/tidepool.h>

typedef struct golden_path {
    const char *name;
    void (*run)(tide_pool *pool, size_t times); /* so many operations */
    bool always; /* costs the same while another pool checks everything */
} golden_path;

extern const golden_path golden_paths[];
extern const size_t golden_path_count;

/* Pins the sites of the paths to their tiers, and makes the buffers and the dispatch. False: that
 * cannot be done. */
bool golden_begin(void);

/* The buffers go. */
bool golden_end(void);

#endif
