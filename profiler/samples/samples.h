/* SPDX-License-Identifier: MIT */
/* Who took the memory that pools and buffers hold: samples by bytes.
 *
 * Where a slot or a buffer gets memory, a countdown of the thread runs by its bytes. It begins at an
 * exponentially distributed number, 512 KiB on average (the constant sample_bytes), and when it is
 * over, that memory is a sample: its place, the stack of calls and the type are kept until the memory
 * is given back. So memory of s bytes is a sample with the probability p = 1 - exp(-s / 512 KiB), and
 * stands for 1/p pieces of memory. Sums of that are estimates without a bias; of X bytes in small
 * pieces the standard error is √(512 KiB / X) of it (a tenth at 50 MiB, a hundredth at 5 GiB), and
 * pieces of several MiB are nearly all there.
 *
 * Arrays and buffers that are handed out of what is held already pass nothing of this: what they
 * come to is told by sites (uses × use_bytes) and by buffers (asked_bytes). */
#ifndef TIDEPOOL_PROFILER_SAMPLES_SAMPLES_H
#define TIDEPOOL_PROFILER_SAMPLES_SAMPLES_H

#include <tidepool/inline/layout.h>
#include <tidepool/type.h>

enum { TIDE_SAMPLE_FRAMES = 12, TIDE_SAMPLE_PLACE = 112 };

/* All samples of one place, stack and type, as estimates. */
typedef struct tide_sampled {
    uint64_t hash; /* 0: none */
    tide_type type;
    char place[TIDE_SAMPLE_PLACE];          /* "file.c:12 function"; "": not known      */
    const void *frames[TIDE_SAMPLE_FRAMES]; /* where calls return to, innermost first   */
    double taken, taken_bytes;              /* pieces of memory so far, and their bytes */
    double held, held_bytes;                /* of these, what was not given back        */
} tide_sampled;

/* Memory of so many bytes was taken from a device, for a slot, or for a buffer (type 0); it is about
 * to be given back. By whoever has it for himself. Any thread; where it is taken nothing is locked. */
void tide_samples_took(const void *data, size_t bytes, tide_type type, tide_place place);
void tide_samples_gave(const void *data);

/* Copies those that hold most, the most first, and of those that hold nothing those that took most.
 * Returns how many. `lost`: samples that found no room. Any thread. */
size_t tide_samples_most(tide_sampled *out, size_t room, uint64_t *lost);

/* Registers what is done around fork. While the library is attached. */
void tide_samples_prepare(void);

#endif
