/* SPDX-License-Identifier: MIT */
/* A control group of the model's own, beyond whose memory.high free memory goes back. */
#ifndef MODEL_GROUP_H
#define MODEL_GROUP_H

#include <stddef.h>

/* The process is in one that may hold so many bytes of the library's before. */
void group_enter(size_t high);
void group_leave(void);

#endif
