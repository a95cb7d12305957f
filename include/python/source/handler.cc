/* SPDX-License-Identifier: MIT */
/* NumPy's memory from buffers: a memory handler (NEP 49). No Python runs in its functions.
 *
 * Sizes below `least` are left to NumPy's own handler, which keeps a cache of small blocks. Whose a
 * block is, its address says: NumPy's count of bytes at the free can differ from that at the
 * allocation (arrays with an extent of 0), and an array may come from either. */
#include "core.h"

#include <atomic>
#include <cstring>

#include <tidepool/buffers.h>

namespace core
{

/* Buffers are aligned to 64 bytes at least: an address that is not is none of ours. */
static constexpr uintptr_t alignment = 64;

static struct {
    tide_buffers *buffers;
    PyDataMem_Handler *own;   /* NumPy's */
    PyDataMemAllocator plain; /* its functions */
    size_t least;             /* bytes from which buffers are used */
} state = {nullptr, nullptr, {}, size_t(64) << 10};

static bool may_be_buffer(const void *pointer)
{
    return (reinterpret_cast<uintptr_t>(pointer) & (alignment - 1)) == 0;
}

static tide_buffer buffer_at(void *pointer)
{
    return may_be_buffer(pointer) ? tide_buffer_of(state.buffers, pointer) : tide_buffer{0, 0};
}

/* All addresses that the functions below ever handed out lie between these. Most small blocks that
 * are aligned by chance lie elsewhere, on the heap, and are not looked up. Whoever frees an address
 * had it from who got it, and with it the bounds. */
static std::atomic<uintptr_t> lowest{UINTPTR_MAX}, highest{0};

static void *hand_out(void *pointer)
{
    if (pointer == nullptr)
        return nullptr;
    uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
    uintptr_t low = lowest.load(std::memory_order_relaxed);
    uintptr_t high = highest.load(std::memory_order_relaxed);
    while (address < low &&
           !lowest.compare_exchange_weak(low, address, std::memory_order_relaxed)) {
    }
    while (address > high &&
           !highest.compare_exchange_weak(high, address, std::memory_order_relaxed)) {
    }
    return pointer;
}

static bool is_handed_out(const void *pointer)
{
    uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
    return address >= lowest.load(std::memory_order_relaxed) &&
           address <= highest.load(std::memory_order_relaxed);
}

/* What small arrays do comes straight from the entry of each function, by a jump: the rest is in
 * functions of its own. */
[[gnu::noinline]] static void *malloc_buffer(size_t size)
{
    void *pointer;
    (void)tide_buffer_acquire_pointer(state.buffers, size, &pointer); /* found by its address */
    return hand_out(pointer);
}

static void *handler_malloc(void *, size_t size)
{
    if (TIDE_LIKELY(size < state.least))
        return state.plain.malloc(state.plain.ctx, size);
    return malloc_buffer(size);
}

static void *handler_calloc(void *, size_t count, size_t each)
{
    size_t size = 0;
    if (__builtin_mul_overflow(count, each, &size))
        return nullptr;
    if (TIDE_LIKELY(size < state.least))
        return state.plain.calloc(state.plain.ctx, count, each);
    tide_buffer buffer = tide_buffer_acquire_zeroed(state.buffers, size);
    return hand_out(buffer.generation != 0 ? tide_buffer_pointer(state.buffers, buffer) : nullptr);
}

[[gnu::noinline]] static void free_aligned(void *pointer, size_t size)
{
    tide_buffer buffer = {0, 0};
    if (is_handed_out(pointer))
        buffer = tide_buffer_of(state.buffers, pointer);
    if (buffer.generation == 0)
        state.plain.free(state.plain.ctx, pointer, size);
    else
        (void)tide_buffer_release(state.buffers, buffer);
}

static void handler_free(void *, void *pointer, size_t size)
{
    if (TIDE_LIKELY(!may_be_buffer(pointer)))
        state.plain.free(state.plain.ctx, pointer, size);
    else
        free_aligned(pointer, size);
}

/* In place within the bucket, unless three quarters of it would lie idle. */
static void *handler_realloc(void *context, void *pointer, size_t size)
{
    tide_buffer buffer = pointer != nullptr ? buffer_at(pointer) : tide_buffer{0, 0};
    if (buffer.generation == 0)
        return state.plain.realloc(state.plain.ctx, pointer, size);
    size_t room = tide_buffer_bytes(state.buffers, buffer);
    if (size <= room && size >= room / 4)
        return pointer;
    void *moved = handler_malloc(context, size);
    if (moved == nullptr)
        return nullptr;
    memcpy(moved, pointer, size < room ? size : room);
    (void)tide_buffer_release(state.buffers, buffer);
    return moved;
}

static PyDataMem_Handler handler = {
    "tidepool", 1, {nullptr, handler_malloc, handler_calloc, handler_realloc, handler_free}};

tide_buffers *process_buffers()
{
    if (state.buffers == nullptr) {
        tide_buffers_options options = {};
        options.name = "python";
        state.buffers = tide_buffers_create(nullptr, &options);
        if (state.buffers == nullptr)
            set_error();
    }
    return state.buffers;
}

/* The capsule that NumPy keeps with each array. It lives as long as the process. */
static PyObject *handler_capsule()
{
    static PyObject *capsule;
    if (capsule == nullptr) {
        PyDataMem_Handler *own = static_cast<PyDataMem_Handler *>(
            PyCapsule_GetPointer(PyDataMem_DefaultHandler, "mem_handler"));
        if (own == nullptr || process_buffers() == nullptr)
            throw nb::python_error();
        state.own = own;
        state.plain = own->allocator;
        capsule = PyCapsule_New(&handler, "mem_handler", nullptr);
        if (capsule == nullptr)
            throw nb::python_error();
    }
    return capsule;
}

static nb::object handler_get()
{
    PyObject *now = PyDataMem_GetHandler();
    if (now == nullptr)
        throw nb::python_error();
    return nb::steal(now);
}

/* Is it, though setting it failed? Python may say that it had no memory after it has set a
 * context's variable. The exception stays, or goes. */
static bool handler_is_set(PyObject *capsule)
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    PyObject *now = PyDataMem_GetHandler();
    PyErr_Restore(kind, value, trace);
    Py_XDECREF(now);
    if (now == capsule)
        PyErr_Clear();
    return now == capsule;
}

/* NumPy's own handler for one context, though another may serve all that chose none. */
static PyObject *own_capsule()
{
    static PyObject *capsule;
    (void)handler_capsule();
    if (capsule == nullptr)
        capsule = PyCapsule_New(state.own, "mem_handler", nullptr);
    if (capsule == nullptr)
        throw nb::python_error();
    return capsule;
}

/* NumPy's own functions for what is allocated, ours for what is freed: it may be a buffer. */
static PyDataMem_Handler retired = {"default_allocator", 1, {}};

/* NumPy asks its default capsule wherever a context has chosen no handler. So what that points to
 * serves all threads, those that are there and those that come. Arrays keep the capsule, and are
 * freed by what it points to then: never again by NumPy's own handler, which knows no buffers. */
static void handler_everywhere(bool on)
{
    (void)own_capsule();
    retired.allocator = state.plain;
    retired.allocator.realloc = handler_realloc;
    retired.allocator.free = handler_free;
    PyDataMem_Handler *now = static_cast<PyDataMem_Handler *>(
        PyCapsule_GetPointer(PyDataMem_DefaultHandler, "mem_handler"));
    PyDataMem_Handler *wanted = on ? &handler : now == &handler ? &retired : now;
    if (now == nullptr || PyCapsule_SetPointer(PyDataMem_DefaultHandler, wanted) != 0)
        throw nb::python_error();
}

/* Puts it in force in this thread's context; the one before it is the result. */
static nb::object handler_set(nb::object wanted)
{
    PyObject *capsule = wanted.is_none() ? handler_capsule() : wanted.ptr();
    nb::object before = handler_get();
    PyObject *set = PyDataMem_SetHandler(capsule);
    if (set == nullptr && !handler_is_set(capsule))
        throw nb::python_error();
    Py_XDECREF(set);
    return before;
}

static bool handler_in_force()
{
    return PyCapsule_GetPointer(handler_get().ptr(), "mem_handler") == &handler;
}

/* Is the array's own memory a buffer? Views own none. */
static bool handler_holds(nb::object array)
{
    if (!PyArray_Check(array.ptr()))
        raise(PyExc_TypeError, "not an array");
    void *data = PyArray_DATA(reinterpret_cast<PyArrayObject *>(array.ptr()));
    return state.buffers != nullptr && buffer_at(data).generation != 0;
}

/* Pages that were handed out again with their contents mapped. */
static uint64_t pages_reused(const std::vector<tide_bucket_statistics> &buckets)
{
    uint64_t pages = 0;
    for (const tide_bucket_statistics &bucket : buckets)
        pages += bucket.hits * (bucket.bytes / 4096);
    return pages;
}

static nb::dict handler_stats()
{
    tide_buffers *buffers = process_buffers();
    if (buffers == nullptr)
        throw nb::python_error();
    tide_buffers_statistics s;
    check(tide_buffers_stats(buffers, &s, nullptr, 0));
    std::vector<tide_bucket_statistics> buckets(s.buckets + 16);
    check(tide_buffers_stats(buffers, &s, buckets.data(), buckets.size()));
    buckets.resize(s.buckets < buckets.size() ? s.buckets : buckets.size());
    nb::dict out = make_dict();
    out["hits"] = s.hits;
    out["misses"] = s.misses;
    out["live"] = s.live;
    out["cached"] = s.cached;
    out["bytes_live"] = s.bytes_live;
    out["bytes_cached"] = s.bytes_cached;
    out["bytes_high"] = s.bytes_high;
    out["page_faults_saved"] = pages_reused(buckets);
    return out;
}

static size_t handler_trim()
{
    return state.buffers != nullptr ? tide_buffers_trim(state.buffers, 0).bytes : 0;
}

static void handler_set_least(const Integer &bytes)
{
    state.least = size_of(bytes, "set_least: nbytes");
}

void bind_handler(nb::module_ &m)
{
    m.def("handler_set", &handler_set, nb::arg("capsule").none());
    m.def("handler_default", [] { return nb::borrow(own_capsule()); });
    m.def("handler_everywhere", &handler_everywhere, nb::arg("on"));
    m.def("handler_in_force", &handler_in_force);
    m.def("handler_holds", &handler_holds, nb::arg("array"));
    m.def("handler_stats", &handler_stats);
    m.def("handler_trim", &handler_trim);
    m.def("handler_least", [] { return state.least; });
    m.def("handler_set_least", &handler_set_least, nb::arg("bytes").none());
}

} // namespace core
