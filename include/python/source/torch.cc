/* SPDX-License-Identifier: MIT */
/* What PyTorch calls for device memory, and what it tells of captures. It takes whatever address it gets,
 * so a failure has to be an exception: NULL would be a tensor at address 0. It looks these up by name, and
 * nothing here needs Python: tests/device/run-gpu builds this file alone. */
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <tidepool/adaptors.h>

struct CUstream_st;

namespace
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

/* ---- what PyTorch tells its allocator of captures ----
 *
 * The types of its functions: c10::cuda::MempoolId_t, and a filter that says of a stream whether its
 * memory comes from the pool now. */
using Pool = std::pair<unsigned long long, unsigned long long>;
using Filter = std::function<bool(CUstream_st *)>;

/* It throws where the driver does not tell of the stream, as of the legacy stream beside a capture. */
bool filter_takes(void *filter, void *stream)
{
    try {
        return (*static_cast<Filter *>(filter))(static_cast<CUstream_st *>(stream));
    } catch (...) {
        return false;
    }
}

void filter_end(void *filter)
{
    delete static_cast<Filter *>(filter);
}

} // namespace

extern "C" __attribute__((visibility("default"))) void
tide_python_torch_begin(int device, Pool pool, Filter filter)
{
    auto kept = std::make_unique<Filter>(std::move(filter));
    const tide_torch_capture capture = {filter_takes, filter_end, kept.get()};
    if (tide_torch_pool_begin(device, {pool.first, pool.second}, &capture) != TIDE_OK)
        throw DeviceError(tide_error_message());
    (void)kept.release();
}

extern "C" __attribute__((visibility("default"))) void tide_python_torch_end(int device, Pool pool)
{
    tide_torch_pool_end(device, {pool.first, pool.second});
}

extern "C" __attribute__((visibility("default"))) void tide_python_torch_release(int device,
                                                                                 Pool pool)
{
    tide_torch_pool_release(device, {pool.first, pool.second});
}

/* PyTorch looks it up in this module by name, and tide_torch_free in the library beside it. */
extern "C" __attribute__((visibility("default"))) void *
tide_python_torch_malloc(ssize_t size, int device, void *stream)
{
    void *data = tide_torch_malloc(size, device, stream);
    if (data == nullptr && size != 0)
        throw DeviceError(tide_error_message());
    return data;
}
