// SPDX-License-Identifier: MIT
// Scopes in the places that only C++ has: templates, lambdas, members, destructors, namespaces,
// the time before main.
#include "places.h"

#include <functional>
#include <initializer_list>
#include <thread>

#include <tidepool/upkeep.h>

namespace
{

template <class T> T sum_of(tide_pool *pool, size_t n)
{
    TIDE_SCOPE(pool);
    T *values = tide_fill(pool, T, n, T(2));
    TIDE_FRAME(pool, (T, more, n), (int, count, 1));
    T sum = 0;
    TIDE_LOOP(pool, i, n)
    {
        T *copy = tide_fill(pool, T, 1, values[i]);
        more[i] = *copy;
        sum = T(sum + more[i]);
    }
    count[0] = int(n);
    assert_int_equal(tide_pool_depth(pool), 2);
    return sum;
}

void in_a_template(tide_pool *pool)
{
    assert_true(sum_of<double>(pool, 5) == 10);
    assert_true(sum_of<float>(pool, 4) == 8);
    assert_true(sum_of<int>(pool, 3) == 6);
    assert_true(sum_of<unsigned char>(pool, 2) == 4);
}

template <class... T> size_t depth_of_pack(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    size_t got = 0;
    for (bool had : {(tide_acquire(pool, T, 3) != nullptr)...})
        got += had;
    return got;
}

void in_a_variadic_template(tide_pool *pool)
{
    assert_int_equal((depth_of_pack<int, float, double, place_point>(pool)), 4);
}

template <class T> struct Pair {
    T first, second;
};

void of_template_types(tide_pool *pool)
{
    using IntPair = Pair<int>;
    TIDE_SCOPE_TYPES(pool, IntPair, Pair<double>);
    TIDE_FRAME(pool, (IntPair, ints, 4), (Pair<double>, reals, 4));
    ints[3].second = 1;
    reals[3].second = 2;
    assert_int_not_equal(tide_type_of(IntPair), tide_type_of(Pair<double>));
    assert_int_equal(tide_type_size(tide_type_of(Pair<double>)), sizeof(Pair<double>));
    CHECK_POOL(pool);
}

void in_a_lambda(tide_pool *pool)
{
    auto inner = [&](size_t n) {
        TIDE_SCOPE(pool);
        TIDE_FRAME(pool, (double, d, n));
        d[n - 1] = double(n);
        return d[n - 1] + double(use_here(pool));
    };
    std::function<double(size_t)> outer = [&](size_t n) {
        TIDE_SCOPE_TYPES(pool, double);
        return n == 0 ? 0 : inner(n) + outer(n - 1);
    };
    assert_true(outer(3) > 6);
}

struct Worker {
    tide_pool *pool;
    size_t &ended;
    Worker(tide_pool *p, size_t &e) : pool(p), ended(e)
    {
        TIDE_SCOPE(pool);
        use_here(pool);
    }
    ~Worker()
    {
        TIDE_SCOPE(pool);
        ended += use_here(pool);
    }
    size_t operator()() const
    {
        TIDE_FRAME(pool, (double, d, 8));
        d[7] = 1;
        return use_here(pool);
    }
    static size_t everywhere(tide_pool *p)
    {
        TIDE_SCOPE(p);
        return use_here(p);
    }
};

/* Objects and scopes of one block end in the reverse of their order. */
void in_members(tide_pool *pool)
{
    size_t ended = 0;
    {
        Worker first(pool, ended);
        TIDE_SCOPE(pool);
        Worker second(pool, ended);
        assert_int_equal(second(), 2);
        assert_int_equal(Worker::everywhere(pool), 2);
    }
    assert_int_equal(ended, 2 + 1);
}

void in_a_thread(tide_pool *pool)
{
    size_t depth = 0;
    std::thread([&depth] {
        struct AtThreadExit {
            ~AtThreadExit()
            {
                tide_pool *own = tide_pool_local();
                TIDE_SCOPE(own);
                tide_acquire(own, double, 10);
            }
        };
        static thread_local AtThreadExit at_exit;
        (void)at_exit;
        tide_pool *own = tide_pool_local();
        TIDE_SCOPE(own);
        TIDE_FRAME(own, (double, d, 10));
        depth = d != nullptr ? tide_pool_depth(own) : 0;
    }).join();
    assert_int_equal(depth, 2);
    assert_int_equal(tide_pool_depth(pool), 0);
}

/* Ran before main, and maybe before the library's own constructors. */
struct BeforeMain {
    size_t depth;
    bool sound;
    BeforeMain()
    {
        tide_pool *own = tide_pool_local();
        TIDE_SCOPE(own);
        TIDE_FRAME(own, (double, d, 10), (place_point, points, 10));
        depth = d != nullptr && points != nullptr ? tide_pool_depth(own) : 0;
        sound = tide_pool_check(own) == TIDE_OK;
    }
    ~BeforeMain()
    {
        tide_pool *own = tide_pool_local();
        TIDE_SCOPE(own);
        tide_acquire(own, double, 10);
    }
};

BeforeMain before_main;

void before_main_and_after(tide_pool *pool)
{
    (void)pool;
    assert_int_equal(before_main.depth, 2);
    assert_true(before_main.sound);
}

} // namespace

extern "C" const place places_cpp[] = {
    PLACES_OF_BOTH,           PLACE(in_a_template),         PLACE(in_a_variadic_template),
    PLACE(of_template_types), PLACE(in_a_lambda),           PLACE(in_members),
    PLACE(in_a_thread),       PLACE(before_main_and_after), {NULL, NULL},
};
