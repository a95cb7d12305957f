/* SPDX-License-Identifier: MIT */
/* The allocators of PyTorch (torch.cc has what it calls) and CuPy, as Python sees them. */
#include "core.h"

#include <unordered_map>

#include <tidepool/adaptors.h>
#include <tidepool/device_memory.h>

namespace core
{

/* ---- CuPy ----
 *
 * CuPy calls a function for each array, and its own pool is C: a frame of Python's would be half of all it
 * costs. So this asks CuPy in C for the current stream, and has CuPy's allocator of that stream allocate. */

static thread_local bool cupy_failed;

static void *cupy_malloc(void *stream, size_t size, int device)
{
    void *data = tide_cupy_malloc(stream, size, device);
    cupy_failed |= data == nullptr && size != 0;
    return data;
}

static struct {
    intptr_t (*current_stream)();
    PyObject *of_stream; /* makes what allocates for a stream, at its first use */
    std::unordered_map<intptr_t, PyObject *> all; /* what it has made */
} cupy;

static PyObject *cupy_of_stream(intptr_t stream)
{
    auto found = cupy.all.find(stream);
    if (found != cupy.all.end())
        return found->second;
    PyObject *made = PyObject_CallFunction(cupy.of_stream, "n", Py_ssize_t(stream));
    if (made != nullptr)
        cupy.all.emplace(stream, made);
    return made;
}

static PyObject *cupy_allocate(PyObject *, PyObject *nbytes)
{
    PyObject *allocate = cupy_of_stream(cupy.current_stream());
    cupy_failed = false;
    PyObject *memory = allocate != nullptr ? PyObject_CallOneArg(allocate, nbytes) : nullptr;
    if (memory == nullptr || !cupy_failed)
        return memory;
    Py_DECREF(memory);
    return PyErr_Format(PyExc_MemoryError, "%s", tide_error_message());
}

/* `current`: CuPy's function of that name, as Cython offers it to C. */
static nb::object cupy_allocator(nb::handle current, nb::object of_stream)
{
    static PyMethodDef function = {"allocate", cupy_allocate, METH_O, nullptr};
    void *address = PyCapsule_GetPointer(current.ptr(), "intptr_t (void)");
    nb::object made = nb::steal(PyCFunction_New(&function, nullptr));
    if (address == nullptr || !made.is_valid())
        throw nb::python_error();
    for (const auto &one : cupy.all)
        Py_DECREF(one.second);
    cupy.all.clear();
    Py_XDECREF(cupy.of_stream);
    cupy.of_stream = of_stream.release().ptr();
    cupy.current_stream = reinterpret_cast<intptr_t (*)()>(address);
    return made;
}

/* The addresses of the pair that CuPy calls. */
static nb::tuple cupy_functions()
{
    return nb::make_tuple(reinterpret_cast<uintptr_t>(&cupy_malloc),
                          reinterpret_cast<uintptr_t>(&tide_cupy_free));
}

/* ---- PyTorch ---- */

static nb::dict torch_stats(int device)
{
    tide_torch_statistics now;
    check(tide_torch_stats(device, &now));
    nb::dict out;
    out["live"] = now.live;
    out["bytes_live"] = now.bytes_live;
    out["bytes_cached"] = now.bytes_cached;
    out["bytes_graphs"] = now.bytes_graphs;
    out["graph_pools"] = now.pools;
    out["hits"] = now.hits;
    out["misses"] = now.misses;
    tide_device_memory memory;
    check(tide_device_memory_stats(gpu_of("cuda:" + std::to_string(device)).device, &memory));
    out["bytes_peak"] = memory.bytes_peak;
    return out;
}

/* (address, bytes, live, pool) of each. */
static nb::list torch_blocks(int device)
{
    size_t count = 0;
    std::vector<tide_torch_block> blocks;
    do {
        blocks.resize(count + 64);
        check(tide_torch_blocks(device, blocks.data(), blocks.size(), &count));
    } while (count > blocks.size());
    nb::list out = make_list();
    for (size_t i = 0; i < count; i++)
        out.append(nb::make_tuple(reinterpret_cast<uintptr_t>(blocks[i].data), blocks[i].bytes,
                                  blocks[i].live,
                                  nb::make_tuple(blocks[i].pool.first, blocks[i].pool.second)));
    return out;
}

void bind_frameworks(nb::module_ &m)
{
    m.def("cupy_functions", &cupy_functions);
    m.def("cupy_allocator", &cupy_allocator);
    m.def("torch_told", &tide_torch_told);
    m.def("torch_blocks", &torch_blocks, nb::arg("device") = 0);
    m.def("torch_stats", &torch_stats, nb::arg("device") = 0);
}

} // namespace core
