/* SPDX-License-Identifier: MIT */
/* Compiled code in the hands of a test: given to a site's plan and taken away at will, as often
 * as it likes, from copies of one artefact. Where unloaded code lay nothing is ever loaded
 * again, so that whoever still runs it is stopped at once. */
#ifndef TIDEPOOL_TESTS_CODE_H
#define TIDEPOOL_TESTS_CODE_H

#include "learning.h"

#include "jit/learn/learner.h"

enum { CODE_COPIES = 32 };

typedef struct code {
    use u;
    tide_learner *learner;
    tide_learned *plan;
    uint32_t number;
    char paths[CODE_COPIES][300];
    struct code_range {
        void *start; /* NULL: not loaded */
        size_t bytes;
    } ranges[CODE_COPIES];
    size_t turn, unloaded;
    int last; /* the copy loaded last; -1: none is in the plan */
} code;

/* Learns the site with a real compile, keeps copies of what came, and takes the code away again;
 * learning is then switched off. */
void code_prepare(code *c, const use *u);
void code_drop(code *c);

/* Loads the next copy that is not loaded, and publishes; false: all are still loaded. */
bool code_load(code *c);

/* Retires what is in the plan: the site runs without from now on. */
void code_retire(code *c);

/* A round, after which the places of what was unloaded are blocked. */
void code_round(code *c);

/* Copies loaded now. */
size_t code_loaded(const code *c);

/* Is this address in one of them? */
bool code_holds(const code *c, const void *address);

#endif
