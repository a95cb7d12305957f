/* SPDX-License-Identifier: MIT */
/* The oracle: what a pool must look like, kept in the most naive way.
 *
 * Each array has a malloc'ed copy of what was written to it. Levels are a list, live arrays
 * another, and each type has the row of memory that it was seen to hand out, in order. The
 * oracle calls nothing of the library but its questions (tide_pool_stats and the like); it is
 * told what happened and says what is wrong. */
#ifndef MODEL_ORACLE_H
#define MODEL_ORACLE_H

#include <tidepool/tidepool.h>

#include "types.h"

/* A mistake put into the oracle on purpose: the way to show that mistakes are found. */
enum plant {
    PLANT_NOTHING,
    PLANT_LEAK,  /* forgets levels that were left open when it closes an outer one */
    PLANT_STALE, /* takes a mark for good that has been rewound                    */
    PLANT_CRASH, /* dies of a second array of more than 99 bytes                   */
    PLANT_FORM   /* sees another status when a scope made of marks turns           */
};

/* One array's place in its row: live, or free with what is known of its memory. */
struct place {
    unsigned char *data; /* NULL: it has none, a compact took it             */
    size_t bytes;        /* of the last array here                           */
    size_t room;         /* most bytes this memory was seen to hold          */
    size_t peak;         /* most bytes asked of it since the last compact    */
    size_t stained;      /* free, in a pool that poisons: bytes that must be */
    unsigned char *copy; /* what was last written here                       */
};

struct row {
    struct place *places;
    size_t count, room, live;
};

/* Live arrays, oldest first. */
struct live {
    unsigned type;
    size_t place;
};

struct level {
    uint64_t id;
    size_t live;      /* arrays when it was opened    */
    size_t exchanges; /* exchanges when it was opened */
};

/* Two places that traded memory; traded back when the level ends. */
struct trade {
    unsigned type;
    size_t near, far;
};

enum { ORACLE_LEVELS = 160, ORACLE_LIVE = 256, ORACLE_TRADES = 4096 };

struct oracle {
    tide_pool *pool;
    bool poison, disabled, blind; /* blind: poison cannot be read (under Valgrind) */
    size_t limit_bytes;
    enum plant plant;
    struct row rows[MODEL_TYPES];
    struct live live[ORACLE_LIVE];
    struct level levels[ORACLE_LEVELS];
    struct trade trades[ORACLE_TRADES];
    size_t live_count, level_count, trade_count;
    size_t exchange_bytes; /* from here on, a larger free array is taken rather than this grown */
    size_t compact_gain;   /* bytes                                                             */
    size_t step;           /* number of the operation: patterns depend on it                    */
    uint64_t last_id;
    uint64_t allocations, releases, exchanges; /* as the pool must count them  */
    tide_pool_statistics now; /* after the last operation                      */
    char wrong[512];          /* the first thing found wrong; empty: nothing   */
};

/* Zeroes `oracle` first; the caller then says what kind of pool it is. */
void oracle_begin(struct oracle *oracle, tide_pool *pool);
void oracle_end(struct oracle *oracle);

/* Says what is wrong, once. */
void oracle_wrong(struct oracle *oracle, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Levels: what a scope or a mark opens. Closing closes the younger ones with it; false if the
 * level is not open. */
uint64_t oracle_open(struct oracle *oracle);
bool oracle_is_open(const struct oracle *oracle, uint64_t id);
bool oracle_close(struct oracle *oracle, uint64_t id);

/* What happened. An acquire that left the last user's content there (not one that filled) has
 * it checked; then the array gets a pattern of its own. */
enum content { CONTENT_LEFT, CONTENT_FILLED };
void oracle_acquired(struct oracle *oracle, unsigned type, void *data, size_t n,
                     enum content content);
void oracle_refused(struct oracle *oracle, const char *what);
void oracle_write(struct oracle *oracle, unsigned which, unsigned salt);
void oracle_reset(struct oracle *oracle);   /* about to */
void oracle_emptied(struct oracle *oracle); /* after a reset */
/* MODEL_TYPES: all of them. */
void oracle_trimmed(struct oracle *oracle, unsigned type, tide_trim_summary summary);
void oracle_compacted(struct oracle *oracle, unsigned type, tide_trim_summary summary);

/* Would this acquire be served from memory that is already there? */
bool oracle_serves(const struct oracle *oracle, unsigned type, size_t n);

/* Counts, depth, statistics and invariants; a little of every live array. After each step. */
void oracle_check(struct oracle *oracle);

/* Every witnessed byte of every live array. */
void oracle_verify(struct oracle *oracle);

/* A digest of both ends of every live array, read from the pool's memory. */
uint64_t oracle_digest(const struct oracle *oracle);

#endif
