/* SPDX-License-Identifier: MIT */
/* Letting go of the GIL, and taking it, on threads that the interpreter's end may meet there.
 *
 * At its end Python ends each other thread that wants the GIL by pthread_exit (before 3.14), which
 * unwinds the stack: through nanobind's functions, of which none may throw, so the process would
 * abort. Such a thread is stopped where it is instead, as Python 3.14 does it: its daemon threads
 * have no more to do. It holds no lock of the library there. */
#ifndef TIDEPOOL_PYTHON_GIL_H
#define TIDEPOOL_PYTHON_GIL_H

#include <Python.h>
#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

namespace nb = nanobind;

namespace core
{

[[noreturn]] inline void gil_stop_thread()
{
    for (;;)
        pause();
}

/* What `call` returns. If the interpreter ends the thread in there, it is stopped here: frames of
 * C++ further in are unwound before, so they should have no destructors. */
template <typename Call> auto stopped_at_end(Call call)
{
    try {
        return call();
    } catch (abi::__forced_unwind &) {
        gil_stop_thread();
    }
}

/* What a function of Python's C API gives that may run code of the program: a new reference. All
 * that nanobind calls asks in this way, for none of its frames may be unwound. */
template <typename Call> nb::object asked(Call call)
{
    PyObject *result = stopped_at_end(call);
    if (result == nullptr)
        throw nb::python_error();
    return nb::steal(result);
}

/* Sets the exception of what is caught now (errors.cc): one of Python's, or of memory. nanobind's
 * own kinds (nb::type_error) are not thrown here. */
void set_caught() noexcept;

/* What `call` gives, an object, for C: NULL with an exception where it threw. */
template <typename Call> PyObject *guarded(Call call)
{
    try {
        return call().release().ptr();
    } catch (abi::__forced_unwind &) {
        gil_stop_thread();
    } catch (...) {
        set_caught();
    }
    return nullptr;
}

inline PyGILState_STATE gil_take()
{
    return stopped_at_end(PyGILState_Ensure);
}

/* What `call` returns, which must not throw. */
template <typename Call> auto without_gil(Call call)
{
    PyThreadState *state = PyEval_SaveThread();
    auto result = call();
    stopped_at_end([=] { PyEval_RestoreThread(state); });
    return result;
}

} // namespace core

#endif
