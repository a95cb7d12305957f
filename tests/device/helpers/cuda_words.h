/* SPDX-License-Identifier: MIT */
/* The words of CUDA C that our device code uses, as C++ on the host. */
#ifndef TIDEPOOL_TESTS_CUDA_WORDS_H
#define TIDEPOOL_TESTS_CUDA_WORDS_H

#include "emulation.h"

#define __device__
#define __global__
#define __forceinline__  inline
#define __align__(bytes) alignas(bytes)

namespace
{
struct place {
    unsigned (*get)();
    operator unsigned() const
    {
        return get();
    }
};
struct places {
    place x;
};
const places threadIdx = {{emulation_thread}}, blockIdx = {{emulation_group}};

inline unsigned long long atomicAdd(unsigned long long *to, unsigned long long value)
{
    unsigned long long before = *to;
    *to += value;
    return before;
}
inline unsigned __activemask()
{
    return emulation_active();
}
inline int __ffs(unsigned value)
{
    return __builtin_ffs(static_cast<int>(value));
}
inline unsigned long long __shfl_sync(unsigned mask, unsigned long long value, unsigned lane)
{
    return emulation_exchange(mask, value, lane);
}
} // namespace

#endif
