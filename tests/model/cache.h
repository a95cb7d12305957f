/* SPDX-License-Identifier: MIT */
/* Buffers beside the pool, of the cache that its slots come from if they come from one: acquired as
 * they are or zeroed, written, looked at, released. And the program's answers where the process has
 * a soft limit: it gives some of these buffers back when it is asked. */
#ifndef MODEL_CACHE_H
#define MODEL_CACHE_H

#include <tidepool/buffers.h>

#include "oracle.h"
#include "program.h"

enum { CACHE_HELD = 12 };

/* Every byte of it is `salt`, which is not zero. */
struct held_buffer {
    tide_buffer buffer;
    unsigned char *data;
    size_t bytes;
    unsigned char salt;
};

struct cache {
    tide_buffers *buffers;
    bool of_pool; /* the pool's slots come from it, too */
    struct held_buffer held[CACHE_HELD];
    size_t count;
};

/* The soft limit. Who asks is the pool, except where `by_cache`. */
struct soft {
    struct oracle *oracle;
    struct cache *cache;
    size_t bytes;  /* 0: there is none                                     */
    bool stubborn; /* the program always says that it has more, and gives nothing */
    bool by_cache, inside;
    size_t held;           /* bytes, after the last operation */
    unsigned asked;        /* in this operation               */
    uint64_t asked_before; /* as the library counts           */
};

/* Acquires, releases or trims. The status is what a failed acquire had. */
tide_status cache_operate(struct cache *cache, struct soft *soft, const struct operation *op);

/* Both ends of every buffer; after each step. */
void cache_check(const struct cache *cache, struct oracle *oracle);

/* Releases what is held, and destroys the instance if it is the cache's own. */
void cache_end(struct cache *cache, struct oracle *oracle);

/* Sets the process's limits; 0: none. */
void soft_begin(struct soft *soft, struct oracle *oracle, struct cache *cache,
                const struct pool_choice *choice);

/* Was the program asked when it had to be, and counted? After each step. */
void soft_check(struct soft *soft);

/* Takes the limits away. */
void soft_end(const struct soft *soft);

/* How often in this process a buffer was acquired that was to be zero, of memory that had been
 * used; how often the program was asked. */
uint64_t cache_zeroed(void);
uint64_t soft_asked_ever(void);

/* For the program's answer: looks at the buffer held longest and releases it. False: none is. */
bool cache_release_oldest(struct cache *cache, struct oracle *oracle);

#endif
