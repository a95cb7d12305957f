/* SPDX-License-Identifier: MIT */
/* Scopes: one checkpoint and one rewind, bound to a C block.
 *
 *   TIDE_SCOPE(pool);                       a call site, registered by itself
 *   TIDE_SCOPE_TYPES(pool, double, int);    types are named; inlined, no plan, no site
 *   TIDE_FRAME(pool, (double, r, n), …);    all temporaries at once: r is a double *
 *   TIDE_LOOP(pool, i, count) { … }         each iteration is a scope; one checkpoint for all
 *
 * The first three are declarations, and last to the end of the enclosing block. Every way out of it
 * rewinds: return, break, continue, goto, in C++ an exception. A longjmp skips that, and so does an
 * exception that passes functions compiled without -fexceptions; the scope around rewinds then. Do
 * not jump into a block past one of them. They may stand in headers, macros and templates, nest,
 * recurse, and share a line. The scopes of a pool nest in time: a coroutine that is suspended inside
 * a scope needs its own pool.
 *
 * A helper that is called from a scope may acquire any type. With a NULL pool, as tide_pool_local()
 * is without memory, every acquire gives NULL. */
#ifndef TIDEPOOL_SCOPE_H
#define TIDEPOOL_SCOPE_H

#include <tidepool/acquire.h>
#include <tidepool/inline/scope.h>

/* Opens a scope for the rest of this block, as a call site of its own. */
#define TIDE_SCOPE(...) TIDE_PASTE(TIDE_SCOPE_AT_, TIDE_GIVEN(__VA_ARGS__))(__VA_ARGS__)

/* The same with a name (a string literal) for reports. */
#define TIDE_SCOPE_NAMED(pool, name) TIDE_SCOPE_AT(TIDE_UNIQUE(tide_scope_), pool, name)
/* Opens a scope that saves the shelves of the named types (1 to 8) on entry, inlined. */
#define TIDE_SCOPE_TYPES(pool, ...) TIDE_TYPED_AT(TIDE_UNIQUE(tide_typed_), pool, __VA_ARGS__)
/* Opens a scope and acquires all its temporaries (1 to 8): TIDE_FRAME(pool, (T, name, n), …) declares
 * for each a T *name of n elements, uninitialised. If one cannot be acquired, all are NULL and the
 * message says why. */
#define TIDE_FRAME(pool, ...) TIDE_FRAME_AT(TIDE_UNIQUE(tide_frame_), pool, __VA_ARGS__)
/* The loop for (size_t i = 0; i < count; i++), in which each iteration is a scope, and break, continue,
 * return and goto mean what they mean in a for loop. `count` is evaluated once; below 0 the loop does
 * not run. A reset inside, or the rewind of a mark that is older than the loop, ends the scope, not
 * the loop: what later iterations acquire belongs to the level that is open. */
#define TIDE_LOOP(pool, i, ...) TIDE_LOOP_AT(TIDE_UNIQUE(tide_loop_), pool, i, __VA_ARGS__)

#endif
