/* SPDX-License-Identifier: MIT */
/* Tidepool in C++17 and later: what tidepool.h has, as types. Header only.
 *
 *   tidepool::pool pool({.name = "fft", .check = 2});         a pool of one's own (C++17: pool pool;)
 *   auto [x, i] = tidepool::frame<double, int>(pool, n, m);   a scope, and x and i in it
 *   tidepool::scope scope(pool);                              a scope that is told no types
 *   tidepool::scope_of<double, int> scope(pool);              one that is
 *   auto x = tidepool::acquire<double>(pool, n);              n elements, until the scope ends
 *   auto a = tidepool::acquire_md<double>(pool, rows, 3);     std::mdspan, where there is one
 *   tidepool::resource memory(pool);                          for std::pmr containers in this scope
 *   tidepool::buffer batch(buffers, bytes);                   memory that outlives scopes
 *
 * What fails throws tidepool::error, whose what() is the library's message; nothing has changed then.
 * With -fno-exceptions the program ends with that message. Arrays are tidepool::span<T>, std::span from
 * C++20 on. Elements are raw memory, so T must be trivially copyable and destructible.
 *
 * Costs are those of the macros: frame and scope_of are inlined, scope is a call. A scope that is to learn
 * what it acquires is a call site, which needs a macro: TIDE_SCOPE(pool). Threads, lifetimes and limits
 * are those of tidepool/pool.h, scope.h and acquire.h. */
#ifndef TIDEPOOL_TIDEPOOL_HPP
#define TIDEPOOL_TIDEPOOL_HPP

#include <tidepool/buffers.h>
#include <tidepool/dynamic.h>
#include <tidepool/scope.h>
#include <tidepool/upkeep.h>
#ifdef __cplusplus

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory_resource>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>
#if __has_include(<span>) && __cplusplus >= 202002L
#include <span>
#endif
#if __has_include(<mdspan>) && __cplusplus > 202002L
#include <mdspan>
#endif

#define TIDE_ALWAYS __attribute__((always_inline)) inline

namespace tidepool
{

/* ---- errors ------------------------------------------------------------------------------------ */

/* The calling thread's last failure: its status and, cut at 255 bytes, its message. */
class error : public std::bad_alloc
{
  public:
    error(tide_status status, const char *words) noexcept : status_(status)
    {
        std::strncpy(words_, words, sizeof words_ - 1);
    }
    const char *what() const noexcept override
    {
        return words_;
    }
    tide_status status() const noexcept
    {
        return status_;
    }

  private:
    char words_[256] = {};
    tide_status status_;
};

[[noreturn]] TIDE_COLD inline void raise_error(const error &what = {tide_error_status(),
                                                                    tide_error_message()})
{
#ifdef __cpp_exceptions
    throw what;
#else
    std::fprintf(stderr, "tidepool: %s\n", what.what());
    std::abort();
#endif
}

inline void check(tide_status status)
{
    if (TIDE_UNLIKELY(status != TIDE_OK))
        raise_error();
}

/* ---- arrays ------------------------------------------------------------------------------------ */

#if defined(__cpp_lib_span)
template <class T> using span = std::span<T>;
#else
template <class T> class span
{
  public:
    constexpr span() noexcept = default;
    constexpr span(T *data, size_t size) noexcept : data_(data), size_(size)
    {
    }
    template <class U, class = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>>
    constexpr span(const span<U> &other) noexcept : data_(other.data()), size_(other.size())
    {
    }
    constexpr T *data() const noexcept
    {
        return data_;
    }
    constexpr size_t size() const noexcept
    {
        return size_;
    }
    constexpr bool empty() const noexcept
    {
        return size_ == 0;
    }
    constexpr T *begin() const noexcept
    {
        return data_;
    }
    constexpr T *end() const noexcept
    {
        return data_ + size_;
    }
    constexpr T &operator[](size_t i) const noexcept
    {
        return data_[i];
    }

  private:
    T *data_ = nullptr;
    size_t size_ = 0;
};
#endif

/* Where a call stands in the program, for messages. */
struct place {
    const char *file, *function;
    uint32_t line;
    constexpr place(const char *f = __builtin_FILE(), const char *in = __builtin_FUNCTION(),
                    uint32_t l = __builtin_LINE()) noexcept
        : file(f), function(in), line(l)
    {
    }
};

/* n elements, uninitialised, until the open scope of the pool ends. */
template <class T> TIDE_INLINE span<T> acquire(tide_pool *pool, size_t n, place at = {})
{
    void *data = tide_acquire_inline(pool, type_of<T>(), n, at.file, at.function, at.line);
    if (TIDE_UNLIKELY(data == nullptr))
        raise_error();
    return {static_cast<T *>(data), n};
}

#if defined(__cpp_lib_mdspan)
/* An array of so many rows, columns …, uninitialised, last index fastest, until the open scope of the
 * pool ends. */
template <class T, class... N>
TIDE_INLINE std::mdspan<T, std::dextents<size_t, sizeof...(N)>> acquire_md(tide_pool *pool, N... n)
{
    size_t count = 1;
    bool overflows = (__builtin_mul_overflow(count, static_cast<size_t>(n), &count) || ...);
    return std::mdspan<T, std::dextents<size_t, sizeof...(N)>>(
        acquire<T>(pool, overflows ? SIZE_MAX : count).data(), static_cast<size_t>(n)...);
}
#endif

/* ---- pools ------------------------------------------------------------------------------------- */

/* A pool of one's own, destroyed with this object, at the end of which no scope of it may be open (else
 * it stays: assert). A variable of it stands for a tide_pool * everywhere. */
class pool
{
  public:
    pool() : pool(tide_pool_options())
    {
    }
    explicit pool(const tide_pool_options &options) : pool_(tide_pool_create(&options))
    {
        if (pool_ == nullptr)
            raise_error();
    }
    pool(pool &&other) noexcept : pool_(std::exchange(other.pool_, nullptr))
    {
    }
    pool &operator=(pool &&other) noexcept
    {
        std::swap(pool_, other.pool_);
        return *this;
    }
    ~pool()
    {
        [[maybe_unused]] tide_status status = tide_pool_destroy(pool_);
        assert(status == TIDE_OK);
    }
    operator tide_pool *() const &noexcept
    {
        return pool_;
    }
    operator tide_pool *() const && = delete; /* it would be gone before the scope that has it */

  private:
    tide_pool *pool_;
};

/* The calling thread's own. */
inline tide_pool *local()
{
    tide_pool *pool = tide_pool_local();
    if (TIDE_UNLIKELY(pool == nullptr))
        raise_error();
    return pool;
}

/* ---- scopes ------------------------------------------------------------------------------------ */

/* None of the following can be copied, moved or made by new: a scope is a variable of its block. */
class block_only
{
  protected:
    block_only() = default;
    block_only(const block_only &) = delete;
    block_only &operator=(const block_only &) = delete;
    static void *operator new(size_t) = delete;
    static void *operator new[](size_t) = delete;
};

/* A scope that is told no types. With a site (tide_site_register) it is a use of that site. */
class scope : block_only
{
  public:
    explicit scope(tide_pool *pool, tide_site *site = nullptr)
    {
        check(tide_scope_enter(pool, site, &scope_));
    }
    ~scope()
    {
        (void)tide_scope_leave(&scope_);
    }

  private:
    tide_scope scope_;
};

/* A scope whose types (1 to 8) are named. It may acquire others. */
template <class... T> class scope_of : block_only
{
    static_assert(sizeof...(T) >= 1 && sizeof...(T) <= TIDE_TYPED_MAX,
                  "a scope names one to eight types");

  public:
    TIDE_ALWAYS explicit scope_of(tide_pool *pool, place at = {})
    {
        const tide_type types[] = {type_of<T>()...};
        tide_typed_enter(&scope_, pool, sizeof...(T), types, at.file, at.function, at.line);
    }
    TIDE_ALWAYS ~scope_of()
    {
        tide_typed_leave(&scope_);
    }

  private:
    tide_typed_scope scope_;
};

/* A scope and all its arrays (1 to 8): auto [x, i] = frame<double, int>(pool, n, m). The arrays are
 * spans; if one cannot be had, the frame throws and leaves nothing behind. */
template <class... T> class frame : block_only
{
    static_assert(sizeof...(T) >= 1 && sizeof...(T) <= TIDE_TYPED_MAX,
                  "a frame has one to eight arrays");
    template <class> using size_for = size_t;

  public:
    TIDE_ALWAYS explicit frame(tide_pool *pool, size_for<T>... n, place at = {}) : counts_{n...}
    {
        const tide_type types[] = {type_of<T>()...};
        tide_frame_enter(&scope_, pool, sizeof...(T), types, counts_, data_, at.file, at.function,
                         at.line);
        if (TIDE_UNLIKELY(data_[0] == nullptr)) {
            tide_typed_leave(&scope_);
            raise_error();
        }
    }
    TIDE_ALWAYS ~frame()
    {
        tide_typed_leave(&scope_);
    }
    template <size_t I>
    TIDE_ALWAYS span<std::tuple_element_t<I, std::tuple<T...>>> get() const noexcept
    {
        return {static_cast<std::tuple_element_t<I, std::tuple<T...>> *>(data_[I]), counts_[I]};
    }

  private:
    tide_typed_scope scope_;
    size_t counts_[sizeof...(T)];
    void *data_[sizeof...(T)];
};

/* ---- buffers ----------------------------------------------------------------------------------- */

/* A buffer of one's own, released with this object, by whichever thread that is. */
class buffer
{
  public:
    buffer(tide_buffers *buffers, size_t bytes)
        : buffers_(buffers), handle_(tide_buffer_acquire_pointer(buffers, bytes, &data_))
    {
        if (data_ == nullptr)
            raise_error();
    }
    buffer(buffer &&other) noexcept
        : buffers_(other.buffers_), data_(std::exchange(other.data_, nullptr)),
          handle_(other.handle_)
    {
    }
    buffer &operator=(buffer &&other) noexcept
    {
        std::swap(buffers_, other.buffers_);
        std::swap(data_, other.data_);
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~buffer()
    {
        if (data_ != nullptr)
            (void)tide_buffer_release(buffers_, handle_);
    }
    /* All of its memory, as elements: what was asked for, or more. */
    template <class T> span<T> as() const noexcept
    {
        static_assert(is_element<T>());
        return {static_cast<T *>(data_), tide_buffer_bytes(buffers_, handle_) / sizeof(T)};
    }
    tide_buffer handle() const noexcept
    {
        return handle_;
    }

  private:
    tide_buffers *buffers_;
    void *data_ = nullptr;
    tide_buffer handle_;
};

/* ---- containers -------------------------------------------------------------------------------- */

/* Memory for std::pmr containers, cut from arrays of a pool that grow geometrically, and given back
 * with the scope in which this object was made: so both it and the containers must be younger than the
 * scope, and than the last tide_pool_reset. What a container frees is used again only if it was the last
 * that was cut. All new arrays belong to that scope: one that is wanted while another is open inside it
 * throws (TIDE_ERROR_STATE). */
class resource : public std::pmr::memory_resource
{
  public:
    explicit resource(tide_pool *pool, size_t first_bytes = 4096)
        : pool_(pool), depth_(tide_pool_depth(pool)), next_bytes_(first_bytes)
    {
    }
    resource(const resource &) = delete;
    resource &operator=(const resource &) = delete;

  private:
    void *do_allocate(size_t bytes, size_t align) override
    {
        char *data = aligned(top_, align);
        if (TIDE_UNLIKELY(top_ == nullptr || bytes > static_cast<size_t>(end_ - top_) ||
                          data + bytes > end_))
            data = aligned(more(bytes, align), align);
        top_ = data + bytes;
        return data;
    }
    void do_deallocate(void *data, size_t bytes, size_t) override
    {
        if (static_cast<char *>(data) + bytes == top_)
            top_ = static_cast<char *>(data);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
        return this == &other;
    }
    static char *aligned(char *data, size_t align) noexcept
    {
        uintptr_t at = reinterpret_cast<uintptr_t>(data);
        return data + ((at + align - 1) / align * align - at);
    }
    TIDE_COLD char *more(size_t bytes, size_t align)
    {
        if (tide_pool_depth(pool_) != depth_)
            raise_error(error(TIDE_ERROR_STATE,
                              "tidepool::resource: an array is wanted inside of another scope "
                              "than the resource's, and would end with it"));
        size_t least; /* arrays begin at multiples of 64 */
        if (__builtin_add_overflow(bytes, align > 64 ? align : 0, &least))
            least = SIZE_MAX;
        size_t size = least > next_bytes_ ? least : next_bytes_;
        void *data = tide_acquire_type(pool_, TIDE_U8, size);
        if (data == nullptr && size > least) /* there may be enough for this alone */
            data = tide_acquire_type(pool_, TIDE_U8, size = least);
        if (data == nullptr)
            raise_error();
        top_ = static_cast<char *>(data);
        end_ = top_ + size;
        next_bytes_ = 2 * size;
        return top_;
    }

    tide_pool *pool_;
    size_t depth_;
    char *top_ = nullptr, *end_ = nullptr;
    size_t next_bytes_;
};

/* For allocators that are part of a type: std::vector<int, tidepool::allocator<int>>. */
template <class T> using allocator = std::pmr::polymorphic_allocator<T>;

} // namespace tidepool

/* What structured bindings ask for. */
template <class... T> struct std::tuple_size<tidepool::frame<T...>>
    : std::integral_constant<size_t, sizeof...(T)> {
};
template <size_t I, class... T> struct std::tuple_element<I, tidepool::frame<T...>> {
    using type = tidepool::span<std::tuple_element_t<I, std::tuple<T...>>>;
};

#endif
#endif
