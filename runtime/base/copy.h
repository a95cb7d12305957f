/* SPDX-License-Identifier: MIT */
/* This copy of the library among those of the process, and that its code stays loaded.
 *
 * A process may hold several copies: the shared library, and one in each program or plugin that the
 * static library was linked into. Each has types, pools and learning of its own. They share two
 * things:
 *
 *   numbers of types   Each copy takes them in chunks that no other copy has. So a shelf that one
 *                      copy has set up is never the shelf of another copy's type, and an inlined
 *                      acquire from a pool of another copy misses its guard (built-in types have
 *                      the same number and layout everywhere). A note in the module of each copy
 *                      tells the others where its chunks stand
 *   the process        A plugin may be unloaded, and a copy in it would go too, while a thread, a
 *                      signal or a foreign library may still call into it. So it first makes its
 *                      module stay. The shared library stays by its link, the program anyway */
#ifndef TIDEPOOL_RUNTIME_BASE_COPY_H
#define TIDEPOOL_RUNTIME_BASE_COPY_H

#include <stdbool.h>
#include <stdint.h>

enum { TIDE_COPY_CHUNKS = 64, TIDE_COPY_CHUNK = 1024 }; /* chunks; numbers of one */

/* What other copies read. Its address is the copy's identity; odd addresses are not used. */
typedef struct tide_copy_facts {
    uint64_t chunks; /* a bit for each chunk that the copy has; atomic */
} tide_copy_facts;

extern tide_copy_facts tide_copy_own;

/* Makes the module of this copy stay loaded, from the first call on. False: it cannot, which has
 * been said on stderr, or it must not yet (this thread holds a lock, and the dynamic linker
 * would be called). Whoever makes a thread, a key, a handler or a function pointer for others
 * asks first and does without if it is refused. */
bool tide_copy_stay(void);

/* Takes the lowest chunk above `above` (-1: any) that no other copy has, or that this one took
 * before. TIDE_COPY_CHUNKS: there is none. No lock held, for the dynamic linker is asked. */
int tide_copy_take_chunk(int above);

/* The lowest chunk above `above` that this copy took before; TIDE_COPY_CHUNKS: none. Any lock may
 * be held. */
int tide_copy_own_chunk(int above);

#endif
