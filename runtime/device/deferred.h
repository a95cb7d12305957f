/* SPDX-License-Identifier: MIT */
/* Deferred releases of a device: when the work that is queued on a stream now is over, something is
 * done on the host. It stands in one list of the device, behind an event in the stream; whoever
 * settles the list does what is due. The host waits for it only where memory is short, in a trim and
 * in the last close of the device.
 *
 * While the stream is captured no event can be recorded there, so it is recorded by the first settle
 * after that; one that waits does without, where the driver has none. Until then the stream must stay. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_DEFERRED_H
#define TIDEPOOL_RUNTIME_DEVICE_DEFERRED_H

#include "runtime/device/device.h"

/* A member of what is deferred, so that this needs no memory. `go` gets it when it is in no list any
 * more, on any thread; no lock is held. */
typedef struct tide_deferred {
    struct tide_deferred *next;
    void *stream, *mark; /* mark: NULL if there is none yet */
    void (*go)(tide_device *device, struct tide_deferred *deferred);
} tide_deferred;

/* Any thread. Nothing is done within the call. */
void tide_deferred_put(tide_device *device, void *stream, tide_deferred *deferred,
                       void (*go)(tide_device *device, tide_deferred *deferred));

/* The same behind a mark of the device's, which goes with it. */
void tide_deferred_put_marked(tide_device *device, void *mark, tide_deferred *deferred,
                              void (*go)(tide_device *device, tide_deferred *deferred));

/* Work that is queued on the stream now is to be waited for where memory is short, and nothing else: kept once
 * for each stream, of which the latest work comes last. Without memory, or an event, it is not. Any thread. */
void tide_deferred_note(tide_device *device, void *stream);

/* What is due is done: of the oldest few, or, if the host is to wait, of all. Functions of the
 * program may be called, so no lock is held, and pools that are half-way are shut. The caller holds
 * the device. False: nothing was. */
bool tide_deferred_settle(tide_device *device, bool wait);

/* The same without a wait, of all for which this is to be done: the program's functions are not called. */
void tide_deferred_settle_of(tide_device *device,
                             void (*go)(tide_device *device, tide_deferred *deferred));

/* All of it, before the device is closed: the host waits for the device where it must. */
void tide_deferred_end(tide_device *device);

static inline bool tide_deferred_any(const tide_device *device)
{
    return __atomic_load_n(&device->deferred, __ATOMIC_RELAXED) != NULL;
}

#endif
