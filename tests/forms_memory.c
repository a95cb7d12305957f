/* SPDX-License-Identifier: MIT */
/* Memory of the tests: filled, compared, and read when it is dead. */
#define _GNU_SOURCE
#include "forms.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tidepool/dynamic.h>

/* Word by word, since most of what these tests do under Valgrind or a sanitizer is this. */
enum { WORD = sizeof(uint64_t) };

static uint64_t pattern(size_t word, unsigned seed)
{
    return (seed + UINT64_C(1)) * UINT64_C(0x9E3779B97F4A7C15) +
           word * UINT64_C(0xBF58476D1CE4E5B9);
}

void fill_bytes(void *data, size_t bytes, unsigned seed)
{
    uint8_t *to = data;
    for (size_t i = 0; i < bytes / WORD; i++)
        memcpy(to + i * WORD, &(uint64_t){pattern(i, seed)}, WORD);
    if (bytes % WORD != 0)
        memcpy(to + bytes / WORD * WORD, &(uint64_t){pattern(bytes / WORD, seed)}, bytes % WORD);
}

static inline void expect_word(const uint8_t *from, size_t n, uint64_t wanted)
{
    uint64_t found = wanted;
    memcpy(&found, from, n);
    if (found != wanted)
        fail_msg("something wrote over the %zu bytes at %p", n, (const void *)from);
}

void expect_bytes(const void *data, size_t bytes, unsigned seed)
{
    const uint8_t *from = data;
    for (size_t i = 0; i < bytes / WORD; i++)
        expect_word(from + i * WORD, WORD, pattern(i, seed));
    if (bytes % WORD != 0)
        expect_word(from + bytes / WORD * WORD, bytes % WORD, pattern(bytes / WORD, seed));
}

void *take(tide_pool *pool, tide_type type, size_t n, unsigned seed)
{
    uint8_t *data = tide_acquire_type(pool, type, n);
    if (data == NULL)
        fail_msg("acquire of %zu: %s", n, tide_error_message());
    assert_int_equal((uintptr_t)data % 64, 0);
    assert_int_equal((uintptr_t)data % tide_type_align(type), 0);
    fill_bytes(data, n * tide_type_size(type), seed);
    return data;
}

/* The kernel copies, by a call that neither AddressSanitizer nor Valgrind looks into. */
void read_behind(const void *from, void *to, size_t bytes)
{
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    assert_true(memory >= 0);
    memset(to, 0, bytes);
    long got = syscall(SYS_pread64, memory, to, bytes, (uintptr_t)from);
    close(memory);
    assert_int_equal(got, bytes);
}

tide_type fresh_type(void)
{
    static unsigned made;
    char name[32];
    snprintf(name, sizeof name, "fresh %u", made++);
    tide_type type = tide_type_register(name, 24, 8);
    assert_int_not_equal(type, TIDE_NO_TYPE);
    return type;
}
