// SPDX-License-Identifier: MIT
// Call sites where only C++ has them: inline functions, templates, members, lambdas.
#include <tidepool/array.h>
#include <tidepool/callsite.h>

#include "callsites.h"

inline void *acquire_inline(tide_pool *pool, tide_type type, size_t n)
{
    return TIDE_ACQUIRE_SITE(pool, type, n);
}

namespace
{

template <int number> void *acquire_in_template(tide_pool *pool, tide_type type, size_t n)
{
    static_assert(number > 0, "each number is a function of its own, and a site");
    return TIDE_ACQUIRE_SITE(pool, type, n);
}

struct Asker {
    static void *acquire(tide_pool *pool, tide_type type, size_t n)
    {
        return TIDE_ACQUIRE_SITE(pool, type, n);
    }
};

template <class T>
tide_array *array_in_template(tide_pool *pool, tide_type type, int ndim, const T *shape)
{
    return TIDE_ARRAY_SITE(pool, type, ndim, shape);
}

template <class Real, class Whole>
tide_status frame_in_template(tide_pool *pool, size_t n, frame_body *body, void *state)
{
    TIDE_FRAME_SITE(pool, (Real, a, n), (Whole, b, n), (Real, c, n));
    void *const data[] = {a, b, c};
    body(pool, data, n, state);
    return TIDE_OK;
}

} // namespace

const acquire_way acquire_ways_cpp[] = {
    {"c++ inline function", acquire_inline},
    {"c++ template", acquire_in_template<1>},
    {"c++ template again", acquire_in_template<2>},
    {"c++ member", Asker::acquire},
    {"c++ lambda",
     [](tide_pool *pool, tide_type type, size_t n) { return TIDE_ACQUIRE_SITE(pool, type, n); }},
    {nullptr, nullptr},
};

const array_way array_ways_cpp[] = {
    {"c++ template", array_in_template<int64_t>},
    {"c++ lambda", [](tide_pool *pool, tide_type type, int ndim,
                      const int64_t *shape) { return TIDE_ARRAY_SITE(pool, type, ndim, shape); }},
    {nullptr, nullptr},
};

const frame_way frame_ways_cpp[] = {
    {"c++ template", frame_in_template<double, int32_t>},
    {nullptr, nullptr},
};
