/* SPDX-License-Identifier: MIT */
/* What PyTorch and CuPy call for device memory. Both take whatever address they get, so a failure
 * has to be an exception: NULL would be a tensor at address 0. */
#include "core.h"

#include <exception>
#include <tidepool/adaptors.h>

namespace core
{

/* Holds its words: the library's are the thread's, until its next failure. PyTorch makes a
 * RuntimeError of it. */
class DeviceError : public std::exception
{
    std::string words;

  public:
    explicit DeviceError(const char *message) : words(message)
    {
    }
    const char *what() const noexcept override
    {
        return words.c_str();
    }
};

/* The addresses of the pair that CuPy calls. */
static nb::tuple cupy_functions()
{
    return nb::make_tuple(reinterpret_cast<uintptr_t>(&tide_cupy_malloc),
                          reinterpret_cast<uintptr_t>(&tide_cupy_free));
}

void bind_frameworks(nb::module_ &m)
{
    m.def("cupy_functions", &cupy_functions);
}

} // namespace core

/* PyTorch looks it up in this module by name, and tide_torch_free in the library beside it. */
extern "C" __attribute__((visibility("default"))) void *
tide_python_torch_malloc(ssize_t size, int device, void *stream)
{
    void *data = tide_torch_malloc(size, device, stream);
    if (data == nullptr && size != 0)
        throw core::DeviceError(tide_error_message());
    return data;
}
