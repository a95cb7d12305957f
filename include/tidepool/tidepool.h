/* SPDX-License-Identifier: MIT */
/* Tidepool: temporary arrays for long-running hot loops. This header is the core: beside types, the
 * names below and no others (tests/layout/public counts them). The parts that macros are made of are
 * in tidepool/inline/.
 *
 *   pool      all temporary memory of one owner thread             <tidepool/pool.h>
 *             tide_pool_create  tide_pool_destroy  tide_pool_local  tide_pool_adopt
 *             tide_pool_reset   tide_pool_trim     tide_pool_stats  tide_pool_print
 *   acquire   take the next free slot of a type                    <tidepool/acquire.h>
 *             tide_acquire  tide_zeros  tide_ones  tide_fill  tide_grow
 *             tide_acquire_type  tide_grow_type
 *   scope     a checkpoint and its rewind, bound to a block        <tidepool/scope.h>
 *             TIDE_SCOPE  TIDE_SCOPE_NAMED  TIDE_SCOPE_TYPES  TIDE_FRAME  TIDE_LOOP
 *   mark      a checkpoint as a value                              <tidepool/mark.h>
 *             tide_checkpoint  tide_rewind
 *   type      an element type: size, alignment, name               <tidepool/type.h>
 *             tide_type_of  tide_type_register  tide_type_name  tide_type_size  TIDE_ALL_TYPES
 *   error     how a call reports a failure                         <tidepool/status.h>
 *             tide_error_message  tide_error_status  tide_status_name
 *
 * Words: a *slot* is memory for one array, used again and again; a slot that was acquired and not
 * given back is *live*, any other is *free*. A *checkpoint* notes which slots of a pool are live; a
 * *rewind* makes every slot free that was acquired since. What lies between is a *level*; levels
 * nest, and in the *root* none is open. A *frame* is a scope that acquires all its arrays at once. A
 * *site* is a TIDE_SCOPE in the source, and the *plan* of a site is the code that it runs now.
 *
 * Everything else has a header of its own:
 *
 *   upkeep.h         compact, empty, depth, invariants, requests from other threads
 *   dynamic.h        the macros as functions: types known at run time, bindings
 *   check.h          find code that uses an array after its scope
 *   limit.h          one limit of memory for the process
 *   array.h          N-D arrays, DLPack (dlpack.h); bits.h, half.h: packed bits, 16-bit floats
 *   buffers.h        memory with a lifetime of its own
 *   device.h         CUDA and OpenCL; device_memory.h, device_bump.h, adaptors.h
 *   generic.h        one name, a method for each type
 *   site.h           what a site does, and steering it; learn.h: how it learns; profile.h: what it saw
 *   tunable.h        knobs and variants; tune.h: settings
 *   facts.h          the whole process, from inside; listen.h, metrics.h: from outside
 *   version.h        does the library fit the headers?
 *   tidepool.hpp     the same for C++, as types; memory_resource.h: for CCCL */
#ifndef TIDEPOOL_TIDEPOOL_H
#define TIDEPOOL_TIDEPOOL_H

#include <tidepool/acquire.h>
#include <tidepool/mark.h>
#include <tidepool/pool.h>
#include <tidepool/scope.h>
#include <tidepool/status.h>
#include <tidepool/type.h>

#endif
