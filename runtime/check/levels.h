/* SPDX-License-Identifier: MIT */
/* Which scopes are open, and where they were opened: kept by pools that check, so that reports
 * can name places. A stack beside the undo log; other pools leave it empty. */
#ifndef TIDEPOOL_RUNTIME_CHECK_LEVELS_H
#define TIDEPOOL_RUNTIME_CHECK_LEVELS_H

#include <tidepool/inline/layout.h>

/* A level that is open, and where it was opened. */
typedef struct tide_open_level {
    uint64_t tag;
    tide_place place;
} tide_open_level;

typedef struct tide_levels {
    tide_open_level *open; /* outermost first */
    uint32_t count, room;
    const char *reported_of; /* the pool's name where leaked levels are reported, else NULL */
    tide_place closing;      /* of the level that is being rewound, for reports             */
} tide_levels;

/* The depth that a tag names, the root's being 1. */
static inline uint32_t tide_level(uint64_t tag)
{
    return (uint32_t)(tag & TIDE_TAG_DEPTH);
}

static inline uint64_t tide_tag_epoch(uint64_t tag)
{
    return tag & ~TIDE_TAG_DEPTH;
}

enum { TIDE_LEVEL_ROOT = 1 };

/* Of a scope that was refused. No scope's level has it: the root is nobody's. */
#define TIDE_TAG_REFUSED ((uint64_t)TIDE_LEVEL_ROOT)

/* The tag that this open level has now. That is another than its block knows if levels inside it
 * were abandoned since it opened (runtime/pool/abandon.h). */
static inline uint64_t tide_tag_at(const tide_pool *pool, uint32_t level)
{
    return tide_tag_epoch(pool->tag) | level;
}

static inline bool tide_at_root(const tide_pool *pool)
{
    return tide_level(pool->tag) == TIDE_LEVEL_ROOT;
}

/* A level opened: remember where. Without memory the place is forgotten, nothing else. */
void tide_levels_push(tide_levels *levels, uint64_t tag, tide_place place);

/* The level `tag` closes: returns its place, and reports younger ones that were left open. */
tide_place tide_levels_pop(tide_levels *levels, uint64_t tag);

/* Every level is gone, by a reset. */
void tide_levels_clear(tide_levels *levels);

/* The pool ends. */
void tide_levels_free(tide_levels *levels);

#endif
