/* SPDX-License-Identifier: MIT */
/* The exchange structures of DLPack 1.x.
 *
 * They have the layout of DLTensor and DLManagedTensorVersioned in dlpack.h, under other names. So
 * a program may include both headers and cast. Source: the DLPack specification, version 1.1. */
#ifndef TIDEPOOL_DLPACK_H
#define TIDEPOOL_DLPACK_H

#include <tidepool/inline/config.h>

TIDE_BEGIN_DECLS

enum { TIDE_DL_MAJOR = 1, TIDE_DL_MINOR = 1 };

/* Device types. */
enum { TIDE_DL_CPU = 1, TIDE_DL_CUDA = 2, TIDE_DL_CUDA_HOST = 3, TIDE_DL_OPENCL = 4 };

/* Type codes. */
enum {
    TIDE_DL_INT = 0,
    TIDE_DL_UINT = 1,
    TIDE_DL_FLOAT = 2,
    TIDE_DL_OPAQUE = 3,
    TIDE_DL_BFLOAT = 4,
    TIDE_DL_COMPLEX = 5,
    TIDE_DL_BOOL = 6
};

#define TIDE_DL_READ_ONLY UINT64_C(1) /* a flag of tide_dl_managed */

typedef struct tide_dl_device {
    int32_t device_type;
    int32_t device_id;
} tide_dl_device;

typedef struct tide_dl_type {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} tide_dl_type;

/* DLTensor */
typedef struct tide_dl_tensor {
    void *data; /* plus byte_offset: the address of element 0 */
    tide_dl_device device;
    int32_t ndim;
    tide_dl_type dtype;
    int64_t *shape;   /* ndim extents, in elements                 */
    int64_t *strides; /* ndim steps, in elements; never NULL here  */
    uint64_t byte_offset;
} tide_dl_tensor;

/* DLManagedTensorVersioned */
typedef struct tide_dl_managed {
    struct {
        uint32_t major, minor;
    } version;
    void *manager_ctx;
    void (*deleter)(struct tide_dl_managed *self);
    uint64_t flags;
    tide_dl_tensor tensor;
} tide_dl_managed;

TIDE_END_DECLS

#endif
