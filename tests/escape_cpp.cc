/* SPDX-License-Identifier: MIT */
/* TIDE_RETURN in C++: templates, and types that are no pointers to numbers. */
#include <tidepool/check.h>

#include "escape.h"

namespace
{

struct vertex {
    float x, y;
};

template <class T> T *first_of(tide_pool *pool, size_t n, unsigned *line)
{
    TIDE_SCOPE(pool);
    *line = __LINE__ + 1;
    T *array = tide_acquire(pool, T, n);
    TIDE_RETURN(array);
}

template <class T> const T *same(tide_pool *pool, const T *array)
{
    TIDE_SCOPE(pool);
    (void)tide_acquire(pool, T, 3);
    TIDE_RETURN(array);
}

struct inner {
    static const vertex *find(const vertex *in)
    {
        TIDE_RETURN(in);
    }
};

/* Which bears its name, and is another. */
struct outer {
    static void find(tide_pool *pool)
    {
        TIDE_SCOPE(pool);
        (void)inner::find(tide_acquire(pool, vertex, 5));
    }
};

} // namespace

void escape_in_cpp(tide_pool *pool, const char **file, unsigned *line)
{
    *file = __FILE__;
    (void)first_of<vertex>(pool, 5, line);
}

void escape_nothing_in_cpp(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    vertex own = {1, 2};
    (void)same(pool, tide_acquire(pool, vertex, 5));
    (void)same(pool, &own);
    (void)same<vertex>(pool, nullptr);
    outer::find(pool);
}
