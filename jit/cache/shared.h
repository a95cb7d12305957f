/* SPDX-License-Identifier: MIT */
/* Code that belongs to no site and stays: that of dispatches.
 *
 * A dispatch has no pool, so nothing tells when the last call has left its code, and it can never
 * be unloaded (jit/cache/limbo.h). So it is made such that there is little of it. What it tests for
 * is data of the plan, and one piece of code serves all dispatches that test for as many types:
 * there are two for each number of tests, of which one counts its uses. The process compiles each
 * once, and keeps it. A dispatch whose types have changed finds its code here at once.
 *
 * All is guarded by the lock of the round. */
#ifndef TIDEPOOL_JIT_CACHE_SHARED_H
#define TIDEPOOL_JIT_CACHE_SHARED_H

#include "jit/cache/artefact.h"
#include "jit/spec/spec.h"

/* Is code for this spec kept? */
bool tide_shared_holds(const tide_spec *spec);

/* The artefact with code for this spec, with one use more; NULL: none is kept. Registry not
 * locked. */
tide_artefact *tide_shared_find(const tide_spec *spec);

/* Keeps an artefact with code for this spec for good, unless the code is of a site of its own. (Two
 * may come with the same code, as when a process forks between an order and its answer: both stay.)
 * The caller's use stays the caller's. Registry not locked. */
void tide_shared_keep(const tide_spec *spec, tide_artefact *artefact);

#endif
