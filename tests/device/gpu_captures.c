/* SPDX-License-Identifier: MIT */
/* gpu_captures: what the library's calls do to a program's capture, on the machine's driver or the fake one. Each call is
 * made beside a capture that the library was not told of, in each mode; by the thread that captures and by
 * another; with the capture on the stream of the call's pool, on another, and on a blocking one beside a pool on the
 * legacy stream. A line of JSON for each call and mode: the call's status in each of these ways, and "ended" where the
 * capture did not survive. 1: a capture ended, which the library's headers do not allow, or a call was refused though
 * its stream was not captured; 77: no device. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <tidepool/adaptors.h>
#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_bump.h>
#include <tidepool/device_memory.h>
#include <tidepool/dynamic.h>
#include <tidepool/tidepool.h>
#include <tidepool/upkeep.h>

#include "cuda/beside.h"

enum { BYTES = 1 << 16, LARGER = 4 << 20, OF_DEVICE = 2, CALLS_MAX = 64 };

static beside_driver driver;
static tide_cu_context context;
static tide_cu_stream captured, blocking, apart, third;
static tide_cu_address bytes; /* what the captured work writes */

/* What a call finds. The pool, its live array and the live buffer are on `stream`, which has worked. */
typedef struct scene {
    size_t call, asked; /* the calls that were asked for so far, to find that one */
    char row[128];      /* of the table, with the way */
    int mode;
    bool whole;     /* the capture after the call */
    bool elsewhere; /* on a thread of its own */
    pthread_barrier_t turn;
    tide_device *device;
    tide_cu_stream stream, captured;
    tide_pool *pool, *second; /* the second is on the third stream */
    tide_buffers *buffers;
    tide_buffer held, made; /* made: by the call */
    uint8_t *live, *there;  /* of the pool, of the second */
    tide_capture *capture;
    tide_bump_scope bump;
    void *torch;
    uint8_t host[BYTES];
    int said;
} scene;

static int had(bool there)
{
    return there ? TIDE_OK : (int)tide_error_status();
}

/* ---- what a call finds ---------------------------------------------------------------------- */

static tide_pool *make_pool(const scene *s, tide_cu_stream stream)
{
    return tide_pool_create(&(tide_pool_options){.device = s->device, .stream = stream});
}

static void warm(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    must(tide_zeros(pool, uint8_t, BYTES) != NULL && tide_zeros(pool, uint8_t, BYTES) != NULL,
         "arrays");
}

static void begin(scene *s)
{
    must_cu(driver.cuCtxSetCurrent(context));
    must((s->device = tide_device_open("cuda:0")) != NULL, "tide_device_open");
    s->pool = make_pool(s, s->stream);
    s->second = make_pool(s, third);
    s->buffers = tide_buffers_create(s->device, &(tide_buffers_options){.stream = s->stream});
    must(s->pool != NULL && s->second != NULL && s->buffers != NULL, "pools");
    must((s->live = tide_zeros(s->pool, uint8_t, BYTES)) != NULL, "an array");
    must((s->there = tide_zeros(s->second, uint8_t, BYTES)) != NULL, "an array");
    warm(s->pool);
    warm(s->second);
    s->held = tide_buffer_acquire_zeroed(s->buffers, BYTES);
    tide_buffer kept = tide_buffer_acquire_zeroed(s->buffers, LARGER);
    must(s->held.generation != 0 && kept.generation != 0, "buffers");
    must(tide_buffer_release(s->buffers, kept) == TIDE_OK, "release");
}

static int end_pool(tide_pool **pool)
{
    int status = *pool != NULL ? (int)tide_pool_reset(*pool) : TIDE_OK;
    status = status == TIDE_OK ? (int)tide_pool_destroy(*pool) : status;
    if (status == TIDE_OK)
        *pool = NULL;
    return status;
}

/* All but the device. What the call has ended is NULL. */
static void clear(scene *s)
{
    must(end_pool(&s->pool) == TIDE_OK && end_pool(&s->second) == TIDE_OK, "pools");
    if (s->buffers != NULL) { /* the call may have released them */
        (void)tide_buffer_release(s->buffers, s->held);
        (void)tide_buffer_release(s->buffers, s->made);
    }
    must(tide_buffers_destroy(s->buffers) == TIDE_OK, "tide_buffers_destroy");
    const tide_status dropped = tide_capture_drop(s->capture, s->stream); /* or dropped it */
    must(dropped == TIDE_OK || dropped == TIDE_ERROR_STALE, "tide_capture_drop");
    tide_torch_free(s->torch, BYTES, 0, s->stream);
    s->buffers = NULL;
    s->torch = NULL;
}

static int close_device(scene *s)
{
    int status = (int)tide_device_close(s->device);
    if (status == TIDE_OK)
        s->device = NULL;
    return status;
}

static void end(scene *s)
{
    clear(s);
    must(close_device(s) == TIDE_OK, "tide_device_close");
}

/* ---- calls of several statements ------------------------------------------------------------ */

static int scope_on(scene *s, tide_cu_stream other)
{
    TIDE_SCOPE(s->pool);
    int status = had(tide_acquire(s->pool, uint8_t, BYTES) != NULL);
    if (status == TIDE_OK && other != NULL)
        status = (int)tide_pool_use_on(s->pool, other);
    return status == TIDE_OK ? had(tide_fill(s->pool, uint8_t, BYTES, 7) != NULL) : status;
}

static int frame(scene *s, tide_status (*call)(tide_pool *, const tide_part *, size_t))
{
    const tide_part parts[] = {{s->live, s->host, TIDE_U8, 100},
                               {s->live + 1000, s->host + 100, TIDE_U8, 3}};
    return (int)call(s->pool, parts, 2);
}

static int capture_around(scene *s)
{
    int status = (int)tide_capture_begin(s->pool);
    if (status == TIDE_OK)
        status = had((s->capture = tide_capture_end(s->pool)) != NULL);
    return status;
}

static void used_capture(scene *s)
{
    must(capture_around(s) == TIDE_OK, "a capture");
    must(tide_capture_use_on(s->capture, third) == TIDE_OK, "tide_capture_use_on");
}

static int exported(const scene *s)
{
    tide_array *array = tide_array_acquire(s->pool, TIDE_F32, 1, (int64_t[]){100});
    tide_dl_managed *made = array != NULL ? tide_array_export(s->pool, array) : NULL;
    if (made != NULL)
        made->deleter(made);
    return had(made != NULL);
}

/* By the second pool. */
static int imported(const scene *s)
{
    tide_array *array = tide_array_acquire(s->pool, TIDE_F32, 1, (int64_t[]){100});
    tide_dl_managed *made = array != NULL ? tide_array_export(s->pool, array) : NULL;
    return had(made != NULL && tide_array_import(s->second, made) != NULL);
}

static int many(const scene *s)
{
    tide_buffer made[3];
    const tide_status status = tide_buffer_acquire_many(s->buffers, BYTES, 3, made);
    return status == TIDE_OK ? (int)tide_buffer_release_many(s->buffers, made, 3) : (int)status;
}

static int acquire(scene *s, size_t size, uint32_t kind)
{
    s->made = tide_buffer_acquire_on(s->buffers, size, kind, s->stream);
    return had(s->made.generation != 0);
}

static int cupy_pair(const scene *s)
{
    void *data = tide_cupy_malloc(s->stream, BYTES, 0);
    if (data != NULL)
        tide_cupy_free(s->stream, data, 0);
    return had(data != NULL);
}

static int torch_pair(scene *s, size_t size)
{
    void *data = tide_torch_malloc((ssize_t)size, 0, s->stream);
    if (data != NULL)
        tide_torch_free(data, (ssize_t)size, 0, s->stream);
    return had(data != NULL);
}

static bool takes(void *unused, void *stream)
{
    return unused == NULL && stream != (void *)third;
}

/* A pool of graphs, of which a block was used and is free. */
static int torch_pool(scene *s, bool released)
{
    int status = (int)tide_torch_pool_begin(0, (tide_torch_pool){1, 2},
                                            &(tide_torch_capture){.takes = takes});
    if (status != TIDE_OK)
        return status;
    status = torch_pair(s, LARGER);
    tide_torch_pool_end(0, (tide_torch_pool){1, 2});
    if (released)
        tide_torch_pool_release(0, (tide_torch_pool){1, 2});
    return status;
}

/* ---- the calls ------------------------------------------------------------------------------------------ */

static const char *names[CALLS_MAX];

/* Asked for the n-th call: is it this one? */
static bool is(scene *s, const char *name)
{
    must(s->asked < CALLS_MAX, "room for the names of all calls");
    names[s->asked] = name;
    return s->asked++ == s->call;
}

/* A call, and what is done before the capture. */
#define CALL(name, before, ...)    \
    if (is(s, name)) {             \
        if (called)                \
            s->said = __VA_ARGS__; \
        else                       \
            before;                \
        return true;               \
    }
#define NOTHING (void)0

static tide_type odd; /* of 3 bytes */

/* What is done before the capture, or the call. False: there is no such call. Until the first two have been made the
 * device is closed between them. */
static bool make(scene *s, bool called)
{
    s->asked = 0;
    CALL("tide_device_open", end(s), had((s->device = tide_device_open("cuda:0")) != NULL))
    CALL("tide_device_close", clear(s), close_device(s))
    CALL("tide_device_memory_stats", NOTHING,
         tide_device_memory_stats(s->device, &(tide_device_memory){0}))
    CALL("tide_device_memory_trim", clear(s), tide_device_memory_trim(s->device, 0))
    CALL("tide_pool_create", (void)end_pool(&s->pool),
         had((s->pool = make_pool(s, s->stream)) != NULL))
    CALL("tide_pool_destroy", NOTHING, end_pool(&s->pool))
    CALL("tide_pool_trim", NOTHING, had(tide_pool_trim(s->pool, TIDE_ALL_TYPES).slots > 0))
    CALL("tide_pool_compact", NOTHING, (tide_pool_compact(s->pool, TIDE_ALL_TYPES), TIDE_OK))
    CALL("tide_pool_empty", NOTHING, tide_pool_empty(s->pool))
    CALL("tide_pool_reset", NOTHING, tide_pool_reset(s->pool))
    CALL("tide_pool_adopt", NOTHING, tide_pool_adopt(s->pool))
    CALL("tide_pool_wait", NOTHING, tide_pool_wait(s->pool))
    CALL("tide_pool_local_on, _local_end", NOTHING,
         tide_pool_local_on(s->device, s->stream) == NULL ? tide_error_status()
                                                          : tide_pool_local_end(s->device))
    CALL("tide_capture_begin, _end", NOTHING, capture_around(s))
    CALL("tide_capture_use_on", used_capture(s), tide_capture_use_on(s->capture, s->stream))
    CALL("tide_capture_drop", used_capture(s), tide_capture_drop(s->capture, s->stream))
    CALL("tide_acquire, new", NOTHING, had(tide_acquire(s->pool, uint8_t, LARGER) != NULL))
    CALL("tide_acquire, kept", NOTHING, had(tide_acquire(s->pool, uint8_t, BYTES) != NULL))
    CALL("tide_zeros, new", NOTHING, had(tide_zeros(s->pool, uint8_t, LARGER) != NULL))
    CALL("tide_fill, 3 bytes", NOTHING, had(tide_fill_type(s->pool, odd, 100, "abc") != NULL))
    CALL("tide_fill, 16 bytes", NOTHING,
         had(tide_fill_type(s->pool, TIDE_C128, 9, &(double[2]){1}) != NULL))
    CALL("tide_grow", NOTHING, had((tide_grow(s->pool, uint8_t, s->live, LARGER)) != NULL))
    CALL("a scope", NOTHING, scope_on(s, NULL))
    CALL("a scope with tide_pool_use_on", NOTHING, scope_on(s, third))
    CALL("tide_upload", NOTHING, tide_upload(s->pool, s->live, s->host, BYTES))
    CALL("tide_download", NOTHING, tide_download(s->pool, s->host, s->live, BYTES))
    CALL("tide_copy", NOTHING, tide_copy(s->pool, s->live, s->live + BYTES / 2, BYTES / 2))
    CALL("tide_copy_from", NOTHING, tide_copy_from(s->pool, s->live, s->second, s->there, BYTES))
    CALL("tide_copy_from, its pool's", NOTHING,
         tide_copy_from(s->second, s->there, s->pool, s->live, BYTES))
    CALL("tide_upload_frame", NOTHING, frame(s, tide_upload_frame))
    CALL("tide_download_frame", NOTHING, frame(s, tide_download_frame))
    CALL("tide_fill_frame", NOTHING, frame(s, tide_fill_frame))
    CALL("tide_bump_enter", NOTHING, tide_bump_enter(s->pool, BYTES, &s->bump))
    CALL("tide_bump_leave", must(tide_bump_enter(s->pool, BYTES, &s->bump) == TIDE_OK, "bump"),
         tide_bump_leave(&s->bump))
    CALL("tide_array_export", NOTHING, exported(s))
    CALL("tide_array_import", NOTHING, imported(s))
    CALL("tide_buffers_create, _destroy", NOTHING,
         tide_buffers_destroy(tide_buffers_create(s->device, NULL)))
    CALL("tide_buffers_trim", NOTHING, had(tide_buffers_trim(s->buffers, 0).slots > 0))
    CALL("tide_buffer_acquire_on, new", NOTHING, acquire(s, 4 * LARGER, TIDE_BUFFER_DEVICE))
    CALL("tide_buffer_acquire_on, kept", NOTHING, acquire(s, LARGER, TIDE_BUFFER_DEVICE))
    CALL("tide_buffer_acquire_on, pinned", NOTHING, acquire(s, BYTES, TIDE_BUFFER_PINNED))
    CALL("tide_buffer_acquire_on, managed", NOTHING, acquire(s, BYTES, TIDE_BUFFER_MANAGED))
    CALL("tide_buffer_acquire_on, IPC", NOTHING, acquire(s, BYTES, TIDE_BUFFER_IPC))
    CALL("tide_buffer_acquire_zeroed", NOTHING,
         had((s->made = tide_buffer_acquire_zeroed(s->buffers, BYTES)).generation != 0))
    CALL("tide_buffer_acquire_ready", NOTHING,
         had((s->made = tide_buffer_acquire_ready(s->buffers, BYTES, 0)).generation != 0))
    CALL("tide_buffer_acquire_many, _release_many", NOTHING, many(s))
    CALL("tide_buffer_release", NOTHING, tide_buffer_release(s->buffers, s->held))
    CALL("tide_buffer_release_idle", NOTHING, tide_buffer_release_idle(s->buffers, s->held))
    CALL("tide_torch_malloc, _free", NOTHING, torch_pair(s, BYTES))
    CALL("tide_cupy_malloc, _free", NOTHING, cupy_pair(s))
    CALL("tide_torch_record_stream", s->torch = tide_torch_malloc(BYTES, 0, s->stream),
         (tide_torch_record_stream(s->torch, third), TIDE_OK))
    CALL("tide_torch_stats", NOTHING, tide_torch_stats(0, &(tide_torch_statistics){0}))
    CALL("tide_torch_blocks", NOTHING,
         tide_torch_blocks(0, &(tide_torch_block){0}, 1, &(size_t){0}))
    CALL("tide_torch_empty_cache", NOTHING, (tide_torch_empty_cache(), TIDE_OK))
    CALL("tide_torch_memory_fraction", NOTHING, (tide_torch_memory_fraction(1, 0), TIDE_OK))
    CALL("tide_stream_captured", NOTHING, (tide_stream_captured(s->device, s->stream), TIDE_OK))
    CALL("tide_torch_pool_begin, _end, _release", NOTHING, torch_pool(s, true))
    CALL("tide_torch_pool_release", (void)torch_pool(s, false),
         (tide_torch_pool_release(0, (tide_torch_pool){1, 2}), TIDE_OK))
    CALL("tide_torch_empty_cache, after a release", (void)torch_pool(s, true),
         (tide_torch_empty_cache(), TIDE_OK))
    return false;
}

/* ---- captures -------------------------------------------------------------------------------- */

static void begin_capture(scene *s)
{
    must_cu(driver.cuStreamBeginCapture(s->captured, s->mode));
    must_cu(driver.cu.cuMemsetD8Async(bytes, 1, BYTES, s->captured));
}

static void end_capture(scene *s)
{
    beside_graph graph = NULL;
    beside_exec exec = NULL;
    s->whole = driver.cu.cuMemsetD8Async(bytes, 2, BYTES, s->captured) == 0;
    s->whole = driver.cuStreamEndCapture(s->captured, &graph) == 0 && s->whole;
    s->whole = s->whole && driver.cuGraphInstantiateWithFlags(&exec, graph, 0) == 0;
    if (exec != NULL)
        must_cu(driver.cuGraphExecDestroy(exec));
    if (graph != NULL)
        must_cu(driver.cuGraphDestroy(graph));
}

/* The thread that captures does this: the one that calls, or, between two turns, the main one. */
static void capturing(scene *s, void (*what)(scene *))
{
    if (!s->elsewhere)
        what(s);
    for (int i = 0; s->elsewhere && i < 2; i++)
        (void)pthread_barrier_wait(&s->turn);
}

static void *run(void *of)
{
    scene *s = of;
    must_at = s->row;
    begin(s);
    must(make(s, false), "no such call");
    must_cu(driver.cu.cuStreamSynchronize(s->stream));
    capturing(s, begin_capture);
    (void)make(s, true);
    capturing(s, end_capture);
    end(s);
    return NULL;
}

static void run_elsewhere(scene *s)
{
    void (*const turns[])(scene *) = {begin_capture, end_capture};
    pthread_t thread;
    must(pthread_barrier_init(&s->turn, NULL, 2) == 0, "pthread_barrier_init");
    must(pthread_create(&thread, NULL, run, s) == 0, "pthread_create");
    for (int i = 0; i < 2; i++) {
        (void)pthread_barrier_wait(&s->turn);
        turns[i](s);
        (void)pthread_barrier_wait(&s->turn);
    }
    must(pthread_join(thread, NULL) == 0, "pthread_join");
    must(pthread_barrier_destroy(&s->turn) == 0, "pthread_barrier_destroy");
}

/* No call may be refused for the capture of a stream that is none of its own. One waits for the device, which ends a
 * capture that nobody told of; that is documented. */
static bool is_lost(const scene *s)
{
    const bool ended = !s->whole && strstr(names[s->call], ", after a release") == NULL;
    return ended || (s->stream == apart && s->said != TIDE_OK);
}

/* How many captures ended, or calls were refused in vain. */
static unsigned try_call(size_t call, int mode)
{
    static const char *const modes[] = {"global", "thread_local", "relaxed"};
    static const char *const ways[] = {"its stream", "another stream", "its stream, another thread",
                                       "another stream and thread",
                                       "a blocking one, its the legacy"};
    const tide_cu_stream streams[] = {captured, apart, captured, apart, NULL};
    unsigned lost = 0;
    printf("{\"call\":\"%s\",\"mode\":\"%s\"", names[call], modes[mode]);
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        fflush(stdout); /* where a call never returns this tells which */
        scene s = {.call = call, .mode = mode, .stream = streams[way]};
        (void)snprintf(s.row, sizeof s.row, "%s, %s, %s", names[call], modes[mode], ways[way]);
        must_at = s.row;
        s.captured = s.stream != NULL ? captured : blocking;
        s.elsewhere = way == 2 || way == 3;
        if (s.elsewhere)
            run_elsewhere(&s);
        else
            (void)run(&s);
        must_cu(driver.cu.cuCtxSynchronize());
        printf(",\"%s\":\"%s%s\"", ways[way], tide_status_name((tide_status)s.said),
               s.whole ? "" : ", ended");
        lost += is_lost(&s);
        must_at = "between two calls";
    }
    printf("}\n");
    return lost;
}

int main(void)
{
    tide_device *device = tide_device_open("cuda:0");
    if (device == NULL || !beside_load(&driver))
        return 77;
    must_cu(driver.cu.cuDevicePrimaryCtxRetain(&context, 0));
    must_cu(driver.cuCtxSetCurrent(context));
    must(tide_device_close(device) == TIDE_OK, "tide_device_close");
    for (tide_cu_stream **one = (tide_cu_stream *[]){&captured, &apart, &third, NULL}; *one; one++)
        must_cu(driver.cu.cuStreamCreate(*one, TIDE_CU_STREAM_NON_BLOCKING));
    must_cu(driver.cu.cuStreamCreate(&blocking, 0));
    must_cu(driver.cu.cuMemAlloc(&bytes, BYTES));
    odd = tide_type_register("odd", 3, 1);
    unsigned lost = 0;
    scene none = {.call = SIZE_MAX};
    (void)make(&none, true); /* which names all calls */
    for (size_t call = 0; call < none.asked; call++) {
        if (call == OF_DEVICE) /* which is held from now on: its kernels are compiled once */
            must(tide_device_open("cuda:0") != NULL, "tide_device_open");
        for (int mode = 0; mode <= TIDE_CU_CAPTURE_RELAXED; mode++)
            lost += try_call(call, mode);
    }
    printf("captures: %u ended or refused in vain\n", lost);
    return lost == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
