/* SPDX-License-Identifier: MIT */
/* For 1 to 8 arguments a, b, …:
 *
 *   TIDE_MAP(F, a, b, …)           F(0, a) F(1, b) …
 *   TIDE_MAP_WITH(F, x, a, b, …)   F(0, x, a) F(1, x, b) …
 *   TIDE_COUNT(a, b, …)            how many there are */
#ifndef TIDEPOOL_INLINE_MAP_H
#define TIDEPOOL_INLINE_MAP_H

#define TIDE_TYPED_MAX 8

/* For nine to sixteen arguments the result is a name that is not defined. The compiler's error
 * names it, and so says what is wrong. */
#define TIDE_COUNT(...)                                                                          \
    TIDE_COUNT_(__VA_ARGS__, too_many_for_one_scope, too_many_for_one_scope,                     \
                too_many_for_one_scope, too_many_for_one_scope, too_many_for_one_scope,          \
                too_many_for_one_scope, too_many_for_one_scope, too_many_for_one_scope, 8, 7, 6, \
                5, 4, 3, 2, 1, 0)
#define TIDE_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, count, ...) count

/* TIDE_BARE(T): a type without the parentheses that keep its commas together, if it has them. What
 * follows TIDE_PROBE becomes two arguments only if it is parenthesised. */
#define TIDE_BARE(...)              TIDE_PASTE(TIDE_BARE_, TIDE_HAS_PARENS(__VA_ARGS__, ~))(__VA_ARGS__)
#define TIDE_BARE_0(...)            __VA_ARGS__
#define TIDE_BARE_1(...)            TIDE_BARE_0 __VA_ARGS__
#define TIDE_HAS_PARENS(first, ...) TIDE_SECOND(TIDE_PROBE first, 0, ~)
#define TIDE_PROBE(...)             ~, 1
#define TIDE_SECOND(...)            TIDE_SECOND_(__VA_ARGS__)
#define TIDE_SECOND_(a, b, ...)     b

#define TIDE_MAP(F, ...)                      TIDE_PASTE(TIDE_MAP_, TIDE_COUNT(__VA_ARGS__))(F, __VA_ARGS__)
#define TIDE_MAP_1(F, a)                      F(0, a)
#define TIDE_MAP_2(F, a, b)                   TIDE_MAP_1(F, a) F(1, b)
#define TIDE_MAP_3(F, a, b, c)                TIDE_MAP_2(F, a, b) F(2, c)
#define TIDE_MAP_4(F, a, b, c, d)             TIDE_MAP_3(F, a, b, c) F(3, d)
#define TIDE_MAP_5(F, a, b, c, d, e)          TIDE_MAP_4(F, a, b, c, d) F(4, e)
#define TIDE_MAP_6(F, a, b, c, d, e, f)       TIDE_MAP_5(F, a, b, c, d, e) F(5, f)
#define TIDE_MAP_7(F, a, b, c, d, e, f, g)    TIDE_MAP_6(F, a, b, c, d, e, f) F(6, g)
#define TIDE_MAP_8(F, a, b, c, d, e, f, g, h) TIDE_MAP_7(F, a, b, c, d, e, f, g) F(7, h)

#define TIDE_MAP_WITH(F, x, ...) \
    TIDE_PASTE(TIDE_MAP_WITH_, TIDE_COUNT(__VA_ARGS__))(F, x, __VA_ARGS__)
#define TIDE_MAP_WITH_1(F, x, a)                F(0, x, a)
#define TIDE_MAP_WITH_2(F, x, a, b)             TIDE_MAP_WITH_1(F, x, a) F(1, x, b)
#define TIDE_MAP_WITH_3(F, x, a, b, c)          TIDE_MAP_WITH_2(F, x, a, b) F(2, x, c)
#define TIDE_MAP_WITH_4(F, x, a, b, c, d)       TIDE_MAP_WITH_3(F, x, a, b, c) F(3, x, d)
#define TIDE_MAP_WITH_5(F, x, a, b, c, d, e)    TIDE_MAP_WITH_4(F, x, a, b, c, d) F(4, x, e)
#define TIDE_MAP_WITH_6(F, x, a, b, c, d, e, f) TIDE_MAP_WITH_5(F, x, a, b, c, d, e) F(5, x, f)
#define TIDE_MAP_WITH_7(F, x, a, b, c, d, e, f, g) \
    TIDE_MAP_WITH_6(F, x, a, b, c, d, e, f) F(6, x, g)
#define TIDE_MAP_WITH_8(F, x, a, b, c, d, e, f, g, h) \
    TIDE_MAP_WITH_7(F, x, a, b, c, d, e, f, g) F(7, x, h)

#endif
