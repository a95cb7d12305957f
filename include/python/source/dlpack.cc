/* SPDX-License-Identifier: MIT */
/* Arrays of other libraries as NumPy arrays on the same memory, by DLPack; and memory of ours for them.
 *
 * A producer gives a capsule with a tensor. Renaming the capsule takes the tensor over; from then
 * on it is ours to give back, by its deleter, once. What gives it back is the base of the array. */
#include "core.h"

#include "dlpack.h"
#include "gil.h"

#include <cstring>
#include <memory>

#include <tidepool/dlpack.h>

namespace core
{

/* The base of an array that shows a tensor. */
static const char shown[] = "tidepool.tensor", shown_old[] = "tidepool.tensor_unversioned";

/* What the two kinds of tensors have in common. */
struct Tensor {
    const tide_dl_tensor *tensor;
    bool writeable;
    bool old; /* unversioned */
};

template <typename... Values>
[[noreturn]] static void refuse_tensor(const char *format, Values... values)
{
    raise(PyExc_BufferError, format, values...);
}

/* ---- the types ---- */

/* NumPy's number for a type, or NPY_NOTYPE. */
static int tensor_type(const tide_dl_type &type)
{
    static const struct {
        uint8_t code, bits;
        int type_num;
    } known[] = {
        {TIDE_DL_BOOL, 8, NPY_BOOL},          {TIDE_DL_INT, 8, NPY_INT8},
        {TIDE_DL_INT, 16, NPY_INT16},         {TIDE_DL_INT, 32, NPY_INT32},
        {TIDE_DL_INT, 64, NPY_INT64},         {TIDE_DL_UINT, 8, NPY_UINT8},
        {TIDE_DL_UINT, 16, NPY_UINT16},       {TIDE_DL_UINT, 32, NPY_UINT32},
        {TIDE_DL_UINT, 64, NPY_UINT64},       {TIDE_DL_FLOAT, 16, NPY_FLOAT16},
        {TIDE_DL_FLOAT, 32, NPY_FLOAT32},     {TIDE_DL_FLOAT, 64, NPY_FLOAT64},
        {TIDE_DL_COMPLEX, 64, NPY_COMPLEX64}, {TIDE_DL_COMPLEX, 128, NPY_COMPLEX128},
    };
    for (const auto &one : known)
        if (type.lanes == 1 && type.code == one.code && type.bits == one.bits)
            return one.type_num;
    return NPY_NOTYPE;
}

/* ---- what may be shown ---- */

static bool is_host(long device)
{
    return device == TIDE_DL_CPU || device == TIDE_DL_CUDA_HOST;
}

static void want_host(long device)
{
    if (!is_host(device))
        refuse_tensor("the array is memory of a device (DLPack's type %ld), not of the host",
                      device);
}

static void want_shown(const tide_dl_tensor &tensor)
{
    want_host(tensor.device.device_type);
    if (tensor.ndim < 0 || tensor.ndim > NPY_MAXDIMS)
        refuse_tensor("NumPy has no arrays of %ld dimensions", long(tensor.ndim));
    if (tensor_type(tensor.dtype) == NPY_NOTYPE)
        refuse_tensor("NumPy has no type for DLPack's (code %d, %d bits, %d lanes)",
                      int(tensor.dtype.code), int(tensor.dtype.bits), int(tensor.dtype.lanes));
}

/* Bytes from one element to the next in each dimension. Tensors without strides are in row order.
 */
struct Layout {
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    bool empty = false;
};

static void lay_out(const tide_dl_tensor &tensor, Layout *layout)
{
    npy_intp each = tensor.dtype.bits / 8, row = 1;
    for (int32_t i = tensor.ndim; i-- > 0;) {
        npy_intp stride = tensor.strides != nullptr ? npy_intp(tensor.strides[i]) : row;
        layout->shape[i] = npy_intp(tensor.shape[i]);
        layout->empty |= tensor.shape[i] == 0;
        if (tensor.shape[i] < 0)
            refuse_tensor("the tensor has an extent of %ld", long(tensor.shape[i]));
        if (__builtin_mul_overflow(stride, each, &layout->strides[i]) ||
            (tensor.strides == nullptr &&
             __builtin_mul_overflow(row, layout->shape[i] > 0 ? layout->shape[i] : 1, &row)))
            refuse_tensor("the steps of dimension %ld are too large for any memory", long(i));
    }
}

/* ---- whose it is ---- */

static void tensor_give_back(PyObject *base)
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    if (PyCapsule_IsValid(base, shown)) {
        auto *managed = static_cast<tide_dl_managed *>(PyCapsule_GetPointer(base, shown));
        if (managed->deleter != nullptr)
            managed->deleter(managed);
    } else {
        auto *managed = static_cast<tide_dl_old *>(PyCapsule_GetPointer(base, shown_old));
        if (managed->deleter != nullptr)
            managed->deleter(managed);
    }
    PyErr_Restore(kind, value, trace);
}

/* The tensor in a producer's capsule, which still is the capsule's. */
static Tensor tensor_in(PyObject *capsule, void **managed)
{
    if (PyCapsule_IsValid(capsule, dl_capsule)) {
        auto *one = static_cast<tide_dl_managed *>(PyCapsule_GetPointer(capsule, dl_capsule));
        *managed = one;
        if (one->version.major != TIDE_DL_MAJOR) /* the rest may mean something else */
            refuse_tensor("the tensor is of DLPack %ld", long(one->version.major));
        return {&one->tensor, (one->flags & TIDE_DL_READ_ONLY) == 0, false};
    }
    if (PyCapsule_IsValid(capsule, dl_capsule_old)) {
        auto *one = static_cast<tide_dl_old *>(PyCapsule_GetPointer(capsule, dl_capsule_old));
        *managed = one;
        return {&one->tensor, false, true}; /* it cannot say that it may be written */
    }
    PyErr_Clear();
    const char *name = PyCapsule_CheckExact(capsule) ? PyCapsule_GetName(capsule) : nullptr;
    if (name != nullptr && strncmp(name, "used_", 5) == 0)
        refuse_tensor("the capsule's tensor was taken before");
    raise(PyExc_TypeError, "no capsule with a tensor of DLPack");
}

/* Takes the tensor over: `base` gives it back. Nothing in here wants memory. */
static void tensor_take(PyObject *capsule, PyObject *base, bool old)
{
    if (PyCapsule_SetName(capsule, old ? "used_dltensor" : "used_dltensor_versioned") != 0 ||
        PyCapsule_SetDestructor(base, tensor_give_back) != 0)
        throw nb::python_error();
}

static nb::object made(PyObject *object)
{
    if (object == nullptr)
        throw nb::python_error();
    return nb::steal(object);
}

/* The tensor stays the capsule's until the array is there. */
static nb::object show(PyObject *capsule)
{
    static char nothing[64]; /* NumPy would allocate where there is no address */
    void *managed = nullptr;
    Tensor from = tensor_in(capsule, &managed);
    const tide_dl_tensor &tensor = *from.tensor;
    want_shown(tensor);
    Layout layout;
    lay_out(tensor, &layout);
    void *data = layout.empty ? nothing : static_cast<char *>(tensor.data) + tensor.byte_offset;
    if (tensor.data == nullptr && !layout.empty)
        refuse_tensor("the tensor has no memory");
    nb::object base = made(PyCapsule_New(managed, from.old ? shown_old : shown, nullptr));
    nb::object array = made(PyArray_New(&PyArray_Type, tensor.ndim, layout.shape,
                                        tensor_type(tensor.dtype), layout.strides, data, 0,
                                        from.writeable ? NPY_ARRAY_WRITEABLE : 0, nullptr));
    PyArrayObject *shows = reinterpret_cast<PyArrayObject *>(array.ptr());
    if (PyArray_SetBaseObject(shows, base.inc_ref().ptr()) < 0)
        throw nb::python_error();
    tensor_take(capsule, base.ptr(), from.old);
    return array;
}

/* ---- offering ---- */

/* One tensor that is offered, of either kind; the memory's object is held. */
struct Offered {
    union {
        tide_dl_managed managed;
        tide_dl_old old;
    };
    void (*let_go)(PyObject *self);
};

/* Any thread, with the GIL or without; not after the interpreter's end. */
static void offered_end(void *owner, Offered *offered)
{
    if (Py_IsInitialized()) {
        PyGILState_STATE state = gil_take();
        offered->let_go(static_cast<PyObject *>(owner));
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

bool is_true(nb::handle object)
{
    int value = stopped_at_end([=] { return PyObject_IsTrue(object.ptr()); });
    if (value < 0)
        throw nb::python_error();
    return value != 0;
}

bool OfferAsked::old() const
{
    return max_version.is_none() || dl_first_of(max_version) < TIDE_DL_MAJOR;
}

nb::object offer_make(PyObject *self, const tide_dl_tensor &tensor, bool old,
                      void (*let_go)(PyObject *))
{
    std::unique_ptr<Offered> offered(new Offered{});
    offered->let_go = let_go;
    if (old)
        offered->old = {tensor, self, offered_delete_old};
    else
        offered->managed = {{TIDE_DL_MAJOR, TIDE_DL_MINOR}, self, offered_delete, 0, tensor};
    nb::object capsule =
        made(PyCapsule_New(offered.get(), old ? dl_capsule_old : dl_capsule, capsule_delete));
    (void)offered.release();
    return capsule;
}

PyObject *offer_by(PyObject *self, PyObject *args, PyObject *keywords,
                   nb::object (*offer)(PyObject *, const OfferAsked &))
{
    static const char *names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
    PyObject *stream = Py_None, *max_version = Py_None, *dl_device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__",
                                     const_cast<char **>(names), &stream, &max_version, &dl_device,
                                     &copy))
        return nullptr;
    return guarded([=] { return offer(self, {stream, max_version, dl_device, copy}); });
}

/* ---- asking a producer ---- */

long dl_first_of(nb::handle pair)
{
    nb::object zero = nb::int_(0);
    nb::object first = asked([&] { return PyObject_GetItem(pair.ptr(), zero.ptr()); });
    long value = stopped_at_end([&] { return PyLong_AsLong(first.ptr()); });
    if (value == -1 && PyErr_Occurred())
        throw nb::python_error();
    return value;
}

static nb::object member_of(nb::handle producer, const char *name)
{
    PyObject *found = stopped_at_end([=] { return PyObject_GetAttrString(producer.ptr(), name); });
    if (found == nullptr && PyErr_ExceptionMatches(PyExc_AttributeError))
        raise(PyExc_TypeError, "the object has no __dlpack__ and __dlpack_device__");
    if (found == nullptr)
        throw nb::python_error();
    return nb::steal(found);
}

/* Producers that are older know fewer arguments; one that knows `copy` makes none. */
static nb::object offer_of(const nb::object &offer)
{
    nb::tuple none = nb::make_tuple();
    nb::object version = made(Py_BuildValue("(ii)", int(TIDE_DL_MAJOR), int(TIDE_DL_MINOR)));
    for (int arguments = 2; arguments >= 0; arguments--) {
        nb::dict keywords = make_dict();
        if (arguments > 0)
            keywords["max_version"] = version;
        if (arguments > 1)
            keywords["copy"] = false;
        try {
            return asked([&] { return PyObject_Call(offer.ptr(), none.ptr(), keywords.ptr()); });
        } catch (nb::python_error &error) {
            if (arguments == 0 || !error.matches(PyExc_TypeError))
                throw;
        }
    }
    return nb::none();
}

static nb::object from_dlpack(nb::handle producer)
{
    if (PyCapsule_CheckExact(producer.ptr()))
        return show(producer.ptr());
    nb::object offer = member_of(producer, "__dlpack__");
    nb::object where = member_of(producer, "__dlpack_device__");
    want_host(dl_first_of(asked([&] { return PyObject_CallNoArgs(where.ptr()); })));
    nb::object capsule = offer_of(offer);
    return show(capsule.ptr());
}

void bind_dlpack(nb::module_ &m)
{
    m.def("from_dlpack", &from_dlpack, nb::arg("x").none());
}

} // namespace core
