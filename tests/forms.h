/* SPDX-License-Identifier: MIT */
/* Every form of scope behind one face, so that a behaviour is written once and holds for all.
 *
 *   form    a way to open and end a scope: TIDE_SCOPE at each tier, TIDE_SCOPE_TYPES, TIDE_FRAME,
 *           TIDE_LOOP, a scope entered and left by calls (each tier),
 *           a mark; in C and in C++
 *   kind    how the pool was made: unchecked, unchecked and warm, poisoning, guarded, or with every
 *           acquire on its own
 *   scene   a form, and a fresh pool of some kind
 *   case    a behaviour: a function of a scene
 *
 * forms_main runs each case in each scene as a cmocka test of its own, and checks after each
 * that the pool is sound and back at its root.
 *
 * Every form knows two types, double and int32_t (it names, declares or acquires them); to it,
 * all others are untracked. A frame holds one array of each while its body runs.
 *
 * Forms of the compiled tier run code that the stager made: forms_prepare has it made, and
 * forms_main shows at the end that it was run. Where there is no stager they are left out. No
 * background thread runs: what a test sees, it or forms_prepare did. */
#ifndef TIDEPOOL_TESTS_FORMS_H
#define TIDEPOOL_TESTS_FORMS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/site.h>
#include <tidepool/tidepool.h>

#include "support.h"

#ifdef __cplusplus
extern "C" {
#endif

#include <cmocka.h>

typedef void form_body(tide_pool *pool, void *state);

typedef struct form {
    const char *name; /* NULL ends a table                                             */
    const char *site; /* its site's name; NULL: it has none                            */
    tide_tier tier;   /* at which it is pinned                                         */
    bool declared;    /* told that it acquires double and int32_t                      */
    bool block;       /* bound to a block; the others are left by a call, which can fail */
    /* Opens a scope, runs the body in it and ends it; says how the opening or the end went
     * (blocks cannot tell: TIDE_OK). The body runs even if the scope was refused. */
    tide_status (*run)(tide_pool *pool, form_body *body, void *state);
    /* The same `count` times, each in a scope; NULL: no quicker way than `run`. */
    void (*repeat)(tide_pool *pool, size_t count, form_body *body, void *state);
} form;

extern bool forms_of_the_host; /* the usual case: forms may write to the arrays of the pools */
extern const form forms_c[];   /* tests/forms_c.c   */
extern const form forms_cpp[]; /* tests/forms_cpp.cc */

/* Has every site of a table pinned to its tier, once compiled where it is to be. Once, before the
 * first run of any of its forms; forms_prepare_all for those of C and C++. */
void forms_prepare(const form *table);
void forms_prepare_all(void);

/* The number of forms in all tables that can be run here, and each by its number. */
size_t form_count(void);
const form *form_at(size_t i);

/* The site of a form that has one, and what the library says of it. */
tide_site *form_site(const form *f);
tide_site_information form_info(const form *f);

/* Does the form save every shelf the pool has, touched or not? */
bool form_saves_all(const form *f);

#define EACH_FORM(inner)                                              \
    for (size_t inner##_i = 0; inner##_i < form_count(); inner##_i++) \
        for (const form *inner = form_at(inner##_i); inner != NULL; inner = NULL)

/* Fails the running test unless the plan is of that tier. Forms call it for the scope itself. */
void expect_tier(const tide_plan *plan, tide_tier tier);

/* Runs the body once, or `count` times; fails unless the form says that all went well. */
void form_run(const form *f, tide_pool *pool, form_body *body, void *state);
void form_repeat(const form *f, tide_pool *pool, size_t count, form_body *body, void *state);

/* Opens one scope of each of `depth` forms, `first` outermost, and runs the body innermost. */
void form_nest(const form *first, size_t depth, tide_pool *pool, form_body *body, void *state);

typedef struct pool_kind {
    const char *name;
    tide_check check;
    bool disabled; /* no slot outlives its scope */
    bool warm;     /* has had arrays of both types: for compiled code, which asks for that */
} pool_kind;

typedef struct scene {
    const struct form *form;
    const pool_kind *kind;
    tide_pool *pool;
} scene;

typedef void scene_case(const scene *s);

typedef struct form_case {
    const char *name;
    scene_case *run;
    bool slots_stay; /* about slots that are used again: not for disabled or guarded pools */
} form_case;

/* clang-format off */
#define CASE(function) {#function, function, false}
#define CASE_SLOTS(function) {#function, function, true}
/* clang-format on */

/* The check levels from 0 up to `last`. (Their numbers have a gap: 0 is "as the setting says".) */
#define EACH_CHECK_LEVEL(check, last)                         \
    for (tide_check check = TIDE_CHECK_NONE; check <= (last); \
         check = check == TIDE_CHECK_NONE ? TIDE_CHECK_POISON : (tide_check)(check + 1))

/* Runs cases × forms × kinds, then `others` (plain tests); returns what main should. */
int forms_main(const char *group, const form_case *cases, size_t case_count,
               const struct CMUnitTest *others, size_t other_count);

#define FORMS_MAIN(group, cases, others)                                 \
    forms_main(group, cases, sizeof(cases) / sizeof((cases)[0]), others, \
               sizeof(others) / sizeof((others)[0]))

/* A word on where a test is, printed if it fails. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- pools ---- */

tide_pool *pool_of(tide_check check);

/* Fails with the checker's sentence if any invariant of the pool is broken. */
#define CHECK_POOL(pool) check_pool((pool), __FILE__, __LINE__)
void check_pool(const tide_pool *pool, const char *file, int line);

#define expect_ok(call)               expect_status(call, TIDE_OK)
#define expect_status(call, expected) check_status((call), (expected), #call, __FILE__, __LINE__)
void check_status(tide_status got, tide_status expected, const char *call, const char *file,
                  int line);

tide_pool_statistics stats_of(const tide_pool *pool);
tide_check check_of(const tide_pool *pool);

/* Are the pool's fast paths open? And has it nothing to serve, or has it put off what was asked for? */
bool is_open_and_asked_nothing(const tide_pool *pool);
bool is_open_and_deferred(const tide_pool *pool);

/* The slots of a type that hold memory, live or free. */
size_t slots_with_memory(const tide_pool *pool, tide_type type);

/* The words of a pool that scopes may change, and its statistics, as they were. */
typedef struct snapshot {
    uint64_t tag;
    tide_entry *log_top, *log_room;
    uint32_t shelf_count;
    tide_shelf *shelves;
    tide_pool_statistics stats;
} snapshot;

snapshot snapshot_take(const tide_pool *pool);
void snapshot_same(const snapshot *before, const tide_pool *pool); /* every field    */
void snapshot_drop(snapshot *s);

/* Live arrays and open levels: what a scope must put back whatever grew meanwhile. */
typedef struct counts {
    size_t depth, live, bytes_live, log_entries;
} counts;

counts counts_of(const tide_pool *pool);
void counts_same(counts before, const tide_pool *pool);

/* ---- memory ---- */

/* Bytes that depend on seed and place; and whether they are still there. */
void fill_bytes(void *data, size_t bytes, unsigned seed);
void expect_bytes(const void *data, size_t bytes, unsigned seed);

/* Acquires, fails the test if that failed or is misaligned, fills. The size is in elements. */
void *take(tide_pool *pool, tide_type type, size_t n, unsigned seed);

/* Copies memory that the sanitizers hold to be dead, without their noticing. */
void read_behind(const void *from, void *to, size_t bytes);

/* A type of its own, 24 bytes, registered now under a name never used before. */
tide_type fresh_type(void);

/* ---- the run ---- */

bool have_stager(void);     /* can sites be compiled here?                                      */
bool under_sanitizer(void); /* AddressSanitizer or ThreadSanitizer: memory figures mean nothing */

/* It wants no new threads in the child of a fork. Its dlopen and dlclose visit the linker's list
 * under a lock of its own, and it takes an exit from a constructor for an error of the program. */
bool under_thread_sanitizer(void);
bool under_valgrind(void);

#ifdef __cplusplus
}
#endif

#endif
