/* SPDX-License-Identifier: MIT */
/* What must not go before the host has waited for all streams of a device, and that is not possible
 * now: a graph is captured, and the wait would end that. The stream that could have ordered it is
 * gone. It is put off, and goes by a later call that may wait.
 *
 * A capture that no pool has noted, on a non-blocking stream, is not known: the wait ends it.
 * Nothing else would do. The stream is gone, so neither it nor an event of it can be asked; the
 * context can be marked (cuCtxRecordEvent), which ends captures all the same.
 *
 * A capture puts off (TIDE_ERROR_STATE). On a device that is lost it goes at once, and so it does
 * after two failed waits, for nobody can tell when one would succeed (tide_device_all_over). Once
 * the process exits it stays for good, unless the device is lost (tide_device_unwatched). */
#ifndef TIDEPOOL_RUNTIME_DEVICE_LATER_H
#define TIDEPOOL_RUNTIME_DEVICE_LATER_H

#include "runtime/device/device.h"

/* The first member of what is put off, so that putting off needs no memory. `go` gives all of it
 * back, itself included, by the device's service stream; on any thread, no lock held. */
typedef struct tide_later {
    struct tide_later *next;
    void (*go)(tide_device *device, struct tide_later *later);
} tide_later;

/* The device is held until it has gone. Any thread. */
void tide_later_put_off(tide_device *device, tide_later *later,
                        void (*go)(tide_device *device, tide_later *later));

/* Lets all go that was put off, if the host can wait for the device. Functions of the program may
 * be called: no lock is held, and pools that are half-way are shut. The caller holds the device.
 * False: nothing went. */
bool tide_later_settle(tide_device *device);

/* Have other threads let some of it go since `settled` of the device was `seen`? Those that are
 * about to are waited for. As above. */
bool tide_later_others(tide_device *device, uint32_t seen);

#endif
