/* SPDX-License-Identifier: MIT */
/* What DLPack is in Python: names of capsules, and the tensor from before versions. */
#ifndef TIDEPOOL_PYTHON_DLPACK_H
#define TIDEPOOL_PYTHON_DLPACK_H

#include "gil.h"

#include <tidepool/dlpack.h>

namespace core
{

/* DLManagedTensor */
struct tide_dl_old {
    tide_dl_tensor tensor;
    void *manager_ctx;
    void (*deleter)(tide_dl_old *self);
};

constexpr const char *dl_capsule = "dltensor_versioned", *dl_capsule_old = "dltensor";

/* The first number of a pair that another library gives. */
inline long dl_first_of(nb::handle pair)
{
    nb::object zero = nb::int_(0);
    nb::object first = asked([&] { return PyObject_GetItem(pair.ptr(), zero.ptr()); });
    long value = stopped_at_end([&] { return PyLong_AsLong(first.ptr()); });
    if (value == -1 && PyErr_Occurred())
        throw nb::python_error();
    return value;
}

} // namespace core

#endif
