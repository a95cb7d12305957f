/* SPDX-License-Identifier: MIT */
/* Rewind while work is in flight: why no kernel ever sees another array's bytes.
 *
 * A pool is bound to the stream A (core->streams.own). A rewind makes slots free on the host's
 * clock, while kernels that use them are still queued or running. Let s be a slot, k a piece of
 * work (kernel, copy, fill) that was queued to use what s held before a rewind, k' one that uses
 * what s holds when it has been handed out again. To show: k is over before k' begins.
 *
 *  1. Only A declared or used. k was queued on A before the rewind, which is before s was handed
 *     out again, which is before k' was queued on A. A stream runs its work in order. No event, no
 *     call.
 *  2. Other streams are *declared*: tide_pool_use_on(pool, B) at an open level L, for as long as L
 *     lasts. It queues "B after A" (order(A, B)), once. Whatever was queued on A before is before
 *     whatever is queued on B from now on: so work on B with a slot that was rewound before the
 *     declaration is after what used it then.
 *  3. While anything is declared, each rewind that frees a slot first queues "A after B" for every
 *     declared B (tide_streams_join), on the host's clock before any shelf is put back; then puts
 *     back; then queues "B after A" for those that remain declared (tide_streams_part). So with k
 *     on B or A and k' on A, B or another declared C: k is before the join's end in A, which is
 *     before what A parts with, which is before k'. All joins come before all parts, so one event
 *     for each direction and stream orders each with every other.
 *  4. When L itself is rewound its declarations end: they stand in the undo log as entries of a
 *     shelf of their own (core->log.undo[TIDE_UNDO_STREAM]), so whatever rewinds L (its scope, an
 *     older one that finds L left open, a mark, a loop's next iteration, a reset) takes them back
 *     in the one loop of runtime/pool/level.c. The join has been queued by then, and the pool's
 *     user may not use B for its arrays any more: 1 again.
 *  5. Nothing rewinds past this. While anything is declared the log is closed to fast paths
 *     (log_room is its start, as for requests: runtime/pool/request.h), so every scope opened
 *     meanwhile is opened by cold code, which writes its shelves to the log, and closed by
 *     tide_log_rewind.
 *     A scope opened by a fast path before the declaration, at L or below, has the declaration's
 *     entry above its base: its leave finds the log longer than it was and goes to cold code too.
 *     A loop puts shelves back without looking at log_room: runtime/scope/typed.c lets no loop
 *     learn what to put back while anything is declared, and a declaration made in an iteration
 *     lengthens the log, which the guard sees.
 *  6. Memory that a slot gets while anything is declared is ready on A only: "B after A" is queued
 *     behind the allocation, behind fills that are part of an acquire, and behind an import.
 *     Memory that a slot gives up was free: by 3 what used it is before A's present end, and the
 *     release is queued on A.
 *  7. Capture. Events recorded and waited for on a capturing stream become edges of the graph, so
 *     1 to 3 hold inside of each launch, and order nothing that was queued before. So
 *     tide_capture_begin joins and parts all that is declared: what A and B did before is before
 *     what both do next, a launch on A included. The program orders what A queues between that call
 *     and its capture, and what B does between that call and joining. Where a program makes the
 *     call late or not at all, it orders all that was queued before the capture.
 *     A stream that was declared before A was captured, and has not joined the capture, is waited
 *     for by the host where it would be joined; it need not come after what A queues then, for that
 *     does not run now. If B is captured and A is not, or in another capture, what B did before can
 *     be neither ordered nor waited for, nor what it does then be ordered after A: the pool is
 *     unordered (8) until a reset finds all such captures ended. It is unordered, too, where A is
 *     the legacy stream beside somebody's capture: what is queued on A runs, but no event can be
 *     recorded there. And where A and B are in one capture that has failed, if B is to be joined.
 *     Nothing is allocated, given back or asked for while A captures: growing is refused, releases
 *     wait.
 *     A launch is work whose k was queued on no clock of ours, at any time, on any stream: no order
 *     can be queued for it. So what a graph uses is taken out of the pool: tide_capture_end gives
 *     the capture a hold on each slot that was handed out since tide_capture_begin, or is live
 *     (runtime/graph/capture.c). Such memory is never a slot's again. tide_capture_drop gives it
 *     back behind the stream that it names.
 *  8. Events fail only with their stream or device. If B is gone (its number is not what it was:
 *     handles are used again, numbers are not) or an event is refused, the host waits for the
 *     whole device instead, once. If even that fails the pool is *unordered*: no slot of it shows
 *     a limit any more, so every acquire comes by cold code, which refuses until a reset has
 *     waited.
 *
 *  9. What a pool gives up when A is gone, or while the pool is unordered, goes behind such a wait.
 *     While a capture forbids that it is put off, and goes when a later call can wait
 *     (runtime/device/later.h).
 *
 * What is not declared is not ordered: the fake driver of the tests finds that (tests/device). */
#ifndef TIDEPOOL_RUNTIME_POOL_STREAMS_H
#define TIDEPOOL_RUNTIME_POOL_STREAMS_H

#include "runtime/pool/core.h"

/* The log is about to be rewound to `base`: if streams are declared and that frees anything or
 * ends a declaration, the pool's stream is ordered after theirs. True if so. */
bool tide_streams_join(tide_pool *pool, const tide_entry *base);

/* After a rewind that joined: the streams still declared are ordered after the pool's. */
void tide_streams_part(tide_pool *pool);

/* The youngest declaration ends; its entry has been taken from the log. */
void tide_streams_undo(tide_pool *pool, const tide_entry *entry);

/* The pool's stream has work (an allocation, a fill) that declared streams must come after. */
void tide_streams_follow(tide_pool *pool);

/* The same after what `call` queued, which went as `status` says. Where that is TIDE_OK, but the
 * pool is unordered: TIDE_ERROR_DEVICE. A failure before that is returned, with its message. */
tide_status tide_streams_finish(tide_pool *pool, tide_status status, const char *call);

/* The pool's stream is about to read or write for the host what declared streams may be at work
 * on: it comes after what is queued on them. TIDE_ERROR_DEVICE if the pool is unordered. */
tide_status tide_streams_gather(tide_pool *pool, const char *call);

/* The pool's stream, if it is what it was when the pool was made; else TIDE_ERROR_STATE.
 * Where the device does not tell, what it says (tide_device_no_number); TIDE_ERROR_DEVICE where it
 * is lost or the process exits. */
tide_status tide_streams_own(const tide_pool *pool, const char *call);

/* Another thread becomes the pool's owner. TIDE_ERROR_STATE, nothing changed, where the pool's
 * stream is each thread's own default stream and the host cannot wait for the old owner's. */
tide_status tide_streams_adopt(tide_pool *pool, const char *call);

/* The same for whoever gives something up and must not fail. Where the stream is gone, or the pool
 * is unordered, the host waits for the whole device; in place of a stream that is gone there is the
 * device's service stream. False: the host cannot wait now, so what work may use must be put off
 * (runtime/device/later.h). */
bool tide_streams_last(const tide_pool *pool, void **stream);

/* Is all over that was queued on the stream? The host waits for it. False: it cannot; as above. */
bool tide_streams_over(const tide_pool *pool, void *stream);

/* The same of all streams of the device. Also false where the wait would end a capture of one of
 * the pool's streams. */
bool tide_streams_all_over(const tide_pool *pool);

/* TIDE_ERROR_STATE while a graph is being captured on the pool's stream: nothing may be allocated,
 * given back or asked for. */
tide_status tide_streams_quiet(const tide_pool *pool, const char *call);

/* The same, and until tide_capture_end has taken what a capture that has begun used: free memory
 * may be the graph's. */
tide_status tide_streams_let_go(const tide_pool *pool, const char *call);

/* TIDE_ERROR_DEVICE if the pool is unordered. */
tide_status tide_streams_ordered(const tide_pool *pool, const char *call);

/* A reset: an unordered pool is in order again if the host can wait for the device. */
void tide_streams_settle(tide_pool *pool);

#endif
