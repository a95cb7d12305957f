/* SPDX-License-Identifier: MIT */
/* The extension module: NumPy's C API, then each part. */
#define TIDEPOOL_PYTHON_IMPORTS_NUMPY
#include "core.h"

static int import_numpy()
{
    import_array1(-1);
    return 0;
}

NB_MODULE(_core, m)
{
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(
            PyExc_ImportError,
            "tidepool works in the main interpreter only, and this is a subinterpreter: "
            "its memory would outlive it");
        throw nb::python_error();
    }
    nb::set_leak_warnings(false); /* each thread's own pool lives to the end of the process */
    if (import_numpy() != 0)
        throw nb::python_error();
    m.doc() = "Tidepool's extension module. Use the package tidepool.";
    m.attr("__version__") = tide_version();
    core::bind_errors(m);
    core::bind_pool(m);
    core::bind_scope(m);
    core::bind_handler(m);
    core::bind_buffers(m);
    core::bind_dlpack(m);
    core::bind_steer(m);
    core::bind_frameworks(m);
}
