/* SPDX-License-Identifier: MIT */
/* The extension module: NumPy's C API, then each part. */
#define TIDEPOOL_PYTHON_IMPORTS_NUMPY
#include <tidepool/version.h>

#include "core.h"

static int import_numpy()
{
    import_array1(-1);
    return 0;
}

static bool loaded; /* The module's types are the process's. */

/* nanobind's own function, by another name: it changes what the module has that is loaded already.
 */
#define PyInit__core tidepool_init_core
NB_MODULE(_core, m)
{
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
    core::bind_device(m);
    core::bind_steer(m);
    core::bind_events(m);
    core::bind_frameworks(m);
    core::bind_tunables(m);
    loaded = true;
}
#undef PyInit__core

static const char *refusal()
{
    if (PyInterpreterState_Get() != PyInterpreterState_Main())
        return "tidepool works in the main interpreter only, and this is a subinterpreter: "
               "its memory would outlive it";
    if (loaded)
        return "tidepool cannot be loaded twice in a process: it was taken out of sys.modules, and "
               "its memory is still there";
    return nullptr;
}

static bool refuse()
{
    const char *why = refusal();
    if (why != nullptr)
        PyErr_SetString(PyExc_ImportError, why);
    return why != nullptr;
}

/* As Python makes one itself, in the interpreter that imports it. Nothing has changed until then.
 */
static PyObject *module_create(PyObject *spec, PyModuleDef *)
{
    PyObject *name = refuse() ? nullptr : PyObject_GetAttrString(spec, "name");
    PyObject *made = name != nullptr ? PyModule_NewObject(name) : nullptr;
    Py_XDECREF(name);
    return made;
}

/* nanobind's definition, but that each module is asked for here. */
static PyObject *definition_of(const PyModuleDef *nanobinds)
{
    static PyModuleDef definition;
    static std::vector<PyModuleDef_Slot> slots;
    if (slots.empty()) {
        definition = *nanobinds;
        definition.m_base = PyModuleDef_HEAD_INIT;
        slots.push_back({Py_mod_create, reinterpret_cast<void *>(module_create)});
        for (PyModuleDef_Slot *slot = nanobinds->m_slots; slot->slot != 0; slot++)
            slots.push_back(*slot);
        slots.push_back({});
        definition.m_slots = slots.data();
    }
    return PyModuleDef_Init(&definition);
}

/* Python 3.13 calls this in the main interpreter, whichever one imports the module. So nobody is
 * refused here. */
PyMODINIT_FUNC PyInit__core()
{
    PyObject *made = tidepool_init_core();
    if (made == nullptr)
        return nullptr;
    if (PyObject_TypeCheck(made, &PyModuleDef_Type))
        return definition_of(reinterpret_cast<PyModuleDef *>(made));
    PyErr_SetString(PyExc_ImportError, "tidepool was built with a nanobind before 3");
    return nullptr;
}
