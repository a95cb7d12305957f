/* SPDX-License-Identifier: MIT */
/* Tidepool: temporary arrays for long-running hot loops.
 *
 *   type        an element type: size, alignment, name           <tidepool/type.h>
 *   slot        one reusable backing array
 *   shelf       one type's row of slots in one pool
 *   pool        all shelves of one owner thread on one device    <tidepool/pool.h>
 *   acquire     take the next slot of a type                     <tidepool/acquire.h>
 *   array       an N-D header over a slot, a DLPack tensor       <tidepool/array.h>
 *   bits        packed bits                                      <tidepool/bits.h>
 *   half        16-bit floats                                    <tidepool/half.h>
 *   check       finding out who holds on to an array             <tidepool/check.h>
 *   mark        a checkpoint as a value; rewind puts it back     <tidepool/mark.h>
 *   scope       one checkpoint … rewind pair, bound to a block   <tidepool/scope.h>
 *   touch       the first acquire of a type in a scope: it saves the shelf
 *   undo log    the pool's stack of what was saved
 *   site        a scope in the source                            <tidepool/site.h>;
 *               or an acquire or a dispatch                      <tidepool/callsite.h>
 *   plan, tier  what a site runs now, and how special it is
 *   profile     what scopes were seen to acquire, site by site   <tidepool/profile.h>
 *   setting     a default or threshold, by name                  <tidepool/tune.h>
 *   learning    how sites come to run compiled plans             <tidepool/learn.h>
 *   generic     one name, a method for each type                 <tidepool/generic.h>
 *   device      where slots live: host, CUDA, OpenCL             <tidepool/device.h>
 *   buffer      a piece of memory with a lifetime of its own      <tidepool/buffers.h>
 */
#ifndef TIDEPOOL_TIDEPOOL_H
#define TIDEPOOL_TIDEPOOL_H

#include <tidepool/acquire.h>
#include <tidepool/array.h>
#include <tidepool/bits.h>
#include <tidepool/buffers.h>
#include <tidepool/callsite.h>
#include <tidepool/check.h>
#include <tidepool/device.h>
#include <tidepool/generic.h>
#include <tidepool/half.h>
#include <tidepool/learn.h>
#include <tidepool/mark.h>
#include <tidepool/pool.h>
#include <tidepool/profile.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/status.h>
#include <tidepool/tune.h>
#include <tidepool/type.h>

#endif
