// SPDX-License-Identifier: MIT
// Every public macro in C++ (use.h), and what only C++ has: templates, lambdas, braces.
#include "use.h"

#include <utility>

#include <tidepool/array.h>
#include <tidepool/check.h>
#include <tidepool/generic.h>
#include <tidepool/memory_resource.h>
#include <tidepool/scope.h>
#include <tidepool/upkeep.h>

#ifdef TIDE_MEMORY_RESOURCE // CCCL is there: tests/device/cuda/resource.cc
static_assert(tidepool::device_resource::alignment_max >= 64, "");
#endif

extern "C" int use_in_cpp(tide_pool *pool);

namespace
{
struct use_shape_of {
    int64_t extents[2];
};

// Types with commas: in parentheses, or alone.
template <class A, class B> int use_pairs(tide_pool *pool, size_t n)
{
    int wrong = 0;
    TIDE_SCOPE_TYPES(pool, double, (std::pair<A, B>), int);
    TIDE_FRAME(pool, (double, x, n), ((std::pair<A, B>), y, n), (int, z, n));
    USE_CHECK(x != nullptr && y != nullptr && z != nullptr);
    std::pair<A, B> *made = tide_acquire(pool, (std::pair<A, B>), n);
    USE_CHECK(made != nullptr);
    USE_CHECK(tide_zeros(pool, (std::pair<A, B>), n) != nullptr);
    made = tide_fill(pool, (std::pair<A, B>), n, std::pair<A, B>{A(1), B(2)});
    USE_CHECK(made[n - 1].second == B(2));
    USE_CHECK((tide_type_of(std::pair<A, B>) == tide_type_of((std::pair<A, B>))));
    USE_CHECK((tide_type_of(std::pair<A, B>) != tide_type_of(std::pair<B, A>)));
    USE_CHECK(tide_type_size(tide_type_of(std::pair<A, B>)) == sizeof(std::pair<A, B>));
    return wrong;
}

// The commas of braces, where they are in the last argument.
int use_braces(tide_pool *pool)
{
    int wrong = 0;
    TIDE_SCOPE(std::pair<tide_pool *, int>{pool, 1}.first);
    tide_array *array = tide_array_acquire(pool, TIDE_F32, 2, use_shape_of{{2, 3}}.extents);
    USE_CHECK(array->length == 6);
    USE_CHECK(tide_acquire(pool, double, std::pair<int, size_t>{1, 2}.second) != nullptr);
    size_t rounds = 0;
    TIDE_LOOP(pool, i, std::pair<int, int>{1, 3}.second) rounds += i + 1;
    USE_CHECK(rounds == 6);
    return wrong;
}

// A scope of a lambda ends with it.
int use_lambdas(tide_pool *pool)
{
    int wrong = 0;
    auto sum = [pool](int n) {
        TIDE_SCOPE(pool);
        TIDE_SCOPE_NAMED(pool, "lambda");
        TIDE_SCOPE_TYPES(pool, double, use_point);
        TIDE_FRAME(pool, (double, a, n), (use_point, b, n));
        double result = a != nullptr && b != nullptr ? 1 : 0;
        TIDE_LOOP(pool, i, n)
        {
            const double *e = tide_fill(pool, double, i + 1, 1);
            result += e[i];
            result += [&](auto k) {
                TIDE_FRAME(pool, (double, inner, k), (use_point, other, k));
                return inner != nullptr && other != nullptr ? 1.0 : 0.0;
            }(i);
        }
        void *array = tide_array_acquire(pool, TIDE_F32, 2, use_shape);
        void *acquired = tide_acquire_type(pool, TIDE_F32, static_cast<size_t>(n));
        return result + (array != nullptr) + (acquired != nullptr);
    };
    USE_CHECK(sum(3) == 9);
    auto pointer = [&](auto *any) -> decltype(any) { TIDE_RETURN(any); };
    USE_CHECK(*pointer(&wrong) == 0);
    int calls = 0;
    tide_generic *generic = tide_generic_create("lambda");
    tide_generic_add(generic, TIDE_ALL_TYPES, use_method);
    [&] { TIDE_DISPATCH(generic, TIDE_F64, &calls); }();
    USE_CHECK(calls == 1);
    return wrong;
}

class use_class
{
  public:
    explicit use_class(tide_pool *pool) : pool_(pool)
    {
    }
    size_t method(unsigned n) const
    {
        TIDE_SCOPE(pool_);
        TIDE_LOOP(pool_, i, n)
        {
            if (tide_acquire(pool_, use_class, i) == nullptr)
                return 0;
        }
        return tide_pool_depth(pool_);
    }

  private:
    tide_pool *pool_;
};
} // namespace

int use_in_cpp(tide_pool *pool)
{
    return use_all(pool) + use_pairs<int, double>(pool, 3) + use_pairs<char, short>(pool, 4) +
           use_braces(pool) + use_lambdas(pool) + (use_class(pool).method(2) == 1 ? 0 : 1);
}
