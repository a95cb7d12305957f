/* SPDX-License-Identifier: MIT */
/* What a test may do to the library beyond its public face: make memory fail, and give a constant
 * (runtime/base/constants.def) another value. */
#ifndef TIDEPOOL_TESTS_HOOKS_H
#define TIDEPOOL_TESTS_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

#include <tidepool/profile.h>
#include <tidepool/site.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef bool memory_fault(size_t bytes);

/* Asked before every allocation and mapping, by any thread: true makes it fail. NULL: none fails.
 * What it counts is its own thread's (_Thread_local), or atomic. */
void set_memory_fault(memory_fault *fault);
memory_fault *get_memory_fault(void);

/* Ends the program if no constant has the name. */
void set_constant(const char *name, double value);
double get_constant(const char *name);

/* All have their own values again. */
void reset_constants(void);

/* A constant, or else a setting. */
void set_either(const char *name, double value);

/* The setting `background` is 1, as by the environment: no thread starts before it is wanted. */
void allow_background(void);

/* Is there a program that compiles sites? */
bool stager_is_there(void);

/* Ends it; the next compile starts another. */
void stop_compiler_process(void);

/* The child of a fork learns, as others do not. */
void learn_in_a_child(void);

/* How the library was built: how much it asserts (2: it walks a pool after each cold call), and whether a
 * sanitizer has its memory where it likes. */
int assert_level(void);
bool sanitizer_chooses_addresses(void);

/* What is loaded for a site that the program has not seen itself; false: nothing is. */
bool profile_loaded_for(tide_site *site, tide_site_profile *out);

/* What the site's open window has seen is taken, as at its end. */
void profile_take_window(tide_site *site, tide_site_profile *out);

/* Stands before the paths of control groups, for as long as it lies there; "": the system's own. */
void set_cgroup_root(const char *folder);

#ifdef __cplusplus
}
#endif

#endif
