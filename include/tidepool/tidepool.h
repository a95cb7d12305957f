/* SPDX-License-Identifier: MIT */
/* Tidepool: temporary arrays for long-running hot loops.
 *
 *   type        an element type: size, alignment, name           <tidepool/type.h>
 *   slot        memory for one array, used again and again
 *   shelf       the slots of one type in one pool, in a row
 *   device      what the memory belongs to: host, CUDA, OpenCL   <tidepool/device.h>
 *   pool        all shelves of one owner thread on one device    <tidepool/pool.h>
 *   acquire     take the next free slot of a type                <tidepool/acquire.h>
 *   live, free  a slot that was acquired and not given back is live; any other is free
 *   array       an N-D header over a slot, a DLPack tensor       <tidepool/array.h>
 *   bits        packed bits                                      <tidepool/bits.h>
 *   half        16-bit floats                                    <tidepool/half.h>
 *   check       find code that uses an array after its scope     <tidepool/check.h>
 *   checkpoint  note which slots of a pool are live
 *   rewind      make every slot free that was acquired since a checkpoint
 *   level       what lies between a checkpoint and its rewind; levels nest
 *   root        the state of a pool in which no level is open
 *   mark        a checkpoint as a value                          <tidepool/mark.h>
 *   scope       a checkpoint and its rewind, bound to a block    <tidepool/scope.h>
 *   frame       a scope that acquires all its arrays at once     <tidepool/scope.h>
 *   touch       the first acquire of a type in a scope: it saves the shelf's state
 *   undo log    the stack in which a pool keeps the saved states
 *   site        a scope in the source                            <tidepool/site.h>;
 *               or an acquire or a dispatch                      <tidepool/callsite.h>
 *   plan        the functions that a site runs now               <tidepool/site.h>
 *   tier        how specialised a plan is                        <tidepool/site.h>
 *   profile     what each site was seen to acquire               <tidepool/profile.h>
 *   setting     a default or threshold, by name                  <tidepool/tune.h>
 *   learning    how sites come to run compiled plans             <tidepool/learn.h>
 *   generic     one name, a method for each type                 <tidepool/generic.h>
 *   buffer      a piece of memory with a lifetime of its own     <tidepool/buffers.h>
 */
#ifndef TIDEPOOL_TIDEPOOL_H
#define TIDEPOOL_TIDEPOOL_H

#include <tidepool/acquire.h>
#include <tidepool/adaptors.h>
#include <tidepool/array.h>
#include <tidepool/bits.h>
#include <tidepool/buffers.h>
#include <tidepool/callsite.h>
#include <tidepool/check.h>
#include <tidepool/device.h>
#include <tidepool/device_ipc.h>
#include <tidepool/device_memory.h>
#include <tidepool/facts.h>
#include <tidepool/generic.h>
#include <tidepool/half.h>
#include <tidepool/learn.h>
#include <tidepool/limit.h>
#include <tidepool/listen.h>
#include <tidepool/mark.h>
#include <tidepool/pool.h>
#include <tidepool/profile.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/status.h>
#include <tidepool/tune.h>
#include <tidepool/type.h>
#include <tidepool/version.h>

#endif
