// SPDX-License-Identifier: MIT
// Buffers as a memory resource of CCCL, on the fake driver: it has what the concepts ask for, by
// each spelling of CCCL; what comes back is used again (how streams order it: buffers.c). Compiled
// with -DCONCEPTS_ONLY by other compilers, for other versions of CCCL (resource-compilers).
#include <tidepool/memory_resource.h>

#ifndef TIDE_MEMORY_RESOURCE
#error "CCCL has been found, and the header does not find it"
#endif

// ---- concepts ----------------------------------------------------------------------------------

using tidepool::device_resource;
using tidepool::pinned_resource;

namespace mr = cuda::mr;

#if CCCL_VERSION >= 3001000
template <class Resource> constexpr bool is_ordered = mr::resource<Resource>;
template <class Resource> constexpr bool is_plain = mr::synchronous_resource<Resource>;
template <class Resource, class... Properties> constexpr bool is_ordered_with =
    mr::resource_with<Resource, Properties...>;
using device_ref = mr::resource_ref<mr::device_accessible>;
#else
template <class Resource> constexpr bool is_ordered = mr::async_resource<Resource>;
template <class Resource> constexpr bool is_plain = mr::resource<Resource>;
template <class Resource, class... Properties> constexpr bool is_ordered_with =
    mr::async_resource_with<Resource, Properties...>;
using device_ref = mr::async_resource_ref<mr::device_accessible>;
#endif

static_assert(is_ordered<device_resource> && is_ordered<pinned_resource>, "");
static_assert(is_plain<device_resource> && is_plain<pinned_resource>, "");
static_assert(is_ordered_with<device_resource, mr::device_accessible>, "");
static_assert(is_ordered_with<pinned_resource, mr::device_accessible, mr::host_accessible>, "");
static_assert(is_ordered_with<tidepool::managed_resource, mr::host_accessible>, "");
static_assert(!is_ordered_with<device_resource, mr::host_accessible>, "the host cannot use it");
static_assert(!is_plain<tide_buffers>, "else the concepts would say yes to anything");

// What a library does that was given some resource, in the words of its CCCL.
static void *get_by_reference(device_ref resource, size_t bytes, cuda::stream_ref stream)
{
#if CCCL_VERSION >= 3001000
    return resource.allocate(stream, bytes, 256);
#else
    return resource.allocate_async(bytes, 256, stream);
#endif
}

static void give_by_reference(device_ref resource, void *data, size_t bytes,
                              cuda::stream_ref stream)
{
#if CCCL_VERSION >= 3001000
    resource.deallocate(stream, data, bytes, 256);
#else
    resource.deallocate_async(data, bytes, 256, stream);
#endif
}

#ifdef CONCEPTS_ONLY
void *use(device_resource resource, cuda::stream_ref stream)
{
    void *data = get_by_reference(resource, 64, stream);
    give_by_reference(resource, data, 64, stream);
    (void)tidepool::acquire_from<float>(nullptr, resource, stream, 8);
    return resource.allocate(64);
}
#else

#include <csetjmp>
#include <cstdarg>

#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/tidepool.h>

extern "C" {
#include "support.h"
}

namespace
{

enum { BYTES = 5000 };

struct Bed {
    bench b = bench_start(11);
    tide_buffers *buffers = tide_buffers_create(b.device, nullptr);
    cudaStream_t one = static_cast<cudaStream_t>(b.stream);
    cudaStream_t other = static_cast<cudaStream_t>(fake_stream_create(0));

    void end()
    {
        assert_int_equal(cache_of(buffers).live, 0);
        expect_ok(tide_buffers_destroy(buffers));
        fake_stream_destroy(other);
        bench_end(&b);
    }
};

// ---- by streams --------------------------------------------------------------------------------

TEST(by_the_older_names_and_by_reference_it_is_the_same_memory)
{
    Bed bed;
    device_resource resource(bed.buffers), copy = resource;
    void *x = resource.allocate_async(BYTES, 256, bed.one);
    put(bed.one, x, BYTES, 1);
    copy.deallocate_async(x, BYTES, 256, bed.one);
    void *y = get_by_reference(resource, BYTES, bed.one);
    assert_ptr_equal(x, y);
    put(bed.one, y, BYTES, 2);
    expect(bed.one, y, BYTES, 2);
    give_by_reference(resource, y, BYTES, bed.one);
    assert_ptr_equal(copy.allocate_async(BYTES, bed.one), x);
    resource.deallocate_async(x, BYTES, bed.one);
    assert_int_equal(cache_of(bed.buffers).misses, 1);
    bed.end();
}

// ---- at once -----------------------------------------------------------------------------------

TEST(without_a_stream_the_host_waits_for_the_last_use)
{
    Bed bed;
    device_resource resource(bed.buffers);
    void *x = resource.allocate(bed.one, BYTES);
    for (uint8_t i = 0; i < 20; i++)
        put(bed.one, x, BYTES, i);
    resource.deallocate(bed.one, x, BYTES);
    assert_true(fake_pending() > 0);
    fake_count_anew();
    void *y = resource.allocate_sync(BYTES);
    assert_ptr_equal(x, y);
    assert_int_equal(fake_calls("cuStreamSynchronize"), 1);
    put(bed.other, y, BYTES, 30); // no stream was told of the others' work: it is over
    expect_order();
    expect(bed.other, y, BYTES, 30);
    fake_synchronise(bed.other);
    fake_count_anew();
    resource.deallocate_sync(y, BYTES);
    assert_ptr_equal(resource.allocate(BYTES), x);
    resource.deallocate(x, BYTES);
    assert_int_equal(fake_calls("cuMemAllocFromPoolAsync"), 0);
    bed.end();
}

TEST(memory_comes_and_goes_beside_a_capture)
{
    Bed bed;
    device_resource resource(bed.buffers);
    void *x = resource.allocate_sync(BYTES);
    void *blocking = fake_stream_create_blocking(0); /* the legacy stream is not to be used now */
    fake_capture_begin(blocking);
    resource.deallocate_sync(x, BYTES);
    assert_int_equal(cache_of(bed.buffers).live, 0);
    assert_ptr_equal(resource.allocate_sync(BYTES), x);
    resource.deallocate_sync(x, BYTES);
    expect_capture_whole(blocking);
    fake_stream_destroy(blocking);
    bed.end();
}

TEST(what_is_refused_leaves_nothing_live)
{
    Bed bed;
    fake_fail("cuStreamSynchronize", 1, 1, false);
    assert_int_equal(tide_buffer_acquire_ready(bed.buffers, BYTES, 0).generation, 0);
    assert_int_equal(tide_error_status(), TIDE_ERROR_DEVICE);
    assert_int_equal(fake_failures(), 1);
    expect_status(tide_buffer_release_idle(bed.buffers, tide_buffer{}), TIDE_ERROR_STALE);
    expect_status(tide_buffer_release_idle(nullptr, tide_buffer{}), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_buffer_acquire_ready(nullptr, 1, 0).generation, 0);
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    bed.end();
}

// ---- kinds, refusals ---------------------------------------------------------------------------

TEST(the_host_writes_pinned_memory)
{
    Bed bed;
    pinned_resource resource(bed.buffers, TIDE_BUFFER_TAG(3));
    assert_true(resource != pinned_resource(bed.buffers));
    assert_true(resource == pinned_resource(bed.buffers, TIDE_BUFFER_TAG(3)));
    auto *x = static_cast<uint8_t *>(resource.allocate(bed.one, BYTES));
    x[BYTES - 1] = 1;
    assert_int_equal(fake_calls("cuMemHostAlloc"), 1);
    resource.deallocate(bed.one, x, BYTES);
    x = static_cast<uint8_t *>(resource.allocate_sync(BYTES));
    x[0] = 1;
    resource.deallocate_sync(x, BYTES);
    bed.end();
}

template <class Call> tide_status status_thrown(Call call)
{
    try {
        call();
    } catch (const tidepool::error &error) {
        assert_true(std::strlen(error.what()) > 0);
        return error.status();
    }
    return TIDE_OK;
}

TEST(what_cannot_be_had_is_thrown)
{
    Bed bed;
    device_resource resource(bed.buffers);
    void *x = resource.allocate(bed.one, 1, 256);
    assert_int_equal(reinterpret_cast<uintptr_t>(x) % 256, 0);
    resource.deallocate(bed.one, x, 1, 256);
    assert_int_equal(status_thrown([&] { resource.allocate(bed.one, 1, 512); }),
                     TIDE_ERROR_ARGUMENT);
    assert_int_equal(status_thrown([&] { resource.allocate_sync(1, 96); }), TIDE_ERROR_ARGUMENT);
    fake_limit(1 << 20);
    assert_int_equal(status_thrown([&] { resource.allocate(bed.one, 1 << 21); }),
                     TIDE_ERROR_MEMORY);
    assert_int_equal(status_thrown([&] { resource.allocate_sync(1 << 21); }), TIDE_ERROR_MEMORY);
    fake_limit(static_cast<size_t>(256) << 20);
    resource.deallocate(bed.one, nullptr, 8);
    resource.deallocate_sync(nullptr, 8);
    resource.deallocate(bed.one, &bed, 8);
    assert_int_equal(tide_error_status(), TIDE_ERROR_STALE);
    bed.end();
}

} // namespace

int main()
{
    return RUN_TESTS("resource");
}
#endif
