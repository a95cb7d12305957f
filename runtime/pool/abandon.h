/* SPDX-License-Identifier: MIT */
/* Scopes that were rewound while their block was still on the stack.
 *
 * A reset, or the rewind of a mark older than open scopes, takes levels away whose blocks may
 * still end later (or never, after a longjmp: nobody can tell). When such a block ends, its
 * scope must do nothing, although levels opened since may look just like it: same depth, same
 * length of the log.
 *
 *  1. Each such event starts a new epoch; levels opened from then on carry it in their tag.
 *     So no open level has the tag of an abandoned one, and the fast guards, which compare
 *     tags, never take one for the other.
 *  2. An event keeps the levels up to its `kept` and abandons the younger ones. A level of tag
 *     {epoch, level} is abandoned iff some event after that epoch kept less than that level.
 *  3. Of two events the later one makes the earlier irrelevant if it kept no more. So the
 *     events worth remembering have rising `kept`, and the first of them that is later than
 *     the tag's epoch kept least.
 *  4. Should more events rise than there is room for (that many levels deep, one at each), the
 *     two oldest are merged into one that is as late as the second and kept as little as the
 *     first. That may call a level abandoned that was not (it is then rewound by the level
 *     around it), never the reverse. */
#ifndef TIDEPOOL_RUNTIME_POOL_ABANDON_H
#define TIDEPOOL_RUNTIME_POOL_ABANDON_H

#include <tidepool/inline/layout.h>

enum { TIDE_ABANDON_MAX = 1 << 16 };

typedef struct tide_abandonment {
    uint64_t epoch; /* the one it started, as in a tag */
    uint32_t kept;  /* youngest level kept             */
} tide_abandonment;

typedef struct tide_abandonments {
    uint32_t count;
    tide_abandonment *events; /* TIDE_ABANDON_MAX of them, in the pool's reservation */
} tide_abandonments;

/* Levels younger than `kept` are gone; starts a new epoch. */
void tide_abandon(tide_pool *pool, uint32_t kept);

/* Was the level of this tag taken away by such an event? */
bool tide_abandoned(const tide_pool *pool, uint64_t tag);

#endif
