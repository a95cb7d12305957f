/* SPDX-License-Identifier: MIT */
/* Integers and names that functions were given. What is wrong with one is said in one place. */
#include "core.h"

#include "gil.h"

#include <cstdint>
#include <cstring>

namespace core
{

/* Python shows no integer of more than some thousand digits. */
[[noreturn]] static void refuse(const nb::object &index, const char *what, const char *which,
                                long long limit)
{
    nb::object shown = nb::steal(PyObject_Repr(index.ptr()));
    if (!shown.is_valid() && !PyErr_ExceptionMatches(PyExc_ValueError))
        throw nb::python_error();
    PyErr_Clear();
    if (!shown.is_valid())
        raise(PyExc_ValueError, "%s has too many digits, and %lld is the %s", what, limit, which);
    raise(PyExc_ValueError, "%s is %U, and %lld is the %s", what, shown.ptr(), limit, which);
}

long long integer_of(nb::handle value, const char *what, long long min, long long max)
{
    nb::object index = asked([=] { return PyNumber_Index(value.ptr()); });
    int beyond = 0;
    long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &beyond);
    if (number == -1 && PyErr_Occurred())
        throw nb::python_error();
    if (beyond > 0 || (beyond == 0 && number > max))
        refuse(index, what, "most", max);
    if (beyond < 0 || number < min)
        refuse(index, what, "least", min);
    return number;
}

size_t size_of(nb::handle value, const char *what)
{
    return size_t(integer_of(value, what, 0, PTRDIFF_MAX));
}

std::string name_of(nb::handle value, const char *what)
{
    if (!PyUnicode_Check(value.ptr()))
        raise(PyExc_TypeError, "%s is a str, not %.100s", what, Py_TYPE(value.ptr())->tp_name);
    Py_ssize_t length = 0;
    const char *text = PyUnicode_AsUTF8AndSize(value.ptr(), &length);
    if (text == nullptr)
        throw nb::python_error();
    if (strlen(text) != size_t(length))
        raise(PyExc_ValueError, "%s: a name has no zero byte in it", what);
    return std::string(text, size_t(length));
}

void want_unmade(nb::handle self)
{
    if (nb::inst_ready(self))
        raise(PyExc_TypeError, "the %s was initialised before", Py_TYPE(self.ptr())->tp_name);
}

} // namespace core
