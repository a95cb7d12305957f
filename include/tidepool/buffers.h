/* SPDX-License-Identifier: MIT */
/* Buffers: whole pieces of memory with lifetimes of their own (training loops, staging), from a
 * cache that any thread may use.
 *
 *   tide_buffers *buffers = tide_buffers_create(device, NULL);
 *   tide_buffer b = tide_buffer_acquire(buffers, bytes);
 *   use(tide_buffer_pointer(buffers, b));
 *   tide_buffer_release(buffers, b);
 *
 *   bucket    the sizes that are kept: a request gets the next larger one
 *   key       what is never handed out for each other: kind of memory and tag
 *   cached    released, kept for the next acquire
 *   live      acquired and not yet released
 *   hit       an acquire that was given a cached buffer; everything else is a miss
 *   dropped   released and given back at once, since the cache was full
 *   tick      one tide_step: the clock by which cached buffers age
 *
 * A miss means that no buffer of that key and bucket was cached, in whatever thread's magazine.
 * All functions here may be called from any thread, at the same time, on the same buffers. */
#ifndef TIDEPOOL_BUFFERS_H
#define TIDEPOOL_BUFFERS_H

#include <stdio.h>
#include <tidepool/pool.h>
#include <tidepool/status.h>

TIDE_BEGIN_DECLS

/* One acquired buffer. A copy of it is as good; once released none is any more, whatever becomes
 * of the memory. All zero: no buffer. */
typedef struct tide_buffer {
    uint64_t slot, generation;
} tide_buffer;

/* Which sizes there are. `tests/bench/replay` tells for a recorded trace which policy suits it. */
typedef enum tide_buffers_policy {
    TIDE_BUFFERS_STEPS = 0,  /* four to an octave: at most a quarter more than was asked for, from
                                256 bytes on; multiples of 64 bytes below */
    TIDE_BUFFERS_POWERS = 1, /* powers of two from 64 bytes on: up to twice as much */
    TIDE_BUFFERS_LIST = 2    /* 1 KiB, 4 KiB … 256 MiB, powers of two above: few, large steps */
} tide_buffers_policy;

/* Flags, together the key: what kind of memory, and a tag for what the program keeps apart. */
enum {
    TIDE_BUFFER_DEVICE = 0, /* the device's own; host-visible where the device shares the host's */
    TIDE_BUFFER_PINNED = 1, /* the host's, page-locked for the device */
    TIDE_BUFFER_HOST = 2,   /* the host's; no stream orders its use */
    TIDE_BUFFER_TAGS = 16   /* tags there are */
};
#define TIDE_BUFFER_TAG(tag) ((uint32_t)(tag) << 8) /* 0 … 15, to be or-ed with a kind */

/* ---- what happens, for who wants to know ---- */

typedef enum tide_buffer_happening {
    TIDE_BUFFER_ACQUIRED,  /* to its new holder, who does not know it yet       */
    TIDE_BUFFER_RELEASED,  /* by its holder; nobody else can have it yet        */
    TIDE_BUFFER_ALLOCATED, /* memory was taken from the device                 */
    TIDE_BUFFER_FREED      /* memory was given back                            */
} tide_buffer_happening;

typedef struct tide_buffer_event {
    tide_buffer_happening happening;
    tide_buffers *buffers;
    uint64_t slot;
    size_t asked, bytes; /* by its holder (allocated, freed: 0), and of its bucket */
    uint32_t flags;
    uint64_t stream; /* a number that no other stream has; allocated, freed: 0 */
    bool hit;        /* acquired: it had been cached                           */
} tide_buffer_event;

/* Called by the thread that acquires, releases, trims or steps; acquires and releases with no lock
 * held. It must not use buffers itself. */
typedef void (*tide_buffer_hook)(const tide_buffer_event *event, void *user);

/* A hook that writes acquires and releases to the FILE that is its user data, a line each, for
 * tidepool-replay: `time thread stream acquire|release slot bytes flags`; nanoseconds since the
 * first line, threads counted from 1. Without the time and the thread, one thread's trace is the
 * same in every run. */
TIDE_API void tide_buffer_trace(const tide_buffer_event *event, void *file);

/* ---- create and destroy ---- */

/* All zero means: the defaults. */
typedef struct tide_buffers_options {
    const char *name; /* for messages; copied. NULL: "buffers"                                  */
    tide_buffers_policy policy;
    uint32_t flags;        /* of tide_buffer_acquire                                              */
    void *stream;          /* of tide_buffer_acquire and tide_buffer_release; host: NULL          */
    size_t bytes_max;      /* that may be cached; 0: as the setting `buffers_bytes` says (4 GiB)  */
    uint32_t count_max;    /* that may be cached of a bucket; 0: as `buffers_count` says (16)     */
    uint32_t age_max;      /* ticks that a buffer may be cached; 0: as `buffers_age` says         */
    tide_buffer_hook hook; /* NULL: none                                                        */
    void *user;
} tide_buffers_options;

/* NULL device: the host. NULL options: the defaults. NULL with a message when that cannot be. */
TIDE_API tide_buffers *tide_buffers_create(tide_device *device,
                                           const tide_buffers_options *options);

/* The one instance that all who ask share: TIDE_BUFFER_DEVICE or TIDE_BUFFER_HOST, one for each
 * device; TIDE_BUFFER_PINNED, one for each context. Made with the defaults when first asked for,
 * gone when it has been destroyed as often. */
TIDE_API tide_buffers *tide_buffers_shared(tide_device *device, uint32_t kind);

/* Gives everything back. TIDE_ERROR_STATE, nothing changed, while buffers are live or pools draw
 * from it. No other thread may be using it. NULL: nothing to do, TIDE_OK. */
TIDE_API tide_status tide_buffers_destroy(tide_buffers *buffers);

/* ---- acquire and release ---- */

/* A buffer of at least so many bytes (0 is a size like any other), uninitialised, aligned to 64
 * bytes or more. On out of memory everything cached on the device is given back and the device
 * asked once more; after that, and for sizes that cannot be, a zero handle with a message. */
TIDE_API tide_buffer tide_buffer_acquire(tide_buffers *buffers, size_t bytes);

/* The same with flags and for work on a stream. Work that is queued there from now on comes after
 * what was queued, before its release, where the buffer was released: by the stream itself or by
 * one event; no host waits. Pinned memory is written by the host, too: it is handed out only when
 * nothing that was queued before its release is left. While the stream is captured, only what
 * needs neither event nor allocation: else TIDE_ERROR_STATE. */
TIDE_API tide_buffer tide_buffer_acquire_on(tide_buffers *buffers, size_t bytes, uint32_t flags,
                                            void *stream);

/* Any thread may release. TIDE_ERROR_STALE, nothing changed, for a handle that was released
 * already, whose memory somebody else has by now, or that never was one. */
TIDE_API tide_status tide_buffer_release(tide_buffers *buffers, tide_buffer buffer);

/* The same where work that uses the buffer may still be queued on the stream. Its place in the
 * stream is marked before anybody can see the buffer again. TIDE_ERROR_STATE while the stream is
 * captured: the graph would use the buffer again. */
TIDE_API tide_status tide_buffer_release_on(tide_buffers *buffers, tide_buffer buffer,
                                            void *stream);

/* Its memory, and how much there is of it. NULL, 0 with a message for a handle that is not live. */
TIDE_API void *tide_buffer_pointer(tide_buffers *buffers, tide_buffer buffer);
TIDE_API size_t tide_buffer_bytes(tide_buffers *buffers, tide_buffer buffer);

/* What a buffer for so many bytes would have. 0: there is no such size. */
TIDE_API size_t tide_buffers_round_up(const tide_buffers *buffers, size_t bytes);

/* Gives back what has been cached for so many ticks or more; 0: all that is cached. Pinned memory
 * that the device still reads or writes stays. */
TIDE_API tide_trim_summary tide_buffers_trim(tide_buffers *buffers, uint32_t ticks);

/* ---- statistics ---- */

/* One key and bucket. */
typedef struct tide_bucket_statistics {
    size_t bytes; /* of each buffer */
    uint32_t flags;
    size_t live, cached; /* buffers */
    uint64_t hits, misses, releases, dropped;
    uint64_t bytes_asked; /* by all acquires so far */
} tide_bucket_statistics;

typedef struct tide_buffers_statistics {
    uint64_t hits, misses; /* together: acquires that succeeded                               */
    uint64_t releases;     /* that succeeded                                                  */
    uint64_t refused;      /* releases and questions refused: twice, too late, forged         */
    uint64_t dropped;      /* releases that found the cache full                              */
    uint64_t trimmed;      /* cached buffers given back later, on demand or by age            */
    uint64_t pressed;      /* times that the device had no memory and the cache was given back */
    uint64_t failed;       /* acquires that even then got none                                */
    size_t live, cached;   /* buffers                                                         */
    size_t bytes_live, bytes_cached; /* by bucket                                             */
    size_t bytes_high; /* most bytes, live and cached, that were ever held at once        */
    size_t bytes_max;  /* limits                                                          */
    uint32_t count_max;
    uint64_t bytes_asked, bytes_given; /* by all acquires so far: what is between was wasted  */
    double hit_rate; /* hits of all acquires; 0 before the first                        */
    double waste;    /* part of bytes_given that nobody asked for                       */
    size_t buckets;  /* in use, whatever there was room for                             */
} tide_buffers_statistics;

/* One moment of all threads: every number belongs to it. `buckets` (or NULL) takes the first
 * `room` of the buckets in use, by key and size. Threads that acquire or release meanwhile wait. */
TIDE_API tide_status tide_buffers_stats(tide_buffers *buffers, tide_buffers_statistics *out,
                                        tide_bucket_statistics *buckets, size_t room);

/* The same as a page for a person. */
TIDE_API tide_status tide_buffers_print(tide_buffers *buffers, FILE *out);

TIDE_END_DECLS

#endif
