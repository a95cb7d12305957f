/* SPDX-License-Identifier: MIT */
#include <tidepool/array.h>
#include <tidepool/device.h>
#include <tidepool/device_bump.h>
#include <tidepool/device_memory.h>
#include <tidepool/dlpack.h>

#include "declared.h"

#include "runtime/base/error.h"
#include "runtime/base/hooks.h"
#include "runtime/device/device.h"

static tide_pool *pool_on(const bench *b, void *stream)
{
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = b->device, .stream = stream});
    assert_non_null(pool);
    return pool;
}

void expect_depth(const work *w, tide_status status)
{
    tide_pool_statistics stats;
    expect_ok(tide_pool_stats(w->b.pool, &stats));
    assert_int_equal(stats.depth, 1 + (status == TIDE_OK && w->bump.bump != NULL));
}

void use_declared(const work *w)
{
    put(w->other, w->x, BYTES, 1);
    put(w->other, w->y, BYTES, 1);
    put(w->third, w->z, BYTES, 2);
}

void work_begin(work *w)
{
    *w = (work){.b = bench_start(71)};
    w->apart = fake_stream_create(0);
    w->other = fake_stream_create(0);
    w->third = fake_stream_create(0);
    w->source = pool_on(&w->b, w->apart);
    w->mark = tide_checkpoint(w->b.pool);
    w->of_source = tide_checkpoint(w->source);
    w->x = tide_acquire(w->b.pool, uint8_t, BYTES);
    w->y = tide_acquire(w->b.pool, uint8_t, BYTES);
    w->z = tide_acquire(w->source, uint8_t, BYTES);
    w->parts[0] = (tide_part){w->x, w->bytes, TIDE_U8, BYTES};
    w->parts[1] = (tide_part){w->y, w->bytes + BYTES, TIDE_U8, BYTES};
    expect_ok(tide_pool_use_on(w->b.pool, w->other));
    expect_ok(tide_pool_use_on(w->source, w->third));
    put(w->other, w->x, BYTES, 1);
    put(w->third, w->z, BYTES, 2);
}

void work_end(work *w)
{
    fake_call_back("cuEventRecord", NULL);
    fake_fail("cuEventRecord", 0, 0, false);
    fake_fail("cuCtxSynchronize", 0, 0, false);
    expect_ok(tide_rewind(w->b.pool, w->mark));
    expect_ok(tide_rewind(w->source, w->of_source));
    expect_ok(tide_pool_reset(w->b.pool));
    expect_ok(tide_pool_reset(w->source));
    expect_ok(tide_pool_destroy(w->source));
    expect_ok(tide_device_memory_trim(w->b.device, 0));
    fake_stream_destroy(w->apart);
    fake_stream_destroy(w->other);
    fake_stream_destroy(w->third);
    bench_end(&w->b);
}

/* ---- the calls ------------------------------------------------------------------------------ */

static unsigned deleted;

/* With a call of its own that fails. */
static void delete (void *data, void *context)
{
    (void)data;
    (void)context;
    deleted++;
    expect_status(tide_pool_wait(NULL), TIDE_ERROR_ARGUMENT);
}

static void delete_managed(tide_dl_managed *managed)
{
    delete (managed, NULL);
}

/* The foreign memory is given back exactly once: at once if the call fails. */
static tide_status told(const void *array)
{
    assert_int_equal(deleted, array == NULL);
    return array != NULL ? TIDE_OK : tide_error_status();
}

tide_status do_wrap(work *w)
{
    static const int64_t length = BYTES;
    deleted = 0;
    put(w->b.stream, w->y, BYTES, 4); /* who made it */
    return told(tide_array_wrap(
        w->b.pool,
        &(tide_array_source){
            .data = w->y, .type = TIDE_U8, .ndim = 1, .shape = &length, .deleter = delete}));
}

tide_status do_import(work *w)
{
    static tide_dl_managed managed;
    static int64_t length = BYTES;
    deleted = 0;
    put(w->b.stream, w->y, BYTES, 4);
    managed = (tide_dl_managed){.version.major = TIDE_DL_MAJOR,
                                .deleter = delete_managed,
                                .tensor = {.data = w->y,
                                           .device = w->b.device->dl,
                                           .ndim = 1,
                                           .dtype = {TIDE_DL_UINT, 8, 1},
                                           .shape = &length}};
    return told(tide_array_import(w->b.pool, &managed));
}

tide_status do_upload(work *w)
{
    return tide_upload(w->b.pool, w->x, w->bytes, BYTES);
}

tide_status do_download(work *w)
{
    return tide_download(w->b.pool, w->bytes, w->x, BYTES);
}

tide_status do_copy(work *w)
{
    return tide_copy(w->b.pool, w->y, w->x, BYTES);
}

tide_status do_copy_from(work *w)
{
    return tide_copy_from(w->b.pool, w->y, w->source, w->z, BYTES);
}

static tide_status do_upload_frame(work *w)
{
    return tide_upload_frame(w->b.pool, w->parts, 2);
}

static tide_status do_download_frame(work *w)
{
    return tide_download_frame(w->b.pool, w->parts, 2);
}

static tide_status do_fill_frame(work *w)
{
    const uint8_t value = 7;
    const tide_part parts[] = {{w->x, (void *)(uintptr_t)&value, TIDE_U8, BYTES},
                               {w->y, (void *)(uintptr_t)&value, TIDE_U8, BYTES}};
    return tide_fill_frame(w->b.pool, parts, 2);
}

bool help_fails;
void (*before_help_fails)(void);

/* A kernel of ours does the frame's work, or does not. */
static tide_frame_result help(const tide_frame_work *frame)
{
    for (size_t i = 0; i < frame->count && frame->kind == TIDE_FRAME_FILL_PARTS; i++)
        put(frame->stream, frame->parts[i].data, BYTES, 7);
    if (help_fails && before_help_fails != NULL)
        before_help_fails();
    if (help_fails)
        tide_fail(TIDE_ERROR_DEVICE, "help", "the second kernel was refused");
    return help_fails ? TIDE_FRAME_FAILED : TIDE_FRAME_QUEUED;
}

static tide_status helped(work *w, tide_status (*call)(work *))
{
    tide_frame_result (*before)(const tide_frame_work *) = tide_hooks_policy.help;
    tide_hooks_policy.help = help;
    tide_status status = call(w);
    tide_hooks_policy.help = before;
    return status;
}

tide_status do_helped_fill(work *w)
{
    return helped(w, do_fill_frame);
}

/* The array is what declared streams use from now on. */
static tide_status made(work *w, void *array)
{
    if (array == NULL)
        return tide_error_status();
    w->x = array;
    return TIDE_OK;
}

tide_status do_fill(work *w)
{
    return made(w, tide_fill(w->b.pool, uint8_t, BYTES, 7));
}

/* An array that could not grow is where it was, and may be used there. */
static tide_status do_grow(work *w)
{
    tide_status status = made(w, tide_grow(w->b.pool, uint8_t, w->x, 100 * BYTES));
    if (status != TIDE_OK) {
        fake_synchronise_all();
        put(w->other, w->x, BYTES, 3);
    }
    return status;
}

tide_status do_acquire(work *w)
{
    return made(w, tide_acquire(w->b.pool, uint16_t, BYTES));
}

/* Its level ends with the one around. */
tide_status do_bump(work *w)
{
    tide_status status = tide_bump_enter(w->b.pool, BYTES, &w->bump);
    return status == TIDE_OK ? made(w, w->bump.bump) : status;
}

const method methods[] = {
    {"tide_array_wrap", do_wrap, 1, NULL, NULL},
    {"tide_array_import", do_import, 1, NULL, NULL},
    {"tide_upload", do_upload, 1, "cuMemcpyAsync", "cuMemcpyAsync"},
    {"tide_download", do_download, 0, "cuMemcpyAsync", "cuMemcpyAsync"},
    {"tide_copy", do_copy, 1, "cuMemcpyAsync", "cuMemcpyAsync"},
    {"tide_copy_from", do_copy_from, 1, "cuMemcpyAsync", "cuMemcpyAsync"},
    {"tide_upload_frame", do_upload_frame, 1, "cuMemcpyAsync", "cuMemcpyAsync"},
    {"tide_download_frame", do_download_frame, 1, "cuMemcpyAsync", "cuMemcpyAsync"},
    {"tide_fill_frame by kernel", do_helped_fill, 1, NULL, NULL},
    {"tide_fill_frame", do_fill_frame, 1, "cuMemsetD8Async", "cuMemsetAsync"},
    {"tide_fill", do_fill, 1, "cuMemsetD8Async", "cuMemsetAsync"},
    {"tide_grow", do_grow, 2, "cuMemcpyAsync", "cuMemcpyAsync"},
    {"tide_acquire", do_acquire, 1, NULL, NULL},
    {"tide_bump_enter", do_bump, 1, "cuMemcpyAsync", "cuMemcpyAsync"},
};
const size_t method_count = sizeof methods / sizeof *methods;

/* ---- what fails ----------------------------------------------------------------------------- */

void fail_wait(void)
{
    fake_fail("cuCtxSynchronize", 1, TRANSIENT, false);
}

static void fail_waits(void)
{
    fake_fail("cuCtxSynchronize", 1, TRANSIENT, true);
}

void fail_event_and_wait(void)
{
    fake_fail("cuEventRecord", 1, TRANSIENT, false);
    fake_call_back("cuCtxSynchronize", fail_wait);
}

void fail_event_and_waits(void)
{
    fake_fail("cuEventRecord", 1, TRANSIENT, false);
    fake_call_back("cuCtxSynchronize", fail_waits);
}
