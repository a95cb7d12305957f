/* SPDX-License-Identifier: MIT */
/* Buffers as Python objects: with the buffer protocol and DLPack. */
#include "core.h"

#include "dlpack.h"
#include "gil.h"

#include <memory>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <tidepool/buffers.h>
#include <tidepool/dlpack.h>

namespace core
{

/* Each buffer holds its instance, so that this is destroyed when nothing of it is live. */
struct Instance {
    tide_buffers *buffers = nullptr;
    Instance() = default;
    Instance(const Instance &) = delete;
    Instance &operator=(const Instance &) = delete;
    ~Instance()
    {
        if (buffers != nullptr)
            (void)tide_buffers_destroy(buffers);
    }
};

struct Buffers {
    std::shared_ptr<Instance> instance;
    std::string name;
};

struct Buffer {
    std::shared_ptr<Instance> instance; /* empty: released */
    tide_buffer handle;
    void *data;
    size_t bytes, asked;
    size_t exports;           /* memoryviews, arrays and tensors that use it now */
    int64_t extent, step = 1; /* as a tensor */

    Buffer(const std::shared_ptr<Instance> &from, tide_buffer acquired, size_t asked_for) noexcept
        : instance(from), handle(acquired), data(tide_buffer_pointer(instance->buffers, acquired)),
          bytes(tide_buffer_bytes(instance->buffers, acquired)), asked(asked_for), exports(0),
          extent(int64_t(asked_for))
    {
    }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    ~Buffer()
    {
        if (instance)
            (void)tide_buffer_release(instance->buffers, handle);
    }
};

static nb::handle buffer_type;

/* Python can make an object of which no constructor has run. */
static Buffer *buffer_in(nb::handle self)
{
    return nb::inst_ready(self) ? nb::inst_ptr<Buffer>(self) : nullptr;
}

static Buffer &buffer_of(nb::handle self)
{
    Buffer *buffer = buffer_in(self);
    if (buffer == nullptr)
        raise(PyExc_TypeError, "the buffer was not acquired");
    return *buffer;
}

static void want_live(const Buffer &buffer)
{
    if (!buffer.instance)
        raise(stale_error, "the buffer was released before");
}

static void buffer_release(Buffer &buffer)
{
    want_live(buffer);
    if (buffer.exports > 0)
        raise(PyExc_BufferError, "%zu arrays or views still use the buffer", buffer.exports);
    std::shared_ptr<Instance> instance = std::move(buffer.instance);
    check(tide_buffer_release(instance->buffers, buffer.handle));
}

/* ---- the buffer protocol ---- */

static int buffer_get(PyObject *self, Py_buffer *view, int flags)
{
    Buffer *buffer = buffer_in(self);
    view->obj = nullptr;
    if (buffer == nullptr)
        PyErr_SetString(PyExc_TypeError, "the buffer was not acquired");
    else if (!buffer->instance)
        PyErr_SetString(stale_error, "the buffer was released before");
    if (buffer == nullptr || !buffer->instance)
        return -1;
    if (PyBuffer_FillInfo(view, self, buffer->data, Py_ssize_t(buffer->asked), 0, flags) != 0)
        return -1;
    buffer->exports++;
    return 0;
}

static void buffer_put(PyObject *self, Py_buffer *)
{
    nb::inst_ptr<Buffer>(nb::handle(self))->exports--;
}

/* ---- DLPack ---- */

static void buffer_let_go(PyObject *self)
{
    nb::inst_ptr<Buffer>(nb::handle(self))->exports--;
    Py_DECREF(self);
}

/* Can a consumer that asks so have the buffer? This may run code of the program. */
static void want_offer(const OfferAsked &asked_for)
{
    if (!asked_for.stream.is_none())
        raise(PyExc_ValueError, "memory of the host has no stream");
    if (!asked_for.copy.is_none() && is_true(asked_for.copy))
        raise(PyExc_BufferError, "buffers are shared, not copied");
    if (!asked_for.dl_device.is_none() && dl_first_of(asked_for.dl_device) != TIDE_DL_CPU)
        raise(PyExc_BufferError, "the buffer is memory of the host");
}

static tide_dl_tensor tensor_of(Buffer &buffer)
{
    tide_dl_tensor tensor = {};
    tensor.data = buffer.data;
    tensor.device.device_type = TIDE_DL_CPU;
    tensor.ndim = 1;
    tensor.dtype = {TIDE_DL_UINT, 8, 1};
    tensor.shape = &buffer.extent;
    tensor.strides = &buffer.step;
    return tensor;
}

/* Whether the buffer is live is asked last: what reads arguments may release it. */
static nb::object buffer_offer(PyObject *self, const OfferAsked &asked_for)
{
    Buffer &buffer = buffer_of(self);
    bool old = asked_for.old();
    want_offer(asked_for);
    want_live(buffer);
    nb::object capsule = offer_make(self, tensor_of(buffer), old, buffer_let_go);
    Py_INCREF(self);
    buffer.exports++;
    return capsule;
}

/* ---- methods that are Python's own kind ---- */

/* A `with`, NumPy and others ask for these as attributes. nanobind's methods are bound then, and it
 * does not look whether there was memory for that, nor for a tuple of arguments. */

static PyObject *buffer_enter(PyObject *self, PyObject *)
{
    return guarded([=] {
        want_live(buffer_of(self));
        return nb::borrow(self);
    });
}

/* An exception that is under way says more than that views are still there: its frames may have
 * them. Then the buffer goes with the last of them. */
static PyObject *buffer_exit(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return guarded([=] {
        Buffer &buffer = buffer_of(self);
        bool failing = count > 0 && arguments[0] != Py_None;
        if (buffer.instance && !(failing && buffer.exports > 0))
            buffer_release(buffer);
        return nb::none();
    });
}

static PyObject *buffer_dlpack(PyObject *self, PyObject *args, PyObject *keywords)
{
    return offer_by(self, args, keywords, buffer_offer);
}

static PyObject *buffer_dlpack_device(PyObject *, PyObject *)
{
    return Py_BuildValue("(ii)", int(TIDE_DL_CPU), 0);
}

template <typename Function> static PyCFunction method(Function *function)
{
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(function));
}

static PyMethodDef buffer_methods[] = {
    {"__enter__", buffer_enter, METH_NOARGS, "__enter__($self)\n--\n\nIt is not released yet."},
    {"__exit__", method(buffer_exit), METH_FASTCALL,
     "__exit__($self, *args)\n--\n\n"
     "Releases it, unless an exception is under way that views use."},
    {"__dlpack__", method(buffer_dlpack), METH_VARARGS | METH_KEYWORDS,
     "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A capsule with its memory, by DLPack."},
    {"__dlpack_device__", buffer_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self)\n--\n\nThe host, by DLPack."},
    {}};

/* ---- instances ---- */

static void buffers_init(nb::pointer_and_handle<Buffers> self, const Name &name,
                         const Integer &bytes_max)
{
    tide_buffers_options options = {};
    std::string called = name_of(name, "Buffers: name");
    options.name = called.c_str();
    options.bytes_max = size_of(bytes_max, "Buffers: bytes_max");
    want_unmade(self.h);
    auto instance = std::make_shared<Instance>();
    instance->buffers = tide_buffers_create(nullptr, &options);
    if (instance->buffers == nullptr)
        throw_error();
    new (self.p) Buffers{std::move(instance), std::move(called)};
}

/* The object is there before the buffer is, so none is lost. */
static nb::object buffers_acquire(Buffers &buffers, const Integer &nbytes, bool zeroed)
{
    size_t bytes = size_of(nbytes, "acquire: nbytes");
    nb::object made = nb::inst_alloc(buffer_type);
    tide_buffers *instance = buffers.instance->buffers;
    tide_buffer handle =
        zeroed ? tide_buffer_acquire_zeroed(instance, bytes) : tide_buffer_acquire(instance, bytes);
    if (handle.generation == 0) {
        set_memory_error();
        throw nb::python_error();
    }
    new (nb::inst_ptr<Buffer>(made)) Buffer(buffers.instance, handle, bytes);
    nb::inst_mark_ready(made);
    return made;
}

static nb::dict buffers_stats(const Buffers &buffers)
{
    tide_buffers_statistics s;
    check(tide_buffers_stats(buffers.instance->buffers, &s, nullptr, 0));
    nb::dict out = make_dict();
    out["hits"] = s.hits;
    out["misses"] = s.misses;
    out["releases"] = s.releases;
    out["live"] = s.live;
    out["cached"] = s.cached;
    out["bytes_live"] = s.bytes_live;
    out["bytes_cached"] = s.bytes_cached;
    out["bytes_high"] = s.bytes_high;
    out["hit_rate"] = s.hit_rate;
    out["waste"] = s.waste;
    return out;
}

static void bind_buffer(nb::module_ &m)
{
    static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void *>(buffer_get)},
                                  {Py_bf_releasebuffer, reinterpret_cast<void *>(buffer_put)},
                                  {Py_tp_methods, buffer_methods},
                                  {0, nullptr}};
    nb::class_<Buffer> type(m, "Buffer", nb::type_slots(slots),
                            "Memory with a lifetime of its own.");
    type.def("release", &buffer_release,
             "Gives it back. BufferError while arrays or views use it, StaleError the second time.")
        .def("__len__", [](const Buffer &buffer) { return buffer.asked; })
        .def_ro("nbytes", &Buffer::asked, "How many bytes were asked for.")
        .def_ro("capacity", &Buffer::bytes, "How many bytes it takes in the cache.")
        .def_prop_ro(
            "released", [](const Buffer &buffer) { return !buffer.instance; },
            "Was it given back?");
    buffer_type = type.release(); /* it lives as long as the process */
}

void bind_buffers(nb::module_ &m)
{
    bind_buffer(m);
    nb::class_<Buffers>(
        m, "Buffers",
        "A cache of buffers, which all threads may use. Sizes are rounded up, by a quarter at "
        "most. bytes_max: most bytes that are cached for all threads, 0 for the setting "
        "`buffers_bytes`.")
        .def("__init__", &buffers_init, nb::arg("name").none() = "buffers",
             nb::arg("bytes_max").none() = 0)
        .def("acquire", &buffers_acquire, nb::arg("nbytes").none(), nb::arg("zeroed") = false,
             "A buffer of at least so many bytes, zeroed or with arbitrary content.")
        .def("stats", &buffers_stats,
             "Counts of hits, misses and releases; buffers and bytes that are live and cached; the "
             "most bytes at once; shares of acquires that hit, and of bytes that nobody asked for.")
        .def(
            "trim",
            [](Buffers &buffers) { return tide_buffers_trim(buffers.instance->buffers, 0).bytes; },
            "Gives all cached memory back to the system. Returns how many bytes that were.")
        .def_ro("name", &Buffers::name, "What messages call it.");
}

} // namespace core
