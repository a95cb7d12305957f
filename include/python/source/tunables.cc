/* SPDX-License-Identifier: MIT */
/* Tunables that a Python program declares, by number. Like sites they stay until the process ends. */
#include "core.h"

#include "gil.h"

#include <deque>
#include <map>
#include <nanobind/stl/string.h>
#include <tidepool/tunable.h>

namespace core
{

/* A tunable of the library's, and the texts that it points to. */
struct Tunable {
    std::string name, file;
    std::vector<std::string> variants;
    std::vector<const char *> pointers;
    tide_tunable listed = {};
};

/* Never destroyed: the library's list has them, and the profile that is saved at exit. */
static std::deque<Tunable> &declared()
{
    static auto *all = new std::deque<Tunable>;
    return *all;
}

static Tunable &tunable_of(size_t number)
{
    if (number >= declared().size())
        raise(PyExc_ValueError, "there is no tunable %zu", number);
    return declared()[number];
}

static std::string tunable_name_of(nb::handle value)
{
    std::string name = name_of(value, "the name of a tunable or variant");
    if (name.empty() || name.size() > TIDE_TUNABLE_NAME_MAX)
        raise(PyExc_ValueError, "the name of a tunable or variant has %zu bytes: 1 to %d are taken",
              name.size(), int(TIDE_TUNABLE_NAME_MAX));
    return name;
}

static bool tunable_alike(const Tunable &one, const Tunable &other)
{
    return one.variants == other.variants && one.listed.low == other.listed.low &&
           one.listed.high == other.listed.high && one.listed.initial == other.listed.initial;
}

/* Lists it, unless the file has declared it before. Listing may wait a moment for a store. */
static size_t tunable_declare(Tunable &&made)
{
    std::deque<Tunable> &all = declared();
    for (size_t i = 0; i < all.size(); i++)
        if (all[i].name == made.name && all[i].file == made.file) {
            if (!tunable_alike(all[i], made))
                raise(PyExc_ValueError, "tunable '%s' was declared otherwise at %s:%u",
                      made.name.c_str(), made.file.c_str(), unsigned(all[i].listed.line));
            return i;
        }
    all.push_back(std::move(made));
    Tunable &one = all.back();
    for (const std::string &variant : one.variants)
        one.pointers.push_back(variant.c_str());
    one.listed.name = one.name.c_str();
    one.listed.file = one.file.c_str();
    one.listed.variants = one.variants.empty() ? nullptr : one.pointers.data();
    one.listed.variant_count = uint32_t(one.pointers.size());
    one.listed.value = one.listed.initial;
    size_t number = all.size() - 1;
    tide_tunable *const list[] = {&one.listed};
    (void)without_gil([&] { return tide_tunable_enter(list, list + 1), 0; });
    return number;
}

static size_t tunable_knob(const Name &name, const Name &file, uint32_t line, const Integer &low,
                           const Integer &high, const Integer &initial)
{
    Tunable made;
    made.name = tunable_name_of(name);
    made.file = name_of(file, "the file of a tunable");
    made.listed.line = line;
    made.listed.low = integer_of(low, "tunable: low", 0, TIDE_TUNABLE_LIMIT - 1);
    made.listed.high = integer_of(high, "tunable: high", made.listed.low, TIDE_TUNABLE_LIMIT - 1);
    made.listed.initial =
        integer_of(initial, "tunable: initial", made.listed.low, made.listed.high);
    return tunable_declare(std::move(made));
}

static size_t tunable_variants(const Name &name, const Name &file, uint32_t line,
                               const nb::list &variants)
{
    Tunable made;
    made.name = tunable_name_of(name);
    made.file = name_of(file, "the file of a tunable");
    made.listed.line = line;
    size_t count = variants.size();
    if (count < 1 || count > TIDE_VARIANTS_MAX)
        raise(PyExc_ValueError, "%zu variants: 1 to %d are taken", count, int(TIDE_VARIANTS_MAX));
    for (size_t i = 0; i < count; i++) {
        std::string variant = tunable_name_of(variants[i]);
        for (const std::string &before : made.variants)
            if (before == variant)
                raise(PyExc_ValueError, "two variants are called '%s'", variant.c_str());
        made.variants.push_back(std::move(variant));
    }
    return tunable_declare(std::move(made));
}

static void tunable_set(size_t number, const Integer &value)
{
    Tunable &one = tunable_of(number);
    check(tide_tunable_set(&one.listed,
                           integer_of(value, one.name.c_str(), one.listed.low, one.listed.high)));
}

static uint64_t key_of(nb::handle key)
{
    return uint64_t(integer_of(key, "the key of a use", 0, (long long)(TIDE_TUNABLE_OTHER)-1));
}

static nb::dict row_describe(const tide_tunable_row &row)
{
    nb::dict out = make_dict();
    out["key"] = row.key;
    out["uses"] = row.uses;
    out["choice"] = text_of(row.candidates[row.choice].name);
    out["settled"] = row.settled;
    out["pinned"] = row.pinned;
    nb::list candidates = make_list();
    for (uint32_t i = 0; i < row.candidate_count; i++) {
        const tide_candidate &candidate = row.candidates[i];
        nb::dict one = make_dict();
        one["name"] = text_of(candidate.name);
        one["uses"] = candidate.uses;
        one["ns"] = candidate.ns;
        one["error_ns"] = candidate.error_ns;
        one["loaded"] = candidate.loaded;
        candidates.append(one);
    }
    out["candidates"] = candidates;
    return out;
}

static nb::list tunable_rows(size_t number)
{
    nb::list out = make_list();
    tide_tunable_row row;
    for (uint32_t i = 0; tide_tunable_row_get(&tunable_of(number).listed, i, &row); i++)
        out.append(row_describe(row));
    return out;
}

/* ---- a use -------------------------------------------------------------------------------- */

/* A block that is measured, as a context. It is entered once. */
struct Use {
    tide_tunable *tunable;
    uint64_t key;
    bool entered;
    tide_measured_use use;
};

static nb::handle use_type;

/* As `with` asks for them: methods of Python's own kind, which are bound with a look at memory. */

static PyObject *use_enter(PyObject *self, PyObject *)
{
    return guarded([=] {
        Use &use = *nb::inst_ptr<Use>(self);
        if (use.entered)
            raise(PyExc_RuntimeError, "'%s': a use is measured once", use.tunable->name);
        use.entered = true;
        tide_measure_begin(&use.use, use.tunable, use.key);
        return nb::steal(PyLong_FromUnsignedLong(use.use.variant)); /* a small one: it is there */
    });
}

/* What an exception leaves counts for nothing: a variant that fails is not the fastest. */
static PyObject *use_exit(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Use &use = *nb::inst_ptr<Use>(self);
    if (count > 0 && arguments[0] == Py_None)
        tide_measure_leave(&use.use);
    use.use.row = nullptr;
    Py_RETURN_NONE;
}

static PyObject *use_cost(PyObject *self, PyObject *ns)
{
    return guarded([=] {
        nb::inst_ptr<Use>(self)->use.told =
            uint64_t(integer_of(ns, "cost: ns", 1, TIDE_TUNABLE_LIMIT - 1));
        return nb::none();
    });
}

static nb::object tunable_use(size_t number, const Integer &key)
{
    Tunable &one = tunable_of(number);
    if (one.variants.empty())
        raise(PyExc_ValueError, "'%s' is a knob: nothing of it is measured", one.name.c_str());
    uint64_t which = key_of(key);
    nb::object made = nb::inst_alloc(use_type);
    new (nb::inst_ptr<Use>(made)) Use{&one.listed, which, false, {}};
    nb::inst_mark_ready(made);
    return made;
}

static void bind_use(nb::module_ &m)
{
    static PyMethodDef methods[] = {
        {"__enter__", use_enter, METH_NOARGS, "__enter__($self)\n--\n\nThe variant to run."},
        {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(use_exit)),
         METH_FASTCALL, "__exit__($self, *args)\n--\n\nThe use is over."},
        {"cost", use_cost, METH_O,
         "cost($self, ns, /)\n--\n\n"
         "The use counts as so many nanoseconds, whatever the clock says."},
        {}};
    static PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, nullptr}};
    nb::class_<Use> type(m, "Use", nb::is_final(), nb::type_slots(slots),
                         "A block that is measured: `with tidepool.measure(…) as which`.");
    use_type = type.release(); /* it lives as long as the process */
}

void bind_tunables(nb::module_ &m)
{
    m.def("tunable_knob", &tunable_knob, nb::arg("name"), nb::arg("file"), nb::arg("line"),
          nb::arg("low"), nb::arg("high"), nb::arg("initial"));
    m.def("tunable_variants", &tunable_variants, nb::arg("name"), nb::arg("file"), nb::arg("line"),
          nb::arg("variants"));
    m.def(
        "tunable_value",
        [](size_t number) { return tide_tunable_value(&tunable_of(number).listed); },
        nb::arg("number"));
    m.def("tunable_set", &tunable_set, nb::arg("number"), nb::arg("value"));
    m.def(
        "tunable_pin",
        [](size_t number, const Integer &key, const Name &variant) {
            uint64_t row = key_of(key);
            std::string name = name_of(variant, "pin: variant");
            check(tide_tunable_pin(&tunable_of(number).listed, row, name.c_str()));
        },
        nb::arg("number"), nb::arg("key"), nb::arg("variant"));
    m.def(
        "tunable_reset",
        [](size_t number) { check(tide_tunable_reset(&tunable_of(number).listed)); },
        nb::arg("number"));
    m.def("tunable_rows", &tunable_rows, nb::arg("number"));
    m.def("tunable_use", &tunable_use, nb::arg("number"), nb::arg("key") = 0);
    bind_use(m);
}

} // namespace core
