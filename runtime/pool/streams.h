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
 *     A stream that has come to its end is after everything: no event is recorded for it.
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
 *     and its capture, and what B does between that call and joining. A stream that is declared
 *     while A is captured is part of the same capture, or its declaration has ended: an event
 *     between a captured stream and another one ends the capture, as the driver has it.
 *     Memory that a captured pool gets is allocated beside its stream, and there when it is handed
 *     out. A launch is work whose k was queued on no clock of ours, at any time, on any stream: no
 *     order can be queued for it. So what a graph uses is taken out of the pool: tide_capture_end
 *     gives the capture a hold on each slot that was handed out since tide_capture_begin, or is
 *     live, and what a slot gave up meanwhile (runtime/graph/capture.c). Such memory is never a
 *     slot's again. tide_capture_drop gives it back behind the stream that it names.
 *  8. Events fail with their device, or where memory is short. Then the host waits for the stream
 *     that is to come before.
 *  9. A stream outlives the pool (runtime/CONTRACT.md, 2). A checked pool asks for the driver's
 *     number of its stream, refuses what it would queue on another one, and gives its memory back
 *     when the device is closed.
 *
 * What is not declared is not ordered: the fake driver of the tests finds that (tests/device). */
#ifndef TIDEPOOL_RUNTIME_POOL_STREAMS_H
#define TIDEPOOL_RUNTIME_POOL_STREAMS_H

#include "runtime/pool/core.h"

/* The log is about to be rewound to `base`: if streams are declared and that frees anything or
 * ends a declaration, the pool's stream is ordered after theirs. True if so, and theirs are to be ordered
 * after it (a single one may be already, where the device does both at once). */
bool tide_streams_join(tide_pool *pool, const tide_entry *base);

/* After a rewind that joined: the streams still declared are ordered after the pool's. */
void tide_streams_part(tide_pool *pool);

/* The youngest declaration ends; its entry has been taken from the log. */
void tide_streams_undo(tide_pool *pool, const tide_entry *entry);

/* The pool's stream has work, queued by `call`, which went as `status` says: declared streams come
 * after that. TIDE_ERROR_DEVICE where they can be neither ordered nor waited for. A failure before
 * that is returned, with its message. */
tide_status tide_streams_finish(tide_pool *pool, tide_status status, const char *call);

/* The pool's stream is about to read or write for the host what declared streams may be at work
 * on: it comes after what is queued on them. TIDE_ERROR_DEVICE as above. */
tide_status tide_streams_gather(tide_pool *pool, const char *call);

/* What the driver says of a stream that a pool is to have, or to be used on: TIDE_STREAM_UNASKED where the
 * pool is not checked. TIDE_ERROR_ARGUMENT, with the reason, for one that cannot be. */
tide_status tide_streams_ask(tide_device *device, void *stream, tide_check check, const char *call,
                             uint64_t *said);

/* May the pool's stream be used? TIDE_ERROR_STATE where the pool is checked and the stream is gone;
 * TIDE_ERROR_DEVICE where the device is lost or the process exits. */
tide_status tide_streams_own(const tide_pool *pool, const char *call);

/* The stream behind which what the pool gives up goes: its own, or, where the pool is checked and that is
 * gone, the device's service, when the host has waited for the device. */
void *tide_streams_last(const tide_pool *pool);

/* Another thread becomes the pool's owner. TIDE_ERROR_STATE where the pool's stream is each thread's
 * own default stream. */
tide_status tide_streams_adopt(const tide_pool *pool, const char *call);

#endif
