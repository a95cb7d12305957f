/* SPDX-License-Identifier: MIT */
/* The kernels that help with frames, run by a GPU (asked with `cuda`) and compared byte by byte with
 * what the host makes of the same frame: every built-in type, odd sizes, unaligned parts, 1 to 300 of
 * them. Bytes around each part must stay as they were. And the bump allocator of kernels, by an
 * OpenCL device (PoCL will do) as well. */
#include "tests/device/opencl/bed.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <tidepool/device.h>
#include <tidepool/device_bump.h>
#include <tidepool/dlpack.h>
#include <tidepool/learn.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

#include "jit/kernels/modules.h"
#include "runtime/base/type.h"
#include "runtime/device/cuda/cuda.h"
#include "tests/random.h"

enum { PARTS_MAX = 300, MARGIN = 48 };

static rng draws = {1}; /* of this program, from its start */

static uint64_t chance(uint64_t limit)
{
    return rng_below(&draws, limit);
}

static size_t bytes_of(const tide_part *part)
{
    size_t bytes = 0;
    assert_true(tide_type_bytes(tide_type_facts_of(part->type), part->count, &bytes));
    return bytes;
}

/* A part, in an array of bytes with a margin on both sides; and what the host has of that array. */
typedef struct place {
    unsigned char *device, *host, value[16];
    size_t bytes, all;
} place;

typedef struct frame {
    tide_pool *pool;
    size_t count;
    tide_part parts[PARTS_MAX];
    place places[PARTS_MAX];
} frame;

/* ---- frames --------------------------------------------------------------------------------- */

static size_t some_count(size_t i)
{
    static const size_t sizes[] = {0,  1,  2,  3,   7,    15,   16,   17,
                                   63, 64, 65, 127, 1000, 4096, 4099, 20001};
    return sizes[(i + chance(3)) % (sizeof sizes / sizeof *sizes)];
}

static void make_place(frame *f, size_t i, tide_type type, size_t count, size_t shift)
{
    tide_part *part = &f->parts[i];
    place *p = &f->places[i];
    *part = (tide_part){.type = type, .count = count};
    p->bytes = bytes_of(part);
    p->all = p->bytes + MARGIN + 2 * sizeof(uint64_t);
    p->device = tide_acquire_type(f->pool, TIDE_U8, p->all);
    p->host = malloc(p->all);
    assert_non_null(p->device);
    assert_non_null(p->host);
    for (size_t b = 0; b < p->all; b++)
        p->host[b] = (unsigned char)chance(256);
    for (size_t b = 0; b < sizeof p->value; b++)
        p->value[b] = (unsigned char)chance(256);
    p->value[0] = type == TIDE_BIT || type == TIDE_BOOL ? i % 2 : p->value[0];
    part->data = p->device + shift;
    expect_ok(tide_upload(f->pool, p->device, p->host, p->all));
}

static frame *make_frame(size_t count, bool aligned)
{
    frame *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->pool = bed_pool(NULL);
    f->count = count;
    for (size_t i = 0; i < count; i++) {
        tide_type type = (tide_type)(1 + i % TIDE_BUILTIN_COUNT);
        make_place(f, i, type, some_count(i), aligned ? 0 : chance(MARGIN));
    }
    return f;
}

static size_t shift_of(const frame *f, size_t i)
{
    return (size_t)((unsigned char *)f->parts[i].data - f->places[i].device);
}

static void end_frame(frame *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->places[i].host);
    expect_ok(tide_pool_destroy(f->pool));
    free(f);
}

/* Is everything on the device as the host has it, margins included? */
static void expect_as_host(const frame *f)
{
    for (size_t i = 0; i < f->count; i++) {
        const place *p = &f->places[i];
        unsigned char *got = malloc(p->all);
        assert_non_null(got);
        expect_ok(tide_download(f->pool, got, p->device, p->all));
        if (memcmp(got, p->host, p->all) != 0)
            for (size_t b = 0; b < p->all; b++)
                if (got[b] != p->host[b])
                    fail_msg(
                        "part %zu of %zu, type %s, %zu elements at %zu: byte %zu is %02x, not %02x",
                        i, f->count, tide_type_name(f->parts[i].type), f->parts[i].count,
                        shift_of(f, i), b, got[b], p->host[b]);
        free(got);
    }
}

static void fill_host(frame *f, size_t i)
{
    const tide_part *part = &f->parts[i];
    const place *p = &f->places[i];
    unsigned char *to = p->host + shift_of(f, i);
    size_t size = tide_type_facts_of(part->type)->size;
    if (part->host == NULL) {
        memset(to, 0, p->bytes);
    } else if (part->type == TIDE_BIT) {
        memset(to, 0, p->bytes);
        for (size_t bit = 0; bit < part->count && p->value[0] != 0; bit++)
            to[bit / 8] |= (unsigned char)(1 << bit % 8);
    } else {
        for (size_t e = 0; e < part->count; e++)
            memcpy(to + e * size, p->value, size);
    }
}

static uint64_t launches(void)
{
    return bed_info().launches;
}

/* So many launches, of at most 100 segments each, if none is empty. */
static void expect_launches(uint64_t before, size_t segments)
{
    uint64_t made = launches() - before, most = (segments + 99) / 100;
    assert_true(made > 0);
    assert_true(made <= most);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static const size_t part_counts[] = {1, 2, 3, 15, 16, 17, 40, 100, 101, 300};
enum { COUNTS = sizeof part_counts / sizeof *part_counts };

/* Frames of each count, aligned and not, whose parts are then as the host has them. */
static void each_frame(size_t from, void (*use)(frame *f))
{
    for (size_t c = from; c < 2 * COUNTS; c++) {
        frame *f = make_frame(part_counts[c / 2], c % 2);
        use(f);
        expect_as_host(f);
        end_frame(f);
    }
}

static void fill(frame *f)
{
    bool some = false;
    for (size_t i = 0; i < f->count; i++) {
        f->parts[i].host = chance(4) != 0 ? f->places[i].value : NULL;
        fill_host(f, i);
        some = some || f->parts[i].count != 0;
    }
    uint64_t before = launches();
    expect_ok(tide_fill_frame(f->pool, f->parts, f->count));
    if (some)
        expect_launches(before, 2 * f->count); /* bits may take two segments */
}

static void upload(frame *f)
{
    for (size_t i = 0; i < f->count; i++) {
        f->parts[i].host = f->places[i].host + shift_of(f, i);
        for (size_t b = 0; b < f->places[i].bytes; b++)
            ((unsigned char *)f->parts[i].host)[b] ^= (unsigned char)(i + b);
    }
    uint64_t before = launches();
    expect_ok(tide_upload_frame(f->pool, f->parts, f->count));
    expect_launches(before, f->count);
}

static void download(frame *f)
{
    for (size_t i = 0; i < f->count; i++) {
        f->parts[i].host = malloc(f->places[i].bytes + 1);
        assert_non_null(f->parts[i].host);
    }
    uint64_t before = launches();
    expect_ok(tide_download_frame(f->pool, f->parts, f->count));
    expect_launches(before, f->count);
    for (size_t i = 0; i < f->count; i++) {
        assert_memory_equal(f->parts[i].host, f->places[i].host + shift_of(f, i),
                            f->places[i].bytes);
        free(f->parts[i].host);
    }
}

TEST(frames_are_filled_packed_and_unpacked)
{
    each_frame(0, fill);
    each_frame(2, upload);
    each_frame(2, download);
}

/* Elements of 12 bytes have no pattern of 16; zeros of them have. */
TEST(odd_types_are_filled_all_the_same)
{
    frame *f = make_frame(2, false);
    tide_type odd = tide_type_register("of 12 bytes", 12, 4);
    for (size_t i = 0; i < 2; i++)
        make_place(f, i + 2, odd, 1000 + i, 16 * i);
    f->count = 4;
    for (int round = 0; round < 2; round++) {
        uint64_t before = launches();
        for (size_t i = 0; i < f->count; i++) {
            f->parts[i].host = round == 0 || i < 2 ? NULL : f->places[i].value;
            fill_host(f, i);
        }
        expect_ok(tide_fill_frame(f->pool, f->parts, f->count));
        assert_int_equal(launches() - before, round == 0);
        expect_as_host(f);
    }
    end_frame(f);
}

TEST(a_hundred_parts_take_one_launch)
{
    enum { PARTS = 100 };
    tide_part parts[PARTS];
    float value = 1.5f;
    tide_pool *pool = bed_pool(NULL);
    for (size_t i = 0; i < PARTS; i++)
        parts[i] = (tide_part){tide_acquire_type(pool, TIDE_F32, 8), &value, TIDE_F32, 8};
    const uint64_t before = launches();
    expect_ok(tide_fill_frame(pool, parts, PARTS));
    assert_int_equal(launches(), before + 1);
    expect_ok(tide_pool_destroy(pool));
}

TEST(many_groups_find_their_parts)
{
    static const size_t sizes[] = {3000001, 0, 1, 262144, 1234567};
    frame *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->pool = bed_pool(NULL);
    for (size_t i = 0; i < 5; i++, f->count++)
        make_place(f, i, TIDE_F16, sizes[i], 2 * i);
    for (size_t i = 0; i < 5; i++)
        f->parts[i].host = f->places[i].value;
    expect_ok(tide_fill_frame(f->pool, f->parts, 5));
    for (size_t i = 0; i < 5; i++)
        fill_host(f, i);
    expect_as_host(f);
    end_frame(f);
}

/* ---- the bump allocator -----------------------------------------------------------------------
 */

static const char opencl_words[] = "#define KERNEL __kernel void\n"
                                   "#define GLOBAL __global\n"
                                   "#define ID get_global_id(0)\n";
static const char cuda_words[] = "#define KERNEL extern \"C\" __global__ void\n"
                                 "#define GLOBAL\n"
                                 "#define ID (blockIdx.x * blockDim.x + threadIdx.x)\n";
static const char take_source[] =
    "KERNEL take(GLOBAL tide_bump *bump, GLOBAL unsigned long *out, unsigned n, unsigned most)\n"
    "{\n"
    "    unsigned i = (unsigned)ID;\n"
    "    if (i >= n) return;\n"
    "    if (i % 5 == 3) { out[i] = 1; return; }\n" /* not all of a warp come along */
    "    unsigned size = 1 + i * 37 % most;\n"
    "    GLOBAL char *got = (GLOBAL char *)tide_bump_acquire(bump, size);\n"
    "    out[i] = got != 0 ? (unsigned long)(got - (GLOBAL char *)bump) : 0;\n"
    "    for (unsigned b = 0; got != 0 && b < size; b++) got[b] = (char)i;\n"
    "}\n";

/* A program's own compiler for its own kernels: the driver's, or NVRTC. */
static void *load_cuda(const char *source)
{
    void *module = tide_modules_compile(gpu, source);
    if (module == NULL)
        fail_msg("%s", tide_error_message());
    return module;
}

static bool on_gpu(void)
{
    return gpu->dl.device_type == TIDE_DL_CUDA;
}

/* The CUDA module or the program of OpenCL with the kernel. */
static void *load_take(void)
{
    bool cuda = on_gpu();
    size_t room =
        strlen(tide_bump_source()) + sizeof opencl_words + sizeof cuda_words + sizeof take_source;
    char *source = malloc(room);
    assert_non_null(source);
    snprintf(source, room, "%s%s%s", tide_bump_source(), cuda ? cuda_words : opencl_words,
             take_source);
    void *module = cuda ? load_cuda(source) : bed_program(source);
    free(source);
    if (module == NULL)
        fail_msg("%s", tide_error_message());
    return module;
}

enum { TAKERS = 4096, IDLE = 819 };

/* What was given: places in the memory, each with its taker's mark all over. */
static void expect_taken(tide_pool *pool, const tide_bump *bump, const uint64_t *places,
                         uint32_t most, size_t bytes, size_t refused)
{
    unsigned char *memory = malloc(TIDE_BUMP_HEAD + bytes);
    size_t none = 0;
    assert_non_null(memory);
    expect_ok(tide_download(pool, memory, bump, TIDE_BUMP_HEAD + bytes));
    for (uint32_t i = 0; i < TAKERS; i++) {
        uint32_t size = 1 + i * 37 % most;
        none += places[i] == 0;
        assert_int_equal(places[i] == 1, i % 5 == 3);
        if (places[i] <= 1)
            continue;
        assert_true(places[i] % TIDE_BUMP_ALIGN == 0 && places[i] >= TIDE_BUMP_HEAD);
        assert_true(places[i] + size <= TIDE_BUMP_HEAD + bytes);
        for (uint32_t b = 0; b < size; b++)
            assert_int_equal(memory[places[i] + b], i & 0xFF);
    }
    assert_int_equal(none, refused);
    free(memory);
}

static void launch_takers(void *module, void *bump, uint64_t *out, uint32_t most)
{
    uint32_t takers = TAKERS;
    if (!on_gpu()) {
        bed_launch(NULL, module, "take", TAKERS,
                   (bed_argument[]){{&bump, 0}, {&out, 0}, {&takers, 4}, {&most, 4}}, 4);
        return;
    }
    void *kernel = tide_cuda_kernel(gpu, module, "take");
    assert_non_null(kernel);
    expect_ok(tide_cuda_launch(gpu, NULL, kernel, TAKERS / 64, 64,
                               (void *[]){&bump, &out, &takers, &most}));
}

static tide_status try_takers(tide_pool *pool, void *module, size_t bytes, uint32_t most,
                              size_t refused, tide_bump_scope *scope)
{
    static uint64_t places[TAKERS];
    uint64_t *out = tide_acquire(pool, uint64_t, TAKERS);
    expect_ok(tide_bump_enter(pool, bytes, scope));
    void *bump = scope->bump;
    launch_takers(module, bump, out, most);
    expect_ok(tide_download(pool, places, out, sizeof places));
    if (refused != SIZE_MAX)
        expect_taken(pool, bump, places, most, bytes, refused);
    return tide_bump_leave(scope);
}

TEST(kernels_allocate)
{
    void *module = load_take();
    tide_pool *pool = bed_pool(NULL);
    tide_bump_scope scope;
    expect_ok(try_takers(pool, module, 1 << 20, 100, 0, &scope));
    assert_true(scope.asked > (TAKERS - IDLE) * 16 && scope.asked <= 1 << 20 && scope.refused == 0);
    size_t asked = scope.asked;
    expect_ok(
        try_takers(pool, module, asked, 100, 0, &scope)); /* as much as that was just enough */
    assert_int_equal(tide_pool_depth(pool), 0);
    expect_status(try_takers(pool, module, asked - 16, 100, SIZE_MAX, &scope), TIDE_ERROR_SIZE);
    assert_true(scope.refused >= 1 && scope.asked == asked);
    assert_non_null(strstr(tide_error_message(), "were refused"));
    expect_status(try_takers(pool, module, 64, 100, SIZE_MAX, &scope), TIDE_ERROR_SIZE);
    assert_true(scope.refused >= TAKERS - IDLE - 4);
    assert_int_equal(tide_pool_depth(pool), 0);
    if (on_gpu())
        tide_cuda_module_drop(gpu, module);
    else
        assert_int_equal(bed_cl.clReleaseProgram(module), 0);
    expect_ok(tide_pool_destroy(pool));
}

TEST(scopes_of_the_allocator_are_scopes)
{
    tide_pool *pool = bed_pool(NULL);
    tide_bump_scope outer, inner;
    expect_status(tide_bump_enter(pool, 100, NULL), TIDE_ERROR_ARGUMENT);
    expect_status(tide_bump_enter(pool, SIZE_MAX - 20, &outer), TIDE_ERROR_SIZE);
    expect_status(tide_bump_leave(&outer), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_pool_depth(pool), 0);
    expect_ok(tide_bump_enter(pool, 0, &outer));
    expect_ok(tide_bump_enter(pool, 1000, &inner));
    assert_int_equal(tide_pool_depth(pool), 2);
    expect_ok(tide_bump_leave(&outer)); /* and all that is inside */
    assert_int_equal(tide_pool_depth(pool), 0);
    expect_status(tide_bump_leave(&inner), TIDE_ERROR_STATE);
    expect_status(tide_bump_leave(&outer), TIDE_ERROR_ARGUMENT);
    expect_ok(tide_pool_destroy(pool));
}

/* On the fake driver (../fake_cuda): have the kernels been executed, and was all they used theirs
 * and in order? */
TEST(expect_executed)
{
    static const char *const kernels[] = {"tide_fill", "tide_pack", "tide_unpack", "take"};
    const char *path = getenv("TIDEPOOL_CUDA_DRIVER");
    void *driver = path != NULL ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    if (driver == NULL)
        skip();
    unsigned (*runs)(const char *);
    const char *(*violation)(void), *(*hazard)(void);
    *(void **)(void *)&runs = dlsym(driver, "fake_kernel_runs");
    *(void **)(void *)&violation = dlsym(driver, "fake_violation");
    *(void **)(void *)&hazard = dlsym(driver, "fake_hazard");
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        assert_true(runs(kernels[i]) > 0);
    if (violation() != NULL || hazard() != NULL)
        fail_msg("%s", violation() != NULL ? violation() : hazard());
    dlclose(driver);
}

static int on_cuda(void)
{
    gpu = tide_device_open("cuda:0");
    if (gpu == NULL) {
        printf("skipped: %s\n", tide_error_message());
        return 77;
    }
    int failed = RUN_TESTS("kernels on CUDA");
    return failed != 0 || tide_device_close(gpu) != TIDE_OK;
}

int main(int argc, char **argv)
{
    enum { FRAMES = 4 }; /* tests before kernels_allocate */
    if (argc > 1 && strcmp(argv[1], "cuda") == 0)
        return on_cuda();
    return bed_main("kernels on OpenCL", argc, argv, listed_tests.all + FRAMES, 2);
}
