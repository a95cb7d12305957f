/* SPDX-License-Identifier: MIT */
/* What sites that dispatch need of a generic function. */
#ifndef TIDEPOOL_RUNTIME_DISPATCH_GENERIC_H
#define TIDEPOOL_RUNTIME_DISPATCH_GENERIC_H

#include <tidepool/generic.h>
#include <tidepool/site.h>

/* May the type have a method? Else it can only meet that of TIDE_ALL_TYPES. (Where the function chooses by
 * keys, each `type` here and below is a key.) */
bool tide_generic_takes(const tide_generic *generic, tide_type type);

/* The number by which profiles and plans know a type or a key of the function. And where the method of
 * such a number stands: an address for good, whose content may be replaced but is never NULL again.
 * NULL: it has no method of its own, or is no number of this function's. Any thread. */
tide_type tide_generic_number(const tide_generic *generic, tide_type type);
tide_method **tide_generic_entry_of(const tide_generic *generic, tide_type number);

/* The method that a call of the function `caller` meets. If there is none, NULL: it is counted, and
 * there is a message. */
tide_method *tide_generic_meet(tide_generic *generic, tide_type type, const char *caller);

/* What a site that dispatches calls: what the function's pages say. A plan with counts, which is a
 * table, has missed then. */
tide_dispatch_function tide_general_dispatch;

/* Most types that the table of a dispatch tests for. */
enum { TIDE_DISPATCH_TESTS = 16 };

/* A table: what sites know of it, and what its code tests. */
typedef struct tide_dispatch_table {
    tide_plan plan;
    const tide_generic *generic;                /* the one it was made for ...                 */
    tide_method **methods[TIDE_DISPATCH_TESTS]; /* ... where the methods of its types stand ... */
    tide_type tests[TIDE_DISPATCH_TESTS]; /* ... and these as a call names them: a key by itself */
} tide_dispatch_table;

/* Gives the table, whose plan has its types, the most frequent first, its code and the rest. False: one
 * has no method of its own (yet), or there are none, or too many; then it is not to be used. */
bool tide_dispatch_use_table(tide_dispatch_table *table, const tide_generic *generic);

#endif
