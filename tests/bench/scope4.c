/* SPDX-License-Identifier: MIT */
/* The proof that a variant's arrays are arrays: large enough, apart from each other, and theirs
 * until the operation ends. */
#include "scope4.h"

#include <stdalign.h>
#include <string.h>

enum { FULLY_EVERY = 64 }; /* rows; the large cases would take minutes otherwise */

static bool holds(const unsigned char *data, size_t bytes, unsigned char value)
{
    return data[0] == value && memcmp(data, data + 1, bytes - 1) == 0;
}

void bench_fill_and_check(uint64_t row, const bench_sizes *n, void *const data[4])
{
    static const size_t element[4] = {sizeof(double), sizeof(int32_t), sizeof(double),
                                      sizeof(int32_t)};
    if (row % FULLY_EVERY != 0)
        return;
    for (int i = 0; i < 4; i++) {
        if (data[i] == NULL)
            bench_die("operation %llu: array %d is missing", (unsigned long long)row, i);
        if ((uintptr_t)data[i] % element[i] != 0)
            bench_die("operation %llu: array %d is not aligned", (unsigned long long)row, i);
        memset(data[i], 0x11 * (i + 1), n->count[i] * element[i]);
    }
    for (int i = 0; i < 4; i++)
        if (!holds(data[i], n->count[i] * element[i], (unsigned char)(0x11 * (i + 1))))
            bench_die("operation %llu: array %d was overwritten", (unsigned long long)row, i);
}
