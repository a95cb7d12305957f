/* SPDX-License-Identifier: MIT */
/* The limit of the process: that of the host as a device (runtime/device/budget.h), which control groups
 * may set; and who is asked before it is met. Those who want the memory ask, where no lock is held and
 * what they work on is shut. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_LIMIT_H
#define TIDEPOOL_RUNTIME_DEVICE_LIMIT_H

#include <tidepool/limit.h>

/* The most that the process may hold; SIZE_MAX: there is no limit. */
size_t tide_limit_most(void);

/* Counts that free memory was given back before memory was refused (tide_press). */
void tide_limit_pressed(void);

/* Would anybody be asked about so many bytes more: who keeps what nobody uses, by the limits of
 * control groups (process_limit is auto), and the program? */
bool tide_limit_asks(size_t bytes);

/* Asks them, the program as often as it has more to give. */
void tide_limit_ask(size_t bytes);

/* By so many bytes the control group's memory.high would be passed; 0: it would not, or this thread
 * is giving memory back. */
size_t tide_limit_beyond_group(size_t bytes);

#endif
