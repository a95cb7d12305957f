/* SPDX-License-Identifier: MIT */
/* What a program has, and what the oracle knows of it: who holds which bytes, and which stream's
 * work was the last to use them.
 *
 * The program does its own duty: before it uses something on a stream it orders that stream after
 * the last use, unless the library has promised to (`told`). What it does not order is the
 * library's to order. Whether it has is seen in three ways: by the driver's sets of work
 * (fake_cuda) when memory is handed out, used or freed; by who holds overlapping bytes; by what
 * kernels read. */
#ifndef HAZARDS_WORLD_H
#define HAZARDS_WORLD_H

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/dlpack.h>
#include <tidepool/tidepool.h>

#include "fake_cuda.h"
#include "program.h"

enum { STREAMS = 4, POOLS = 4, CLAIMS = 96, GROUPS = 4, DEEPEST = 5, NOBODY = -1 };

/* Holders of a claim, a bit each. */
enum { BY_ARRAY = 1, BY_CONSUMER = 2, BY_PROGRAM = 4, BY_GRAPH = 8 };

/* Memory that somebody holds. */
typedef struct claim {
    unsigned holders; /* 0: a free place */
    char *data;
    size_t bytes;
    int pool, level;       /* of an array; NOBODY: a buffer */
    int group;             /* whose graph uses it, or NOBODY */
    int last;              /* stream of the last use, or NOBODY: it is over */
    unsigned told;         /* streams that the library has put behind that */
    bool of_host, written; /* of_host: the host sees it, too */
    bool in_capture;       /* used in the capture that is under way; `last` is of that */
    bool in_graph;         /* each launch writes graph_value */
    uint8_t value, graph_value;
    tide_array *array; /* or NULL */
    tide_dl_managed *managed;
    tide_buffer buffer;
} claim;

typedef struct level {
    bool scoped;
    tide_mark mark;
    tide_scope scope;
    unsigned declared;
} level;

typedef struct pool {
    tide_pool *pool; /* NULL: none */
    int stream;
    int depth;
    level levels[DEEPEST];
    int group; /* of the capture that it is in, or NOBODY */
} pool;

/* A capture, and its graph. */
typedef struct group {
    bool recording;
    void *graph; /* or NULL */
    int origin;
    unsigned members; /* streams that are captured */
    unsigned before;  /* streams with work that its launches come after */
    int last;         /* as of a claim: of all that the graph uses */
    unsigned told;
    tide_capture *captures[POOLS];
    unsigned length; /* nodes */
} group;

typedef struct world {
    tide_device *device;
    enum plant plant;
    void *streams[STREAMS];
    pool pools[POOLS];
    tide_buffers *buffers;
    claim claims[CLAIMS];
    group groups[GROUPS];
    uint8_t value;   /* the next to be written */
    unsigned queued; /* pieces of work, about */
    char wrong[400];
} world;

extern world w;

__attribute__((format(printf, 1, 2))) void world_wrong(const char *format, ...);

/* ---- world.c: beginning, end, streams, claims ---- */

bool world_begin(uint32_t seed, enum plant plant);
void world_end(void);
unsigned world_declared(const pool *p);
bool world_is_declared(int stream); /* to any pool */
group *world_group(int stream);     /* in whose capture it is, or NULL */
claim *world_claim(unsigned holder, int of_pool, void *data, size_t bytes, int stream);
void world_let_go(claim *c, unsigned holder);
claim *world_pick(uint8_t a, bool (*suits)(const claim *c));
void world_written(claim *c, uint8_t value); /* by work, or by its graph when that is launched */
int *world_last(claim *c);
unsigned *world_told(claim *c);

/* May the program use it there now? Then it orders the stream after the last use, and uses it. */
bool world_may_use(claim *c, int stream);
void world_order(claim *c, int stream);
void world_used(claim *c, int stream, unsigned told);
void world_settled(void); /* all work is over */

/* ---- pools.c, steps.c ---- */

#define X(code, name, weight) void step_##name(const step *s);
HAZARD_STEPS(X)
#undef X

void pools_open(int i, int stream, uint8_t how);
void pools_close(int i);
void graphs_end(group *g);
void graphs_discard(group *g);

#endif
