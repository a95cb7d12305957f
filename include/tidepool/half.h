/* SPDX-License-Identifier: MIT */
/* Conversions of the two 16-bit floats. They round to nearest, ties to even. Infinities and subnormals are
 * converted, too. A NaN becomes a quiet NaN and keeps the upper bits of its payload. Any thread. */
#ifndef TIDEPOOL_HALF_H
#define TIDEPOOL_HALF_H

#include <tidepool/type.h>

TIDE_BEGIN_DECLS

TIDE_API float tide_f16_to_float(tide_f16 value);
TIDE_API tide_f16 tide_f16_from_float(float value);
TIDE_API float tide_bf16_to_float(tide_bf16 value);
TIDE_API tide_bf16 tide_bf16_from_float(float value);

/* Convert n elements; source and target must not overlap. */
TIDE_API void tide_f16_to_floats(float *target, const tide_f16 *source, size_t n);
TIDE_API void tide_f16_from_floats(tide_f16 *target, const float *source, size_t n);
TIDE_API void tide_bf16_to_floats(float *target, const tide_bf16 *source, size_t n);
TIDE_API void tide_bf16_from_floats(tide_bf16 *target, const float *source, size_t n);

TIDE_END_DECLS

#endif
