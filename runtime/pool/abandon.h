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
 * An epoch is never used again, for a block may end at any later time. There are 2^40 epochs, and
 * room for TIDE_ABANDON_MAX events with rising `kept`: an event that would need one more of either is
 * refused. The rest of a tag counts levels. A level too deep for it is refused, too: longjmp can leave
 * any number of levels open. */
#ifndef TIDEPOOL_RUNTIME_POOL_ABANDON_H
#define TIDEPOOL_RUNTIME_POOL_ABANDON_H

#include <tidepool/inline/layout.h>
#include <tidepool/status.h>

enum { TIDE_ABANDON_MAX = 128 };

typedef struct tide_abandonments {
    uint32_t count;
    uint64_t events[TIDE_ABANDON_MAX]; /* as tags: the epoch that began, the level kept */
} tide_abandonments;

/* May an event come that keeps this level? TIDE_ERROR_LIMIT: there is no epoch or no room left. */
tide_status tide_abandon_admit(tide_pool *pool, uint32_t kept, const char *call);

/* Levels younger than the open one are gone; starts a new epoch. Was admitted. */
void tide_abandon(tide_pool *pool);

/* Was the level whose block knows this tag taken away by such an event? */
bool tide_abandoned(const tide_pool *pool, uint64_t tag);

#endif
