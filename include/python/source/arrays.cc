/* SPDX-License-Identifier: MIT */
/* The arrays of a scope: NumPy arrays over memory of the pool. */
#include "core.h"

#include <cmath>
#include <cstring>

namespace core
{

/* What one array is to be. */
struct Wanted {
    PyArray_Dims shape = {nullptr, 0};
    PyArray_Descr *descr = nullptr;
    bool column_major = false, zeros = false;
    Wanted() = default;
    Wanted(const Wanted &) = delete;
    Wanted &operator=(const Wanted &) = delete;
    ~Wanted()
    {
        PyDimMem_FREE(shape.ptr);
        Py_XDECREF(descr);
    }
};

static bool descr_fits(PyArray_Descr *descr)
{
    if (PyDataType_REFCHK(descr)) {
        PyErr_Format(PyExc_TypeError, "dtype %R has objects, which memory of a pool cannot hold",
                     reinterpret_cast<PyObject *>(descr));
        return false;
    }
    return true;
}

static bool size_of(const Wanted &wanted, size_t *items)
{
    size_t product = 1, largest = size_t(PyDataType_ELSIZE(wanted.descr));
    for (int i = 0; i < wanted.shape.len; i++) {
        npy_intp extent = wanted.shape.ptr[i];
        if (extent < 0) {
            PyErr_SetString(PyExc_ValueError, "negative dimensions are not allowed");
            return false;
        }
        if (__builtin_mul_overflow(largest, extent > 0 ? size_t(extent) : 1, &largest) ||
            largest > PTRDIFF_MAX) {
            PyErr_SetString(PyExc_ValueError, "the array is too large for any memory");
            return false;
        }
        product *= size_t(extent);
    }
    *items = product;
    return true;
}

/* Whether the scope is open is asked here, last: what converts arguments may run code of the
 * program that ends it. On a GPU it is no array of NumPy's (on_device). */
static PyArrayObject *array_make(Scope *scope, const Wanted &wanted)
{
    size_t items = 0;
    Pool *pool;
    if (!descr_fits(wanted.descr) || !size_of(wanted, &items) || !scope_usable(scope))
        return nullptr;
    (void)scope_pool(scope, &pool);
    if (pool->gpu.device != nullptr)
        return reinterpret_cast<PyArrayObject *>(device_array_make(
            scope,
            {wanted.shape.len, wanted.shape.ptr, wanted.descr, wanted.column_major, wanted.zeros},
            items));
    PyObject *hold = nullptr;
    void *data = scope_acquire(scope, wanted.descr->type_num, items,
                               size_t(PyDataType_ELSIZE(wanted.descr)), wanted.zeros, &hold);
    if (data == nullptr)
        return nullptr;
    Py_INCREF(wanted.descr);
    PyObject *array = PyArray_NewFromDescr(
        &PyArray_Type, wanted.descr, wanted.shape.len, wanted.shape.ptr, nullptr, data,
        wanted.column_major ? NPY_ARRAY_FARRAY : NPY_ARRAY_CARRAY, nullptr);
    if (array == nullptr) {
        Py_DECREF(hold);
        return nullptr;
    }
    PyArrayObject *made = reinterpret_cast<PyArrayObject *>(array);
    if (PyArray_SetBaseObject(made, hold) < 0)
        Py_CLEAR(made);
    return made;
}

/* ---- arguments ---- */

static bool wanted_order(Wanted *wanted, PyObject *order)
{
    bool text = order != nullptr && PyUnicode_Check(order);
    if (order == nullptr || order == Py_None ||
        (text && PyUnicode_CompareWithASCIIString(order, "C") == 0))
        return true;
    wanted->column_major = text && PyUnicode_CompareWithASCIIString(order, "F") == 0;
    if (!wanted->column_major)
        PyErr_SetString(PyExc_ValueError, "order must be 'C' or 'F'");
    return wanted->column_major;
}

static bool wanted_descr(Wanted *wanted, PyObject *dtype)
{
    if (dtype == nullptr || dtype == Py_None)
        wanted->descr = PyArray_DescrFromType(NPY_DOUBLE);
    else if (!PyArray_DescrConverter(dtype, &wanted->descr))
        return false;
    if (wanted->descr != nullptr && PyDataType_ELSIZE(wanted->descr) == 0 &&
        PyTypeNum_ISFLEXIBLE(wanted->descr->type_num)) {
        PyErr_SetString(PyExc_ValueError, "the dtype has no size");
        return false;
    }
    return wanted->descr != nullptr;
}

static bool wanted_of(Wanted *wanted, PyObject *shape, PyObject *dtype, PyObject *order)
{
    return PyArray_IntpConverter(shape, &wanted->shape) && wanted_descr(wanted, dtype) &&
           wanted_order(wanted, order);
}

/* ---- values ---- */

static bool on_device(PyArrayObject *array)
{
    return !PyArray_Check(reinterpret_cast<PyObject *>(array));
}

/* Values are written on the host. */
static bool values_fit(PyArrayObject *array)
{
    if (array != nullptr && on_device(array))
        PyErr_SetString(PyExc_TypeError, "of a pool on a GPU there are empty, zeros and their "
                                         "_like: values are another library's to write");
    return array != nullptr && !on_device(array);
}

static PyObject *finish_full(PyArrayObject *array, PyObject *value)
{
    if (!values_fit(array) || PyArray_CopyObject(array, value) < 0)
        Py_CLEAR(array);
    return reinterpret_cast<PyObject *>(array);
}

static PyObject *finish_ones(PyArrayObject *array)
{
    PyObject *one = array != nullptr ? PyLong_FromLong(1) : nullptr;
    PyObject *result = one != nullptr ? finish_full(array, one) : nullptr;
    Py_XDECREF(one);
    return result;
}

/* ---- methods ---- */

static Scope *scope_of(PyObject *self)
{
    return reinterpret_cast<Scope *>(self);
}

static const char *const shape_names[] = {"shape", "dtype", "order", nullptr};

/* (shape, dtype=None, order='C'), by hand: what parses for itself costs as much as the array. */
static PyArrayObject *make_by_shape(PyObject *self, PyObject *const *given, Py_ssize_t count,
                                    PyObject *names, bool zeros)
{
    Scope *scope = scope_of(self);
    PyObject *values[3] = {};
    if (count > 3) {
        PyErr_SetString(PyExc_TypeError, "at most shape, dtype and order are given");
        return nullptr;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        values[i] = given[i];
    for (Py_ssize_t i = 0; names != nullptr && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        int at = 0;
        while (at < 3 && PyUnicode_CompareWithASCIIString(name, shape_names[at]) != 0)
            at++;
        if (at == 3 || values[at] != nullptr) {
            PyErr_Format(PyExc_TypeError, "unexpected argument %R", name);
            return nullptr;
        }
        values[at] = given[count + i];
    }
    if (values[0] == nullptr) {
        PyErr_SetString(PyExc_TypeError, "the shape is missing");
        return nullptr;
    }
    Wanted wanted;
    wanted.zeros = zeros;
    if (!wanted_of(&wanted, values[0], values[1], values[2]))
        return nullptr;
    return array_make(scope, wanted);
}

static PyObject *scope_empty(PyObject *self, PyObject *const *given, Py_ssize_t count,
                             PyObject *names)
{
    return reinterpret_cast<PyObject *>(make_by_shape(self, given, count, names, false));
}

static PyObject *scope_zeros(PyObject *self, PyObject *const *given, Py_ssize_t count,
                             PyObject *names)
{
    return reinterpret_cast<PyObject *>(make_by_shape(self, given, count, names, true));
}

static PyObject *scope_ones(PyObject *self, PyObject *const *given, Py_ssize_t count,
                            PyObject *names)
{
    return finish_ones(make_by_shape(self, given, count, names, false));
}

/* Texts of no characters have one in an array, as NumPy has it. Takes the reference. */
static PyArray_Descr *descr_with_size(PyArray_Descr *descr)
{
    if (descr == nullptr || PyDataType_ELSIZE(descr) > 0 || !PyTypeNum_ISSTRING(descr->type_num))
        return descr;
    PyArray_Descr *sized = PyArray_DescrNew(descr);
    if (sized != nullptr)
        PyDataType_SET_ELSIZE(sized, descr->type_num == NPY_UNICODE ? 4 : 1);
    Py_DECREF(descr);
    return sized;
}

/* The dtype of the value, where none is said, as numpy.full has it. */
static PyObject *scope_full(PyObject *self, PyObject *args, PyObject *keywords)
{
    static const char *names[] = {"shape", "fill_value", "dtype", "order", nullptr};
    PyObject *shape, *value, *dtype = nullptr, *order = nullptr;
    Scope *scope = scope_of(self);
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|OO", const_cast<char **>(names), &shape,
                                     &value, &dtype, &order))
        return nullptr;
    Wanted wanted;
    if (!PyArray_IntpConverter(shape, &wanted.shape) || !wanted_order(&wanted, order))
        return nullptr;
    if (dtype == nullptr || dtype == Py_None)
        wanted.descr = descr_with_size(PyArray_DescrFromObject(value, nullptr));
    else if (!wanted_descr(&wanted, dtype))
        return nullptr;
    return wanted.descr != nullptr ? finish_full(array_make(scope, wanted), value) : nullptr;
}

/* (prototype, dtype=None): its shape and order, in memory of the pool. */
static PyArrayObject *make_like(PyObject *self, PyObject *args, PyObject *keywords,
                                bool zeros = false)
{
    static const char *names[] = {"prototype", "dtype", nullptr};
    PyObject *prototype, *dtype = nullptr;
    Scope *scope = scope_of(self);
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O", const_cast<char **>(names), &prototype,
                                     &dtype))
        return nullptr;
    PyArrayObject *like = reinterpret_cast<PyArrayObject *>(array_with_form(prototype));
    if (like == nullptr)
        return nullptr;
    Wanted wanted;
    wanted.zeros = zeros;
    wanted.shape.len = PyArray_NDIM(like);
    size_t room = size_t(wanted.shape.len) + 1; /* the macro multiplies what it is given, bare */
    wanted.shape.ptr = PyDimMem_NEW(room);
    if (wanted.shape.ptr == nullptr) {
        Py_DECREF(like);
        PyErr_NoMemory();
        return nullptr;
    }
    wanted.column_major = PyArray_IS_F_CONTIGUOUS(like) && !PyArray_IS_C_CONTIGUOUS(like);
    if (wanted.shape.len > 0)
        memcpy(wanted.shape.ptr, PyArray_DIMS(like), size_t(wanted.shape.len) * sizeof(npy_intp));
    bool known = true;
    if (dtype == nullptr || dtype == Py_None)
        wanted.descr = descr_with_size(reinterpret_cast<PyArray_Descr *>(
            Py_NewRef(reinterpret_cast<PyObject *>(PyArray_DESCR(like)))));
    else
        known = wanted_descr(&wanted, dtype);
    Py_DECREF(like);
    return known && wanted.descr != nullptr ? array_make(scope, wanted) : nullptr;
}

static PyObject *scope_empty_like(PyObject *self, PyObject *args, PyObject *keywords)
{
    return reinterpret_cast<PyObject *>(make_like(self, args, keywords));
}

static PyObject *scope_zeros_like(PyObject *self, PyObject *args, PyObject *keywords)
{
    return reinterpret_cast<PyObject *>(make_like(self, args, keywords, true));
}

static PyObject *scope_ones_like(PyObject *self, PyObject *args, PyObject *keywords)
{
    return finish_ones(make_like(self, args, keywords));
}

static PyObject *scope_copy(PyObject *self, PyObject *source)
{
    PyObject *args = PyTuple_Pack(1, source);
    PyArrayObject *made = args != nullptr ? make_like(self, args, nullptr) : nullptr;
    Py_XDECREF(args);
    return finish_full(made, source);
}

/* ---- arange ---- */

struct Range {
    PyObject *start, *step; /* owned */
    npy_intp length;
};

static bool range_length(Range *range, PyObject *stop)
{
    PyObject *span = PyNumber_Subtract(stop, range->start);
    PyObject *count = span != nullptr ? PyNumber_TrueDivide(span, range->step) : nullptr;
    double length = count != nullptr ? PyFloat_AsDouble(count) : -1;
    Py_XDECREF(span);
    Py_XDECREF(count);
    if (PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_SetString(PyExc_TypeError, "arange: start, stop and step are numbers; a range of "
                                             "others is NumPy's to make, and `copy` takes it");
        return false;
    }
    if (!(length < 9e18)) { /* NaN, too */
        PyErr_SetString(PyExc_ValueError, "arange: too many elements");
        return false;
    }
    range->length = length > 0 ? npy_intp(std::ceil(length)) : 0;
    return true;
}

/* As numpy.arange does: the first two elements, and the dtype goes on from there. */
static bool range_fill(PyArrayObject *array, const Range &range)
{
    PyObject *second = PyNumber_Add(range.start, range.step);
    char *data = PyArray_BYTES(array);
    bool good = second != nullptr;
    if (good && range.length > 0)
        good = PyArray_SETITEM(array, data, range.start) == 0;
    if (good && range.length > 1)
        good = PyArray_SETITEM(array, data + PyArray_ITEMSIZE(array), second) == 0;
    if (good && range.length > 2) {
        PyArray_FillFunc *fill = PyDataType_GetArrFuncs(PyArray_DESCR(array))->fill;
        good = fill != nullptr && fill(data, range.length, array) == 0;
        if (!good && !PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "arange: this dtype has no ranges");
    }
    Py_XDECREF(second);
    return good;
}

/* A dtype's `fill` knows the machine's order of bytes alone. */
static bool range_fill_swapped(PyArrayObject *array, const Range &range)
{
    PyArray_Descr *native = PyArray_DescrNewByteorder(PyArray_DESCR(array), NPY_NATIVE);
    PyObject *view = native != nullptr ? PyArray_View(array, native, nullptr) : nullptr;
    PyArrayObject *plain = reinterpret_cast<PyArrayObject *>(view);
    PyObject *swapped =
        view != nullptr && range_fill(plain, range) ? PyArray_Byteswap(plain, NPY_TRUE) : nullptr;
    Py_XDECREF(view);
    Py_XDECREF(swapped);
    return swapped != nullptr;
}

static PyObject *finish_range(PyArrayObject *array, const Range &range)
{
    bool good =
        values_fit(array) && (PyArray_ISBYTESWAPPED(array) ? range_fill_swapped(array, range)
                                                           : range_fill(array, range));
    if (!good)
        Py_CLEAR(array);
    return reinterpret_cast<PyObject *>(array);
}

static PyArray_Descr *descr_of_range(const Range &range, PyObject *stop)
{
    PyArray_Descr *descr = PyArray_DescrFromObject(range.start, nullptr);
    for (PyObject *one : {stop, range.step}) {
        PyArray_Descr *least = descr;
        descr = least != nullptr ? PyArray_DescrFromObject(one, least) : nullptr;
        Py_XDECREF(least);
    }
    return descr;
}

/* Of texts, records, and types that are arrays themselves, NumPy has no ranges either. */
static bool range_fits(PyArray_Descr *descr)
{
    if (!PyTypeNum_ISFLEXIBLE(descr->type_num))
        return true;
    PyErr_SetString(PyExc_TypeError, "arange: this dtype has no ranges");
    return false;
}

static PyObject *arange_make(Scope *scope, Range *range, PyObject *stop, PyObject *dtype)
{
    if (!range_length(range, stop))
        return nullptr;
    Wanted wanted;
    wanted.shape.len = 1;
    wanted.shape.ptr = PyDimMem_NEW(1);
    if (wanted.shape.ptr == nullptr)
        return PyErr_NoMemory();
    wanted.shape.ptr[0] = range->length;
    if (dtype == nullptr || dtype == Py_None)
        wanted.descr = descr_of_range(*range, stop);
    else if (!wanted_descr(&wanted, dtype))
        return nullptr;
    if (wanted.descr == nullptr || !range_fits(wanted.descr))
        return nullptr;
    return finish_range(array_make(scope, wanted), *range);
}

static PyObject *scope_arange(PyObject *self, PyObject *args, PyObject *keywords)
{
    static const char *names[] = {"start", "stop", "step", "dtype", nullptr};
    PyObject *start, *stop = nullptr, *step = nullptr, *dtype = nullptr;
    Scope *scope = scope_of(self);
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OOO", const_cast<char **>(names), &start,
                                     &stop, &step, &dtype))
        return nullptr;
    bool only_stop = stop == nullptr || stop == Py_None;
    Range range = {only_stop ? PyLong_FromLong(0) : Py_NewRef(start),
                   step == nullptr || step == Py_None ? PyLong_FromLong(1) : Py_NewRef(step), 0};
    PyObject *array = arange_make(scope, &range, only_stop ? start : stop, dtype);
    Py_XDECREF(range.start);
    Py_XDECREF(range.step);
    return array;
}

/* ---- frames ---- */

PyObject *array_of_spec(Scope *scope, PyObject *spec)
{
    PyObject *shape = spec, *dtype = nullptr;
    if (PyTuple_Check(spec) && PyTuple_GET_SIZE(spec) == 2 &&
        !PyIndex_Check(PyTuple_GET_ITEM(spec, 1))) {
        shape = PyTuple_GET_ITEM(spec, 0);
        dtype = PyTuple_GET_ITEM(spec, 1);
    }
    Wanted wanted;
    if (!wanted_of(&wanted, shape, dtype, nullptr))
        return nullptr;
    return reinterpret_cast<PyObject *>(array_make(scope, wanted));
}

#define FAST(name, document)                                                             \
    {                                                                                    \
#name, reinterpret_cast < PyCFunction>(reinterpret_cast <void *>(scope_##name)), \
            METH_FASTCALL | METH_KEYWORDS, document                                      \
    }
#define WITH_KEYWORDS(name, document)                                                    \
    {                                                                                    \
#name, reinterpret_cast < PyCFunction>(reinterpret_cast <void *>(scope_##name)), \
            METH_VARARGS | METH_KEYWORDS, document                                       \
    }

PyMethodDef array_methods[] = {
    FAST(empty, "empty($self, shape, dtype=None, order='C')\n--\n\n"
                "An array with arbitrary content, of doubles where no dtype is given."),
    FAST(zeros, "zeros($self, shape, dtype=None, order='C')\n--\n\nAn array of zeros."),
    FAST(ones, "ones($self, shape, dtype=None, order='C')\n--\n\nAn array of ones."),
    WITH_KEYWORDS(full, "full($self, shape, fill_value, dtype=None, order='C')\n--\n\n"
                        "An array of one value."),
    WITH_KEYWORDS(arange, "arange($self, start, stop=None, step=None, dtype=None)\n--\n\n"
                          "Evenly spaced numbers, as numpy.arange. It has no ranges from one date "
                          "to another: `copy` takes NumPy's."),
    WITH_KEYWORDS(empty_like, "empty_like($self, prototype, dtype=None)\n--\n\n"
                              "An array of the same shape; in column order if the other one is, "
                              "else in row order."),
    WITH_KEYWORDS(zeros_like, "zeros_like($self, prototype, dtype=None)\n--\n\n"
                              "The same, of zeros."),
    WITH_KEYWORDS(ones_like, "ones_like($self, prototype, dtype=None)\n--\n\nThe same, of ones."),
    {"copy", scope_copy, METH_O, "copy($self, source, /)\n--\n\nA copy in the pool's memory."},
    {}};

} // namespace core
