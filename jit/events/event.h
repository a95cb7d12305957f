/* SPDX-License-Identifier: MIT */
/* Events and figures of learning, collected while things happen and told at the end of a round. */
#ifndef TIDEPOOL_JIT_EVENTS_EVENT_H
#define TIDEPOOL_JIT_EVENTS_EVENT_H

#include <tidepool/learn.h>

#include "jit/events/reason.h"

/* Notes an event; the registry is locked or the round's lock held. Texts are copied. */
void tide_event_note(tide_event_kind kind, tide_site *site, tide_tier tier, tide_reason reason,
                     const char *detail);

/* Tells what was noted, in order. The thread has the round; no lock is held while a listener
 * hears. */
void tide_events_tell(uint64_t round);

/* Hears each event, too, beside the program's own handler, and before it: so in the order of their
 * serials, even if the handler steps. As that one with nothing locked, and it must be quick. NULL:
 * nobody. Atomic. */
extern void (*tide_events_also)(const tide_event *event);

/* The figures; each member atomic: tide_count(won). */
extern tide_learning_statistics tide_learning_figures;
#define tide_count(member) \
    ((void)__atomic_fetch_add(&tide_learning_figures.member, 1, __ATOMIC_RELAXED))

/* Registers what is done around fork. While the library is attached. */
void tide_events_prepare(void);

#endif
