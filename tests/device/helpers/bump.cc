// SPDX-License-Identifier: MIT
// The header that kernels include, as CUDA C on the host: warps allocate together, all of them or
// those lanes that come along.
#define TIDE_BUMP_EMULATED
#include "cuda_words.h"

#define __CUDACC_RTC__
#include <tidepool/device_bump.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace
{
struct run {
    tide_bump *bump;
    std::vector<char *> *given;
    std::vector<tide_bump_word> *sizes;
    unsigned group, skip; // every skip-th thread allocates nothing; 0: all do
};

void body(const void *user)
{
    const run *r = static_cast<const run *>(user);
    unsigned i = blockIdx.x * r->group + threadIdx.x;
    if (r->skip != 0 && i % r->skip == 0)
        return;
    (*r->given)[i] = static_cast<char *>(tide_bump_acquire(r->bump, (*r->sizes)[i]));
}

#define EXPECT(what)                                                       \
    do {                                                                   \
        if (!(what)) {                                                     \
            std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
            std::exit(1);                                                  \
        }                                                                  \
    } while (0)

// What was given lies within, is aligned, and is nobody else's.
size_t expect_apart(const run &r)
{
    std::vector<std::pair<char *, char *>> all;
    char *start = reinterpret_cast<char *>(r.bump) + TIDE_BUMP_HEAD;
    for (size_t i = 0; i < r.given->size(); i++)
        if ((*r.given)[i] != nullptr)
            all.push_back({(*r.given)[i], (*r.given)[i] + (*r.sizes)[i]});
    std::sort(all.begin(), all.end());
    for (size_t i = 0; i < all.size(); i++) {
        EXPECT(reinterpret_cast<uintptr_t>(all[i].first) % TIDE_BUMP_ALIGN == 0);
        EXPECT(all[i].first >= start && all[i].second <= start + r.bump->capacity);
        EXPECT(i == 0 || all[i].first >= all[i - 1].second);
    }
    return all.size();
}

void test(unsigned threads, unsigned skip, tide_bump_word capacity, bool oversize)
{
    const unsigned group = 96;
    std::vector<char *> given(threads, nullptr);
    std::vector<tide_bump_word> sizes(threads);
    tide_bump_word asked = 0, too_much = 0;
    size_t callers = 0;
    for (unsigned i = 0; i < threads; i++) {
        sizes[i] = oversize && i % 7 == 3 ? capacity + 1 + i : 1 + i * 37 % 200;
        if (skip != 0 && i % skip == 0)
            continue;
        callers++;
        (sizes[i] > capacity ? too_much : asked) +=
            sizes[i] > capacity ? sizes[i] : (sizes[i] + 15) / 16 * 16;
    }
    void *memory = std::aligned_alloc(64, (TIDE_BUMP_HEAD + capacity + 63) / 64 * 64);
    run r = {static_cast<tide_bump *>(memory), &given, &sizes, group, skip};
    *r.bump = {capacity, 0, 0, 0};
    emulation_run(threads / group, group, body, &r);
    size_t got = expect_apart(r);
    EXPECT(got + r.bump->refused == callers);
    EXPECT(r.bump->used == asked && r.bump->too_much == too_much);
    EXPECT((r.bump->refused == 0) == (asked <= capacity && too_much == 0));
    EXPECT(got > 0);
    std::free(memory);
}
} // namespace

int main()
{
    for (unsigned skip = 0; skip < 6; skip++)
        if (skip != 1)
            for (tide_bump_word capacity : {1u << 20, 4096u, 256u}) {
                test(96, skip, capacity, false);
                test(96 * 20, skip, capacity, false);
                test(96 * 20, skip, capacity, true);
            }
    std::puts("the lanes of a warp allocate together");
}
