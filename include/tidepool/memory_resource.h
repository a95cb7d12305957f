/* SPDX-License-Identifier: MIT */
/* Buffers of a CUDA device as a memory resource of CCCL (cuda::mr), for C++ programs and libraries
 * that take their memory from such:
 *
 *   tidepool::device_resource resource(buffers);            // or tide_buffers_shared(device, 0)
 *   void *x = resource.allocate(stream, bytes);             // for work on the stream
 *   resource.deallocate(stream, x, bytes);                  // behind the work that is queued there
 *   cuda::mr::resource_ref<cuda::mr::device_accessible> it = resource;
 *
 * It names the buffers and owns nothing: copies are equal, and the buffers have to outlive all of
 * them, and their memory. Any thread.
 *
 * CCCL has renamed these functions, so there are both spellings: allocate(stream, bytes) and
 * allocate_sync(bytes) of now, allocate_async(bytes, stream) and allocate(bytes) of CCCL 2 and 3.0.
 *
 *   with a stream  as tide_buffer_acquire_on and tide_buffer_release_on: no host waits
 *   without        as tide_buffer_acquire_ready and tide_buffer_release_idle: the memory may be
 *                  used at once, by any stream; and all its use is over when it comes back
 *
 * RMM's resources and containers take it (RMM 26: by the concept). The other way round, acquire_from
 * makes an array of a scope of memory that a resource of theirs gives.
 *
 * TIDE_MEMORY_RESOURCE is defined where all this is: in C++, where CCCL's headers are found (CUDA's
 * include/cccl, or include before CUDA 13, is in the compiler's search path, and so is the runtime
 * API's header). Elsewhere the header declares nothing. Before CCCL 3.1 include it before other
 * headers of CCCL, or define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE. */
#ifndef TIDEPOOL_MEMORY_RESOURCE_H
#define TIDEPOOL_MEMORY_RESOURCE_H

#include <tidepool/buffers.h>

#if defined(__cplusplus) && defined(__has_include)
#if __has_include(<cuda/memory_resource>) && __has_include(<cuda_runtime_api.h>)
#define TIDE_MEMORY_RESOURCE
#endif
#endif

#ifdef TIDE_MEMORY_RESOURCE

#ifndef LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
#endif

#include <cuda/memory_resource>
#include <cuda/stream_ref>
#include <memory>
#include <tidepool/array.h>
#include <tidepool/tidepool.hpp>

namespace tidepool
{

/* Kind: TIDE_BUFFER_DEVICE or _IPC; or TIDE_BUFFER_PINNED or _MANAGED, which the host may use, too.
 * An allocation throws tidepool::error; without exceptions the program ends there. Any alignment up
 * to 256 is had; beyond that it throws. While a graph is captured on a stream memory is had and given
 * back as tide_buffer_acquire_on and tide_buffer_release_on say (tidepool/buffers.h). A pointer that is
 * not the buffers' leaves a message. */
template <uint32_t Kind> class buffers_resource
{
    static_assert(Kind != TIDE_BUFFER_HOST && Kind <= TIDE_BUFFER_IPC,
                  "work on streams uses memory of the device, pinned or managed memory");

  public:
    static constexpr size_t alignment_max = 256;

    /* `tag`: the buffers' tag, TIDE_BUFFER_TAG(0) to TIDE_BUFFER_TAG(15). */
    explicit buffers_resource(tide_buffers *buffers, uint32_t tag = 0) noexcept
        : buffers_(buffers), flags_(Kind | tag)
    {
    }

    tide_buffers *buffers() const noexcept
    {
        return buffers_;
    }

    /* ---- in the order of a stream ---- */

    void *allocate(cuda::stream_ref stream, size_t bytes, size_t alignment = alignment_max)
    {
        refuse_beyond(alignment);
        return checked(tide_buffer_acquire_on(buffers_, bytes, flags_, stream.get()), alignment);
    }
    void deallocate(cuda::stream_ref stream, void *data, size_t, size_t = alignment_max) noexcept
    {
        if (data != nullptr)
            (void)tide_buffer_release_on(buffers_, tide_buffer_of(buffers_, data), stream.get());
    }
    void *allocate_async(size_t bytes, size_t alignment, cuda::stream_ref stream)
    {
        return allocate(stream, bytes, alignment);
    }
    void *allocate_async(size_t bytes, cuda::stream_ref stream)
    {
        return allocate(stream, bytes);
    }
    void deallocate_async(void *data, size_t bytes, size_t alignment,
                          cuda::stream_ref stream) noexcept
    {
        deallocate(stream, data, bytes, alignment);
    }
    void deallocate_async(void *data, size_t bytes, cuda::stream_ref stream) noexcept
    {
        deallocate(stream, data, bytes);
    }

    /* ---- at once ---- */

    void *allocate_sync(size_t bytes, size_t alignment = alignment_max)
    {
        refuse_beyond(alignment);
        return checked(tide_buffer_acquire_ready(buffers_, bytes, flags_), alignment);
    }
    void deallocate_sync(void *data, size_t, size_t = alignment_max) noexcept
    {
        if (data != nullptr)
            (void)tide_buffer_release_idle(buffers_, tide_buffer_of(buffers_, data));
    }
    void *allocate(size_t bytes, size_t alignment = alignment_max)
    {
        return allocate_sync(bytes, alignment);
    }
    void deallocate(void *data, size_t bytes, size_t alignment = alignment_max) noexcept
    {
        deallocate_sync(data, bytes, alignment);
    }

    /* ---- what it is ---- */

    friend bool operator==(const buffers_resource &a, const buffers_resource &b) noexcept
    {
        return a.buffers_ == b.buffers_ && a.flags_ == b.flags_;
    }
    friend bool operator!=(const buffers_resource &a, const buffers_resource &b) noexcept
    {
        return !(a == b);
    }
    friend constexpr void get_property(const buffers_resource &,
                                       cuda::mr::device_accessible) noexcept
    {
    }

  private:
    static void refuse_beyond(size_t alignment)
    {
        if (alignment > alignment_max || (alignment & (alignment - 1)) != 0)
            raise_error(
                error(TIDE_ERROR_ARGUMENT, "buffers are aligned to powers of two, 256 at most"));
    }
    /* All that the driver gives is aligned to 256 bytes or more. */
    void *checked(tide_buffer buffer, size_t alignment)
    {
        if (buffer.generation == 0)
            raise_error();
        void *data = tide_buffer_pointer(buffers_, buffer);
        if (reinterpret_cast<uintptr_t>(data) % alignment == 0)
            return data;
        (void)tide_buffer_release_idle(buffers_, buffer);
        raise_error(error(TIDE_ERROR_ARGUMENT, "the device's memory is not aligned so"));
    }

    tide_buffers *buffers_;
    uint32_t flags_;
};

using device_resource = buffers_resource<TIDE_BUFFER_DEVICE>;
using pinned_resource = buffers_resource<TIDE_BUFFER_PINNED>;
using managed_resource = buffers_resource<TIDE_BUFFER_MANAGED>;

/* The host may use these, too. */
inline constexpr void get_property(const pinned_resource &, cuda::mr::host_accessible) noexcept
{
}
inline constexpr void get_property(const managed_resource &, cuda::mr::host_accessible) noexcept
{
}

/* ---- memory of another resource, in a scope ---- */

template <class Resource> struct lent_memory {
    Resource resource;
    cuda::stream_ref stream;
    size_t bytes;

    void *take()
    {
#if CCCL_VERSION >= 3001000
        return resource.allocate(stream, bytes, 256);
#else
        return resource.allocate_async(bytes, 256, stream);
#endif
    }
    static void give_back(void *data, void *self)
    {
        std::unique_ptr<lent_memory> lent(static_cast<lent_memory *>(self));
#if CCCL_VERSION >= 3001000
        lent->resource.deallocate(lent->stream, data, lent->bytes, 256);
#else
        lent->resource.deallocate_async(data, lent->bytes, 256, lent->stream);
#endif
    }
};

/* An array of the scope whose memory is any resource's of CCCL, RMM's for one, of which a copy is
 * kept: allocated on `stream`, the pool's, and given back there once that has come past the end of
 * the scope. What the resource throws is thrown; NULL with a message as for tide_array_wrap. */
template <class T, class Resource>
tide_array *acquire_from(tide_pool *pool, Resource resource, cuda::stream_ref stream, size_t n)
{
    using lent_type = lent_memory<Resource>;
    std::unique_ptr<lent_type> lent(new lent_type{resource, stream, n * sizeof(T)});
    const int64_t extent = static_cast<int64_t>(n);
    tide_array_source source = {};
    source.data = lent->take();
    source.type = type_of<T>();
    source.ndim = 1;
    source.shape = &extent;
    source.deleter = lent_type::give_back;
    source.context = lent.release();
    return tide_array_wrap(pool, &source);
}

} // namespace tidepool

#endif
#endif
