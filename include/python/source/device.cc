/* SPDX-License-Identifier: MIT */
/* Pools on a GPU, and their arrays: not for Python to read, for other libraries to take.
 *
 * The array has the reference to its Hold that a NumPy array has by its base, so the end of a scope
 * tells in the same way what escaped. What escaped goes back behind the work that is queued on the
 * streams that had it when it dies, so those live as long. */
#include "core.h"

#include "dlpack.h"
#include "gil.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nanobind/stl/string.h>

#include <tidepool/device.h>
#include <tidepool/dynamic.h>

namespace core
{

struct DeviceArray {
    PyObject *pool_object, *dtype; /* owned; the pool keeps the object of its stream */
    Pool *pool;
    const Scope *scope; /* a number: it may be gone */
    Hold *hold;         /* owned */
    tide_dl_tensor tensor;
    std::vector<int64_t> shape, strides; /* of the tensor */
    std::vector<void *> streams;         /* of consumers, but for the pool's own */

    DeviceArray() = default;
    DeviceArray(const DeviceArray &) = delete;
    DeviceArray &operator=(const DeviceArray &) = delete;
    ~DeviceArray();
};

static nb::handle array_type;

/* ---- devices ---- */

/* Opened at first use, and there until the process ends. */
Gpu gpu_of(const std::string &name)
{
    static std::map<std::string, Gpu> open;
    auto found = open.find(name);
    if (found != open.end())
        return found->second;
    if (name.rfind("cuda:", 0) != 0)
        raise(PyExc_ValueError, "Pool: device is '%s'; there are 'host' and 'cuda:0' ...",
              name.c_str());
    Gpu gpu;
    tide_device_information info = {};
    gpu.device = tide_device_open(name.c_str());
    if (gpu.device == nullptr)
        throw_error();
    check(tide_device_info(gpu.device, &info));
    gpu.dl = info.dl;
    return open.emplace(name, gpu).first->second;
}

/* ---- streams ---- */

/* A library's number of a stream. 0 and 1 are the same: CUDA's legacy default stream. */
void *stream_of_number(unsigned long long number)
{
    return number == 1 ? nullptr : reinterpret_cast<void *>(uintptr_t(number));
}

static unsigned long long number_of_stream(void *stream)
{
    return stream == nullptr ? 1 : reinterpret_cast<uintptr_t>(stream);
}

/* Has others wait for what is queued on the pool's stream; then takes what is to go back when that
 * stream has come past the others (NULL: nothing). `own`: a pool of that stream and the calling thread. */
static bool order_by(tide_pool *own, const std::vector<void *> &others, tide_dl_managed *goes)
{
    tide_scope scope;
    if (own == nullptr || tide_scope_enter(own, nullptr, &scope) != TIDE_OK)
        return false; /* what should go back stays: there is no memory, or the process ends */
    bool good = goes == nullptr || tide_array_import(own, goes) != nullptr;
    for (void *other : others)
        good = tide_pool_use_on(own, other) == TIDE_OK && good;
    return tide_scope_leave(&scope) == TIDE_OK && good;
}

/* The same whoever owns the pool, and once it is closed: then the host waits for the stream. */
static bool order_apart(const Pool *pool, const std::vector<void *> &others, tide_dl_managed *goes)
{
    if (pool->pool != nullptr && pool->owner == thread_number())
        return order_by(pool->pool, others, goes);
    tide_pool_options options = {};
    options.device = pool->gpu.device;
    options.stream = pool->stream;
    tide_pool *own = tide_pool_create(&options);
    bool good = order_by(own, others, goes);
    return tide_pool_destroy(own) == TIDE_OK && good;
}

DeviceArray::~DeviceArray()
{
    tide_dl_managed *escaped = hold->managed;
    hold->managed = nullptr;
    if (escaped != nullptr)
        (void)order_apart(pool, streams, escaped);
    Py_DECREF(hold);
    Py_DECREF(dtype);
    Py_DECREF(pool_object);
}

/* From now on the stream comes after what is queued for the array, and the end of the scope after
 * what the stream does until then. */
static void array_use_on(DeviceArray &array, void *stream)
{
    Pool *pool = array.pool;
    if (stream == pool->stream)
        return;
    bool known = std::count(array.streams.begin(), array.streams.end(), stream) != 0;
    if (!known)
        array.streams.reserve(array.streams.size() + 1);
    if (array.hold->managed != nullptr) {
        if (!order_apart(pool, {stream}, nullptr))
            throw_error();
    } else {
        if (!pool_usable(pool))
            throw nb::python_error();
        if (pool->innermost != array.scope)
            raise(PyExc_BufferError, "a scope is open inside of the array's: hand it to another "
                                     "stream before that, or after");
        check(tide_pool_use_on(pool->pool, stream));
    }
    if (!known)
        array.streams.push_back(stream);
}

/* ---- new arrays ---- */

static bool dl_type_of(PyArray_Descr *descr, tide_dl_type *type)
{
    static const struct {
        char kind;
        uint8_t code;
    } known[] = {{'b', TIDE_DL_BOOL},
                 {'i', TIDE_DL_INT},
                 {'u', TIDE_DL_UINT},
                 {'f', TIDE_DL_FLOAT},
                 {'c', TIDE_DL_COMPLEX}};
    size_t bits = size_t(PyDataType_ELSIZE(descr)) * 8;
    bool fits = PyArray_ISNBO(descr->byteorder) && bits <= (descr->kind == 'c' ? 128 : 64);
    for (const auto &one : known)
        if (fits && descr->kind == one.kind) {
            *type = {one.code, uint8_t(bits), 1};
            return true;
        }
    PyErr_Format(PyExc_TypeError,
                 "dtype %R is none that DLPack has, which a device's arrays want; bfloat16 is 'u2' "
                 "here, and torch.from_dlpack(array).view(torch.bfloat16) there",
                 reinterpret_cast<PyObject *>(descr));
    return false;
}

static void lay_out(DeviceArray &array, const DeviceShape &of)
{
    size_t ndim = size_t(of.ndim);
    array.shape.assign(of.shape, of.shape + ndim);
    array.strides.resize(ndim);
    int64_t step = 1;
    for (size_t i = 0; i < ndim; i++) {
        size_t at = of.column_major ? i : ndim - 1 - i;
        array.strides[at] = step;
        step *= array.shape[at] > 0 ? array.shape[at] : 1;
    }
    array.tensor.ndim = of.ndim;
    array.tensor.shape = array.shape.data();
    array.tensor.strides = array.strides.data();
}

/* The reference to the hold becomes the array's, made or not. */
static nb::object array_over(Scope *scope, const DeviceShape &of, tide_dl_type type, PyObject *hold,
                             void *data)
{
    nb::object owned = nb::steal(hold);
    nb::object made = nb::inst_alloc(array_type);
    DeviceArray *array = new (nb::inst_ptr<DeviceArray>(made)) DeviceArray();
    array->hold = reinterpret_cast<Hold *>(owned.release().ptr());
    array->pool_object = Py_NewRef(scope_pool(scope, &array->pool));
    array->dtype = Py_NewRef(reinterpret_cast<PyObject *>(of.descr));
    array->scope = scope;
    nb::inst_mark_ready(made);
    array->tensor.data = data;
    array->tensor.device = array->pool->gpu.dl;
    array->tensor.dtype = type;
    lay_out(*array, of);
    return made;
}

PyObject *device_array_make(Scope *scope, const DeviceShape &of, size_t items)
{
    tide_dl_type type;
    PyObject *hold = nullptr;
    if (!dl_type_of(of.descr, &type))
        return nullptr;
    void *data = scope_acquire(scope, of.descr->type_num, items,
                               size_t(PyDataType_ELSIZE(of.descr)), of.zeros, &hold);
    if (data == nullptr)
        return nullptr;
    return guarded([&] { return array_over(scope, of, type, hold, data); });
}

/* ---- what consumers ask ---- */

/* Python can make an object of which no constructor has run. */
static DeviceArray &array_of(nb::handle self)
{
    if (!nb::inst_ready(self))
        raise(PyExc_TypeError, "the array was not acquired");
    return *nb::inst_ptr<DeviceArray>(self);
}

/* What is captured keeps the address for good, and there is no tide_capture_begin here. */
static void want_no_capture(const DeviceArray &array)
{
    const Pool &pool = *array.pool;
    if (pool.stream != nullptr && tide_stream_captured(pool.gpu.device, pool.stream))
        raise(PyExc_RuntimeError,
              "a graph is captured on the stream of pool '%s', and would keep the array's address, "
              "which goes to later arrays: let PyTorch or CuPy make what a graph uses",
              pool.name.c_str());
}

/* None: the legacy default stream. -1: the consumer sees to the order. */
static void order_consumer(DeviceArray &array, nb::handle stream)
{
    long long number =
        stream.is_none() ? 1 : integer_of(stream, "__dlpack__: stream", -1, LLONG_MAX);
    if (number == 0)
        raise(PyExc_ValueError, "__dlpack__: stream 0 may mean two: 1 is the legacy default "
                                "stream, 2 each thread's own");
    if (number > 0)
        array_use_on(array, stream_of_number(static_cast<unsigned long long>(number)));
}

static void want_device(const DeviceArray &array, nb::handle dl_device, nb::handle copy)
{
    if (!copy.is_none() && is_true(copy))
        raise(PyExc_BufferError, "arrays of a pool are shared, not copied");
    if (!dl_device.is_none() && dl_first_of(dl_device) != array.tensor.device.device_type)
        raise(PyExc_BufferError, "the array is memory of a GPU");
}

static void array_let_go(PyObject *self)
{
    Py_DECREF(self);
}

static nb::object array_offer(PyObject *self, const OfferAsked &asked_for)
{
    DeviceArray &array = array_of(self);
    bool old = asked_for.old();
    want_device(array, asked_for.dl_device, asked_for.copy);
    want_no_capture(array);
    order_consumer(array, asked_for.stream);
    nb::object capsule = offer_make(self, array.tensor, old, array_let_go);
    Py_INCREF(self);
    return capsule;
}

static PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *keywords)
{
    return offer_by(self, args, keywords, array_offer);
}

static PyObject *array_dlpack_device(PyObject *self, PyObject *)
{
    return guarded([=] {
        tide_dl_device device = array_of(self).tensor.device;
        return nb::steal(Py_BuildValue("(ii)", int(device.device_type), int(device.device_id)));
    });
}

static nb::object tuple_of(const std::vector<int64_t> &numbers)
{
    nb::list list = make_list();
    for (int64_t number : numbers)
        list.append(number);
    return nb::tuple(list);
}

static npy_intp size_of_array(const DeviceArray &array)
{
    return PyArray_MultiplyList(array.shape.data(), array.tensor.ndim);
}

PyObject *array_with_form(PyObject *object)
{
    if (Py_TYPE(object) != reinterpret_cast<PyTypeObject *>(array_type.ptr()))
        return PyArray_FROM_O(object);
    return guarded([=] {
        const DeviceArray &array = array_of(object);
        bool column_major = !array.strides.empty() && array.strides[0] == 1;
        return nb::steal(PyArray_NewFromDescr(
            &PyArray_Type, reinterpret_cast<PyArray_Descr *>(Py_NewRef(array.dtype)),
            array.tensor.ndim, array.shape.data(), nullptr, array.tensor.data,
            column_major ? NPY_ARRAY_F_CONTIGUOUS : 0, nullptr));
    });
}

static PyObject *array_repr(PyObject *self)
{
    return guarded([=] {
        const DeviceArray &array = array_of(self);
        return nb::steal(PyUnicode_FromFormat("<tidepool.DeviceArray %S %S on cuda:%d>",
                                              tuple_of(array.shape).ptr(), array.dtype,
                                              int(array.tensor.device.device_id)));
    });
}

static PyObject *array_refuse(PyObject *, PyObject *, PyObject *)
{
    PyErr_SetString(
        PyExc_TypeError,
        "the array is memory of a GPU, which NumPy cannot read: "
        "torch.from_dlpack(array).cpu().numpy() or cupy.from_dlpack(array).get() copies it");
    return nullptr;
}

/* Version 3 of Numba's protocol. Who takes the address so has the order of streams to see to. */
static nb::dict array_interface(const DeviceArray &array)
{
    want_no_capture(array);
    int64_t item = array.tensor.dtype.bits / 8;
    std::vector<int64_t> steps = array.strides;
    for (int64_t &step : steps)
        step *= item;
    nb::dict out = make_dict();
    out["shape"] = tuple_of(array.shape);
    out["typestr"] = nb::borrow(array.dtype).attr("str");
    out["data"] = nb::make_tuple(reinterpret_cast<uintptr_t>(array.tensor.data), false);
    out["strides"] = tuple_of(steps);
    out["version"] = 3;
    out["stream"] = number_of_stream(array.pool->stream);
    return out;
}

void bind_device(nb::module_ &m)
{
    static PyMethodDef methods[] = {
        {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(array_dlpack)),
         METH_VARARGS | METH_KEYWORDS,
         "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
         "A capsule with its memory, by DLPack, for work on that stream of the consumer's."},
        {"__dlpack_device__", array_dlpack_device, METH_NOARGS,
         "__dlpack_device__($self)\n--\n\nIts GPU, by DLPack."},
        {"__array__", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(array_refuse)),
         METH_VARARGS | METH_KEYWORDS,
         "__array__($self, dtype=None, copy=None)\n--\n\nTypeError: it is not for NumPy to read."},
        {}};
    static PyType_Slot slots[] = {
        {Py_tp_methods, methods}, {Py_tp_repr, reinterpret_cast<void *>(array_repr)}, {0, nullptr}};
    nb::class_<DeviceArray> type(m, "DeviceArray", nb::type_slots(slots),
                                 "An array of a pool on a GPU: `torch.from_dlpack(array)`, "
                                 "`cupy.from_dlpack(array)`.");
    type.def_prop_ro(
            "shape", [](const DeviceArray &array) { return tuple_of(array.shape); }, "Extents.")
        .def_prop_ro(
            "dtype", [](const DeviceArray &array) { return nb::borrow(array.dtype); },
            "NumPy's type of its elements.")
        .def_prop_ro(
            "ndim", [](const DeviceArray &array) { return array.tensor.ndim; }, "How many extents.")
        .def_prop_ro("size", &size_of_array, "How many elements.")
        .def_prop_ro(
            "nbytes",
            [](const DeviceArray &array) {
                return size_of_array(array) * array.tensor.dtype.bits / 8;
            },
            "Their bytes.")
        .def_prop_ro("__cuda_array_interface__", &array_interface,
                     "Its address and the pool's stream, version 3.");
    array_type = type.release(); /* it lives as long as the process */
}

} // namespace core
