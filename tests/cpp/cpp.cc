// SPDX-License-Identifier: MIT
// tidepool.hpp: what its types do, and what they leave behind when an exception passes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

extern "C" {
#include <cmocka.h>
}

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include <tidepool/device_memory.h>
#include <tidepool/limit.h>
#include <tidepool/tidepool.hpp>
#include <tidepool/upkeep.h>

#if defined(__cpp_impl_coroutine)
#include <coroutine>
#endif

namespace
{

struct point {
    float x, y, z;
};

size_t live(tide_pool *pool)
{
    return tide_pool_active(pool, TIDE_F64) + tide_pool_active(pool, TIDE_I32) +
           tide_pool_active(pool, tide_type_of(point)) + tide_pool_active(pool, TIDE_U8);
}

void frames_bind_their_arrays(void **)
{
    tidepool::pool pool;
    for (size_t round = 0; round < 100; round++) {
        auto [x, i, p] = tidepool::frame<double, int, point>(pool, 10 + round, 20, 3);
        assert_int_equal(x.size(), 10 + round);
        assert_int_equal(i.size(), 20);
        std::iota(x.begin(), x.end(), 1.0);
        std::iota(i.begin(), i.end(), 7);
        p[2] = {1, 2, 3};
        assert_true(x[9] == 10 && i[19] == 26 && p[2].z == 3);
        assert_int_equal(live(pool), 3);
    }
    assert_int_equal(live(pool), 0);
    tide_pool_statistics stats;
    assert_int_equal(tide_pool_stats(pool, &stats), TIDE_OK);
    assert_true(stats.allocations < 12); // grown a few times, then never again
}

double nested(tide_pool *pool, unsigned depth)
{
    auto [x] = tidepool::frame<double>(pool, 100);
    std::fill(x.begin(), x.end(), depth);
    if (depth == 0)
        throw depth;
    double below = nested(pool, depth - 1);
    return below + x[50];
}

void an_exception_rewinds(void **)
{
    tidepool::pool pool;
    tidepool::scope outer(pool);
    auto kept = tidepool::acquire<double>(pool, 5);
    kept[4] = 4;
    bool thrown = false;
    try {
        (void)nested(pool, 8);
    } catch (unsigned) {
        thrown = true;
    }
    assert_true(thrown);
    assert_int_equal(live(pool), 1);
    assert_int_equal(tide_pool_depth(pool), 1);
    assert_true(kept[4] == 4);
}

/* A member that is not named is zero, and a check is a number. */
void options_are_those_of_c(void **)
{
    tide_pool_options options;
    assert_true(options.name == nullptr && options.device == nullptr && options.buffers == nullptr);
    assert_true(options.stream == nullptr && options.limit_bytes == 0 && !options.disabled);
    assert_true(options.check == TIDE_CHECK_DEFAULT && options.memory == nullptr);
    assert_true(options.memory_bytes == 0 && options.hook == nullptr && options.user == nullptr);
    for (uint64_t word : options.growth_)
        assert_true(word == 0);
    static_assert(std::is_aggregate_v<tide_pool_options> &&
                      std::is_standard_layout_v<tide_pool_options> &&
                      std::is_trivially_copyable_v<tide_pool_options>,
                  "C and C++ have the same struct");
    options.check = 2;
    tidepool::pool checked(options);
    assert_non_null(static_cast<tide_pool *>(checked));
#if __cplusplus >= 202002L
    tidepool::pool named({.name = "named", .check = 2});
    const tide_limit_options limit{.soft_bytes = 1};
    const tide_buffers_options buffers{.name = "batches"};
    const tide_device_memory_options device{.limit_bytes = 1};
    assert_true(limit.hard_bytes == 0 && !buffers.kept && device.full == nullptr);
#endif
}

#if defined(__cpp_lib_mdspan)
void arrays_of_two_dimensions_are_mdspans(void **)
{
    tidepool::pool pool;
    tidepool::scope scope(pool);
    auto a = tidepool::acquire_md<double>(pool, 3, 5u);
    static_assert(a.rank() == 2);
    assert_true(a.extent(0) == 3 && a.extent(1) == 5 && (&a[2, 4] == a.data_handle() + 14));
    bool caught = false;
    try {
        (void)tidepool::acquire_md<double>(pool, SIZE_MAX / 2, 4);
    } catch (const tidepool::error &error) {
        caught = error.status() == TIDE_ERROR_SIZE;
    }
    assert_true(caught);
}
#endif

void what_fails_says_why_and_leaves_nothing(void **)
{
    tide_pool_options options;
    options.name = "small";
    options.limit_bytes = 4096;
    tidepool::pool pool(options);
    tidepool::scope outer(pool);
    int caught = 0;
    try {
        tidepool::frame<double, int> frame(pool, 1000000, 3);
    } catch (const std::bad_alloc &error) {
        caught += std::strstr(error.what(), "small") != nullptr;
    }
    try {
        (void)tidepool::acquire<double>(pool, SIZE_MAX / 4);
    } catch (const tidepool::error &error) {
        caught += error.status() == TIDE_ERROR_SIZE;
    }
    assert_int_equal(caught, 2);
    assert_int_equal(live(pool), 0);
    assert_int_equal(tide_pool_depth(pool), 1);
    auto fits = tidepool::acquire<double>(pool, 10);
    assert_non_null(fits.data());
}

void typed_scopes_rewind(void **)
{
    tidepool::pool pool;
    {
        tidepool::scope_of<double, point> scope(pool);
        (void)tidepool::acquire<double>(pool, 4);
        (void)tidepool::acquire<int>(pool, 4); // a type that was not named
        {
            tidepool::scope inner(pool);
            (void)tidepool::acquire<point>(pool, 4);
            assert_int_equal(live(pool), 3);
        }
        assert_int_equal(live(pool), 2);
    }
    assert_int_equal(live(pool), 0);
    tidepool::pool moved(std::move(pool));
    assert_null(static_cast<tide_pool *>(pool));
    assert_int_equal(live(moved), 0);
}

template <class Container> void fill_sequence(Container &container)
{
    for (int i = 0; i < 100000; i++)
        container.push_back(i);
    long sum = 0;
    for (int i : container)
        sum += i;
    assert_int_equal(sum, 4999950000L);
}

void containers_live_in_slots(void **)
{
    tidepool::pool pool;
    for (int round = 0; round < 3; round++) {
        tidepool::scope scope(pool);
        tidepool::resource memory(pool);
        std::pmr::vector<int> numbers(&memory);
        std::list<int, tidepool::allocator<int>> nodes(&memory);
        std::pmr::map<int, std::pmr::string> words(&memory);
        std::pmr::unordered_map<long, long> pairs(&memory);
        fill_sequence(numbers);
        fill_sequence(nodes);
        for (int i = 0; i < 100000; i++) {
            words[i] = "a word that is too long for a short string";
            pairs[i] = -i;
        }
        assert_int_equal(words.size(), 100000);
        assert_string_equal(words[99999].c_str(), "a word that is too long for a short string");
        assert_int_equal(pairs[77777], -77777);
        assert_true(live(pool) < 40); // arrays that grow geometrically, not one a node
    }
    assert_int_equal(live(pool), 0);
}

struct alignas(128) wide {
    char bytes[128];
};

void a_resource_keeps_alignment_and_reuses_the_last(void **)
{
    tidepool::pool pool;
    tidepool::scope scope(pool);
    tidepool::resource memory(pool, 256);
    void *first = memory.allocate(100, 1);
    memory.deallocate(first, 100, 1);
    assert_ptr_equal(memory.allocate(100, 1), first);
    for (size_t align = 1; align <= 4096; align *= 2)
        assert_int_equal(reinterpret_cast<uintptr_t>(memory.allocate(3, align)) % align, 0);
    std::pmr::vector<wide> wides(5, &memory);
    assert_int_equal(reinterpret_cast<uintptr_t>(wides.data()) % 128, 0);
}

struct worker {
    tidepool::pool pool; /* is made with it, and by {} */
    int number;
};

void a_resource_may_begin_with_nothing(void **)
{
    worker made{};
    tidepool::pool &pool = made.pool;
    tidepool::scope scope(pool);
    tidepool::resource memory(pool, 0);
    assert_non_null(memory.allocate(100, 1));
    std::pmr::vector<int> numbers(100000, 7, &memory);
    bool refused = false;
    try {
        (void)memory.allocate(SIZE_MAX, 4096);
    } catch (const tidepool::error &error) {
        refused = error.status() == TIDE_ERROR_SIZE;
    }
    assert_true(refused);
    assert_non_null(memory.allocate(1 << 20, 64));
    assert_int_equal(numbers[99999], 7);
}

size_t held(tide_pool *pool)
{
    tide_pool_statistics stats;
    assert_int_equal(tide_pool_stats(pool, &stats), TIDE_OK);
    return stats.bytes_held;
}

// A power of two takes no more, and near a limit what is asked for is enough.
void a_resource_takes_no_more_than_it_must(void **)
{
    tide_pool_options options;
    options.limit_bytes = 1 << 20;
    tidepool::pool pool(options);
    tidepool::scope scope(pool);
    tidepool::resource memory(pool);
    std::pmr::vector<char> first(&memory), second(&memory);
    first.reserve(1 << 19);
    assert_int_equal(held(pool), 1 << 19);
    second.reserve((1 << 19) - 4096);
    assert_true(held(pool) <= 1 << 20);
}

double sum_of(tidepool::span<const double> values)
{
    return std::accumulate(values.begin(), values.end(), 0.0);
}

void arrays_of_pairs_and_of_constants(void **)
{
    tidepool::pool pool;
    tidepool::scope scope(pool);
    auto pairs = tidepool::acquire<std::pair<int, int>>(pool, 3);
    pairs[2] = {1, 2};
    assert_int_equal(pairs[2].second, 2);
    auto numbers = tidepool::acquire<double>(pool, 4);
    std::fill(numbers.begin(), numbers.end(), 2.0);
    assert_true(sum_of(numbers) == 8.0);
    static_assert(!std::is_convertible_v<tidepool::pool, tide_pool *>, "of one that goes at once");
    static_assert(std::is_convertible_v<tidepool::pool &, tide_pool *>, "");
}

void a_resource_refuses_to_grow_in_another_scope(void **)
{
    tidepool::pool pool;
    tidepool::scope scope(pool);
    tidepool::resource memory(pool, 64);
    std::pmr::vector<int> numbers(8, 1, &memory);
    bool refused = false;
    {
        tidepool::scope inner(pool);
        try {
            numbers.resize(100000);
        } catch (const tidepool::error &error) {
            refused = error.status() == TIDE_ERROR_STATE;
        }
    }
    assert_true(refused);
    numbers.resize(100000);
    assert_int_equal(numbers[7], 1);
}

void a_buffer_is_released_once(void **)
{
    tide_buffers *all = tide_buffers_create(nullptr, nullptr);
    assert_non_null(all);
    {
        tidepool::buffer a(all, 1000), b(all, 5000);
        a.as<int>()[200] = 7;
        assert_true(b.as<double>().size() >= 625);
        tidepool::buffer moved(std::move(a));
        b = std::move(moved);
        assert_int_equal(b.as<int>()[200], 7);
        bool refused = false;
        try {
            tidepool::buffer huge(all, SIZE_MAX / 2);
        } catch (const tidepool::error &error) {
            refused = error.status() != TIDE_OK && std::strlen(error.what()) > 0;
        }
        assert_true(refused);
    }
    tide_buffers_statistics stats;
    assert_int_equal(tide_buffers_stats(all, &stats, nullptr, 0), TIDE_OK);
    assert_int_equal(stats.releases, 2);
    assert_int_equal(stats.live + stats.refused, 0);
    assert_int_equal(tide_buffers_destroy(all), TIDE_OK);
}

#if defined(__cpp_impl_coroutine)
// Yields sums of a pool of its own, suspended inside a frame.
struct generator {
    struct promise_type {
        double value = 0;
        generator get_return_object()
        {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend()
        {
            return {};
        }
        std::suspend_always final_suspend() noexcept
        {
            return {};
        }
        std::suspend_always yield_value(double made)
        {
            value = made;
            return {};
        }
        void return_void()
        {
        }
        void unhandled_exception()
        {
            std::abort();
        }
    };
    std::coroutine_handle<promise_type> handle;
};

generator sums(double step)
{
    tidepool::pool pool;
    for (size_t n = 1;; n++) {
        tidepool::frame<double> frame(pool, n * 100);
        auto x = frame.get<0>();
        std::fill(x.begin(), x.end(), step);
        co_yield 0;
        co_yield std::accumulate(x.begin(), x.end(), 0.0);
    }
}
#endif

void coroutines_with_pools_of_their_own_interleave(void **)
{
#if defined(__cpp_impl_coroutine)
    generator a = sums(1), b = sums(2);
    for (int n = 1; n <= 5; n++) {
        for (int half = 0; half < 2; half++) {
            a.handle.resume();
            b.handle.resume();
        }
        assert_true(a.handle.promise().value == 100.0 * n);
        assert_true(b.handle.promise().value == 200.0 * n);
    }
    a.handle.destroy();
    b.handle.destroy();
#else
    skip();
#endif
}

} // namespace

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_bind_their_arrays),
        cmocka_unit_test(an_exception_rewinds),
        cmocka_unit_test(options_are_those_of_c),
#if defined(__cpp_lib_mdspan)
        cmocka_unit_test(arrays_of_two_dimensions_are_mdspans),
#endif
        cmocka_unit_test(what_fails_says_why_and_leaves_nothing),
        cmocka_unit_test(typed_scopes_rewind),
        cmocka_unit_test(containers_live_in_slots),
        cmocka_unit_test(a_resource_keeps_alignment_and_reuses_the_last),
        cmocka_unit_test(a_resource_may_begin_with_nothing),
        cmocka_unit_test(a_resource_takes_no_more_than_it_must),
        cmocka_unit_test(a_resource_refuses_to_grow_in_another_scope),
        cmocka_unit_test(arrays_of_pairs_and_of_constants),
        cmocka_unit_test(a_buffer_is_released_once),
        cmocka_unit_test(coroutines_with_pools_of_their_own_interleave),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
