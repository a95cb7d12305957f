/* SPDX-License-Identifier: MIT */
/* What the process may do that others may not. */
#ifndef TIDEPOOL_JIT_STAGER_PRIVILEGE_H
#define TIDEPOOL_JIT_STAGER_PRIVILEGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Runs the program with privileges that whoever started it does not have (set-user-ID, file
 * capabilities)? */
bool tide_privileges_raised(void);

/* What a program that is started now would get. */
typedef struct tide_privileges {
    uid_t user;
    gid_t group;
    uint64_t groups; /* a digest of the others */
    uint64_t capabilities;
} tide_privileges;

tide_privileges tide_privileges_now(void);

/* Has the calling thread still all that it had then, as the same user? */
bool tide_privileges_kept(const tide_privileges *then);

#endif
