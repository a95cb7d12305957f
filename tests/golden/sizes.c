/* SPDX-License-Identifier: MIT */
/* One function for each form of scope and acquire: how much code does a place in a program get?
 * Compiled with the flags of paths.c, never run; tests/golden/sizes reads its symbol table. */
#include <tidepool/array.h>
#include <tidepool/dynamic.h>
#include <tidepool/tidepool.h>

/* The rest of the program. */
void size_use(void *first, ...);

#define FORM(name)                     \
    void size_##name(tide_pool *pool); \
    void size_##name(tide_pool *pool)

/* What all the others have, too. */
FORM(nothing)
{
    size_use(pool);
}

FORM(scope)
{
    TIDE_SCOPE(pool);
    size_use(pool);
}

FORM(types_1)
{
    TIDE_SCOPE_TYPES(pool, double);
    size_use(pool);
}

FORM(types_2)
{
    TIDE_SCOPE_TYPES(pool, double, int);
    size_use(pool);
}

FORM(types_4)
{
    TIDE_SCOPE_TYPES(pool, double, int, float, char);
    size_use(pool);
}

FORM(types_8)
{
    TIDE_SCOPE_TYPES(pool, double, int, float, char, short, long, unsigned, unsigned short);
    size_use(pool);
}

FORM(frame_1)
{
    TIDE_FRAME(pool, (double, a, 10));
    size_use(a);
}

FORM(frame_2)
{
    TIDE_FRAME(pool, (double, a, 10), (int, b, 20));
    size_use(a, b);
}

FORM(frame_4)
{
    TIDE_FRAME(pool, (double, a, 10), (int, b, 20), (double, c, 30), (int, d, 40));
    size_use(a, b, c, d);
}

FORM(loop)
{
    TIDE_LOOP(pool, i, 10)
    size_use(pool);
}

FORM(acquire)
{
    size_use(tide_acquire(pool, double, 10));
}

FORM(acquire_2)
{
    size_use(tide_acquire(pool, double, 10), tide_acquire(pool, int, 20));
}

FORM(array)
{
    int64_t shape[2] = {10, 20};
    size_use(tide_array_acquire(pool, TIDE_F64, 2, shape));
}

FORM(mark)
{
    tide_mark mark = tide_checkpoint(pool);
    size_use(pool);
    tide_rewind(pool, mark);
}

FORM(enter)
{
    static tide_site *site; /* registered elsewhere */
    tide_scope scope;
    tide_scope_enter(pool, site, &scope);
    size_use(pool);
    tide_scope_leave(&scope);
}
