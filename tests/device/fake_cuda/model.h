/* SPDX-License-Identifier: MIT */
/* The fake driver's inside: sets of work, streams, captures, memory. All of it under one lock. */
#ifndef FAKE_MODEL_H
#define FAKE_MODEL_H

#include <string.h>

#include "fake_cuda.h"
#include "runtime/device/cuda/api.h"
#include "tests/random.h"

enum {
    OPS = 4096,
    WORDS = OPS / 64,
    NODES = 256,
    STREAMS = 64,
    DEVICES = 4,
    EVENTS = 256,
    CAPTURES = 16, /* active ones */
    POOLS = 64
};

/* Handles that stand for a stream of the current context. */
enum { HANDLE_LEGACY = 1, HANDLE_PER_THREAD = 2 };

/* A set of work, by number. */
typedef struct set {
    uint64_t words[WORDS];
} set;

static inline void set_join(set *to, const set *from)
{
    for (int i = 0; i < WORDS; i++)
        to->words[i] |= from->words[i];
}

static inline bool set_has(const set *of, unsigned i)
{
    return of->words[i / 64] >> i % 64 & 1;
}

static inline void set_put(set *to, unsigned i)
{
    to->words[i / 64] |= (uint64_t)1 << i % 64;
}

static inline bool set_within(const set *part, const set *whole)
{
    for (int i = 0; i < WORDS; i++)
        if ((part->words[i] & ~whole->words[i]) != 0)
            return false;
    return true;
}

/* One piece of work, as it is queued, captured and replayed. */
typedef struct work {
    void (*run)(const struct work *work);
    fake_kernel *kernel;
    char arguments[FAKE_ARGUMENTS];
    uint64_t to, from, pitch, width, height;
    unsigned unit, value;
    fake_range ranges[FAKE_RANGES];
    unsigned range_count;
    bool between; /* devices: a copy that reaches both sides */
    const char *what;
    struct code_launch *code; /* of a kernel; counts who has it */
    struct extent *extents;   /* the memory there was when it was queued */
    size_t extent_count;
} work;

typedef struct capture {
    bool active, spoiled;
    uint64_t number;
    int mode;
    const void *thread; /* that began it */
    unsigned count;
    work nodes[NODES];
    set before[NODES]; /* of node numbers */
} capture;

typedef struct context {
    unsigned device;
    unsigned retained;
    bool lost;
    struct lane *legacy;
    set gone; /* the tails of streams that were destroyed */
} context;

typedef struct lane {
    bool live;
    bool blocking;      /* is ordered with the legacy stream of its context */
    const void *thread; /* whose default stream it is, or NULL */
    uint64_t number;
    context *context;
    set tail;         /* all that work queued now would come after */
    capture *capture; /* or NULL */
    set captured;     /* the same, of its nodes */
} lane;

typedef struct event {
    bool live;
    context *context;
    set before;
    capture *capture;
    set captured;
} event;

/* A memory pool of the driver. */
typedef struct reserve {
    bool live;
    context *context;
    uint64_t used, used_peak, reserved, reserved_peak; /* bytes */
} reserve;

/* What all functions work on. */
typedef struct world {
    context contexts[DEVICES];
    unsigned devices;
    lane streams[STREAMS];
    event events[EVENTS];
    reserve pools[POOLS];
    set known; /* what the host has seen done: all that is queued from now on comes after it */
    uint64_t stream_numbers, capture_numbers;
    rng random;
    size_t limit, live_bytes;
    unsigned without;            /* what devices lack: FAKE_POOLS, …   */
    uint64_t highest;            /* rows of the highest one-wide fill  */
    capture *captures[CAPTURES]; /* active ones, and NULLs */
    int process;                 /* that started the driver */
    char hazard[256], violation[256];
} world;
extern world fake;

/* control.c */
enum {
#define X(name, version, arguments) ENTRY_##name,
    TIDE_CU_ENTRIES(X)
#undef X
        ENTRIES
};

enum { /* results that the library has no name for */
       NOT_INITIALISED = 3,
       INVALID_CONTEXT = 201,
       NOT_SUPPORTED = 801,
       INVALID_HANDLE = 400,
       NOT_FOUND = 500,
       CAPTURE_UNSUPPORTED = 900,
       CAPTURE_INVALIDATED = 901,
       CAPTURE_UNJOINED = 904,
       CAPTURE_ISOLATION = 905,
       CAPTURE_IMPLICIT = 906,
       CAPTURED_EVENT = 907,
       CAPTURE_WRONG_THREAD = 908
};

int control_enter(int entry);            /* 0, or the result to fail with; locked until leave */
int control_enter_current(int entry);    /* the same, for what needs a context that works */
int control_enter_uncaptured(int entry); /* for what a capture may forbid */
int control_enter_safe(int entry);       /* for what needs both */
int control_leave(int result);
int control_unsafe(const char *what); /* spoils the captures that forbid it: 0, or a result */
const void *control_thread(void);     /* names the calling thread */
__attribute__((noreturn)) void control_fault(const char *what, const void *handle);
int control_mode(int mode); /* exchanges the calling thread's capture mode */
context *control_current(void);
void control_push(context *pushed);
context *control_pop(void);
lane *control_new_stream(context *of, bool blocking);
void control_tear_down(void);
void fake_lock(void);
void fake_unlock(void);
bool fake_has(unsigned what);
uint32_t fake_random(void);
__attribute__((format(printf, 1, 2))) void fake_complain(const char *format, ...);

/* capture.c */
void capture_record(event *to, lane *on);
int capture_wait(lane *on, const event *of);
void capture_begin(lane *on, int mode);
int capture_implicit(const lane *on, const char *what); /* 906 where `on` is a legacy stream */
bool capture_blocks(const lane *on);                    /* the same question; nothing is spoiled */
int capture_own(const lane *on, const char *what);    /* 900 where the stream itself is captured */
int capture_asked(const event *of, const char *what); /* 0, 900 or 907 */
int capture_finish(lane *on, capture *of);            /* the driver's result */
extern capture capture_over;

/* entries.c */
lane *entry_stream(void *handle);   /* in the current context; faults for one that is gone */
void entry_stream_ends(lane *gone); /* its work goes on */
int entry_queue(void *stream, const work *one);
int entry_launch(void *stream, fake_kernel *kernel, const void *arguments, size_t bytes,
                 const fake_range *ranges, unsigned count);

/* code.c */
int code_load(const void *image, tide_cu_module *out);
int code_unload(tide_cu_module module);
int code_find(tide_cu_module module, const char *name, tide_cu_function *out);
int code_start(tide_cu_function function, const unsigned shape[7], void **values, void *stream);
void code_keep(work *queued); /* one more has it, and may use what memory there is now */
void code_drop(work *over);
int code_architecture(void);
void code_reset(void); /* counts anew */
void code_report(void);

/* model.c */
void model_reset(void);
void model_used(const work *one, const fake_range *range); /* found out when it ran */
void model_queue(lane *on, const work *one);
set model_tail(const lane *of);          /* with what the legacy stream adds */
set model_everything(const context *of); /* all that was ever queued in a context */
void model_finish(const set *these);     /* runs them, and what they need; the host has seen it */
bool model_done(const set *these);
void model_advance(void); /* some random work, or none */
void model_check(const work *one, const set *before, const char *who);
void model_replay(const capture *graph, lane *on);
unsigned model_pending(void);
void model_settle(void); /* forgets what is over and known, if that is all there is */

/* beside.c */
void *beside_find(const char *name, int version); /* or NULL */

/* pages.c: results of the driver; and what memory.c asks about memory that is mapped */
int pages_granularity(size_t *out, const tide_cu_page_properties *properties);
int pages_reserve(unsigned long long *out, size_t bytes, size_t align, uint64_t flags);
int pages_unreserve(uint64_t at, size_t bytes);
int pages_create(unsigned long long *out, size_t bytes, const tide_cu_page_properties *properties,
                 uint64_t flags);
int pages_release(unsigned long long handle);
int pages_map(uint64_t at, size_t bytes, size_t offset, unsigned long long handle, uint64_t flags);
int pages_unmap(uint64_t at, size_t bytes);
int pages_set_access(uint64_t at, size_t bytes, const tide_cu_access *access, size_t count);
void pages_reset(void);
void *pages_see(const void *device_memory); /* NULL: in no range */
bool pages_live(const void *data, size_t bytes);
const context *pages_owner(const void *data);
size_t pages_extents(struct extent *all); /* NULL: how many there are */
void pages_show_all(bool shown);

/* memory.c */
void memory_reset(void);
uint64_t memory_take(size_t bytes, lane *on, reserve *from); /* 0: none */
uint64_t memory_take_plain(size_t bytes);
bool memory_give_plain(uint64_t address);
uint64_t memory_take_managed(size_t bytes);
void memory_trim(reserve *of, uint64_t keep);
size_t memory_kept(void);                      /* by pools, and not in use */
const context *memory_owner(uint64_t address); /* NULL: the host's */
void memory_end_pool(reserve *of);
bool memory_give(uint64_t address, lane *on);
bool memory_live(const void *data, size_t bytes);
bool memory_known(uint64_t address);          /* the device's, live or not, or pinned */
struct extent *memory_extents(size_t *count); /* all that is live; to be freed */
void memory_show(void *from, size_t bytes, bool shown);
void memory_show_all(bool shown); /* to this process, for a kernel */
void memory_settle(void);         /* work numbers start anew */
void *memory_pinned(size_t bytes);
bool memory_unpin(void *data);
void memory_write(const work *one); /* fills and copies, when they run */
void memory_copy(const work *one);

#endif
