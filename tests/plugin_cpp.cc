// SPDX-License-Identifier: MIT
// A shared object with sites of its own, in C++: in templates, in inline functions, and in the
// destructor of a global object, which runs when the rest of the plugin is already taken down.
#include <tidepool/scope.h>

#include "plugin.h"

#include "plugin_inline.h"

namespace
{

struct OnlyInThePlugin {
    double a, b, c;
};

template <class T> size_t templated(tide_pool *pool)
{
    TIDE_SCOPE_NAMED(pool, "plugin: template");
    return tide_acquire(pool, T, 10) != nullptr;
}

struct Global {
    Global()
    {
        plugin_run_alone();
    }
    ~Global()
    {
        plugin_run_alone();
    }
};

Global global;

} // namespace

inline size_t with_external_linkage(tide_pool *pool)
{
    TIDE_SCOPE_NAMED(pool, "plugin: external inline");
    size_t got = tide_acquire(pool, OnlyInThePlugin, 10) != nullptr;
    TIDE_FRAME(pool, (double, a, 3), (OnlyInThePlugin, b, 3));
    return got + (a != nullptr) + (b != nullptr);
}

size_t plugin_run(tide_pool *pool)
{
    return templated<double>(pool) + templated<OnlyInThePlugin>(pool) +
           with_external_linkage(pool) + plugin_inline_scope(pool);
}

size_t plugin_run_alone(void)
{
    return plugin_run(tide_pool_local());
}

tide_type plugin_type(void)
{
    return tide_type_of(OnlyInThePlugin);
}
