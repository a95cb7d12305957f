/* SPDX-License-Identifier: MIT */
/* Makes a program that fails as short and plain as it will go while it still fails.
 *
 * Each trial runs in a process of its own, so that a crash is a failure like any other, and
 * none sees what an earlier one did to the process. */
#ifndef MODEL_SHRINK_H
#define MODEL_SHRINK_H

#include "interpret.h"

struct trial {
    unsigned forms; /* a bit each */
    enum plant plant;
};

/* Runs the program; true when it fails, and then `wrong` says how. */
bool trial_fails(const struct trial *trial, const uint8_t *bytes, size_t length, char wrong[640]);

/* Shrinks a failing program in place; `wrong` is how the result fails. Returns its length. */
size_t trial_shrink(const struct trial *trial, uint8_t *bytes, size_t length, char wrong[640]);

/* Says what to read and what to run again. */
void trial_report(const uint8_t *bytes, size_t length, const char *wrong, FILE *out);

#endif
