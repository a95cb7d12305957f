/* SPDX-License-Identifier: MIT */
/* What the tests of learning share: settings that leave nothing to chance, uses of a site of any
 * kind by data, and rounds done by hand until a site is where it should be.
 *
 * Nothing here waits for a number of seconds: a compile is waited for until it has come. */
#ifndef TIDEPOOL_TESTS_LEARNING_H
#define TIDEPOOL_TESTS_LEARNING_H

#include <tidepool/generic.h>
#include <tidepool/learn.h>
#include <tidepool/site.h>

#include "../forms.h"

enum { PATIENCE_MS = 120000 }; /* after which a test has failed; none waits for it */

/* Every setting and constant as it is initially, but for: no background thread, no trials, code at
 * once whether it pays or not, which counts its runs, as a program's does only by the setting; and
 * rounds alone decide, on windows of 200 uses. */
void settings_of_tests(void);
void set(const char *name, double value);

/* Quick to learn and quick to forget: one plan's code for each site, so that each change of types
 * brings code in and sends code away. */
void set_quick(void);

/* A cmocka test that starts from those, and leaves nothing pending. */
int learning_setup(void **state);
int learning_teardown(void **state);
#define LEARNING_TEST(function) \
    cmocka_unit_test_setup_teardown(function, learning_setup, learning_teardown)

/* One pool for all tests of a program, which checks nothing: the group's setup and teardown. The
 * pool must be sound when it goes. */
extern tide_pool *learning_pool;
int learning_make_pool(void **state);
int learning_drop_pool(void **state);

/* Skips the test when this build has no stager. */
void need_stager(void);

/* One use of a site, as data. A scope acquires the types one after the other, a dispatch is of the
 * first. */
enum { USE_TYPES = 16 };

typedef struct use {
    tide_site *site;
    tide_pool *pool;
    uint32_t count;
    tide_type types[USE_TYPES];
    tide_generic *generic;
} use;

/* A use of a site of its own, registered under that name. */
use use_of(const char *name, tide_kind kind, tide_pool *pool, uint32_t count, ...);

/* Uses it once; false when something about that was not as it should: what came back, what is live
 * afterwards, which method was called. May be called by any thread that owns the pool. */
bool use_once(const use *u);
void use_times(const use *u, size_t times);

/* ---- what became of it ---- */

tide_site_information info_of(const tide_site *site);
tide_tier tier_of(const tide_site *site);
uint64_t runs_of(const tide_site *site);
uint64_t misses_of(const tide_site *site);
const char *reason_of(const tide_site *site);
tide_learning_statistics learned(void);

/* The plan in force is for exactly these types, in any order. */
void expect_types(const tide_site *site, uint32_t count, ...);

/* The best tier of a kind: a dispatch has no code of its own. */
tide_tier best_tier(tide_kind kind);

/* Uses and steps in turn until the site runs a plan of that tier (TIDE_TIER_COMPILED: its best), no
 * window is open, and nothing is pending. Fails when it has not come to that after many windows. */
void until(const use *u, tide_tier tier);

/* The same until it is settled, wherever: `windows` windows are taken. */
void learn_windows(const use *u, unsigned windows);

/* Steps until nothing is pending. */
void settle(void);

/* Of so many uses each is executed by compiled code (a scope's), none misses. */
void expect_executed(const use *u, size_t times);

#endif
