/* SPDX-License-Identifier: MIT */
/* C++'s monotonic buffer resource over one large buffer, released at the end of each operation. */
#include "scope4.h"

#include <memory_resource>
#include <new>

namespace
{

constexpr std::size_t room = 4 * 1024 * 1024;
constexpr std::size_t align = 64; // what the pool guarantees

// Counts what the buffer could not hold: nothing, or the variant measured malloc.
class counting_resource final : public std::pmr::memory_resource
{
  public:
    std::uint64_t calls = 0;

  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override
    {
        calls++;
        return std::pmr::new_delete_resource()->allocate(bytes, alignment);
    }
    void do_deallocate(void *data, std::size_t bytes, std::size_t alignment) override
    {
        std::pmr::new_delete_resource()->deallocate(data, bytes, alignment);
    }
    bool do_is_equal(const memory_resource &other) const noexcept override
    {
        return this == &other;
    }
};

struct pmr_state {
    const bench_sizes *sizes;
    void *buffer;
    counting_resource behind;
    std::pmr::monotonic_buffer_resource *arena;
    alignas(std::pmr::monotonic_buffer_resource) char arena_storage[sizeof(
        std::pmr::monotonic_buffer_resource)];
};

void *pmr_setup(const bench_case *job)
{
    auto *s = new (bench_state_make(sizeof(pmr_state))) pmr_state;
    s->sizes = job->sizes;
    s->buffer = bench_allocate(room);
    s->arena =
        new (s->arena_storage) std::pmr::monotonic_buffer_resource(s->buffer, room, &s->behind);
    return s;
}

bool pmr_verify(void *state, std::uint64_t)
{
    auto *s = static_cast<pmr_state *>(state);
    if (s->behind.calls != 0)
        bench_complain("pmr: the buffer was too small");
    return s->behind.calls == 0;
}

void pmr_teardown(void *state)
{
    auto *s = static_cast<pmr_state *>(state);
    s->arena->~monotonic_buffer_resource();
    bench_release(s->buffer, room);
    bench_state_free(s, sizeof *s);
}

template <class T> T *take(pmr_state *s, std::size_t n)
{
    return static_cast<T *>(s->arena->allocate(n * sizeof(T), align));
}

/* clang-format off */
BENCH_SCOPE4(pmr, pmr_state,
    auto *a = take<double>(s, n->count[0]);
    auto *b = take<std::int32_t>(s, n->count[1]);
    auto *c = take<double>(s, n->count[2]);
    auto *d = take<std::int32_t>(s, n->count[3]);
    BENCH_USE(a, b, c, d);
    s->arena->release();
)
/* clang-format on */

} // namespace

extern "C" const bench_variant bench_pmr = {"pmr",   nullptr,    pmr_setup,    pmr_prove,
                                            pmr_run, pmr_verify, pmr_teardown, nullptr};
