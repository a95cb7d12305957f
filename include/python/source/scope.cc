/* SPDX-License-Identifier: MIT */
/* Scopes, and what keeps their arrays from dangling.
 *
 * The base of each array is a Hold, and the scope has a reference to it, too. Views, memoryviews
 * and consumers of DLPack hold the array, which holds its base. So when the scope ends, a Hold with
 * one reference is of an array that is gone; its memory goes back with the rewind. A Hold with more
 * is of an array that somebody still has: its memory is exported first, so it leaves the pool, and
 * comes back when the Hold dies. */
#include "core.h"

#include <algorithm>

#include <tidepool/array.h>
#include <tidepool/dynamic.h>

namespace core
{

enum State { scope_new, scope_open, scope_closed, scope_ended };

enum { holds_inline = 8, escapes_before_warning = 16 };

struct Scope {
    PyObject_HEAD PyObject *pool_object, *specs, *outer;
    Pool *pool;
    Site *site;
    State state;
    size_t count, room;
    Hold **holds, *few[holds_inline];
    tide_scope scope;
};

PyTypeObject *scope_type, *hold_type;

/* ---- holds ---- */

static void hold_dealloc(PyObject *self)
{
    Hold *hold = reinterpret_cast<Hold *>(self);
    PyTypeObject *type = Py_TYPE(self);
    if (hold->managed != nullptr)
        hold->managed->deleter(hold->managed);
    PyObject_Free(self);
    Py_DECREF(type);
}

static Hold *hold_make()
{
    Hold *hold = PyObject_New(Hold, hold_type);
    if (hold != nullptr) {
        hold->array = nullptr;
        hold->managed = nullptr;
        hold->next = nullptr;
    }
    return hold;
}

/* False without memory for the descriptor: then nothing may be rewound. */
static bool hold_keep(Pool *pool, Hold *hold)
{
    if (hold->managed != nullptr)
        return true;
    hold->managed = tide_array_export(pool->pool, hold->array);
    return hold->managed != nullptr;
}

/* ---- the end ---- */

static void scope_forget_holds(Scope *scope)
{
    if (scope->holds != scope->few)
        PyMem_Free(scope->holds);
    scope->holds = scope->few;
    scope->room = holds_inline;
    scope->count = 0;
}

/* Keeps what somebody still has, and lets go of all. False without memory: then the scope has all
 * of them, so that the next try counts each once. */
static bool scope_settle(Scope *scope)
{
    Pool *pool = scope->pool;
    uint64_t kept = 0;
    for (size_t i = 0; i < scope->count; i++) {
        bool held = Py_REFCNT(scope->holds[i]) > 1;
        if (held && !hold_keep(pool, scope->holds[i]))
            return false;
        kept += held;
    }
    for (size_t i = 0; i < scope->count; i++)
        Py_DECREF(scope->holds[i]);
    scope_forget_holds(scope);
    pool->pinned += kept;
    scope->site->pinned += kept;
    scope->site->outlived += kept > 0;
    return true;
}

bool pool_settle_abandoned(Pool *pool)
{
    while (pool->abandoned != nullptr) {
        Hold *hold = pool->abandoned;
        bool held = Py_REFCNT(hold) > 1;
        if (held && !hold_keep(pool, hold))
            return false;
        pool->pinned += held;
        pool->abandoned = hold->next;
        Py_DECREF(hold);
    }
    return true;
}

/* Is it a frame of the package's own, as of @scoped? */
static bool frame_is_ours(PyFrameObject *frame)
{
    PyObject *globals = PyFrame_GetGlobals(frame);
    PyObject *name = PyDict_GetItemString(globals, "__name__");
    bool ours = name != nullptr && PyUnicode_Check(name) &&
                PyUnicode_CompareWithASCIIString(name, "tidepool") == 0;
    Py_DECREF(globals);
    return ours;
}

/* How many frames out the program's line is. */
static Py_ssize_t scope_warn_level()
{
    Py_ssize_t level = 1;
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    while (frame != nullptr && frame_is_ours(frame)) {
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
        level++;
    }
    Py_XDECREF(frame);
    PyErr_Clear(); /* of a frame that there was no memory for: then the level is too low */
    return level;
}

/* Once a site, and only if it goes on: one array that is returned costs nothing to speak of. */
static bool scope_warn(Site *site)
{
    if (site->warned || site->outlived < escapes_before_warning)
        return true;
    site->warned = true;
    return PyErr_WarnFormat(
               escape_warning, scope_warn_level(),
               "scope %s: its arrays are still held when it ends, %u times so far, so their memory "
               "leaves the pool each time, which costs an allocation; del in the scope what is "
               "not needed after it",
               site->name.c_str(), site->outlived) == 0;
}

/* Takes the innermost scope off the pool's chain. Its own reference to the one around stays. */
static void scope_unlink(Scope *scope, State state)
{
    scope->pool->innermost = reinterpret_cast<Scope *>(scope->outer);
    scope->state = state;
}

/* Ends the scope, and those inside of it that were left open. False with an exception; without
 * memory to keep its arrays it is still open, and may end later. */
static bool scope_end(Scope *scope)
{
    Pool *pool = scope->pool;
    bool settled = pool_settle_abandoned(pool);
    while (settled && pool->innermost != scope) {
        Scope *inner = pool->innermost;
        settled = scope_settle(inner);
        if (settled)
            scope_unlink(inner, scope_ended);
    }
    if (!settled || !scope_settle(scope)) {
        set_error();
        return false;
    }
    scope_unlink(scope, scope_closed);
    if (tide_scope_leave(&scope->scope) != TIDE_OK) {
        set_error();
        return false;
    }
    if (pool->innermost == nullptr && pool->levels_left) {
        pool->levels_left = false;
        (void)tide_pool_reset(pool->pool);
    }
    return true;
}

/* It is dropped and cannot end: another thread's collector did it, and the pool is not this
 * thread's to rewind, or there is no memory. Its arrays stay where they are until the owner
 * rewinds. */
static void scope_abandon(Scope *scope)
{
    Pool *pool = scope->pool;
    for (size_t i = 0; i < scope->count; i++) {
        scope->holds[i]->next = pool->abandoned;
        pool->abandoned = scope->holds[i];
    }
    pool->levels_left = true;
    scope_forget_holds(scope);
    scope_unlink(scope, scope_ended);
}

/* Nobody has it any more, or only who calls this. */
static void scope_end_dropped(Scope *scope)
{
    if (scope->state != scope_open)
        return;
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    bool ours = scope->pool->owner == thread_number();
    if (ours && !scope_end(scope))
        PyErr_WriteUnraisable(nullptr);
    if (scope->state == scope_open)
        scope_abandon(scope);
    PyErr_Restore(kind, value, trace);
}

/* Takes the reference. Scopes that go with it do so one after the other: each within the dealloc of
 * the one inside would need a stack as deep as they nest. */
static void scope_let_go(PyObject *self)
{
    while (self != nullptr && Py_REFCNT(self) == 1) {
        Scope *scope = reinterpret_cast<Scope *>(self);
        scope_end_dropped(scope);
        PyObject *outer = scope->outer;
        scope->outer = nullptr;
        Py_DECREF(self);
        self = outer;
    }
    Py_XDECREF(self);
}

static void scope_dealloc(PyObject *self)
{
    Scope *scope = reinterpret_cast<Scope *>(self);
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    scope_end_dropped(scope);
    scope_let_go(scope->outer);
    Py_XDECREF(scope->specs);
    Py_DECREF(scope->pool_object);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static int scope_traverse(PyObject *self, visitproc visit, void *arg)
{
    const Scope *scope = reinterpret_cast<Scope *>(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(scope->outer);
    Py_VISIT(scope->specs);
    Py_VISIT(scope->pool_object);
    return 0;
}

/* The end needs the pool and the scope around. No cycle goes through these alone: its other side is
 * the dictionary of a pool, or specs. */
static int scope_clear(PyObject *self)
{
    Py_CLEAR(reinterpret_cast<Scope *>(self)->specs);
    return 0;
}

/* ---- the beginning ---- */

PyObject *scope_make(PyObject *pool_object, Pool *pool, Site *site, PyObject *specs)
{
    Scope *scope = PyObject_GC_New(Scope, scope_type);
    if (scope == nullptr)
        return nullptr;
    scope->pool_object = Py_NewRef(pool_object);
    scope->specs = Py_XNewRef(specs);
    scope->outer = nullptr;
    scope->pool = pool;
    scope->site = site;
    scope->state = scope_new;
    scope->holds = scope->few;
    scope->room = holds_inline;
    scope->count = 0;
    PyObject_GC_Track(reinterpret_cast<PyObject *>(scope));
    return reinterpret_cast<PyObject *>(scope);
}

static bool scope_begin(Scope *scope)
{
    Pool *pool = scope->pool;
    if (scope->state != scope_new) {
        PyErr_SetString(stale_error, "the scope was entered before; make one for each use");
        return false;
    }
    if (!pool_usable(pool))
        return false;
    if (tide_scope_enter(pool->pool, scope->site->site, &scope->scope) != TIDE_OK) {
        set_error();
        return false;
    }
    scope->outer = Py_XNewRef(reinterpret_cast<PyObject *>(pool->innermost));
    pool->innermost = scope;
    scope->state = scope_open;
    pool->scopes++;
    scope->site->scopes++;
    return true;
}

static PyObject *scope_frame(Scope *scope)
{
    Py_ssize_t count = PyTuple_GET_SIZE(scope->specs);
    PyObject *arrays = PyTuple_New(count);
    for (Py_ssize_t i = 0; arrays != nullptr && i < count; i++) {
        PyObject *array = array_of_spec(scope, PyTuple_GET_ITEM(scope->specs, i));
        if (array == nullptr)
            Py_CLEAR(arrays);
        else
            PyTuple_SET_ITEM(arrays, i, array);
    }
    return arrays;
}

static PyObject *scope_enter(PyObject *self, PyObject *)
{
    Scope *scope = reinterpret_cast<Scope *>(self);
    if (!scope_begin(scope))
        return nullptr;
    if (scope->specs == nullptr)
        return Py_NewRef(self);
    PyObject *arrays = scope_frame(scope);
    /* What read the specs may have ended the scope, or given the pool away: then it is not ours. */
    bool ours = scope->state == scope_open && scope->pool->owner == thread_number();
    if (arrays == nullptr && ours) {
        PyObject *kind, *value, *trace;
        PyErr_Fetch(&kind, &value, &trace);
        if (!scope_end(scope))
            PyErr_Clear();
        PyErr_Restore(kind, value, trace);
    }
    return arrays;
}

/* Of a scope that another one ended, an exception that is under way says more. */
static PyObject *scope_exit(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Scope *scope = reinterpret_cast<Scope *>(self);
    if (scope->state != scope_open) {
        if (scope->state == scope_ended && count > 0 && arguments[0] != Py_None)
            Py_RETURN_FALSE;
        PyErr_SetString(stale_error,
                        scope->state == scope_ended
                            ? "the scope was ended by the one around it; a generator or "
                              "coroutine that is suspended in a scope needs its own pool"
                            : "the scope is not open");
        return nullptr;
    }
    if (!pool_usable(scope->pool) || !scope_end(scope) || !scope_warn(scope->site))
        return nullptr;
    Py_RETURN_FALSE;
}

/* ---- arrays ---- */

bool scope_usable(const Scope *scope)
{
    if (scope->state != scope_open) {
        PyErr_SetString(stale_error, scope->state == scope_new ? "the scope has not been entered"
                                                               : "the scope has ended");
        return false;
    }
    if (!pool_usable(scope->pool))
        return false;
    if (scope->pool->innermost == scope)
        return true;
    PyErr_Format(
        PyExc_RuntimeError,
        "scope %s is open inside of this one, so the array would end with it; a generator or "
        "coroutine that is suspended in a scope needs its own pool",
        scope->pool->innermost->site->name.c_str());
    return false;
}

static tide_type type_of(int type_num, size_t item_size)
{
    switch (type_num) {
    case NPY_BOOL: return TIDE_BOOL;
    case NPY_HALF: return TIDE_F16;
    case NPY_FLOAT: return TIDE_F32;
    case NPY_DOUBLE: return TIDE_F64;
    case NPY_CFLOAT: return TIDE_C64;
    case NPY_CDOUBLE: return TIDE_C128;
    case NPY_BYTE: return TIDE_I8;
    case NPY_SHORT: return TIDE_I16;
    case NPY_INT: return TIDE_I32;
    case NPY_LONG:
    case NPY_LONGLONG: return item_size == 8 ? TIDE_I64 : TIDE_I32;
    case NPY_USHORT: return TIDE_U16;
    case NPY_UINT: return TIDE_U32;
    case NPY_ULONG:
    case NPY_ULONGLONG: return item_size == 8 ? TIDE_U64 : TIDE_U32;
    default: return TIDE_U8; /* bytes */
    }
}

static bool scope_make_room(Scope *scope)
{
    if (scope->count < scope->room)
        return true;
    size_t room = scope->room * 2;
    void *old = scope->holds == scope->few ? nullptr : scope->holds;
    Hold **more = static_cast<Hold **>(PyMem_Realloc(old, room * sizeof *more));
    if (more == nullptr) {
        PyErr_NoMemory();
        return false;
    }
    if (old == nullptr)
        std::copy(scope->few, scope->few + scope->count, more);
    scope->holds = more;
    scope->room = room;
    return true;
}

void *scope_acquire(Scope *scope, int type_num, size_t items, size_t item_size, bool zeros,
                    PyObject **out)
{
    tide_type type = type_of(type_num, item_size);
    int64_t length = int64_t(type == TIDE_U8 ? items * item_size : items);
    if (!scope_make_room(scope))
        return nullptr;
    Hold *hold = hold_make();
    if (hold == nullptr)
        return nullptr;
    const tide_place place = scope->site->own.place; /* for reports */
    hold->array = zeros
                      ? tide_array_zeros(scope->pool->pool, type, 1, &length)
                      : tide_array_acquire_inline(scope->pool->pool, type, TIDE_ROW_MAJOR, 1,
                                                  &length, place.file, place.function, place.line);
    if (hold->array == nullptr) {
        Py_DECREF(hold);
        return set_memory_error();
    }
    scope->holds[scope->count++] = hold;
    scope->pool->arrays++;
    *out = Py_NewRef(reinterpret_cast<PyObject *>(hold));
    return tide_array_data(hold->array);
}

PyObject *scope_pool(const Scope *scope, Pool **pool)
{
    *pool = scope->pool;
    return scope->pool_object;
}

/* ---- types ---- */

static PyObject *scope_get_pool(PyObject *self, void *)
{
    return Py_NewRef(reinterpret_cast<Scope *>(self)->pool_object);
}

static PyObject *scope_site(PyObject *self, void *)
{
    return PyUnicode_FromString(reinterpret_cast<Scope *>(self)->site->name.c_str());
}

static PyObject *scope_is_open(PyObject *self, void *)
{
    return PyBool_FromLong(reinterpret_cast<Scope *>(self)->state == scope_open);
}

/* Without it the oldest protocols of pickle write something, which then nobody can read. */
static PyObject *never_pickled(PyObject *self, PyObject *)
{
    return PyErr_Format(PyExc_TypeError, "cannot pickle '%s' object", Py_TYPE(self)->tp_name);
}

static PyMethodDef hold_methods[] = {{"__reduce__", never_pickled, METH_NOARGS, nullptr}, {}};

static PyGetSetDef scope_members[] = {{"pool", scope_get_pool, nullptr, "The pool.", nullptr},
                                      {"site", scope_site, nullptr, "Where it is opened.", nullptr},
                                      {"open", scope_is_open, nullptr, "Is it open?", nullptr},
                                      {}};

static PyTypeObject *make_type(nb::module_ &m, PyType_Spec *spec, const char *name)
{
    PyObject *type = PyType_FromSpec(spec);
    if (type == nullptr)
        throw nb::python_error();
    m.attr(name) = nb::borrow(type);
    return reinterpret_cast<PyTypeObject *>(type);
}

void bind_scope(nb::module_ &m)
{
    static std::vector<PyMethodDef> methods;
    methods.push_back({"__enter__", scope_enter, METH_NOARGS, nullptr});
    methods.push_back({"__exit__",
                       reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(scope_exit)),
                       METH_FASTCALL, nullptr});
    methods.push_back({"__reduce__", never_pickled, METH_NOARGS, nullptr});
    for (PyMethodDef *method = array_methods; method->ml_name != nullptr; method++)
        methods.push_back(*method);
    methods.push_back({});
    PyType_Slot scope_slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(scope_dealloc)},
                                 {Py_tp_traverse, reinterpret_cast<void *>(scope_traverse)},
                                 {Py_tp_clear, reinterpret_cast<void *>(scope_clear)},
                                 {Py_tp_methods, methods.data()},
                                 {Py_tp_getset, scope_members},
                                 {Py_tp_doc, const_cast<char *>("An open scope of a pool.")},
                                 {}};
    PyType_Spec scope_spec = {
        "tidepool._core.Scope", sizeof(Scope), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, scope_slots};
    scope_type = make_type(m, &scope_spec, "Scope");
    PyType_Slot hold_slots[] = {
        {Py_tp_dealloc, reinterpret_cast<void *>(hold_dealloc)},
        {Py_tp_methods, hold_methods},
        {Py_tp_doc, const_cast<char *>("Holds an array's memory: the array's base.")},
        {}};
    PyType_Spec hold_spec = {"tidepool._core.Hold", sizeof(Hold), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, hold_slots};
    hold_type = make_type(m, &hold_spec, "Hold");
}

} // namespace core
