/* SPDX-License-Identifier: MIT */
/* Scopes that were rewound while their block was still on the stack.
 *
 * A reset, or the rewind of a mark older than open scopes, takes levels away whose blocks may
 * still end later (or never, after a longjmp: nobody can tell). When such a block ends, its
 * scope must do nothing, although levels opened since may look just like it: same depth, same
 * length of the log.
 *
 *  1. Each such event starts a new epoch. The level that is open then gets a tag of this epoch; so
 *     do those around it when they are next the open one, and all that are opened from then on: the
 *     tag of the open level is of the latest epoch, always. So no open level has the tag that the
 *     block of an abandoned one knows, and the fast guards, which compare tags, never take one for
 *     the other.
 *  2. A level that was open at an event and was kept has another tag than its block knows. Its
 *     guard fails, and cold code asks whether it was abandoned.
 *  3. An event keeps the levels up to its `kept` and abandons the younger ones. A level of tag
 *     {epoch, level} is abandoned iff some event after that epoch kept less than that level.
 *  4. Of two events the later one makes the earlier irrelevant if it kept no more. So the
 *     events worth remembering have rising `kept`.
 *
 * Epochs do not start again from zero, for a block may be as old as it likes. There are 2^40 of
 * them (a day and more of nothing else), and room for TIDE_ABANDON_MAX events that rise. What would need one more is refused. So is a
 * level that the rest of a tag cannot count: longjmps may leave open as many as they like. */
#ifndef TIDEPOOL_RUNTIME_POOL_ABANDON_H
#define TIDEPOOL_RUNTIME_POOL_ABANDON_H

#include <tidepool/inline/layout.h>
#include <tidepool/status.h>

enum { TIDE_ABANDON_MAX = 128 };

typedef struct tide_abandonments {
    uint32_t count;
    uint64_t events[TIDE_ABANDON_MAX]; /* as tags: the epoch that began, the level kept */
} tide_abandonments;

/* May an event come that keeps this level? TIDE_ERROR_LIMIT: there is no room left. */
tide_status tide_abandon_admit(tide_pool *pool, uint32_t kept, const char *call);

/* Levels younger than the open one are gone; starts a new epoch. Was admitted. */
void tide_abandon(tide_pool *pool);

/* Was the level whose block knows this tag taken away by such an event? */
bool tide_abandoned(const tide_pool *pool, uint64_t tag);

#endif
