/* SPDX-License-Identifier: MIT */
/* A random program of a device's uses, as steps of four bytes {code, a, b, c}. Every string of
 * bytes means something: a step that makes no sense when its turn comes is left out. So a program
 * that fails can be shortened by leaving steps out. */
#ifndef HAZARDS_PROGRAM_H
#define HAZARDS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Name, what does it (step_…), and how many of 128 steps are of this kind. */
#define HAZARD_STEPS(X)                                                          \
    X(ACQUIRE, acquire, 14)                                                      \
    X(USE, use, 26)     /* a kernel writes or reads something that is held */    \
    X(ENTER, enter, 12) /* a scope or a mark of a pool */                        \
    X(LEAVE, leave, 12)                                                          \
    X(DECLARE, declare, 7) /* that a pool's arrays are used on another stream */ \
    X(FILL, fill, 4)       /* an array of zeros, or a frame's fill */            \
    X(COPY, copy, 4)                                                             \
    X(TRANSFER, transfer, 4) /* up or down */                                    \
    X(BORROW, borrow, 8)                                                         \
    X(RETURN, return, 7)                                                         \
    X(EXPORT, export, 4)                                                         \
    X(DROP, drop, 3)                                                             \
    X(CAPTURE, capture, 2)                                                       \
    X(CAPTURED, captured, 6)                                                     \
    X(LAUNCH, launch, 4)                                                         \
    X(DISCARD, discard, 2)                                                       \
    X(POOL, pool, 2) /* one ends in flight, another begins */                    \
    X(TRIM, trim, 4)                                                             \
    X(SYNCHRONISE, synchronise, 3)

enum step_code {
#define X(code, name, weight) STEP_##code,
    HAZARD_STEPS(X)
#undef X
        STEP_COUNT
};

typedef struct step {
    uint8_t code, a, b, c;
} step;

enum { STEPS_MAX = 240 };

typedef struct program {
    uint32_t seed; /* of the driver, too */
    size_t count;
    step steps[STEPS_MAX];
} program;

/* What is broken on purpose, to see that it is found. */
#define HAZARD_PLANTS(X)                                                     \
    X(NONE, "none")                                                          \
    X(ORDER, "order")     /* events order no streams */                      \
    X(DONE, "done")       /* every mark counts as passed */                  \
    X(WAIT, "wait")       /* no wait of the host waits */                    \
    X(RELEASE, "release") /* memory is given back on the wrong stream */     \
    X(GRAPH, "graph")     /* the program does not say what its graphs use */ \
    X(DECLARE, "declare") /* nor on what streams it uses arrays */

enum plant {
#define X(plant, name) PLANT_##plant,
    HAZARD_PLANTS(X)
#undef X
        PLANT_COUNT
};

void program_generate(program *p, uint32_t seed);
void program_print(const program *p, FILE *out);

/* Runs it. False when something is wrong: `wrong` says what, after which step. */
bool program_run(const program *p, enum plant plant, char wrong[400]);

#endif
