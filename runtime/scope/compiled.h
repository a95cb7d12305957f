/* SPDX-License-Identifier: MIT */
/* What compiled code and the library agree on.
 *
 * Compiled code is given a table of pointers to the general path, and never imports a symbol. It knows
 * the layout of what it works on as constants. A code object exports the hash of that layout, and is
 * refused where the library's own hash is another. It exports
 *
 *   uint64_t tide_object_magic, tide_object_layout;      constants, checked before all else
 *   const tide_runtime *tide_object_table;                 set once, before any code is called
 *   STEM_enter, STEM_leave        of each scope
 *
 * The law of compiled code is that of the inlined fast paths: it tests a guard and either does the
 * work or calls the general path, having changed nothing. What it leaves in a scope is what a table
 * plan of up to TIDE_SCOPE_SAVED types leaves there (runtime/scope/plan.c), so that either can end
 * what the other began: `saved`, and no entry in the log. Scopes of more types are not compiled. */
#ifndef TIDEPOOL_RUNTIME_SCOPE_COMPILED_H
#define TIDEPOOL_RUNTIME_SCOPE_COMPILED_H

#include <tidepool/site.h>

/* Counts a miss if a guard of the plan failed; leaves what any `enter`, compiled or not, has left. */
typedef struct tide_runtime {
    tide_enter_function *enter;
    tide_leave_function *leave;
} tide_runtime;

extern const tide_runtime tide_runtime_general;

#define TIDE_CODE_MAGIC UINT64_C(0x6c6f6f7065646974) /* "tidepool" */

/* How the name of a private directory begins that is not removed. */
#define TIDE_CODE_KEPT "tidepool-kept-"

/* Every place that compiled code may look at: structure, field. */
/* clang-format off */
#define TIDE_COMPILED_LAYOUT(X)                                                                    \
    X(tide_shelf, next) X(tide_shelf, bit)                                                         \
    X(struct tide_pool, tag) X(struct tide_pool, log_top) X(struct tide_pool, log_room)            \
    X(struct tide_pool, saved) X(struct tide_pool, shelves) X(struct tide_scope, pool)             \
    X(struct tide_scope, base) X(struct tide_scope, tag) X(struct tide_scope, outer_saved)         \
    X(struct tide_scope, plan) X(struct tide_scope, saved) X(struct tide_plan, counts)             \
    X(tide_plan_counts, runs) X(tide_runtime, enter) X(tide_runtime, leave)
/* clang-format on */

/* One number for all of it (FNV-1a over offsets and sizes): the same in the library and in the
 * stager if and only if both were built from the same layout. */
static inline uint64_t tide_compiled_layout(void)
{
    static const uint32_t facts[] = {8, /* of the protocol above */
                                     sizeof(tide_shelf), TIDE_SCOPE_SAVED,
#define TIDE_X(structure, field) offsetof(structure, field), sizeof(((structure *)0)->field),
                                     TIDE_COMPILED_LAYOUT(TIDE_X)
#undef TIDE_X
    };
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        hash = (hash ^ facts[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
