/* SPDX-License-Identifier: MIT */
/* Events and figures of learning, collected while things happen and told at the end of a round. */
#ifndef TIDEPOOL_JIT_LEARN_EVENT_H
#define TIDEPOOL_JIT_LEARN_EVENT_H

#include <tidepool/learn.h>

#include "jit/learn/reason.h"

/* Notes an event; the registry is locked or the round's lock held. Texts are copied. */
void tide_event_note(tide_event_kind kind, tide_site *site, tide_tier tier, tide_reason reason,
                     const char *detail);

/* Tells what was noted, in order. No lock held but that of the round. */
void tide_events_tell(uint64_t round);

/* After a fork, in the child: another thread may have held the lock, and is not there any more. */
void tide_event_forget(void);

/* The figures; each member atomic: tide_count(won). */
extern tide_learning_statistics tide_learning_figures;
#define tide_count(member) \
    ((void)__atomic_fetch_add(&tide_learning_figures.member, 1, __ATOMIC_RELAXED))

#endif
