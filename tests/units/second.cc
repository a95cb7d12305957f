// SPDX-License-Identifier: MIT
// The second unit. It has counted on before it includes the header, as units do.
static const int counted[] = {__COUNTER__, __COUNTER__, __COUNTER__, __COUNTER__, __COUNTER__};

#include "units.h"

facts facts_of_second(tide_pool *pool)
{
    return counted[4] == 4 ? facts_here(pool) : facts{};
}
