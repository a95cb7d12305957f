/* SPDX-License-Identifier: MIT */
/* Pools as Python objects, and the places in Python programs as the library's sites. */
#include "core.h"

#include "gil.h"

#include <climits>
#include <cstring>
#include <map>
#include <nanobind/stl/string.h>
#include <unordered_map>

#include <tidepool/device.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

namespace core
{

/* ---- sites ---- */

struct Place {
    PyObject *code; /* held: no other code object can come to lie there */
    int instruction;
    bool operator==(const Place &other) const
    {
        return code == other.code && instruction == other.instruction;
    }
};

struct PlaceHash {
    size_t operator()(const Place &place) const
    {
        return reinterpret_cast<uintptr_t>(place.code) / 16 * 31 + size_t(place.instruction);
    }
};

/* Programs that make code as they run make no end of places. Those beyond share one site. */
static constexpr size_t places_max = 4096;

static Site *site_shared()
{
    static Site shared{nullptr, "?", {}, 0, 0, 0, false};
    return &shared;
}

/* Never destroyed: the library's list has them, and the profile that is saved at exit. */
static std::map<std::string, Site> &sites_known()
{
    static auto *all = new std::map<std::string, Site>;
    return *all;
}

/* Of a name that the program gave. */
static Site *site_named(const std::string &name)
{
    std::map<std::string, Site> &known = sites_known();
    auto found = known.find(name);
    if (found != known.end())
        return &found->second;
    tide_site *site = known.size() < places_max ? tide_site_register(name.c_str()) : nullptr;
    if (site == nullptr)
        return site_shared();
    return &known.emplace(name, Site{site, name, {}, 0, 0, 0, false}).first->second;
}

/* A text of Python's; "?" where it is not UTF-8. */
static std::string utf8_of(PyObject *text)
{
    const char *bytes = PyUnicode_AsUTF8(text);
    if (bytes != nullptr)
        return bytes;
    if (!PyErr_ExceptionMatches(PyExc_UnicodeError))
        throw nb::python_error();
    PyErr_Clear();
    return "?";
}

/* A copy for good. It lies in the module, for the library tells of a place only while the module that
 * has its texts is loaded. NULL: there is no more room. */
static const char *text_kept(const std::string &text)
{
    static char room[size_t(1) << 19];
    static size_t used;
    if (text.size() >= sizeof room - used)
        return nullptr;
    char *kept = static_cast<char *>(memcpy(&room[used], text.c_str(), text.size() + 1));
    used += text.size() + 1;
    return kept;
}

/* Code that is made anew at the same place, as of a cell that runs again, has the same site. */
static Site *site_placed(PyCodeObject *code, int line)
{
    std::map<std::string, Site> &known = sites_known();
    std::string function = utf8_of(code->co_qualname), file = utf8_of(code->co_filename);
    std::string at = ":" + std::to_string(line) + ")", key = function + " (" + file + at;
    auto found = known.find(key);
    if (found != known.end())
        return &found->second;
    std::string name = function + " (" + file.substr(file.rfind('/') + 1) + at;
    tide_place place{text_kept(file), text_kept(function), uint32_t(line)};
    if (known.size() >= places_max || place.file == nullptr || place.function == nullptr)
        return site_shared();
    Site &made =
        known.emplace(key, Site{nullptr, std::move(name), {}, 0, 0, 0, false}).first->second;
    made.own = {&tide_plans_arriving[TIDE_KIND_SCOPE],
                made.name.c_str(),
                place,
                0,
                TIDE_KIND_SCOPE,
                nullptr};
    made.site = &made.own;
    tide_module_enter(&made.site, &made.site + 1, &made);
    return &made;
}

/* `instruction`: where in the code; -1: the function as a whole. */
static Site *site_at(nb::object code, int instruction)
{
    static std::unordered_map<Place, Site *, PlaceHash> places;
    Place place{code.ptr(), instruction};
    auto found = places.find(place);
    if (found != places.end())
        return found->second;
    if (places.size() >= places_max)
        return site_shared();
    PyCodeObject *known = reinterpret_cast<PyCodeObject *>(code.ptr());
    Site *site = site_placed(known, PyCode_Addr2Line(known, instruction));
    places.emplace(place, site);
    (void)code.release(); /* by its place */
    return site;
}

Site *site_here()
{
    PyFrameObject *frame = PyEval_GetFrame();
    if (frame == nullptr)
        return site_shared();
    nb::object code = nb::steal(reinterpret_cast<PyObject *>(PyFrame_GetCode(frame)));
    return site_at(std::move(code), PyFrame_GetLasti(frame));
}

/* ---- pools ---- */

uint64_t thread_number()
{
    static uint64_t last;
    static thread_local uint64_t mine;
    if (mine == 0)
        mine = ++last;
    return mine;
}

bool pool_usable(const Pool *pool)
{
    if (pool->pool == nullptr)
        PyErr_Format(stale_error, "pool '%s' is closed", pool->name.c_str());
    else if (pool->owner != thread_number())
        PyErr_Format(
            thread_error,
            pool->process == getpid()
                ? "pool '%s' belongs to another thread; make one for each, or call adopt()"
                : "pool '%s' was made in the parent process, by another thread; make one here",
            pool->name.c_str());
    else
        return true;
    return false;
}

static void want_usable(const Pool &pool)
{
    if (!pool_usable(&pool))
        throw nb::python_error();
}

/* No scope is open, for each would hold the pool. Any thread: the GIL orders it after the owner. */
static tide_status pool_end(Pool &pool)
{
    tide_pool *ended = pool.pool;
    if (ended == nullptr)
        return TIDE_OK;
    if (pool.owner != thread_number())
        (void)tide_pool_adopt(ended);
    if (!pool_settle_abandoned(&pool))
        return TIDE_ERROR_MEMORY; /* leaked rather than freed under somebody */
    (void)tide_pool_reset(ended);
    pool.pool = nullptr;
    return tide_pool_destroy(ended);
}

Pool::~Pool()
{
    (void)pool_end(*this);
}

/* An array that is held at its scope's end leaves the pool, which a guarded one may not: here level 1
 * is the most. */
static int check_level(bool asked)
{
    double set = 0;
    if (asked || (tide_tune_get("check", &set) == TIDE_OK && set >= TIDE_CHECK_GUARD))
        return TIDE_CHECK_POISON;
    return TIDE_CHECK_DEFAULT;
}

static void pool_init(nb::pointer_and_handle<Pool> self, const Name &name,
                      const Integer &limit_bytes, const Integer &level, const Name &device,
                      const Integer &stream)
{
    tide_pool_options options = {};
    Gpu gpu;
    std::string called = name_of(name, "Pool: name");
    options.name = called.c_str();
    options.limit_bytes = size_of(limit_bytes, "Pool: limit_bytes");
    options.check = check_level(integer_of(level, "Pool: check", 0, 1) == 1);
    std::string where = name_of(device, "Pool: device");
    long long number = integer_of(stream, "Pool: stream", 0, LLONG_MAX);
    want_unmade(self.h);
    if (where != "host") {
        gpu = gpu_of(where);
        options.stream = stream_of_number(static_cast<unsigned long long>(number));
    } else if (number != 0) {
        raise(PyExc_ValueError, "Pool: memory of the host has no stream");
    }
    options.device = gpu.device;
    if (gpu.device == nullptr && (options.buffers = process_buffers()) == nullptr)
        throw nb::python_error();
    tide_pool *made = tide_pool_create(&options);
    if (made == nullptr)
        throw_error();
    Pool *pool = new (self.p) Pool();
    pool->name = std::move(called);
    pool->owner = thread_number();
    pool->pool = made;
    pool->gpu = gpu;
    pool->stream = options.stream;
}

static void pool_close(Pool &pool)
{
    if (pool.pool == nullptr)
        return;
    want_usable(pool);
    if (pool.innermost != nullptr)
        raise(PyExc_RuntimeError, "pool '%s' has open scopes", pool.name.c_str());
    check(pool_end(pool));
}

static void pool_adopt(Pool &pool)
{
    if (pool.pool == nullptr)
        want_usable(pool);
    check(tide_pool_adopt(pool.pool));
    pool.owner = thread_number();
}

static nb::dict pool_stats(const Pool &pool)
{
    want_usable(pool);
    tide_pool_statistics s;
    check(tide_pool_stats(pool.pool, &s));
    nb::dict out = make_dict();
    out["bytes_held"] = s.bytes_held;
    out["bytes_live"] = s.bytes_live;
    out["bytes_peak"] = s.bytes_peak;
    out["bytes_limit"] = s.bytes_limit;
    out["bytes_exported"] = s.bytes_exported;
    out["slots"] = s.slots;
    out["slots_live"] = s.slots_live;
    out["depth"] = s.depth;
    out["allocations"] = s.allocations;
    out["releases"] = s.releases;
    out["scopes"] = pool.scopes;
    out["arrays"] = pool.arrays;
    out["pinned"] = pool.pinned;
    return out;
}

static size_t pool_trim(Pool &pool)
{
    want_usable(pool);
    return tide_pool_trim(pool.pool, TIDE_ALL_TYPES).bytes;
}

static void pool_use_on(const Pool &pool, const Integer &stream)
{
    long long number = integer_of(stream, "use_on: stream", 0, LLONG_MAX);
    want_usable(pool);
    check(tide_pool_use_on(pool.pool, stream_of_number(static_cast<unsigned long long>(number))));
}

static void pool_check(const Pool &pool)
{
    want_usable(pool);
    check(tide_pool_check(pool.pool));
}

/* Python can make an object of which no constructor has run. */
static Pool &pool_of(nb::handle self)
{
    if (!nb::inst_ready(self))
        raise(PyExc_TypeError, "the pool was not initialised");
    return *nb::inst_ptr<Pool>(self);
}

static nb::object pool_scope(nb::handle_t<Pool> self, const Name &name)
{
    Pool &pool = pool_of(self);
    Site *site = name.is_none()             ? site_here()
                 : PyCode_Check(name.ptr()) ? site_at(name, -1) /* of @scoped */
                                            : site_named(name_of(name, "scope: name"));
    return nb::steal(scope_make(self.ptr(), &pool, site, nullptr));
}

/* Python's own kind of method: nanobind does not look whether there was memory for a tuple. */
static PyObject *pool_frame(PyObject *self, PyObject *specs)
{
    return guarded([=] {
        Pool &pool = pool_of(self);
        return nb::steal(scope_make(self, &pool, site_here(), specs));
    });
}

void bind_pool(nb::module_ &m)
{
    static PyMethodDef methods[] = {
        {"frame", pool_frame, METH_VARARGS,
         "frame($self, *args)\n--\n\n"
         "A scope and its arrays for a `with`, which gives the arrays as a tuple. Each argument is "
         "a shape, or a pair of shape and dtype."},
        {}};
    static PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, nullptr}};
    nb::class_<Pool>(m, "Pool", nb::is_weak_referenceable(), nb::type_slots(slots),
                     "Memory for arrays of scopes.")
        .def("__init__", &pool_init, nb::arg("name").none() = "python",
             nb::arg("limit_bytes").none() = 0, nb::arg("check").none() = 0,
             nb::arg("device").none() = "host", nb::arg("stream").none() = 0)
        .def("scope", &pool_scope, nb::arg("name") = nb::none(),
             "A scope for a `with`. Its call site is the line that asks, or has the name given.")
        .def("close", &pool_close,
             "Gives its memory back, but for arrays that somebody holds: they stay good. "
             "RuntimeError while scopes are open. The second time it does nothing.")
        .def("adopt", &pool_adopt,
             "Makes it the calling thread's. The one whose it was is refused from then on.")
        .def("stats", &pool_stats,
             "Counts of scopes, of arrays and of those pinned, that is, held when their scope "
             "ended; bytes held, live and at the peak. Memory of pinned arrays is not held by the "
             "pool: neither these figures nor the limit have it. bytes_exported is what of it the "
             "slots had that have served no other array since.")
        .def("trim", &pool_trim,
             "Gives back what memory no array uses now. Returns how many bytes that were.")
        .def("_use_on", &pool_use_on, nb::arg("stream"))
        .def("check", &pool_check,
             "Looks through all that the pool keeps of itself; RuntimeError where something is "
             "wrong. For tests.")
        .def_ro("name", &Pool::name, "What messages call it.")
        .def_prop_ro(
            "closed", [](const Pool &pool) { return pool.pool == nullptr; }, "Was it closed?")
        .def_prop_ro(
            "usable",
            [](const Pool &pool) { return pool.pool != nullptr && pool.owner == thread_number(); },
            "Is it open, and the calling thread's?")
        .def_prop_ro(
            "depth",
            [](const Pool &pool) {
                want_usable(pool);
                return tide_pool_depth(pool.pool);
            },
            "How many scopes are open.");
}

} // namespace core
