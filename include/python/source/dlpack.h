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

bool is_true(nb::handle object);

/* What a consumer says as it calls __dlpack__. */
struct OfferAsked {
    nb::handle stream, max_version, dl_device, copy;

    /* Consumers that say no version know the tensor from before versions alone. */
    bool old() const;
};

/* A capsule with the tensor, whose shape and strides are the object's. `let_go` is called once, with
 * the GIL, for the reference that the caller gives it, once this has returned. */
nb::object offer_make(PyObject *self, const tide_dl_tensor &tensor, bool old,
                      void (*let_go)(PyObject *));

/* An object's __dlpack__, by what makes the offer. */
PyObject *offer_by(PyObject *self, PyObject *args, PyObject *keywords,
                   nb::object (*offer)(PyObject *, const OfferAsked &));

} // namespace core

#endif
