/* SPDX-License-Identifier: MIT */
/* Settings, sites, facts, profiles and rounds of learning. */
#include "core.h"

#include "gil.h"

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nanobind/stl/string.h>
#include <new>
#include <tidepool/facts.h>
#include <tidepool/generic.h>
#include <tidepool/learn.h>
#include <tidepool/profile.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>

namespace core
{

static nb::dict setting_describe(const tide_tune_entry *entry)
{
    nb::dict one = make_dict();
    one["name"] = entry->name;
    one["value"] = entry->value;
    one["initial"] = entry->initial;
    one["min"] = entry->min;
    one["max"] = entry->max;
    one["meaning"] = entry->meaning;
    return one;
}

/* Called by C: no exception may pass. False: one is set. */
static bool setting_add(const tide_tune_entry *entry, void *list)
{
    PyObject *one = guarded([=] { return setting_describe(entry); });
    bool added = one != nullptr && PyList_Append(static_cast<PyObject *>(list), one) == 0;
    Py_XDECREF(one);
    return added;
}

static nb::list settings_list()
{
    nb::list out = make_list();
    tide_tune_each(setting_add, out.ptr());
    if (PyErr_Occurred())
        throw nb::python_error();
    return out;
}

/* A name that something is to be found by. One that the library cannot be told is nothing's. */
static const char *known_name(const nb::str &name)
{
    Py_ssize_t length = 0;
    const char *text = PyUnicode_AsUTF8AndSize(name.ptr(), &length);
    if (text != nullptr && strlen(text) == size_t(length))
        return text;
    if (text != nullptr || PyErr_ExceptionMatches(PyExc_UnicodeError))
        PyErr_SetObject(PyExc_KeyError, name.ptr());
    throw nb::python_error();
}

static double setting_get(const nb::str &name)
{
    double value = 0;
    check(tide_tune_get(known_name(name), &value));
    return value;
}

static void setting_set(const nb::str &name, const nb::object &value)
{
    double number = stopped_at_end([&] { return PyFloat_AsDouble(value.ptr()); });
    if (number == -1 && PyErr_Occurred())
        throw nb::python_error();
    check(tide_tune_set(known_name(name), number));
}

/* What is known of a site, with texts of its own: the site, and its texts, go with its module. */
struct Seen {
    std::string name, function, file;
    tide_site_information info;
};

struct Seeing {
    std::vector<Seen> sites;
    bool failed = false;
};

/* The library's list is locked: nothing of Python may run, and no exception may pass. */
static bool site_collect(tide_site *site, void *user) noexcept
{
    Seeing *all = static_cast<Seeing *>(user);
    tide_site_information info;
    if (tide_site_info(site, &info) != TIDE_OK)
        return true;
    try {
        all->sites.push_back({info.name, info.function, info.file, info});
    } catch (const std::bad_alloc &) {
        all->failed = true;
    }
    return !all->failed;
}

static nb::dict site_describe(const Seen &seen)
{
    const tide_site_information &info = seen.info;
    nb::dict out = make_dict();
    out["id"] = info.id;
    out["name"] = text_of(seen.name.c_str());
    out["function"] = text_of(seen.function.c_str());
    out["file"] = text_of(seen.file.c_str());
    out["line"] = info.line;
    out["kind"] = tide_kind_name(info.kind);
    out["tier"] = tide_tier_name(info.tier);
    out["pinned"] = info.pinned;
    nb::list types = make_list();
    for (uint32_t i = 0; i < info.type_count && i < TIDE_SITE_TYPES; i++)
        types.append(info.types[i] < TIDE_KEY_FIRST ? tide_type_name(info.types[i]) : "key");
    out["types"] = types;
    out["uses"] = info.uses;
    out["samples"] = info.samples;
    out["misses"] = info.misses;
    out["compiles"] = info.compiles;
    out["lost_ns"] = info.lost_ns;
    out["saved_ns"] = info.saved_ns;
    out["reason"] = info.reason;
    return out;
}

/* What Python is called for is done when the library's list is no longer locked. */
static nb::list sites_list()
{
    Seeing seen;
    tide_site_each(site_collect, &seen);
    if (seen.failed)
        throw std::bad_alloc();
    nb::list out = make_list();
    for (const Seen &site : seen.sites)
        out.append(site_describe(site));
    return out;
}

static tide_tier tier_of(const std::string &name)
{
    for (tide_tier tier : {TIDE_TIER_FULL, TIDE_TIER_TABLE, TIDE_TIER_COMPILED})
        if (name == tide_tier_name(tier))
            return tier;
    raise(PyExc_ValueError, "tier is 'full', 'table' or 'compiled'");
}

/* What is to be done to a site. It is known by its number: two files may have a name and a line in common. */
struct Steering {
    uint64_t id;
    tide_status (*steer)(tide_site *site, const Steering &order);
    tide_tier tier; /* to pin it at */
    bool found = false;
    tide_status status = TIDE_OK;
};

/* The library's list is locked, so that the site's module stays. */
static bool site_steer(tide_site *site, void *user) noexcept
{
    Steering *order = static_cast<Steering *>(user);
    tide_site_information info;
    order->found = tide_site_info(site, &info) == TIDE_OK && info.id == order->id;
    if (order->found)
        order->status = order->steer(site, *order);
    return !order->found;
}

static void steer(Steering order)
{
    tide_site_each(site_steer, &order);
    if (!order.found)
        raise(PyExc_KeyError, "the site is no more: its module was unloaded");
    check(order.status);
}

static void site_pin(uint64_t id, const Name &tier)
{
    auto pin = [](tide_site *site, const Steering &order) {
        return tide_site_pin(site, order.tier);
    };
    steer({id, pin, tier_of(name_of(tier, "pin: tier"))});
}

static void site_unpin(uint64_t id)
{
    steer({id, [](tide_site *site, const Steering &) { return tide_site_unpin(site); }, {}});
}

static void site_reset(uint64_t id)
{
    steer({id, [](tide_site *site, const Steering &) { return tide_site_reset(site); }, {}});
}

enum { SIGNALS_MS = 100, SETTLE_MS = 1000 }; /* how often signals are looked for; the default */

/* A signal's handler is the program's code; what it raises is thrown. */
static void want_no_signal()
{
    if (stopped_at_end(PyErr_CheckSignals) != 0)
        throw nb::python_error();
}

/* A handler of events may want the GIL, so rounds are made without it. */
static void settle(const Integer &timeout)
{
    int timeout_ms = int(integer_of(timeout, "settle: timeout_ms", 0, INT_MAX));
    tide_status status;
    int left = timeout_ms;
    do {
        int now = left < SIGNALS_MS ? left : SIGNALS_MS;
        status = without_gil([=] { return tide_settle(now); });
        want_no_signal();
        left -= now;
    } while (status == TIDE_ERROR_STATE && left > 0);
    if (status == TIDE_ERROR_STATE)
        raise(PyExc_RuntimeError, "something is still pending after %d ms", timeout_ms);
    check(status);
}

static tide_status step()
{
    return without_gil(tide_step);
}

/* ---- facts ---- */

struct Text {
    char *bytes = nullptr; /* of malloc */
    size_t count = 0;
};

static tide_status facts_write(Text *text)
{
    FILE *out = open_memstream(&text->bytes, &text->count);
    if (out == nullptr)
        return TIDE_ERROR_MEMORY;
    tide_status status = tide_facts_write(out);
    bool whole = fclose(out) == 0 && text->bytes != nullptr; /* it may say 0 then */
    if (!whole && status == TIDE_OK)
        status = TIDE_ERROR_MEMORY;
    return status;
}

/* One line of JSON. */
static nb::str facts_text()
{
    Text text;
    tide_status status = without_gil([&] { return facts_write(&text); });
    std::unique_ptr<char, decltype(&free)> owned(text.bytes, free);
    if (status == TIDE_ERROR_MEMORY)
        throw std::bad_alloc();
    check(status);
    return text_of(text.bytes);
}

/* ---- profiles ---- */

typedef tide_status profile_function(const char *path);

/* A path is bytes: it need be no text. */
static void profile_call(profile_function *call, const nb::bytes &path)
{
    const char *name = path.c_str();
    if (strlen(name) != path.size())
        raise(PyExc_ValueError, "a path has no zero byte in it");
    check(without_gil([=] { return call(name); }));
}

static nb::str error_last()
{
    return text_of(tide_error_message());
}

void bind_steer(nb::module_ &m)
{
    m.def("settings_list", &settings_list);
    m.def("setting_get", &setting_get, nb::arg("name"));
    m.def("setting_set", &setting_set, nb::arg("name"), nb::arg("value").none());
    m.def("sites_list", &sites_list);
    m.def("site_pin", &site_pin, nb::arg("id"), nb::arg("tier").none());
    m.def("site_unpin", &site_unpin, nb::arg("id"));
    m.def("site_reset", &site_reset, nb::arg("id"));
    m.def(
        "step", [] { check(step()); },
        "One round of learning, as the library's thread does them by itself.");
    m.def("settle", &settle, nb::arg("timeout_ms").none() = int(SETTLE_MS),
          "Does rounds of learning until nothing is left to do. RuntimeError if that takes "
          "longer. Signals are heard meanwhile.");
    m.def(
        "profile_save", [](const nb::bytes &path) { profile_call(tide_profile_save, path); },
        nb::arg("path"));
    m.def(
        "profile_load", [](const nb::bytes &path) { profile_call(tide_profile_load, path); },
        nb::arg("path"));
    m.def(
        "profile_merge", [](const nb::bytes &path) { profile_call(tide_profile_merge, path); },
        nb::arg("path"));
    m.def("facts_text", &facts_text);
    m.def("error_last", &error_last);
}

} // namespace core
