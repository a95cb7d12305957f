/* SPDX-License-Identifier: MIT */
/* The limit of the process: memory of the host that is counted where the host device takes it from
 * the system. What is asked of the program before is asked by those who want the memory, where no
 * lock is held and what they work on is shut. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_LIMIT_H
#define TIDEPOOL_RUNTIME_DEVICE_LIMIT_H

#include <tidepool/limit.h>

/* What the process holds, and the most that it may; SIZE_MAX: there is no limit. */
size_t tide_limit_held(void);
size_t tide_limit_most(void);

/* Counts so many bytes more, `now` held with them, or refuses them: TIDE_ERROR_LIMIT, without a
 * message, for who asks may give something back and ask again. Once the system has given them they
 * were had: the most that was held is at least `now`. Any thread. */
tide_status tide_limit_take(size_t bytes, size_t *now);
void tide_limit_had(size_t now);
void tide_limit_give(size_t bytes);

/* The message of who then gives up; `holders` says who holds how much. Returns TIDE_ERROR_LIMIT. */
tide_status tide_limit_refuse(size_t bytes, const char *holders, const char *call);

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
