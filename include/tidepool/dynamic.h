/* SPDX-License-Identifier: MIT */
/* What the macros do, as functions: for types that are known only at run time, and for code without
 * macros, that is bindings of other languages and interpreters. */
#ifndef TIDEPOOL_DYNAMIC_H
#define TIDEPOOL_DYNAMIC_H

#include <tidepool/acquire.h>
#include <tidepool/inline/site.h>
#include <tidepool/mark.h>
#include <tidepool/type.h>

TIDE_BEGIN_DECLS

/* The type of this name, "f64" or one that was registered: the first of them, if several of
 * different size or alignment have it. TIDE_NO_TYPE with a message: TIDE_ERROR_NAME if there is
 * none, TIDE_ERROR_ARGUMENT for NULL. The time grows with the number of types. */
TIDE_API tide_type tide_type_find(const char *name);

/* Alignment of one element in bytes; 0 with a message when unknown. */
TIDE_API size_t tide_type_align(tide_type type);

/* So many types exist; their ids run from 1 to this number. */
TIDE_API uint32_t tide_type_count(void);

/* Acquires, then sets every element: to 0; to 1 (numeric built-in types and bits only); or to a
 * copy of *value, which is one element (for TIDE_BIT, a bool). The functions that these call are for
 * other languages, too: they want the place of the call, or NULL, NULL, 0. */
#define tide_zeros_type(pool, type, n)       tide_zeros_at((pool), (type), (n), TIDE_HERE)
#define tide_ones_type(pool, type, n)        tide_ones_at((pool), (type), (n), TIDE_HERE)
#define tide_fill_type(pool, type, n, value) tide_fill_at((pool), (type), (n), (value), TIDE_HERE)

/* Scopes for other languages. tide_scope_enter fills *scope, which the caller owns and does not move
 * until it is left; a NULL site means one shared, unnamed site. tide_scope_leave rewinds;
 * TIDE_ERROR_STALE, nothing changed, if the scope was left before or an older scope or mark rewound.
 * TIDE_ERROR_ARGUMENT for a NULL pool or scope, TIDE_ERROR_THREAD, TIDE_ERROR_LIMIT when the log is full,
 * when scopes nest too deep, and as tide_rewind gives it. */
TIDE_API tide_status tide_scope_enter(tide_pool *pool, tide_site *site, tide_scope *scope);
TIDE_API tide_status tide_scope_leave(tide_scope *scope);

TIDE_END_DECLS

#endif
