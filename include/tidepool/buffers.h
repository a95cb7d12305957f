/* SPDX-License-Identifier: MIT */
/* Buffers: pieces of memory whose lifetimes need not nest (training loops, staging). They come from
 * a cache that all threads may use at once.
 *
 *   tide_buffers *buffers = tide_buffers_create(device, NULL);
 *   void *data;
 *   tide_buffer b = tide_buffer_acquire_pointer(buffers, bytes, &data);
 *   use(data);
 *   tide_buffer_release(buffers, b);
 *
 *   bucket    all buffers of one size. There are four sizes to each power of two (below 256 bytes
 *             multiples of 64), so at most a quarter more than was asked for. A request gets the
 *             smallest size that is large enough, or, from 128 KiB on, where nothing of that is
 *             cached, a cached one of at most twice that (cut to the size under a limit)
 *   key       kind of memory, tag and alignment; a request only gets buffers of its own key
 *   live      acquired and not yet released
 *   cached    released, and kept for a later acquire
 *   hit       an acquire that got a cached buffer
 *   miss      an acquire that got new memory: nothing that would do was cached, by its thread or
 *             for all threads
 *   dropped   released, and given back to the device at once: the cache was full, or had no memory to
 *             list it
 *   tick      one tide_step; the age of cached buffers is counted in ticks
 *
 * Any thread may call any function here, at the same time and on the same buffers, except where a
 * function says otherwise. In front of what is cached for all, each thread keeps some host buffers
 * under 512 KiB for itself, at most 24 of a size and 2 MiB of these, of 64 instances at a time (further
 * ones have none). They are back for all when the thread ends, with a trim, by age, and where memory is
 * short. */
#ifndef TIDEPOOL_BUFFERS_H
#define TIDEPOOL_BUFFERS_H

#include <stdio.h>
#include <tidepool/pool.h>
#include <tidepool/status.h>

TIDE_BEGIN_DECLS

/* A handle: names one acquired buffer. Handles may be copied. After the release no copy is valid
 * any more, even if the same memory is acquired again. All zero: no buffer. */
typedef struct tide_buffer {
    uint64_t slot, generation;
} tide_buffer;

/* Flags: a kind of memory, or-ed with a tag of the program's and an alignment: together the key. Whole
 * pages are for files opened with O_DIRECT, network cards and io_uring. */
enum {
    TIDE_BUFFER_DEVICE = 0,  /* the device's own; the host sees it if the two share their memory */
    TIDE_BUFFER_PINNED = 1,  /* the host's, page-locked for the device; of OpenCL plain      */
    TIDE_BUFFER_HOST = 2,    /* the host's; no stream orders its use */
    TIDE_BUFFER_MANAGED = 3, /* seen by the host and all CUDA devices; the driver moves its pages */
    TIDE_BUFFER_IPC = 4,     /* the device's, and other processes may open it */
    TIDE_BUFFER_TAGS = 16,   /* how many tags there are */
    /* Buffers start at multiples of 64 bytes; with these of a page of the system, or of 2 MiB. A
     * device that has no such memory refuses with TIDE_ERROR_DEVICE. */
    TIDE_BUFFER_PAGE_ALIGNED = 1 << 16,
    TIDE_BUFFER_HUGE_ALIGNED = 2 << 16
};
#define TIDE_BUFFER_TAG(tag) (TIDE_AS(uint32_t, tag) << 8) /* 0 … 15; or it with a kind */

/* Managed memory is there where tide_device_information says `managed`, else TIDE_ERROR_DEVICE; "host" has
 * its own in its place. It does not count as held (tidepool/device_memory.h). It is handed out when all
 * work that was queued before its release is over. The host may use it while no work uses the buffer if
 * the device is `concurrent`; else while nothing at all runs on the device and the host has waited for
 * that (tide_pool_wait), or the process gets a signal. tide_buffer_acquire_zeroed clears it on the
 * instance's stream: wait for that. Pools that draw from managed buffers have managed slots: their
 * rewinds wait for nothing, so the host may touch them when the pool's streams are idle.
 *
 * Memory for other processes is there where tide_device_information says `exports`, else
 * TIDE_ERROR_DEVICE. It comes from cuMemAlloc, so a miss costs more, and CUDA's own calls take it: the
 * start of the allocation of a buffer, or of an array of a pool that draws from such buffers
 * (cuMemGetAddressRange), goes to cuIpcGetMemHandle (cudaIpcGetMemHandle), and the handle to another
 * process, for cuIpcOpenMemHandle there; the pointer's offset from the start goes along. The
 * driver shares blocks of 2 MiB: who opens a small buffer reaches what else of cuMemAlloc lies there. The
 * buffer is released, or the array's level ends, when all others have closed it: later the memory is
 * another owner's, or gone. No stream orders work of two processes: each waits for its own
 * (tide_pool_wait) before it tells the other. */

/* ---- events ---- */

typedef enum tide_buffer_happening {
    TIDE_BUFFER_ACQUIRED,  /* told before the acquire returns                   */
    TIDE_BUFFER_RELEASED,  /* told before anybody else can acquire the buffer   */
    TIDE_BUFFER_ALLOCATED, /* memory was taken from the device                 */
    TIDE_BUFFER_FREED      /* memory was given back                            */
} tide_buffer_happening;

typedef struct tide_buffer_event {
    tide_buffer_happening happening;
    tide_buffers *buffers;
    uint64_t slot;       /* as in the handle */
    size_t asked, bytes; /* what was asked for (allocated, freed: 0); the bucket's size */
    uint32_t flags;
    uint64_t stream; /* a number that no other stream has; allocated, freed: 0 */
    bool hit;        /* acquired: the buffer had been cached                   */
} tide_buffer_event;

/* Called by the thread that acquires, releases, trims, steps or destroys. It may take locks of the
 * program and allocate, also from pools, but not from the buffers it is called for, nor from a pool that
 * draws from them and is at work (TIDE_ERROR_STATE). It returns, without longjmp or exception. `event`
 * is valid during the call. */
typedef void (*tide_buffer_hook)(const tide_buffer_event *event, void *user);

/* A hook that writes a trace for tidepool-replay to the FILE that is its user data, a line each:
 * `time thread stream acquire|release slot bytes flags` (nanoseconds since the first; threads from 1). */
TIDE_API void tide_buffer_trace(const tide_buffer_event *event, void *file);

/* ---- create and destroy ---- */

/* All zero means: the defaults. */
typedef struct tide_buffers_options {
    const char *name TIDE_ZERO;      /* for messages; copied. NULL: "buffers"                   */
    uint32_t flags TIDE_ZERO;        /* the flags that tide_buffer_acquire uses, and the slots of
                                        pools that draw from it                                 */
    bool kept TIDE_ZERO;             /* nothing that is cached goes before the instance ends,
                                        whatever the bounds are: for memory of captured graphs,
                                        which their launches use                                */
    void *stream TIDE_ZERO;          /* of tide_buffer_acquire and tide_buffer_release, and there
                                        until the last call of these; host: NULL                */
    size_t bytes_max TIDE_ZERO;      /* most bytes cached for all threads; 0: as the setting
                                        `buffers_bytes` says (4 GiB). Each thread may keep a 64th
                                        of it of each size besides                              */
    uint32_t count_max TIDE_ZERO;    /* most buffers cached in a bucket for all threads; 0: no
                                        bound. Each thread may keep a 64th as many besides      */
    uint32_t age_max TIDE_ZERO;      /* ticks that a buffer may be cached; 0: 1000              */
    tide_buffer_hook hook TIDE_ZERO; /* NULL: none                                              */
    void *user TIDE_ZERO;            /* given to the hook                                       */
    TIDE_GROWTH TIDE_ZERO;
} tide_buffers_options;

/* A new, empty instance. Of the host's that live at once 64 have caches in each thread; in others every call
 * takes the instance's lock. NULL device: the host. NULL options: the defaults. NULL with a message when an
 * option is bad, the device is lost or closed, or memory or address space is short. */
TIDE_API tide_buffers *tide_buffers_create(tide_device *device,
                                           const tide_buffers_options *options);

/* An instance that all callers share, with the defaults: one for each device and kind, one for each
 * context of the kind TIDE_BUFFER_PINNED. The last tide_buffers_destroy of these ends it. NULL as above. */
TIDE_API tide_buffers *tide_buffers_shared(tide_device *device, uint32_t kind);

/* Gives all memory back, behind the work that is queued on the streams of its releases, and ends the
 * instance, which no other thread may be using. It waits for a thread that ages what is cached: hold no
 * lock that the hook takes. TIDE_ERROR_STATE, nothing changed, while buffers are live or pools take slots
 * from it, and in a function that is called for one instance after the other: tide_buffers_each, and a
 * hook that is told what goes by age or for want of memory. NULL: TIDE_OK. */
TIDE_API tide_status tide_buffers_destroy(tide_buffers *buffers);

/* ---- acquire and release ---- */

/* Acquires a buffer of at least `bytes` bytes (0 is allowed), uninitialised, aligned as the instance's
 * flags say. Where the device has no memory, what is cached goes first. A zero handle with a message: no
 * memory, or too large a size. */
TIDE_API tide_buffer tide_buffer_acquire(tide_buffers *buffers, size_t bytes);

/* The same, and sets *pointer as tide_buffer_pointer, at about the cost of an acquire alone; on failure
 * to NULL. TIDE_ERROR_ARGUMENT if `pointer` is NULL. */
TIDE_API tide_buffer tide_buffer_acquire_pointer(tide_buffers *buffers, size_t bytes,
                                                 void **pointer);

/* The same with flags, for work on a stream: what is queued there from now on comes after the work that
 * is queued on the stream of the buffer's release, by one event at most; no host waits. Pinned and managed
 * buffers, which the host writes, are handed out only when that work is over. While a graph is captured
 * on the stream it gets what was last used there, or new memory. Of many cached ones the 64 released last
 * are looked at. */
TIDE_API tide_buffer tide_buffer_acquire_on(tide_buffers *buffers, size_t bytes, uint32_t flags,
                                            void *stream);

/* The same, for any use at once: where work that was queued before the buffer's release is not over
 * yet, the host waits for it. */
TIDE_API tide_buffer tide_buffer_acquire_ready(tide_buffers *buffers, size_t bytes, uint32_t flags);

/* As tide_buffer_acquire; the first `bytes` bytes are zero: new pages of the system where these
 * cost less than clearing old ones. Device memory is cleared on the instance's stream. */
TIDE_API tide_buffer tide_buffer_acquire_zeroed(tide_buffers *buffers, size_t bytes);

/* `count` buffers as by tide_buffer_acquire, into `out`: all of them, or none and zero handles. */
TIDE_API tide_status tide_buffer_acquire_many(tide_buffers *buffers, size_t bytes, size_t count,
                                              tide_buffer *out);

/* Releases a buffer. TIDE_ERROR_STALE, nothing changed, if the handle was released before, even if its
 * memory is acquired again by now, or never named a buffer. Two threads that release one handle at the
 * same moment are a race of the program's; check level 1 tells the second. */
TIDE_API tide_status tide_buffer_release(tide_buffers *buffers, tide_buffer buffer);

/* The same for many: what can be released is; the status is that of the last that was refused. */
TIDE_API tide_status tide_buffer_release_many(tide_buffers *buffers, const tide_buffer *handles,
                                              size_t count);

/* The same, behind the work that is queued on the stream, which stays as long as the instance.
 * TIDE_ERROR_STATE while a graph is captured on it that the library was told of. */
TIDE_API tide_status tide_buffer_release_on(tide_buffers *buffers, tide_buffer buffer,
                                            void *stream);

/* The same, if all work that uses the buffer is over. */
TIDE_API tide_status tide_buffer_release_idle(tide_buffers *buffers, tide_buffer buffer);

/* A buffer's memory until the release, and its size in bytes: what was asked for or more, and all of it
 * may be used. NULL and 0, with a message, for a handle that is not live. */
TIDE_API void *tide_buffer_pointer(tide_buffers *buffers, tide_buffer buffer);
TIDE_API size_t tide_buffer_bytes(tide_buffers *buffers, tide_buffer buffer);

/* The handle of the live buffer whose memory starts at the pointer, which may be any; zero, without a
 * message, where none does. A second release by one address is refused only until that memory is acquired
 * again. */
TIDE_API tide_buffer tide_buffer_of(const tide_buffers *buffers, const void *pointer);

/* The size in bytes of the bucket of a request for `bytes`; 0: it is too large. */
TIDE_API size_t tide_buffers_round_up(const tide_buffers *buffers, size_t bytes);

/* Gives back what has been cached for `ticks` ticks or more; 0: all. Pinned memory that the device still
 * reads or writes stays. Zero, with a message, for NULL. */
TIDE_API tide_trim_summary tide_buffers_trim(tide_buffers *buffers, uint32_t ticks);

/* ---- statistics ---- */

/* One key and bucket. An acquire counts where its buffer belongs. */
typedef struct tide_bucket_statistics {
    size_t bytes; /* of each buffer */
    uint32_t flags;
    size_t live, cached; /* buffers */
    uint64_t hits, misses, releases, dropped;
    uint64_t bytes_asked; /* by all acquires so far */
    TIDE_GROWTH;
} tide_bucket_statistics;

typedef struct tide_buffers_statistics {
    uint64_t hits, misses; /* their sum is the number of acquires that succeeded              */
    uint64_t releases;     /* that succeeded                                                  */
    uint64_t refused;      /* calls refused for a handle that is not live                     */
    uint64_t dropped;      /* releases that found the cache full, or no memory to list them  */
    uint64_t trimmed;      /* cached buffers given back later: by age, by a trim, when
                              the device had no memory, or when there were as many as can be  */
    uint64_t pressed;      /* times that the device had no memory and the cache was given back */
    uint64_t failed;       /* acquires that got nothing: no memory even after that, none for
                              the instance's own books, or all records live                   */
    size_t live, cached;   /* buffers                                                         */
    size_t bytes_live, bytes_cached; /* sizes of the buckets, not what was asked for          */
    size_t bytes_high; /* most bytes, live and cached, that were ever held at once        */
    size_t bytes_max;  /* limits                                                          */
    uint32_t count_max;
    uint64_t bytes_asked, bytes_given; /* by all acquires so far; the difference is wasted    */
    double hit_rate; /* hits / (hits + misses); 0 before the first acquire              */
    double waste;    /* part of bytes_given that nobody asked for                       */
    size_t buckets;  /* in use; may exceed `room`                                       */
    TIDE_GROWTH;
} tide_buffers_statistics;

/* All numbers are of one moment; threads that acquire or release meanwhile wait. `buckets` (or NULL)
 * receives the first `room` of the buckets in use, sorted by key and size. */
TIDE_API tide_status tide_buffers_stats(tide_buffers *buffers, tide_buffers_statistics *out,
                                        tide_bucket_statistics *buckets, size_t room);

/* Calls `each` for all memory that it had at one moment, live and cached, in no order; nothing is locked
 * meanwhile, so some of it may be gone. TIDE_ERROR_ARGUMENT for NULLs, TIDE_ERROR_MEMORY. */
typedef void (*tide_buffer_function)(void *user, void *data, size_t bytes, bool live);
TIDE_API tide_status tide_buffer_each(tide_buffers *buffers, tide_buffer_function each, void *user);

/* Prints the same for a person. */
TIDE_API tide_status tide_buffers_print(tide_buffers *buffers, FILE *out);

TIDE_END_DECLS

#endif
