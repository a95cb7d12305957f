/* SPDX-License-Identifier: MIT */
/* Makes the tables of a frame's launches: its segments, where each lies, which groups deal with it.
 * Arithmetic only; nothing is launched. */
#ifndef TIDEPOOL_JIT_KERNELS_TABLE_H
#define TIDEPOOL_JIT_KERNELS_TABLE_H

#include "jit/kernels/kernels.h"

/* How far a frame has been written into tables. */
typedef struct tide_table_place {
    size_t part;
    bool half; /* of an array of bits only the last word is left */
} tide_table_place;

/* Can kernels do this work? Elements of 1, 2, 4, 8 or 16 bytes have a pattern, and zero
 * has one always. */
bool tide_table_possible(const tide_frame_work *work);

/* Writes the next table, and moves the place on. `groups`: of the launch; 0: there is nothing to do.
 * False: there was nothing left. */
bool tide_table_next(const tide_frame_work *work, tide_table_place *place, tide_segments *out,
                     uint32_t *groups);

#endif
