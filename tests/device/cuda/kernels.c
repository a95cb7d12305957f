/* SPDX-License-Identifier: MIT */
/* Kernels on the fake driver: they run late and in the order of their streams and graphs; what
 * each byte of theirs uses takes part in the hazard check; a fault loses the device. */
#include <tidepool/device.h>

#include "support.h"

#include "jit/kernels/nvrtc.h"
#include "runtime/device/device.h"

/* Adds `by` to each of 32 words; or reads far outside. */
static const char text[] =
    "extern \"C\" __global__ void add(unsigned *data, unsigned by) { data[threadIdx.x] += by; }\n"
    "extern \"C\" __global__ void stray(volatile int *data) { (void)data[1 << 20]; }\n";

enum { COUNT = 32 };

static void *load_kernel(const bench *b, const char *name, void **module)
{
    static tide_cuda_code made; /* compiled once */
    char error[256];
    tide_nvrtc_set(HOST_NVRTC); /* after attaching */
    if (made.code == NULL &&
        !tide_nvrtc_compile(text, (tide_cuda_target){90, 13000}, &made, error, sizeof error))
        fail_msg("%s", error);
    *module = b->device->methods->load(b->device, made.code);
    if (*module == NULL)
        fail_msg("%s", tide_error_message());
    void *found = b->device->methods->kernel(b->device, *module, name);
    assert_non_null(found);
    return found;
}

static void launch_add(const bench *b, void *stream, void *kernel, void *data, uint32_t by)
{
    void *arguments[] = {&data, &by};
    expect_ok(b->device->methods->launch(b->device, stream, kernel, 1, COUNT, arguments));
}

static bench start_sm90(uint32_t seed)
{
    fake_architecture(90);
    return bench_start(seed);
}

static uint32_t *some_words(const bench *b)
{
    uint32_t *words = tide_fill(b->pool, uint32_t, COUNT, 100);
    assert_non_null(words);
    return words;
}

/* Whatever the order that a run takes, and which of the two came first. */
static void what_is_not_ordered_is_reported(void **unused)
{
    (void)unused;
    for (uint32_t seed = 1; seed < 50; seed++) {
        bench b = start_sm90(seed);
        void *module, *kernel = load_kernel(&b, "add", &module), *other = fake_stream_create(0);
        uint32_t *words = some_words(&b);
        fake_order(b.stream, other);
        launch_add(&b, seed % 2 == 0 ? b.stream : other, kernel, words, 1);
        launch_add(&b, seed % 2 == 0 ? other : b.stream, kernel, words, 1);
        fake_synchronise_all();
        fake_synchronise(other);
        fake_synchronise(b.stream);
        assert_non_null(fake_hazard());
        assert_non_null(strstr(fake_hazard(), "add is not ordered with add"));
        b.device->methods->unload(b.device, module);
        expect_ok(tide_pool_destroy(b.pool));
        fake_synchronise_all();
        expect_ok(tide_device_close(b.device));
        fake_stream_destroy(other);
        fake_stream_destroy(b.stream);
    }
}

static void a_fault_loses_the_device(void **unused)
{
    (void)unused;
    bench b = start_sm90(3);
    void *module, *kernel = load_kernel(&b, "stray", &module), *data = some_words(&b);
    char got[4];
    void *arguments[] = {&data};
    expect_ok(b.device->methods->launch(b.device, b.stream, kernel, 1, 1, arguments));
    fake_synchronise(b.stream);
    assert_non_null(strstr(fake_violation(), "stray: group 0, thread 0 reads 4 bytes at"));
    expect_status(tide_download(b.pool, got, data, sizeof got), TIDE_ERROR_DEVICE);
}

static void what_cannot_run_is_refused(void **unused)
{
    (void)unused;
    bench b = start_sm90(3);
    void *module, *kernel = load_kernel(&b, "add", &module);
    char cubin[64] = "\177ELF\2\1\1\x33\7";
    cubin[18] = (char)190; /* the machine: CUDA */
    assert_null(b.device->methods->load(b.device, cubin));
    assert_non_null(strstr(tide_error_message(), "cuModuleLoadDataEx"));
    assert_null(b.device->methods->load(b.device, "nonsense"));
    assert_null(b.device->methods->kernel(b.device, module, "subtract"));
    assert_non_null(kernel);
    b.device->methods->unload(b.device, module);
    bench_end(&b);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_ordered_is_reported),
        cmocka_unit_test(what_cannot_run_is_refused),
        cmocka_unit_test(a_fault_loses_the_device), /* the last: it stays lost */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
