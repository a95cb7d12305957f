/* SPDX-License-Identifier: MIT */
/* For 1 to 8 arguments a, b, …:
 *
 *   TIDE_MAP(F, x, a, b, …)   F(0, x, a) F(1, x, b) …
 *   TIDE_COUNT(a, b, …)       how many there are
 *
 * A macro that is written wrong is one error, at its place in the program, that says how to write it:
 *
 *   TIDE_FEW(…)                    1 for 1 to 8 arguments, 0 for 9 to 16
 *   TIDE_GIVEN(…)                  0 where nothing stands there, else 1
 *   TIDE_MISUSED(GCC error "…")    the error */
#ifndef TIDEPOOL_INLINE_MAP_H
#define TIDEPOOL_INLINE_MAP_H

#define TIDE_TYPED_MAX 8

#define TIDE_COUNT(...)                                                      TIDE_COUNT_(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define TIDE_COUNT_(a, b, c, d, e, f, g, h, count, ...)                      count
#define TIDE_FEW(...)                                                        TIDE_16(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, ~)
#define TIDE_SEVERAL(...)                                                    TIDE_16(__VA_ARGS__, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, ~)
#define TIDE_16(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, picked, ...) picked

/* What is empty, and what begins with a parenthesis, makes a comma of TIDE_COMMA. */
#define TIDE_GIVEN(...)                                                       \
    TIDE_PASTE(TIDE_PASTE(TIDE_GIVEN_, TIDE_SEVERAL(TIDE_COMMA __VA_ARGS__)), \
               TIDE_SEVERAL(TIDE_COMMA __VA_ARGS__()))
#define TIDE_COMMA(...)   ,
#define TIDE_GIVEN_00     1
#define TIDE_GIVEN_01     0
#define TIDE_GIVEN_10     1
#define TIDE_GIVEN_11     1
#define TIDE_MISUSED(...) _Pragma(#__VA_ARGS__)

/* TIDE_BARE(T): a type without the parentheses that keep its commas together, if it has them. What
 * follows TIDE_PROBE becomes two arguments only if it is parenthesised. */
#define TIDE_BARE(...)              TIDE_PASTE(TIDE_BARE_, TIDE_HAS_PARENS(__VA_ARGS__, ~))(__VA_ARGS__)
#define TIDE_BARE_0(...)            __VA_ARGS__
#define TIDE_BARE_1(...)            TIDE_BARE_0 __VA_ARGS__
#define TIDE_HAS_PARENS(first, ...) TIDE_SECOND(TIDE_PROBE first, 0, ~)
#define TIDE_PROBE(...)             ~, 1
#define TIDE_SECOND(...)            TIDE_SECOND_(__VA_ARGS__)
#define TIDE_SECOND_(a, b, ...)     b

#define TIDE_MAP(F, x, ...)                      TIDE_PASTE(TIDE_MAP_, TIDE_COUNT(__VA_ARGS__))(F, x, __VA_ARGS__)
#define TIDE_MAP_1(F, x, a)                      F(0, x, a)
#define TIDE_MAP_2(F, x, a, b)                   TIDE_MAP_1(F, x, a) F(1, x, b)
#define TIDE_MAP_3(F, x, a, b, c)                TIDE_MAP_2(F, x, a, b) F(2, x, c)
#define TIDE_MAP_4(F, x, a, b, c, d)             TIDE_MAP_3(F, x, a, b, c) F(3, x, d)
#define TIDE_MAP_5(F, x, a, b, c, d, e)          TIDE_MAP_4(F, x, a, b, c, d) F(4, x, e)
#define TIDE_MAP_6(F, x, a, b, c, d, e, f)       TIDE_MAP_5(F, x, a, b, c, d, e) F(5, x, f)
#define TIDE_MAP_7(F, x, a, b, c, d, e, f, g)    TIDE_MAP_6(F, x, a, b, c, d, e, f) F(6, x, g)
#define TIDE_MAP_8(F, x, a, b, c, d, e, f, g, h) TIDE_MAP_7(F, x, a, b, c, d, e, f, g) F(7, x, h)

#endif
