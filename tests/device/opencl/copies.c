/* SPDX-License-Identifier: MIT */
/* Copies of arrays and frames, and fills, against the host. */
#include <tidepool/device.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

#include "bed.h"

enum { STAGING = 4 }; /* KiB of a chunk: the ring turns often */

static tide_pool *small_pool(void)
{
    expect_ok(tide_tune_set("staging", STAGING));
    return bed_pool(NULL);
}

static void end_pool(tide_pool *pool)
{
    expect_ok(tide_pool_reset(pool));
    CHECK_POOL(pool);
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_tune_set("staging", 1024));
}

/* ---- arrays -------------------------------------------------------------------------------- */

TEST(every_size_and_place_arrives)
{
    static const size_t sizes[] = {0,    1,    3,    63,    64,    65,    4000, 4095,
                                   4096, 4097, 8192, 16384, 16385, 20000, 99999};
    tide_pool *pool = small_pool();
    enum { MOST = 100100 };
    unsigned char *sent = malloc(MOST), *got = malloc(MOST);
    assert_true(sent != NULL && got != NULL);
    char *array = tide_acquire_type(pool, TIDE_U8, MOST);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t at = 0; at < 70; at += 23) {
            fill_bytes(sent, sizes[i], (unsigned)(i + at));
            expect_ok(tide_upload(pool, array + at, sent, sizes[i]));
            memset(sent, 0, sizes[i]); /* the upload has read it */
            memset(got, 0, sizes[i] + 1);
            expect_ok(tide_download(pool, got, array + at, sizes[i]));
            expect_bytes(got, sizes[i], (unsigned)(i + at));
            assert_int_equal(got[sizes[i]], 0);
        }
    free(sent);
    free(got);
    end_pool(pool);
}

TEST(copies_within_the_device_keep_their_place_in_the_queue)
{
    tide_pool *pool = small_pool();
    uint32_t *a = tide_acquire(pool, uint32_t, 10000), *b = tide_acquire(pool, uint32_t, 10000);
    for (uint32_t round = 0; round < 10; round++) {
        fill_by_upload(pool, a, 10000, round);
        launch_add(NULL, a, a, 10000, 1, 10);
        expect_ok(tide_copy(pool, b + 1, a, 9999 * 4));
        launch_add(NULL, a, a, 10000, 1, 0); /* the copy has been before */
        expect_words(pool, b + 1, 9999, round + 1);
        expect_words(pool, a, 10000, round + 2);
    }
    end_pool(pool);
}

TEST(bad_copies_are_refused)
{
    tide_pool *pool = small_pool();
    char bytes[64] = "", *array = tide_acquire_type(pool, TIDE_U8, 64);
    expect_status(tide_upload(NULL, array, bytes, 4), TIDE_ERROR_ARGUMENT);
    expect_status(tide_upload(pool, NULL, bytes, 4), TIDE_ERROR_ARGUMENT);
    expect_status(tide_upload(pool, array, NULL, 4), TIDE_ERROR_ARGUMENT);
    expect_status(tide_download(pool, bytes, NULL, 4), TIDE_ERROR_ARGUMENT);
    expect_status(tide_upload(pool, array, bytes, SIZE_MAX - 5), TIDE_ERROR_SIZE);
    expect_status(tide_copy(pool, array + 8, array, 9), TIDE_ERROR_ARGUMENT);
    expect_ok(tide_upload(pool, NULL, NULL, 0));
    if (bed_memory() == TIDE_OPENCL_BUFFERS)
        expect_status(tide_copy(pool, bytes, bytes + 32, 8), TIDE_ERROR_ARGUMENT);
    end_pool(pool);
    pool = tide_pool_create(&(tide_pool_options){.device = gpu, .check = TIDE_CHECK_POISON});
    array = tide_acquire_type(pool, TIDE_U8, 60);
    expect_status(tide_upload(pool, array + 50, bytes, 11), TIDE_ERROR_SIZE);
    expect_ok(tide_upload(pool, array + 50, bytes, 10));
    if (bed_memory() == TIDE_OPENCL_BUFFERS) {
        expect_status(tide_upload(pool, array, array, 10), TIDE_ERROR_ARGUMENT);
        assert_non_null(strstr(tide_error_message(), "on the side of the host"));
        expect_status(tide_upload(pool, bytes, bytes, 10), TIDE_ERROR_ARGUMENT);
        assert_non_null(strstr(tide_error_message(), "is no memory of the device"));
    }
    end_pool(pool);
}

/* ---- frames -------------------------------------------------------------------------------- */

enum { PARTS = 9 };

/* Parts of many types and sizes, the same on any pool: `host` holds what is sent. */
static size_t frame_of(tide_pool *pool, tide_part parts[PARTS], size_t scale)
{
    static const tide_type types[PARTS] = {TIDE_F64,  TIDE_U8,  TIDE_F16, TIDE_I32, TIDE_BIT,
                                           TIDE_C128, TIDE_U64, TIDE_I16, TIDE_F32};
    static const size_t lengths[PARTS] = {100, 77, 1, 0, 1000, 13, 500, 3, 2049};
    for (size_t i = 0; i < PARTS; i++) {
        parts[i] = (tide_part){.type = types[i], .count = lengths[i] * scale};
        parts[i].data = tide_acquire_type(pool, types[i], parts[i].count);
        assert_non_null(parts[i].data);
    }
    return PARTS;
}

static size_t bytes_of(const tide_part *part)
{
    return part->type == TIDE_BIT ? (part->count + 63) / 64 * 8
                                  : part->count * tide_type_size(part->type);
}

static void give_host(tide_part parts[PARTS], unsigned seed)
{
    for (size_t i = 0; i < PARTS; i++) {
        parts[i].host = malloc(bytes_of(&parts[i]) + 1);
        assert_non_null(parts[i].host);
        fill_bytes(parts[i].host, bytes_of(&parts[i]), seed + (unsigned)i);
    }
}

static void take_host(tide_part parts[PARTS])
{
    for (size_t i = 0; i < PARTS; i++)
        free(parts[i].host);
}

/* Twice, so that the second finds blocks and chunks that were used before. */
TEST(frames_go_up_and_down)
{
    for (size_t scale = 1; scale < 2000; scale *= 40) {
        tide_pool *pool = small_pool();
        tide_part parts[PARTS];
        for (unsigned round = 0; round < 2; round++) {
            tide_mark mark = tide_checkpoint(pool);
            frame_of(pool, parts, scale);
            give_host(parts, round);
            expect_ok(tide_upload_frame(pool, parts, PARTS));
            for (size_t i = 0; i < PARTS; i++)
                memset(parts[i].host, 0, bytes_of(&parts[i]));
            expect_ok(tide_download_frame(pool, parts, PARTS));
            for (size_t i = 0; i < PARTS; i++)
                expect_bytes(parts[i].host, bytes_of(&parts[i]), round + (unsigned)i);
            take_host(parts);
            assert_int_equal(tide_pool_depth(pool), 1);
            expect_ok(tide_rewind(pool, mark));
        }
        end_pool(pool);
    }
}

TEST(bad_frames_are_refused)
{
    tide_pool *pool = small_pool();
    uint32_t *array = tide_acquire(pool, uint32_t, 10);
    uint64_t word;
    tide_part good = {.data = array, .host = &word, .type = TIDE_U32, .count = 2}, bad = good;
    expect_status(tide_upload_frame(pool, NULL, 1), TIDE_ERROR_ARGUMENT);
    bad.type = 60000;
    expect_status(tide_fill_frame(pool, &bad, 1), TIDE_ERROR_TYPE);
    bad = good, bad.host = NULL;
    expect_status(tide_upload_frame(pool, (tide_part[]){good, bad}, 2), TIDE_ERROR_ARGUMENT);
    bad = good, bad.data = NULL;
    expect_status(tide_upload_frame(pool, (tide_part[]){good, bad}, 2), TIDE_ERROR_ARGUMENT);
    assert_non_null(
        strstr(tide_error_message(), "tide_upload_frame: part 1: a pointer to 8 bytes"));
    bad = good, bad.count = SIZE_MAX / 2;
    expect_status(tide_download_frame(pool, &bad, 1), TIDE_ERROR_SIZE);
    expect_ok(tide_upload_frame(pool, NULL, 0));
    expect_ok(tide_fill_frame(pool, &good, 0));
    end_pool(pool);
}

int main(int argc, char **argv)
{
    return BED_MAIN("opencl copies");
}
