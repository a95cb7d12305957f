/* SPDX-License-Identifier: MIT */
/* Letting go of the GIL, and taking it, on threads that the interpreter's end may meet there.
 *
 * At its end Python ends each other thread that wants the GIL by pthread_exit (before 3.14), which
 * unwinds the stack: through nanobind's functions, of which none may throw, so the process would
 * abort. Such a thread is stopped where it is instead, as Python 3.14 does it: its daemon threads have
 * no more to do. It holds no lock of the library there, unless it is about to tell a listener to events:
 * then it has the round, and the process waits for it for ever (the page says what to do). */
#ifndef TIDEPOOL_PYTHON_GIL_H
#define TIDEPOOL_PYTHON_GIL_H

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace core
{

[[noreturn]] inline void gil_stop_thread()
{
    for (;;)
        pause();
}

inline PyGILState_STATE gil_take()
{
    try {
        return PyGILState_Ensure();
    } catch (abi::__forced_unwind &) {
        gil_stop_thread();
    }
}

/* What `call` returns, which must not throw. */
template <typename Call> auto without_gil(Call call)
{
    PyThreadState *state = PyEval_SaveThread();
    auto result = call();
    try {
        PyEval_RestoreThread(state);
    } catch (abi::__forced_unwind &) {
        gil_stop_thread();
    }
    return result;
}

} // namespace core

#endif
