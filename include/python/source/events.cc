/* SPDX-License-Identifier: MIT */
/* Who listens to events of learning; and the interpreter's end, which waits for who is being told.
 *
 * A thread that tells, one of the program's, must be back from Python before the interpreter goes,
 * or not go there any more. Who tells counts itself and then reads `ending`; the end sets `ending`
 * and then reads the count. All of this is sequentially consistent, so:
 *
 *  1. whom the end does not count sees `ending`, and does not ask for the GIL;
 *  2. whom it counts it waits for, without the GIL, until the listener is back.
 *
 * A listener that does not come back has END_MS. Then its thread is stopped where it next wants the
 * GIL (gil.h). */
#include "core.h"

#include "gil.h"

#include <atomic>
#include <chrono>
#include <pthread.h>
#include <thread>

#include <tidepool/learn.h>
#include <tidepool/site.h>

namespace core
{

enum { END_MS = 2000 };

static PyObject *event_function; /* or NULL */

static std::atomic<bool> ending;
static std::atomic<unsigned> telling; /* by all threads: calls of event_tell that have not ended */
static thread_local unsigned telling_here; /* of these, this thread's: a listener may step */

/* ---- telling ---- */

static nb::dict event_describe(const tide_event *event)
{
    nb::dict out = make_dict();
    out["kind"] = tide_event_name(event->kind);
    out["name"] = text_of(event->name != nullptr ? event->name : "");
    out["tier"] = tide_tier_name(event->tier);
    out["reason"] = event->reason != nullptr ? event->reason : "";
    out["detail"] = text_of(event->detail != nullptr ? event->detail : "");
    out["round"] = event->round;
    out["serial"] = event->serial;
    out["time_ns"] = event->time_ns;
    return out;
}

static void event_complain()
{
    PyObject *where = PyUnicode_FromString("tidepool.on_event");
    PyErr_WriteUnraisable(where);
    Py_XDECREF(where);
}

/* With the GIL. Here are plain references only: where the thread is stopped in the listener, no
 * destructor may have run before, for those count references, and the GIL is another thread's. */
static void event_call(const tide_event *event)
{
    PyObject *function = Py_XNewRef(event_function);
    if (function == nullptr)
        return;
    PyObject *told = guarded([=] { return event_describe(event); });
    PyObject *result = told != nullptr ? PyObject_CallOneArg(function, told) : nullptr;
    if (result == nullptr)
        event_complain();
    Py_XDECREF(result);
    Py_XDECREF(told);
    Py_DECREF(function);
}

/* Called by C, so nothing is thrown. */
static void event_tell(const tide_event *event, void *)
{
    telling++;
    telling_here++;
    if (!ending && Py_IsInitialized())
        stopped_at_end([=] {
            PyGILState_STATE held = PyGILState_Ensure();
            event_call(event);
            PyGILState_Release(held);
        });
    telling_here--;
    telling--;
}

static void event_set(nb::object function)
{
    if (!function.is_none() && !PyCallable_Check(function.ptr()))
        raise(PyExc_TypeError, "a function is wanted, or None");
    PyObject *before = event_function;
    event_function = function.is_none() ? nullptr : Py_NewRef(function.ptr());
    tide_event_set_handler(event_function != nullptr ? event_tell : nullptr, nullptr);
    Py_XDECREF(before); /* which may run code of the program */
}

/* ---- the end ---- */

/* Without the GIL. Is nobody else being told any more? */
static bool events_wait()
{
    auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(END_MS);
    while (telling != telling_here && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return telling == telling_here;
}

/* Before the interpreter ends. False: some listener is not back. */
static bool events_end()
{
    ending = true;
    event_set(nb::none());
    return without_gil(events_wait);
}

/* Who else was being told is not in the child of a fork. */
static void events_in_child()
{
    telling = telling_here;
}

void bind_events(nb::module_ &m)
{
    (void)pthread_atfork(nullptr, nullptr, events_in_child);
    m.def("event_set", &event_set, nb::arg("function").none());
    m.def("events_end", &events_end);
}

} // namespace core
