/* SPDX-License-Identifier: MIT */
/* The allocators of PyTorch (torch.cc has what it calls) and CuPy, as Python sees them. */
#include "core.h"

#include <tidepool/adaptors.h>

namespace core
{

/* The addresses of the pair that CuPy calls. */
static nb::tuple cupy_functions()
{
    return nb::make_tuple(reinterpret_cast<uintptr_t>(&tide_cupy_malloc),
                          reinterpret_cast<uintptr_t>(&tide_cupy_free));
}

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
    return out;
}

void bind_frameworks(nb::module_ &m)
{
    m.def("cupy_functions", &cupy_functions);
    m.def("torch_told", &tide_torch_told);
    m.def("torch_stats", &torch_stats, nb::arg("device") = 0);
}

} // namespace core
