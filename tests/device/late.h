/* SPDX-License-Identifier: MIT */
/* What a program calls on a device once exit has begun: each call that wants an answer of the
 * device is refused, and says why; what is given up is given up. Shared by the tests of the back
 * ends, whose drivers are made up. */
#ifndef TIDEPOOL_TESTS_LATE_H
#define TIDEPOOL_TESTS_LATE_H

#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/tidepool.h>

/* TIDE_ERROR_DEVICE, for the reason that the process exits. */
bool late_is_refused(tide_status status);

/* A pool that draws from buffers, with arrays in an open level, one of them of somebody else, and
 * used on a second stream, `other`; a buffer; and a capture where the device has such. False: the
 * device is not usable. The deleter of the array ends the process with LATE_DELETED. */
enum { LATE_DELETED = 7 };
bool late_prepare(tide_device *device, void *other);

/* In a handler of exit. The name of the first call that was not refused as it must be, or that was
 * and must not; NULL: none. The device stays held by the array of somebody else. */
const char *late_call_all(void);

#endif
