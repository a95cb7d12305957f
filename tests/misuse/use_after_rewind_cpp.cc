/* SPDX-License-Identifier: MIT */
/* In C++: an element of a struct type, written after its scope, in a method. */
#include "diagnosed.h"

struct particle {
    double place[3], speed[3];
};

struct simulation {
    tide_pool *pool;
    particle *work()
    {
        TIDE_SCOPE_TYPES(pool, particle); OPENED_HERE(REWOUND);
        particle *array = tide_zeros(pool, particle, 7); ACQUIRED_HERE;
        return array;
    }
};

extern "C" void write_to(volatile particle *array);
void write_to(volatile particle *array)
{
    array->speed[0] = 1;
}

int main()
{
    simulation s = {pool_at(TIDE_CHECK_GUARD)};
    particle *array = s.work();
    EXPECT("tidepool: use after rewind: byte 24 of an array of 7 particle (336 bytes)");
    EXPECT("  used      write_to+0x");
    write_to(array);
    return 0;
}
