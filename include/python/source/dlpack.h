/* SPDX-License-Identifier: MIT */
/* What DLPack is in Python: names of capsules, and the tensor from before versions. */
#ifndef TIDEPOOL_PYTHON_DLPACK_H
#define TIDEPOOL_PYTHON_DLPACK_H

#include <nanobind/nanobind.h>
#include <tidepool/dlpack.h>

namespace nb = nanobind;

namespace core
{

/* DLManagedTensor */
struct tide_dl_old {
    tide_dl_tensor tensor;
    void *manager_ctx;
    void (*deleter)(tide_dl_old *self);
};

constexpr const char *dl_capsule = "dltensor_versioned", *dl_capsule_old = "dltensor";

/* The first number of a pair that another library gives. */
long dl_first_of(nb::handle pair);

} // namespace core

#endif
