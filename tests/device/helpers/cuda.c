/* SPDX-License-Identifier: MIT */
/* The kernels as CUDA C, run by the emulation, byte by byte against the host: fills, checks,
 * packing and hashes of frames of 1 to 300 parts of every built-in type, odd sizes, unaligned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emulation.h"
#include "jit/kernels/source.h"
#include "jit/kernels/table.h"
#include "runtime/base/hash.h"
#include "runtime/base/type.h"
#include "tests/device/helpers/parts.h"

enum { PARTS_MAX = 300, MARGIN = 32 };

typedef struct frame {
    size_t count, packed;
    tide_part parts[PARTS_MAX];
    unsigned char *wanted[PARTS_MAX], *got[PARTS_MAX], values[PARTS_MAX][16];
    size_t all[PARTS_MAX], shifts[PARTS_MAX], offsets[PARTS_MAX];
    unsigned char *block;
} frame;

static void *make(size_t bytes)
{
    void *made = aligned_alloc(64, (bytes + 127) / 64 * 64);
    assert_non_null(made);
    return made;
}

static frame *make_frame(size_t count)
{
    static const size_t sizes[] = {0, 1, 2, 3, 7, 15, 16, 17, 63, 64, 65, 127, 1000, 4099, 9001};
    frame *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->count = count;
    for (size_t i = 0; i < count; i++) {
        tide_part *part = &f->parts[i];
        part->type = (tide_type)(1 + i % TIDE_BUILTIN_COUNT);
        part->count = sizes[chance(count > 50 ? 12 : 15)];
        f->shifts[i] = chance(3) == 0 ? 0 : chance(MARGIN);
        f->all[i] = bytes_of(part) + 2 * MARGIN;
        f->wanted[i] = make(f->all[i]);
        f->got[i] = make(f->all[i]);
        for (size_t b = 0; b < f->all[i]; b++)
            f->wanted[i][b] = f->got[i][b] = (unsigned char)chance(256);
        for (size_t b = 0; b < 16; b++)
            f->values[i][b] = (unsigned char)chance(256);
        if (part->type == TIDE_BIT || part->type == TIDE_BOOL)
            f->values[i][0] = i % 2;
        part->data = f->got[i] + f->shifts[i];
        f->offsets[i] = f->packed;
        f->packed += (bytes_of(part) + 63) / 64 * 64;
    }
    f->block = make(f->packed + 8 * count);
    memset(f->block, 0, f->packed + 8 * count);
    return f;
}

static void end_frame(frame *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free(f->wanted[i]);
        free(f->got[i]);
    }
    free(f->block);
    free(f);
}

static void expect_as_wanted(const frame *f)
{
    for (size_t i = 0; i < f->count; i++)
        assert_memory_equal(f->got[i], f->wanted[i], f->all[i]);
}

/* As jit/kernels/modules.c does; the launches that were made. */
static size_t run(frame *f, tide_kernel kernel)
{
    const tide_frame_work help = {
        .parts = f->parts, .count = f->count, .block = f->block, .offsets = f->offsets};
    tide_table_place at = {0};
    tide_table table;
    size_t launches = 0;
    assert_true(tide_table_possible(&help, kernel));
    while (tide_table_next(&help, kernel, TIDE_KERNELS_CUDA, TIDE_SEGMENTS_MANY, &at, &table)) {
        char name[32];
        tide_kernels_name(kernel, name, sizeof name);
        assert_true(emulation_kernel(name, kernel == TIDE_KERNEL_FINISH ? 1 : table.groups,
                                     TIDE_GROUP_CUDA, &table.segments, f->block));
        launches++;
    }
    return launches;
}

static void fill_wanted(frame *f, size_t i)
{
    const tide_part *part = &f->parts[i];
    unsigned char *to = f->wanted[i] + f->shifts[i];
    size_t size = tide_type_facts_of(part->type)->size;
    if (part->host == NULL || part->type == TIDE_BIT)
        memset(to, 0, bytes_of(part));
    for (size_t e = 0; part->host != NULL && e < part->count; e++)
        if (part->type != TIDE_BIT)
            memcpy(to + e * size, f->values[i], size);
        else if (f->values[i][0] != 0)
            to[e / 8] |= (unsigned char)(1 << e % 8);
}

static const size_t counts[] = {1, 2, 7, 8, 9, 50, 99, 100, 101, 300};
enum { COUNTS = sizeof counts / sizeof *counts };

static void fills_are_exact(void **unused)
{
    (void)unused;
    for (size_t c = 0; c < COUNTS; c++) {
        frame *f = make_frame(counts[c]);
        for (size_t i = 0; i < f->count; i++) {
            f->parts[i].host = chance(4) != 0 ? f->values[i] : NULL;
            fill_wanted(f, i);
        }
        size_t launches = run(f, TIDE_KERNEL_FILL);
        assert_in_range(launches, 1, (2 * counts[c] + 99) / 100);
        expect_as_wanted(f);
        end_frame(f);
    }
}

static void a_hundred_arrays_are_one_launch(void **unused)
{
    (void)unused;
    frame *f = make_frame(100);
    for (size_t i = 0; i < f->count; i++) {
        f->parts[i].type = TIDE_U8;
        f->parts[i].count = f->all[i] - 2 * MARGIN;
        fill_wanted(f, i);
    }
    assert_int_equal(run(f, TIDE_KERNEL_FILL), 1);
    expect_as_wanted(f);
    end_frame(f);
}

static void hashes_are_the_hosts(void **unused)
{
    (void)unused;
    for (size_t c = 0; c < COUNTS; c++) {
        frame *f = make_frame(counts[c]);
        run(f, TIDE_KERNEL_HASH);
        run(f, TIDE_KERNEL_FINISH);
        for (size_t i = 0; i < f->count; i++) {
            uint64_t *copy = make(bytes_of(&f->parts[i])), hash;
            memcpy(copy, f->parts[i].data, bytes_of(&f->parts[i]));
            memcpy(&hash, f->block + 8 * i, sizeof hash);
            assert_true(hash == tide_hash_elements(copy, f->parts[i].type, f->parts[i].count));
            free(copy);
        }
        expect_as_wanted(f);
        end_frame(f);
    }
}

static void what_is_packed_is_unpacked(void **unused)
{
    (void)unused;
    for (size_t c = 0; c < COUNTS; c++) {
        frame *f = make_frame(counts[c]);
        run(f, TIDE_KERNEL_PACK);
        expect_as_wanted(f);
        for (size_t i = 0; i < f->count; i++) {
            size_t bytes = bytes_of(&f->parts[i]);
            assert_memory_equal(f->block + f->offsets[i], f->parts[i].data, bytes);
            memset(f->parts[i].data, 0x5A, bytes);
        }
        run(f, TIDE_KERNEL_UNPACK);
        expect_as_wanted(f);
        end_frame(f);
    }
}

static void a_check_counts_damage(void **unused)
{
    (void)unused;
    for (size_t c = 0; c < COUNTS; c++) {
        frame *f = make_frame(counts[c]);
        uint64_t damage[PARTS_MAX] = {0}, found;
        for (size_t i = 0; i < f->count; i++)
            f->parts[i].host = f->parts[i].type == TIDE_BIT ? NULL : f->values[i];
        run(f, TIDE_KERNEL_FILL);
        for (size_t i = 0; i < f->count; i++)
            for (size_t at = chance(9); at < bytes_of(&f->parts[i]);
                 at += 1 + chance(700), damage[i]++)
                ((unsigned char *)f->parts[i].data)[at] ^= 1;
        run(f, TIDE_KERNEL_CHECK);
        for (size_t i = 0; i < f->count; i++) {
            memcpy(&found, f->block + 8 * i, sizeof found);
            assert_true(found == damage[i]);
        }
        end_frame(f);
    }
}

static void what_has_no_pattern_is_refused(void **unused)
{
    (void)unused;
    static uint32_t value[3] = {1, 2, 3}, zero[3];
    tide_type odd = tide_type_register("of 12 bytes, too", 12, 4);
    tide_part part = {.data = value, .host = value, .type = odd, .count = 1};
    const tide_frame_work help = {.parts = &part, .count = 1};
    assert_false(tide_table_possible(&help, TIDE_KERNEL_FILL));
    assert_true(tide_table_possible(&help, TIDE_KERNEL_HASH));
    part.host = zero;
    assert_true(tide_table_possible(&help, TIDE_KERNEL_FILL));
    part.host = NULL;
    assert_true(tide_table_possible(&help, TIDE_KERNEL_FILL));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_are_exact),       cmocka_unit_test(a_hundred_arrays_are_one_launch),
        cmocka_unit_test(hashes_are_the_hosts),  cmocka_unit_test(what_is_packed_is_unpacked),
        cmocka_unit_test(a_check_counts_damage), cmocka_unit_test(what_has_no_pattern_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
