/* SPDX-License-Identifier: MIT */
/* What tests of every kind share and what has nothing to do with pools: how long a test runs, other
 * processes, what is read from them. All of these fail the running test of cmocka if they cannot do
 * what they say. */
#ifndef TIDEPOOL_TESTS_SUPPORT_H
#define TIDEPOOL_TESTS_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include <tidepool/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A count, shrunk by the environment's TIDE_TEST_SCALE (a fraction), but not below `least`. */
size_t scaled(size_t count, size_t least);

/* ---- other processes ---- */

/* fork, with nothing left in the streams that would be written twice. A child that hangs is ended
 * by its alarm after so many seconds; 0: it has none. */
pid_t fork_child(unsigned seconds);

/* The exit status of a child, 128 and the signal if one ended it. */
int wait_for_child(pid_t child);

/* Waits for a child that must end by exit(0). */
void expect_child_ends_well(pid_t child);

/* In the child: cmocka stays with the parent, so it ends by exit status 1. */
#define CHILD_MUST(condition)                                                     \
    do {                                                                          \
        if (!(condition)) {                                                       \
            fprintf(stderr, "child: %s: %s\n", #condition, tide_error_message()); \
            _exit(1);                                                             \
        }                                                                         \
    } while (0)

/* The state of a process, which is that of its first thread, or of a thread, by its number: 'R', it
 * runs, 'S', it sleeps, 'Z', it has ended and something of it is left; '?', nothing is. */
char system_state(int number);

/* Reads up to the end and closes. What has no room is dropped; a 0 follows. Returns the bytes. */
size_t read_to_end(int from, char *to, size_t room);

/* ---- files ---- */

/* Of a folder, without those whose names start with a dot. `counts` NULL: every one. */
size_t count_entries(const char *folder, bool (*counts)(const char *name));

/* How many descriptors of the process are of files whose path begins so. */
size_t count_open(const char *path);

#ifdef __cplusplus
}
#endif

#endif
