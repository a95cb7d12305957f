/* SPDX-License-Identifier: MIT */
/* What the files of the extension module share.
 *
 *   Pool    a tide_pool, whose it is, and its open scopes
 *   Scope   one open scope, and what holds the memory of each array that it made
 *   Hold    stands between an array and its memory: it is the array's base
 *
 * The GIL guards everything here. No call that takes a pool is made without it. */
#ifndef TIDEPOOL_PYTHON_CORE_H
#define TIDEPOOL_PYTHON_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <nanobind/nanobind.h>
#include <string>
#include <tidepool/array.h>
#include <tidepool/dlpack.h>
#include <tidepool/tidepool.h>
#include <unistd.h>
#include <vector>

#define NPY_NO_DEPRECATED_API  NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION     NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL tidepool_python_array
#ifndef TIDEPOOL_PYTHON_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

namespace nb = nanobind;

namespace core
{

/* ---- errors.cc ---- */

extern PyObject *stale_error, *thread_error, *escape_warning;

/* Sets the Python exception for the calling thread's last failed call. Returns NULL. */
PyObject *set_error();

/* A text of the library, which may be cut within a character: that becomes U+FFFD. */
nb::str text_of(const char *text);

/* The same where memory was asked for: then a size that cannot be is too much, no bad value. */
PyObject *set_memory_error();

/* The same, thrown; and only if the status says so. */
[[noreturn]] void throw_error();
void check(tide_status status);

/* An exception of Python's, thrown; where its text cannot be made, the reason for that. */
template <typename... Values>
[[noreturn]] void raise(PyObject *type, const char *format, Values... values)
{
    PyObject *text = PyUnicode_FromFormat(format, values...);
    if (text != nullptr) {
        PyErr_SetObject(type, text);
        Py_DECREF(text);
    }
    throw nb::python_error();
}

/* ---- arguments.cc ---- */

/* Arguments that are read here, not by nanobind: it says of a number that is too large for C only
 * that it fits no signature. In signatures they are shown as what they have to be. */
typedef nb::typed<nb::object, nb::int_> Integer;
typedef nb::typed<nb::object, nb::str> Name;

/* An integer. ValueError with what it is of and the limit, where it lies beyond. */
long long integer_of(nb::handle value, const char *what, long long min, long long max);
size_t size_of(nb::handle value, const char *what);

/* A name. The library ends it at its first zero byte: one with such is a ValueError. */
std::string name_of(nb::handle value, const char *what);

/* No constructor has run for the object. What reads its arguments may run code of the program,
 * which may call it: so this is asked after that, and nanobind asks before. */
void want_unmade(nb::handle self);

/* ---- pool.cc ---- */

/* A place in a Python program where scopes are opened. */
struct Site {
    tide_site *site; /* NULL: the library's shared one */
    std::string name;
    tide_site own; /* what `site` is of one that the program gave no name; else unused */
    uint64_t scopes, pinned;
    unsigned outlived; /* scopes of which arrays were still held at the end */
    bool warned;
};

struct Hold {
    PyObject_HEAD tide_array *array; /* NULL once it is exported */
    tide_dl_managed *managed;        /* NULL until it is        */
    Hold *next;                      /* of those abandoned      */
};

struct Scope;

struct Gpu {
    tide_device *device = nullptr; /* NULL: the host */
    tide_dl_device dl = {};
};

struct Pool {
    tide_pool *pool = nullptr;  /* NULL: closed */
    Gpu gpu;                    /* where it is              */
    void *stream = nullptr;     /* of the GPU               */
    uint64_t owner = 0;         /* thread_number() of whose it is                             */
    pid_t process = getpid();   /* that it was made in */
    Scope *innermost = nullptr; /* of the open scopes; each holds the one around it           */
    Hold *abandoned = nullptr;  /* of scopes that were dropped open and could not end then    */
    bool levels_left = false;   /* such scopes' levels are still open                         */
    uint64_t scopes = 0, arrays = 0, pinned = 0;
    std::string name;

    Pool() = default;
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;
    ~Pool();
};

/* The calling thread's. No other thread of the process ever has it: Python's own go to later
 * threads. */
uint64_t thread_number();

/* May this thread use the pool? Else an exception is set. */
bool pool_usable(const Pool *pool);

/* The site of the Python line that runs now. */
Site *site_here();

/* ---- scope.cc ---- */

extern PyTypeObject *scope_type, *hold_type;

/* A scope that is not open yet. `specs`: a frame's (shape, dtype) pairs, or NULL. */
PyObject *scope_make(PyObject *pool_object, Pool *pool, Site *site, PyObject *specs);

/* Memory for n elements of an item size, held by `hold` from now on, which the caller owns. NULL
 * with an exception. */
void *scope_acquire(Scope *scope, int type_num, size_t items, size_t item_size, bool zeros,
                    PyObject **hold);

/* Keeps what somebody still has of abandoned scopes, and lets go of the rest. Before the pool is
 * rewound. False without memory, no exception set: what is left is settled the next time. */
bool pool_settle_abandoned(Pool *pool);

/* Its pool, in both forms. */
PyObject *scope_pool(const Scope *scope, Pool **pool);

/* Has the scope begun, not ended, and no other one inside? Else an exception is set. */
bool scope_usable(const Scope *scope);

/* ---- arrays.cc ---- */

extern PyMethodDef array_methods[]; /* of a scope: empty, zeros, … */

/* One array as a frame wants it: (shape, dtype) or a shape. */
PyObject *array_of_spec(Scope *scope, PyObject *spec);

/* ---- device.cc ---- */

struct DeviceShape {
    int ndim;
    const Py_intptr_t *shape;
    PyArray_Descr *descr;
    bool column_major, zeros;
};

/* An array of a GPU; NULL with an exception. */
PyObject *device_array_make(Scope *scope, const DeviceShape &of, size_t items);

/* The object as an array of NumPy's. Of one that is a GPU's only the form may be looked at. NULL with an
 * exception. */
PyObject *array_with_form(PyObject *object);

/* The device of the name, as cuda:0. */
Gpu gpu_of(const std::string &name);

/* A library's number of a stream. */
void *stream_of_number(unsigned long long number);

/* ---- new objects ---- */

/* nanobind's own constructors do not look whether there was memory. */
inline nb::dict make_dict()
{
    PyObject *made = PyDict_New();
    if (made == nullptr)
        throw nb::python_error();
    return nb::steal<nb::dict>(made);
}

inline nb::list make_list()
{
    PyObject *made = PyList_New(0);
    if (made == nullptr)
        throw nb::python_error();
    return nb::steal<nb::list>(made);
}

/* ---- the module's parts ---- */

void bind_errors(nb::module_ &m);
void bind_pool(nb::module_ &m);
void bind_scope(nb::module_ &m);
void bind_handler(nb::module_ &m);
void bind_buffers(nb::module_ &m);
void bind_dlpack(nb::module_ &m);
void bind_device(nb::module_ &m);
void bind_steer(nb::module_ &m);
void bind_events(nb::module_ &m);
void bind_frameworks(nb::module_ &m);
void bind_tunables(nb::module_ &m);

/* The process's buffers for NumPy and for pools; never destroyed. NULL with an exception. */
tide_buffers *process_buffers();

} // namespace core

#endif
