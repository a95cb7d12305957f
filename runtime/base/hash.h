/* SPDX-License-Identifier: MIT */
/* A 64-bit hash of bytes. It finds differences that happen, not those that somebody makes on purpose. */
#ifndef TIDEPOOL_RUNTIME_BASE_HASH_H
#define TIDEPOOL_RUNTIME_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t tide_hash_bytes(const void *data, size_t bytes);

#endif
