/* SPDX-License-Identifier: MIT */
/* Ranges of addresses that are mapped in steps and never move.
 *
 * Limits of the address space, locked memory and strict accounting count what is mapped, not what
 * may be mapped later. So a span maps its first part alone, at a place where nobody else maps
 * anything: the system puts new mappings next to each other, from the top or the bottom, and spans
 * begin half-way. Its other parts are mapped behind the first when they are needed. Nothing is ever
 * mapped over what is there: should somebody have taken the addresses, the step is refused.
 *
 * Where no such place can be had (an old kernel, a sanitizer that keeps addresses for itself), all
 * of the span is mapped at once. So it is where there are TIDE_SPANS_PLACED already: the system
 * counts mappings, 65 530 for a process at first. Those next to each other count as one, but spans
 * in places of their own do not, and threads need two each for their stacks. */
#ifndef TIDEPOOL_RUNTIME_BASE_SPAN_H
#define TIDEPOOL_RUNTIME_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tide_span {
    char *start;   /* NULL: there is none                                 */
    size_t bytes;  /* most that can be mapped, at most TIDE_SPAN_MAX      */
    size_t mapped; /* from the start: zero at first, costs memory where it is touched */
    bool placed;   /* it has a place of its own */
} tide_span;

enum { TIDE_SPAN_MAX = 1 << 25, TIDE_SPANS_PLACED = 8192 };

/* Sizes are multiples of a page. False when refused: nothing is held or changed. Spans of different
 * threads are independent. */
bool tide_span_make(tide_span *span, size_t bytes, size_t first);
bool tide_span_grow(tide_span *span, size_t mapped);

/* Gives all of it back. */
void tide_span_end(tide_span *span);

#endif
