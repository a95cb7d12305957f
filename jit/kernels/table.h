/* SPDX-License-Identifier: MIT */
/* Makes the tables of a frame's launches: its segments, where each lies, which groups deal with it.
 * Arithmetic only; nothing is launched. */
#ifndef TIDEPOOL_JIT_KERNELS_TABLE_H
#define TIDEPOOL_JIT_KERNELS_TABLE_H

#include "jit/kernels/kernels.h"

/* Can kernels do this work? Elements of 1, 2, 4, 8 or 16 bytes have a pattern, and zero
 * has one always. */
bool tide_table_possible(const tide_frame_work *work);

/* Writes the next table, from the part at `place` on, and moves that on. The groups of the launch; 0:
 * there was nothing left. */
uint32_t tide_table_next(const tide_frame_work *work, size_t *place, tide_segments *out);

#endif
