/* SPDX-License-Identifier: MIT */
/* What the files of the oracle have of one another. */
#ifndef MODEL_ORACLE_PARTS_H
#define MODEL_ORACLE_PARTS_H

#include "oracle.h"

void row_forget(struct row *row, size_t from); /* the places from there on */
void row_swap(struct row *row, size_t near, size_t far);

void place_hollow(struct place *place); /* it has no memory now */
void place_write(const struct place *place);
bool place_intact(const struct place *place);
void place_scramble(struct place *place, uint64_t seed);
void place_witness(struct place *place, uint64_t seed); /* makes the copy, scrambles   */
unsigned char *place_copy_of(const struct place *place, size_t byte); /* NULL: no witness */

/* Is what a free place must still hold there when it is taken again for `bytes`? */
void place_check_left(struct oracle *oracle, const struct place *place, size_t bytes,
                      unsigned type);

/* The array is no longer live: true when its memory stays away with a consumer. */
bool pins_release(struct oracle *oracle, struct place *place);
void pins_settle(struct oracle *oracle, struct place *place);
void pins_forget(struct oracle *oracle, struct place *place);
void nd_release(struct oracle *oracle, struct live *live);
void seats_forget(struct row *row, size_t from);
void arrays_check(struct oracle *oracle, bool whole);
void arrays_end(struct oracle *oracle);

#endif
