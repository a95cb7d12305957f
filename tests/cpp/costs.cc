// SPDX-License-Identifier: MIT
// The same functions by the macros of C and by the types of C++: the second are to be no longer.
#include <tidepool/tidepool.hpp>

#if __cplusplus >= 202002L
tidepool::pool options_of_which_some_are_named();
tidepool::pool options_of_which_some_are_named()
{
    return tidepool::pool({.name = "fft", .check = 2});
}
#endif

void use(void *);

extern "C" {
void frame_by_macro(tide_pool *pool, size_t n, size_t m)
{
    TIDE_FRAME(pool, (double, x, n), (int, i, m));
    if (x == nullptr)
        tidepool::raise_error();
    use(x);
    use(i);
}
void frame_by_type(tide_pool *pool, size_t n, size_t m)
{
    auto [x, i] = tidepool::frame<double, int>(pool, n, m);
    use(x.data());
    use(i.data());
}
void scope_by_macro(tide_pool *pool, size_t n)
{
    TIDE_SCOPE_TYPES(pool, double, int);
    double *x = tide_acquire(pool, double, n);
    if (x == nullptr)
        tidepool::raise_error();
    use(x);
}
void scope_by_type(tide_pool *pool, size_t n)
{
    tidepool::scope_of<double, int> scope(pool);
    use(tidepool::acquire<double>(pool, n).data());
}
}
