/* SPDX-License-Identifier: MIT */
/* sites-200: 200 functions, each with a scope of its own, called in turn. */
#include <tidepool/scope.h>

#include "programs.h"

#define TAKE_2(T)           \
    PAYS_TAKE(pool, T, 96); \
    PAYS_TAKE(pool, T, 32)
/* clang-format off */
#define SET_0(F, r) F(r, 0, "sites:di",   TAKE_2(double); TAKE_2(int32_t))
#define SET_1(F, r) F(r, 1, "sites:f",    TAKE_2(float))
#define SET_2(F, r) F(r, 2, "sites:lif",  TAKE_2(int64_t); TAKE_2(int32_t); TAKE_2(float))
#define SET_3(F, r) F(r, 3, "sites:dbsg", TAKE_2(double); TAKE_2(uint8_t); TAKE_2(int16_t); TAKE_2(int8_t))
#define SET_4(F, r) F(r, 4, "sites:l",    TAKE_2(int64_t))
#define SET_5(F, r) F(r, 5, "sites:hf",   TAKE_2(uint16_t); TAKE_2(float))
#define SET_6(F, r) F(r, 6, "sites:dis",  TAKE_2(double); TAKE_2(int32_t); TAKE_2(int16_t))
#define SET_7(F, r) F(r, 7, "sites:gbhl", TAKE_2(int8_t); TAKE_2(uint8_t); TAKE_2(uint16_t); TAKE_2(int64_t))
/* clang-format on */

#define DEFINE(r, set, name, ...)                                           \
    static __attribute__((noinline)) void site_##r##_##set(tide_pool *pool) \
    {                                                                       \
        TIDE_SCOPE_NAMED(pool, name);                                       \
        __VA_ARGS__;                                                        \
    }
#define NAME(r, set, name, ...) site_##r##_##set,

#define ROW(F, r) \
    SET_0(F, r) SET_1(F, r) SET_2(F, r) SET_3(F, r) SET_4(F, r) SET_5(F, r) SET_6(F, r) SET_7(F, r)
#define ROWS_5(F, a, b, c, d, e) ROW(F, a) ROW(F, b) ROW(F, c) ROW(F, d) ROW(F, e)
#define ROWS(F)              \
    ROWS_5(F, 0, 1, 2, 3, 4) \
    ROWS_5(F, 5, 6, 7, 8, 9) \
    ROWS_5(F, 10, 11, 12, 13, 14) ROWS_5(F, 15, 16, 17, 18, 19) ROWS_5(F, 20, 21, 22, 23, 24)

ROWS(DEFINE)

static void (*const sites[])(tide_pool *pool) = {ROWS(NAME)};

enum { SITES = sizeof sites / sizeof *sites };

_Static_assert(SITES == 200, "eight sets, 25 functions for each");

void pays_sites_200(tide_pool *pool, uint64_t uses)
{
    for (uint64_t done = 0; done < uses; done += SITES)
        for (int i = 0; i < SITES; i++)
            sites[i](pool);
}
