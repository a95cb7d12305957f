/* SPDX-License-Identifier: MIT */
/* The oracle: what a pool must look like, kept in the most naive way.
 *
 * Each array has a malloc'ed copy of what was written to it. Levels are a list, live arrays
 * another, and each type has the row of memory that it was seen to hand out, in order. The
 * oracle calls nothing of the library but its questions (tide_pool_stats and the like); it is
 * told what happened and says what is wrong. */
#ifndef MODEL_ORACLE_H
#define MODEL_ORACLE_H

#include <tidepool/array.h>
#include <tidepool/dlpack.h>
#include <tidepool/tidepool.h>

#include "shape.h"
#include "types.h"

/* A mistake put into the oracle on purpose: the way to show that mistakes are found. */
enum plant {
    PLANT_NOTHING,
    PLANT_LEAK,  /* forgets levels that were left open when it closes an outer one */
    PLANT_STALE, /* takes a mark for good that has been rewound                    */
    PLANT_FORM   /* sees another status when a scope made of marks turns           */
};

/* One array's place in its row: live, or free with what is known of its memory. */
struct place {
    unsigned char *data; /* NULL: it has none, a compact took it             */
    size_t bytes;        /* of the last array here                           */
    size_t room;         /* most bytes this memory was seen to hold          */
    size_t peak;         /* most elements asked of it since the last compact */
    size_t recent;       /* most lately, and since fewer were asked for      */
    size_t since;
    unsigned less;       /* passes that saw fewer                            */
    size_t stained;      /* free, in a pool that poisons: bytes that must be */
    unsigned char *copy; /* what was last written here                       */
    bool guarded;        /* it ends at an inaccessible page                  */
    struct pin *pin;     /* its memory has left the pool                     */
};

/* Exported memory. While its array is live its content is the place's, then its own. */
struct pin {
    struct place memory;
    size_t held; /* bytes by which the pool holds less */
    unsigned consumers;
    bool live, seated; /* seated: its position has not been needed since */
};

struct export
{
    tide_dl_managed *managed;
    struct pin *pin;
    struct shape shape;
    tide_type type;
    size_t offset; /* bytes from the memory's first to element 0 */
};

/* A producer's tensor. */
struct import {
    tide_dl_managed managed;
    struct shape shape;
    struct place memory;
    unsigned due, calls; /* of its deleter */
};

/* The array headers that a position has, by rank. */
struct seat {
    tide_array *headers[TIDE_NDIM_MAX + 1];
};

struct row {
    struct place *places;
    struct seat **seats; /* as many */
    size_t count, room, live;
};

/* What a live array's header must say. */
struct nd {
    tide_array *header;
    unsigned type; /* of elements */
    struct shape shape;
    int64_t offset;        /* of element 0 from the first of the memory       */
    size_t base;           /* the live array, perhaps itself, whose memory it is */
    struct import *import; /* whose memory it is, or NULL                 */
};

/* Live arrays, oldest first: the headers of views and imports too. */
struct live {
    unsigned type;
    size_t place;
    struct nd *nd; /* NULL: it has no header */
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

enum {
    ORACLE_LEVELS = 160,
    ORACLE_LIVE = 256,
    ORACLE_TRADES = 4096,
    ORACLE_EXPORTS = 32,
    ORACLE_PINS = 512,
    ORACLE_IMPORTS = 64
};

struct oracle {
    tide_pool *pool;
    bool checked, poison, disabled;
    bool blind; /* Valgrind is told of each acquire: what was left there cannot be read */
    unsigned guard_every, guard_in; /* one acquire in so many is guarded, the next in so many */
    bool due;                       /* the last one was to be                                */
    unsigned faults;                /* injected into the last call                           */
    size_t limit_bytes;
    bool piecemeal; /* it lies in given memory: what is free there may be in pieces */
    bool process;   /* the process has a limit                                      */
    bool buffers;   /* slots are buffers, perhaps larger ones that were cached      */
    enum plant plant;
    struct row rows[MODEL_TYPES];
    struct live live[ORACLE_LIVE];
    struct level levels[ORACLE_LEVELS];
    struct trade trades[ORACLE_TRADES];
    size_t live_count, level_count, trade_count;
    struct export exports[ORACLE_EXPORTS];
    struct pin *pins[ORACLE_PINS];
    struct import *imports[ORACLE_IMPORTS];
    size_t export_count, pin_count, import_count;
    size_t bytes_exported;
    uint64_t gone;     /* memory that has left the pool and is not back */
    uint32_t requests; /* not served yet */
    uint64_t served;
    size_t back_min, back_max; /* bytes that came back from consumers in a trim */
    size_t slots_unsure;
    uint64_t came_unsure;  /* of `releases`: they depend on the order of types, so on the form */
    size_t exchange_bytes; /* from here on, a larger free array is taken rather than this grown */
    size_t compact_gain;   /* bytes                                                             */
    unsigned trim_after;   /* passes: as the setting                                            */
    size_t step;           /* number of the operation: patterns depend on it                    */
    uint64_t last_id;
    uint64_t allocations, releases, exchanges; /* as the pool must count them  */
    uint64_t pressed;                          /* as it has counted them       */
    tide_pool_statistics now;                  /* after the last operation                      */
    char wrong[512];                           /* the first thing found wrong; empty: nothing   */
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

/* Counts anew to the next array that is guarded. */
void oracle_draw_guard(struct oracle *oracle);

/* An acquire has come as far as looking for memory, whether it then failed or not: it was its
 * turn to be guarded or not, and what had been exported came back or was given up. */
void oracle_reached(struct oracle *oracle, unsigned type);

/* Before what a call did is told: free memory that the pool has given back because it was short. It
 * was about an array of the type; MODEL_TYPES: of none. */
void oracle_pressed(struct oracle *oracle, unsigned type);

/* What happened. An acquire that left the last user's content there has it checked; then the array
 * gets a pattern of its own, unless it is a header, whose content is the library's. */
enum content { CONTENT_LEFT, CONTENT_FILLED, CONTENT_KEPT };
void oracle_acquired(struct oracle *oracle, unsigned type, void *data, size_t n,
                     enum content content);
void oracle_refused(struct oracle *oracle, const char *what);
void oracle_write(struct oracle *oracle, unsigned which, unsigned salt);
void oracle_reset(struct oracle *oracle);   /* about to */
void oracle_emptied(struct oracle *oracle); /* after a reset */
/* MODEL_TYPES: all of them. */
void oracle_trimmed(struct oracle *oracle, unsigned type, tide_trim_summary summary);
void oracle_compacted(struct oracle *oracle, unsigned type, tide_trim_summary summary);

/* A scope has been opened at the root, or is about to be: what was requested is done. */
void oracle_served(struct oracle *oracle);

/* The pool serves now what was requested, as where a scope is opened at the root. And what a step asks for
 * that is to ask for this: what was not used, or wasted, lately. */
void oracle_serve(struct oracle *oracle);
uint32_t oracle_lately(uint32_t requests);

/* ---- arrays with headers ------------------------------------------------------------------ */

/* An array of its own memory. */
void oracle_array(struct oracle *oracle, unsigned type, tide_array *array,
                  const struct shape *shape, enum content content);

/* An acquire of an array failed: it may have found memory and no header. */
void oracle_array_refused(struct oracle *oracle, unsigned type, size_t n);
bool oracle_has_header(const struct oracle *oracle, unsigned type, int ndim);

/* A header of the next free place, if there is one: of an array that is no longer live. */
tide_array *oracle_dead_header(const struct oracle *oracle, unsigned type);

/* A part or another shape of live array `of`; a tensor taken in (it is then live). */
void oracle_viewed(struct oracle *oracle, tide_array *view, size_t of, const struct shape *shape,
                   int64_t offset);
void oracle_imported(struct oracle *oracle, tide_array *array, struct import *import);

/* The number of the `which`-th live array with a header, counted round; false: there is none. */
bool oracle_choose(const struct oracle *oracle, unsigned which, size_t *number);

/* The memory that an array's elements are in. */
struct place *oracle_memory(struct oracle *oracle, const struct nd *nd);

/* One element read and written where the library's header says it is. */
void oracle_write_element(struct oracle *oracle, const struct nd *nd, size_t number, uint64_t salt);

struct import *oracle_produce(struct oracle *oracle, unsigned type, const struct shape *shape);
void oracle_exported(struct oracle *oracle, size_t of, tide_dl_managed *managed);
void oracle_consumer_writes(struct oracle *oracle, size_t number);
void oracle_dropped(struct oracle *oracle, size_t number); /* after its deleter */

/* The pool is gone, what was exported is not. */
void oracle_outlived(struct oracle *oracle);

/* ---- questions ---------------------------------------------------------------------------- */

/* May so many bytes of new memory be lacking like this? A limit may be hit with room to spare for
 * rounding, not more. */
bool oracle_may_lack(const struct oracle *oracle, size_t bytes, tide_status status);

/* A live array has other memory: it overlaps with no other. */
void oracle_check_apart(struct oracle *oracle, const struct live *live);

/* What the pool itself says: the place of an array's slot; is it guarded there? */
size_t oracle_sees_slot(const struct oracle *oracle, unsigned type, const tide_array *array);
bool oracle_sees_guard(const struct oracle *oracle, unsigned type, size_t place);

/* Would this acquire be served from memory that is already there? */
bool oracle_serves(const struct oracle *oracle, unsigned type, size_t n);

/* Counts, depth, statistics and invariants; a little of every live array. After each step. */
void oracle_check(struct oracle *oracle);

/* Every witnessed byte of every live array. */
void oracle_verify(struct oracle *oracle);

/* A digest of both ends of every live array, read from the pool's memory. */
uint64_t oracle_digest(const struct oracle *oracle);

#endif
