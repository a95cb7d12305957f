/* SPDX-License-Identifier: MIT */
/* Events and figures of learning. Events are queued while things happen. The program's listener is
 * told of them on the program's own threads only, with nothing locked: where one calls tide_step,
 * tide_settle, tide_background_stop or tide_event_deliver, makes a pool or buffers, or fills a
 * window. */
#ifndef TIDEPOOL_JIT_EVENTS_EVENT_H
#define TIDEPOOL_JIT_EVENTS_EVENT_H

#include <tidepool/learn.h>

#include "jit/events/reason.h"

/* Notes an event; the registry is locked or the round's lock held. Texts are copied. */
void tide_event_note(tide_event_kind kind, tide_site *site, tide_tier tier, tide_reason reason,
                     const char *detail);

/* A round has ended: what was noted is told to who hears it for the library (`verbose`,
 * tide_events_also), and waits for the program's listener. The round's lock is held. */
void tide_events_end_round(uint64_t round);

/* Hears each event as its round ends, on any thread, with the round's lock held; so it is the
 * library's own, and quick. NULL: nobody. Atomic. */
extern void (*tide_events_also)(const tide_event *event);

/* The figures; each member atomic: tide_count(won). */
extern tide_learning_statistics tide_learning_figures;
#define tide_count(member) \
    ((void)__atomic_fetch_add(&tide_learning_figures.member, 1, __ATOMIC_RELAXED))

/* Registers what is done around fork. While the library is attached. */
void tide_events_prepare(void);

#endif
