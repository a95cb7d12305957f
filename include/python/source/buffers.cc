/* SPDX-License-Identifier: MIT */
/* Buffers as Python objects: with the buffer protocol and DLPack. */
#include "core.h"

#include "dlpack.h"
#include "gil.h"

#include <memory>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

namespace core
{

/* Each buffer holds its instance, so that this is destroyed when nothing of it is live. */
struct Instance {
    tide_buffers *buffers;
    explicit Instance(tide_buffers *made) : buffers(made)
    {
    }
    Instance(const Instance &) = delete;
    Instance &operator=(const Instance &) = delete;
    ~Instance()
    {
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
    size_t exports; /* memoryviews, arrays and tensors that use it now */

    Buffer(std::shared_ptr<Instance> from, tide_buffer acquired, size_t asked_for)
        : instance(std::move(from)), handle(acquired),
          data(tide_buffer_pointer(instance->buffers, acquired)),
          bytes(tide_buffer_bytes(instance->buffers, acquired)), asked(asked_for), exports(0)
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

static void want_live(const Buffer &buffer)
{
    if (!buffer.instance) {
        PyErr_SetString(stale_error, "the buffer was released before");
        throw nb::python_error();
    }
}

static void buffer_release(Buffer &buffer)
{
    want_live(buffer);
    if (buffer.exports > 0) {
        PyErr_Format(PyExc_BufferError, "%zu arrays or views still use the buffer", buffer.exports);
        throw nb::python_error();
    }
    std::shared_ptr<Instance> instance = std::move(buffer.instance);
    check(tide_buffer_release(instance->buffers, buffer.handle));
}

static nb::object buffer_enter(nb::handle_t<Buffer> self)
{
    want_live(nb::cast<const Buffer &>(self));
    return nb::borrow(self);
}

/* An exception that is under way says more than that views are still there: its frames may have
 * them. Then the buffer goes with the last of them. */
static void buffer_exit(Buffer &buffer, nb::args error)
{
    bool failing = error.size() > 0 && !error[0].is_none();
    if (buffer.instance && !(failing && buffer.exports > 0))
        buffer_release(buffer);
}

/* ---- the buffer protocol ---- */

static int buffer_get(PyObject *self, Py_buffer *view, int flags)
{
    Buffer *buffer = nb::inst_ready(self) ? nb::inst_ptr<Buffer>(nb::handle(self)) : nullptr;
    if (buffer == nullptr || !buffer->instance) {
        PyErr_SetString(stale_error, "the buffer was released before");
        view->obj = nullptr;
        return -1;
    }
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

/* One tensor that is offered, of either kind. */
struct Offered {
    union {
        tide_dl_managed managed;
        tide_dl_old old;
    };
    int64_t shape, stride;
};

/* Any thread, with the GIL or without; not after the interpreter's end. */
static void offered_end(void *owner, Offered *offered)
{
    if (Py_IsInitialized()) {
        PyGILState_STATE state = gil_take();
        PyObject *self = static_cast<PyObject *>(owner);
        nb::inst_ptr<Buffer>(nb::handle(self))->exports--;
        Py_DECREF(self);
        PyGILState_Release(state);
    }
    delete offered;
}

static void offered_delete(tide_dl_managed *managed)
{
    offered_end(managed->manager_ctx, reinterpret_cast<Offered *>(managed));
}

static void offered_delete_old(tide_dl_old *managed)
{
    offered_end(managed->manager_ctx, reinterpret_cast<Offered *>(managed));
}

/* Of a capsule that no consumer took. */
static void capsule_delete(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, dl_capsule))
        offered_delete(static_cast<tide_dl_managed *>(PyCapsule_GetPointer(capsule, dl_capsule)));
    else if (PyCapsule_IsValid(capsule, dl_capsule_old))
        offered_delete_old(
            static_cast<tide_dl_old *>(PyCapsule_GetPointer(capsule, dl_capsule_old)));
}

[[noreturn]] static void refuse(const char *why)
{
    PyErr_SetString(PyExc_BufferError, why);
    throw nb::python_error();
}

static bool is_true(nb::handle object)
{
    int value = stopped_at_end([=] { return PyObject_IsTrue(object.ptr()); });
    if (value < 0)
        throw nb::python_error();
    return value != 0;
}

/* Can a consumer that asks so have the buffer? This may run code of the program. Consumers that say
 * no version know the tensor from before versions alone. */
static void want_offer(nb::handle stream, nb::handle dl_device, nb::handle copy)
{
    if (!stream.is_none())
        throw nb::value_error("memory of the host has no stream");
    if (!copy.is_none() && is_true(copy))
        refuse("buffers are shared, not copied");
    if (!dl_device.is_none() && dl_first_of(dl_device) != TIDE_DL_CPU)
        refuse("the buffer is memory of the host");
}

static tide_dl_tensor tensor_of(const Buffer &buffer, Offered *offered)
{
    offered->shape = int64_t(buffer.asked);
    offered->stride = 1;
    tide_dl_tensor tensor = {};
    tensor.data = buffer.data;
    tensor.device.device_type = TIDE_DL_CPU;
    tensor.ndim = 1;
    tensor.dtype.code = TIDE_DL_UINT;
    tensor.dtype.bits = 8;
    tensor.dtype.lanes = 1;
    tensor.shape = &offered->shape;
    tensor.strides = &offered->stride;
    return tensor;
}

static Offered *offered_make(PyObject *self, const Buffer &buffer, bool old)
{
    auto *offered = new Offered{};
    if (old) {
        offered->old = {tensor_of(buffer, offered), self, offered_delete_old};
    } else {
        offered->managed.version.major = TIDE_DL_MAJOR;
        offered->managed.version.minor = TIDE_DL_MINOR;
        offered->managed.manager_ctx = self;
        offered->managed.deleter = offered_delete;
        offered->managed.tensor = tensor_of(buffer, offered);
    }
    return offered;
}

/* Whether the buffer is live is asked last: what reads arguments may release it. */
static nb::object buffer_dlpack(nb::handle_t<Buffer> self, nb::object stream,
                                nb::object max_version, nb::object dl_device, nb::object copy)
{
    if (!nb::inst_ready(self))
        throw nb::type_error("the buffer was not acquired");
    Buffer &buffer = *nb::inst_ptr<Buffer>(self);
    bool old = max_version.is_none() || dl_first_of(max_version) < TIDE_DL_MAJOR;
    want_offer(stream, dl_device, copy);
    want_live(buffer);
    Offered *offered = offered_make(self.ptr(), buffer, old);
    PyObject *capsule = PyCapsule_New(offered, old ? dl_capsule_old : dl_capsule, capsule_delete);
    if (capsule == nullptr) {
        delete offered;
        throw nb::python_error();
    }
    Py_INCREF(self.ptr());
    buffer.exports++;
    return nb::steal(capsule);
}

/* ---- instances ---- */

static tide_buffers_policy policy_of(const std::string &name)
{
    const char *const names[] = {"steps", "powers", "list"};
    for (int i = 0; i < 3; i++)
        if (name == names[i])
            return static_cast<tide_buffers_policy>(i);
    throw nb::value_error("policy is 'steps', 'powers' or 'list'");
}

static void buffers_init(Buffers *self, const std::string &name, const std::string &policy,
                         size_t bytes_max)
{
    tide_buffers_options options = {};
    want_name(name);
    options.name = name.c_str();
    options.policy = policy_of(policy);
    options.bytes_max = bytes_max;
    tide_buffers *made = tide_buffers_create(nullptr, &options);
    if (made == nullptr)
        throw_error();
    new (self) Buffers{std::make_shared<Instance>(made), name};
}

/* A number that no size can be is taken for the largest, which is too much, or the smallest. */
static Buffer *buffers_acquire(Buffers &buffers, nb::object nbytes, bool zeroed)
{
    Py_ssize_t bytes = stopped_at_end([&] { return PyNumber_AsSsize_t(nbytes.ptr(), nullptr); });
    if (bytes == -1 && PyErr_Occurred())
        throw nb::python_error();
    if (bytes < 0)
        throw nb::value_error("a buffer's size is not negative");
    tide_buffers *instance = buffers.instance->buffers;
    tide_buffer handle = zeroed ? tide_buffer_acquire_zeroed(instance, size_t(bytes))
                                : tide_buffer_acquire(instance, size_t(bytes));
    if (handle.generation == 0) {
        set_memory_error();
        throw nb::python_error();
    }
    return new Buffer(buffers.instance, handle, size_t(bytes));
}

static nb::dict buffers_stats(const Buffers &buffers)
{
    tide_buffers_statistics s;
    check(tide_buffers_stats(buffers.instance->buffers, &s, nullptr, 0));
    nb::dict out;
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

void bind_buffers(nb::module_ &m)
{
    static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void *>(buffer_get)},
                                  {Py_bf_releasebuffer, reinterpret_cast<void *>(buffer_put)},
                                  {0, nullptr}};
    nb::class_<Buffer>(m, "Buffer", nb::type_slots(slots), "Memory with a lifetime of its own.")
        .def("release", &buffer_release,
             "Gives it back. BufferError while arrays or views use it, StaleError the second time.")
        .def("__enter__", &buffer_enter)
        .def("__exit__", &buffer_exit)
        .def("__len__", [](const Buffer &buffer) { return buffer.asked; })
        .def("__dlpack__", &buffer_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
             nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
             nb::arg("copy") = nb::none())
        .def("__dlpack_device__",
             [](const Buffer &) { return nb::make_tuple(int(TIDE_DL_CPU), 0); })
        .def_ro("nbytes", &Buffer::asked, "How many bytes were asked for.")
        .def_ro("capacity", &Buffer::bytes, "How many bytes it takes in the cache.")
        .def_prop_ro(
            "released", [](const Buffer &buffer) { return !buffer.instance; },
            "Was it given back?");
    nb::class_<Buffers>(
        m, "Buffers",
        "A cache of buffers, which all threads may use. policy: what sizes are rounded "
        "up to, 'steps' (by a quarter at most), 'powers' (of two) or 'list' (1 KiB, "
        "4 KiB and so on, few and large). bytes_max: most bytes that are cached, 0 "
        "for the setting `buffers_bytes`.")
        .def("__init__", &buffers_init, nb::arg("name") = "buffers", nb::arg("policy") = "steps",
             nb::arg("bytes_max") = 0)
        .def("acquire", &buffers_acquire, nb::arg("nbytes"), nb::arg("zeroed") = false,
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
