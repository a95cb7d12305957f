/* SPDX-License-Identifier: MIT */
/* The library's failures as Python's exceptions. */
#include "core.h"

#include "gil.h"

#include <cstring>
#include <new>

namespace core
{

PyObject *stale_error, *thread_error, *escape_warning;

static PyObject *exception_of(tide_status status)
{
    switch (status) {
    case TIDE_ERROR_MEMORY:
    case TIDE_ERROR_LIMIT: return PyExc_MemoryError;
    case TIDE_ERROR_ARGUMENT:
    case TIDE_ERROR_TYPE:
    case TIDE_ERROR_SIZE: return PyExc_ValueError;
    case TIDE_ERROR_NAME: return PyExc_KeyError;
    case TIDE_ERROR_STALE: return stale_error;
    case TIDE_ERROR_THREAD: return thread_error;
    case TIDE_ERROR_FILE: return PyExc_OSError;
    default: return PyExc_RuntimeError;
    }
}

nb::str text_of(const char *text)
{
    PyObject *decoded =
        PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(strlen(text)), "replace");
    if (decoded == nullptr)
        throw nb::python_error();
    return nb::steal<nb::str>(decoded);
}

/* Without the function of C that failed: the program called one of Python's. */
static PyObject *set_error_of(PyObject *type)
{
    const char *message = tide_error_message(), *after = strstr(message, ": ");
    if (after != nullptr && strncmp(message, "tide_", 5) == 0)
        message = after + 2;
    PyObject *words =
        PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(strlen(message)), "replace");
    if (words != nullptr)
        PyErr_SetObject(type, words);
    Py_XDECREF(words);
    return nullptr;
}

PyObject *set_error()
{
    return set_error_of(exception_of(tide_error_status()));
}

PyObject *set_memory_error()
{
    if (tide_error_status() != TIDE_ERROR_SIZE)
        return set_error();
    return set_error_of(PyExc_MemoryError);
}

void throw_error()
{
    set_error();
    throw nb::python_error();
}

void check(tide_status status)
{
    if (status != TIDE_OK)
        throw_error();
}

void set_caught() noexcept
{
    try {
        throw;
    } catch (nb::python_error &error) {
        error.restore();
    } catch (const std::bad_alloc &) {
        PyErr_NoMemory();
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    } catch (...) {
        PyErr_SetString(PyExc_SystemError, "a C++ exception of no known kind");
    }
}

static PyObject *make_class(nb::module_ &m, const char *name, const char *document, PyObject *base)
{
    std::string full = std::string("tidepool.") + name;
    PyObject *made = PyErr_NewExceptionWithDoc(full.c_str(), document, base, nullptr);
    if (made == nullptr)
        throw nb::python_error();
    m.attr(name) = nb::borrow(made);
    return made;
}

void bind_errors(nb::module_ &m)
{
    stale_error =
        make_class(m, "StaleError", "The pool, scope or buffer has been closed or released before.",
                   PyExc_RuntimeError);
    thread_error =
        make_class(m, "ThreadError", "The pool belongs to another thread.", PyExc_RuntimeError);
    escape_warning =
        make_class(m, "EscapeWarning", "Arrays of a scope in a loop were still held when it ended.",
                   PyExc_RuntimeWarning);
}

} // namespace core
