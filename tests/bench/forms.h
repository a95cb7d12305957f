/* SPDX-License-Identifier: MIT */
/* The ways to hold some temporaries in a block, as macros of one shape, so that a function can be
 * written once and compiled for each of them:
 *
 *   FORM_BEGIN(form, c, site, (T, U), (T, a, n), (U, b, m));     T *a of n, U *b of m elements
 *   FORM_END(form, c, b, a);                                     the last ones first
 *
 * `c` is what the form takes memory from, a FORM_CONTEXT(form). `site` is a call site; only the
 * form `site` looks at it. Between the two nothing may leave the block. */
#ifndef TIDEPOOL_BENCH_FORMS_H
#define TIDEPOOL_BENCH_FORMS_H

#include "peers.h"
#include "plain.h"

#include <tidepool/tidepool.h>

#define FORM_CONTEXT(form)                TIDE_PASTE(FORM_CONTEXT_, form)
#define FORM_BEGIN(form, c, site, ...)    TIDE_PASTE(FORM_BEGIN_, form)(c, site, __VA_ARGS__)
#define FORM_END(form, c, ...)            TIDE_PASTE(FORM_END_, form)(c, __VA_ARGS__)
#define FORM_BARE(...)                    __VA_ARGS__
#define FORM_ACQUIRE(i, c, item)          FORM_ACQUIRE_(c, FORM_BARE item)
#define FORM_ACQUIRE_(c, ...)             FORM_ACQUIRE__(c, __VA_ARGS__)
#define FORM_ACQUIRE__(c, T, name, count) T *name = tide_acquire(c, T, count);

/* TIDE_FRAME */
#define FORM_CONTEXT_frame                    tide_pool *
#define FORM_BEGIN_frame(c, site, types, ...) TIDE_FRAME(c, __VA_ARGS__)
#define FORM_END_frame(c, ...)                ((void)0)

/* TIDE_SCOPE_TYPES */
#define FORM_CONTEXT_types tide_pool *
#define FORM_BEGIN_types(c, site, types, ...) \
    TIDE_SCOPE_TYPES(c, FORM_BARE types);     \
    TIDE_MAP(FORM_ACQUIRE, c, __VA_ARGS__)((void)0)
#define FORM_END_types(c, ...) ((void)0)

/* TIDE_SCOPE, of a site that the caller chose: what the macro expands to, but for the static site
 * itself. */
#define FORM_CONTEXT_site tide_pool *
#define FORM_BEGIN_site(c, site, types, ...)                                 \
    tide_scope form_scope __attribute__((cleanup(tide_site_leave), unused)); \
    tide_site_enter(&form_scope, c, site);                                   \
    TIDE_MAP(FORM_ACQUIRE, c, __VA_ARGS__)((void)0)
#define FORM_END_site(c, ...) ((void)0)

/* A bump arena: its pointer kept, and put back. */
#define FORM_CONTEXT_bump bench_bump *
#define FORM_BEGIN_bump(c, site, types, ...) \
    char *const form_mark = (c)->top;        \
    TIDE_MAP(FORM_BUMP, c, __VA_ARGS__)((void)0)
#define FORM_BUMP(i, c, item)          FORM_BUMP_(c, FORM_BARE item)
#define FORM_BUMP_(c, ...)             FORM_BUMP__(c, __VA_ARGS__)
#define FORM_BUMP__(c, T, name, count) T *name = bench_bump_take(c, (count) * sizeof(T));
#define FORM_END_bump(c, ...)          ((c)->top = form_mark)

/* malloc and free, through pointers, as through a shared library. */
#define FORM_CONTEXT_heap                    const bench_malloc *
#define FORM_BEGIN_heap(c, site, types, ...) TIDE_MAP(FORM_TAKE, c, __VA_ARGS__)((void)0)
#define FORM_TAKE(i, c, item)                FORM_TAKE_(c, FORM_BARE item)
#define FORM_TAKE_(c, ...)                   FORM_TAKE__(c, __VA_ARGS__)
#define FORM_TAKE__(c, T, name, count)       T *name = (c)->take((count) * sizeof(T));
#define FORM_END_heap(c, ...)                TIDE_MAP(FORM_GIVE, c, __VA_ARGS__)((void)0)
#define FORM_GIVE(i, c, name)                (c)->give(name);

/* The stack. Only where each use is a call of its own: nothing goes before the function returns. */
#define FORM_CONTEXT_alloca                    const void *
#define FORM_BEGIN_alloca(c, site, types, ...) TIDE_MAP(FORM_STACK, c, __VA_ARGS__)((void)(c))
#define FORM_STACK(i, c, item)                 FORM_STACK_(c, FORM_BARE item)
#define FORM_STACK_(c, ...)                    FORM_STACK__(c, __VA_ARGS__)
#define FORM_STACK__(c, T, name, count)        T *name = __builtin_alloca((count) * sizeof(T));
#define FORM_END_alloca(c, ...)                ((void)0)

#endif
