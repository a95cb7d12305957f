// SPDX-License-Identifier: MIT
// What both units include: inline functions and templates with sites, types with long names.
#ifndef TIDEPOOL_TESTS_UNITS_UNITS_H
#define TIDEPOOL_TESTS_UNITS_UNITS_H

#include <cstddef>

#include <tidepool/scope.h>
#include <tidepool/tidepool.h>

enum { UNIT_SITES = 4 };

#define TWO_ON_ONE_LINE(pool)               \
    TIDE_SCOPE_NAMED(pool, "units: first"); \
    TIDE_SCOPE_NAMED(pool, "units: second")

inline size_t with_scopes(tide_pool *pool)
{
    TWO_ON_ONE_LINE(pool);
    size_t got = tide_acquire(pool, double, 3) != nullptr;
    for (int i = 0; i < 2; i++) {
        TIDE_SCOPE_NAMED(pool, "units: inner");
        got += tide_acquire(pool, float, 3) != nullptr;
    }
    return got;
}

inline size_t with_a_frame(tide_pool *pool)
{
    TIDE_FRAME(pool, (double, a, 3), (int, b, 3));
    return (a != nullptr) + (b != nullptr);
}

template <class T> size_t templated(tide_pool *pool)
{
    TIDE_SCOPE_NAMED(pool, "units: template");
    auto inner = [&] { return tide_acquire(pool, T, 3) != nullptr; };
    return inner();
}

/* In each unit under another name: the unit's own use of all of these. */
inline size_t use_all(tide_pool *pool)
{
    return with_scopes(pool) + with_a_frame(pool) + templated<double>(pool);
}

/* Types whose names differ from the 200th character on. */
template <class...> struct a_rather_long_name_of_a_template_with_parameters {
    double value;
};
#define LONG_NAME(last)                                                                       \
    a_rather_long_name_of_a_template_with_parameters<                                         \
        a_rather_long_name_of_a_template_with_parameters<double, double, double, double>,     \
        a_rather_long_name_of_a_template_with_parameters<double, float, long, double, short>, \
        last>

/* Local types of one name, in two instances of a function. */
template <class T> tide_type local_type()
{
    struct local {
        char bytes[16];
    };
    return tide_type_of(local);
}

struct facts {
    size_t got;
    tide_type long_int, long_char, local_int, local_char, pair[2];
};

facts facts_of_second(tide_pool *pool);

inline facts facts_here(tide_pool *pool)
{
    using with_int = LONG_NAME(int);
    using with_char = LONG_NAME(char);
    using three = int[3];
    using four = a_rather_long_name_of_a_template_with_parameters<three>;
    using five = a_rather_long_name_of_a_template_with_parameters<int[4]>;
    return {use_all(pool),     tide_type_of(with_int), tide_type_of(with_char),
            local_type<int>(), local_type<char>(),     {tide_type_of(four), tide_type_of(five)}};
}

#endif
