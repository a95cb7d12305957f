/* SPDX-License-Identifier: MIT */
/* From the first frame on a CUDA device to the launch of a kernel: ordered from the stager,
 * compiled by NVRTC, fetched, its digest checked, handed to the driver, launched, kept, found
 * again. The device is made up: what its driver is given must be a cubin with the kernels' names;
 * what it launches, the emulation runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <tidepool/device.h>
#include <tidepool/learn.h>
#include <tidepool/tidepool.h>

#include "emulation.h"
#include "jit/cache/store.h"
#include "jit/cache/test_hooks.h"
#include "jit/kernels/cached.h"
#include "jit/kernels/code.h"
#include "jit/kernels/modules.h"
#include "jit/learn/round.h"
#include "jit/stager/locate.h"
#include "jit/stager/stager.h"
#include "jit/stager/test_hooks.h"
#include "runtime/base/hash.h"
#include "runtime/base/hooks.h"
#include "runtime/base/lock.h"
#include "runtime/base/settings.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/device.h"
#include "tests/support.h"

enum { SETTLE_MS = 120000 };

/* ---- a device ------------------------------------------------------------------------------- */

static struct {
    int architecture, loads, unloads, launches, refuse_launches;
    bool refuse_load;
    char *code;
    size_t bytes;
    char names[64][32];
    int name_count;
} driver;

static tide_cu_result attribute(int *value, int which, tide_cu_device of)
{
    (void)of;
    *value = which == 75 ? driver.architecture / 10 : driver.architecture % 10;
    return TIDE_CU_SUCCESS;
}

static tide_cu_result version(int *out)
{
    *out = 0; /* any compiler will do */
    return TIDE_CU_SUCCESS;
}

static void *load(tide_device *device, const void *code, size_t bytes, const char *options)
{
    (void)device, (void)options;
    if (driver.refuse_load) {
        (void)tide_device_open("refused"); /* leaves a message */
        return NULL;
    }
    driver.loads++;
    driver.code = memcpy(malloc(bytes + 1), code, bytes + 1); /* and the 0 behind it */
    driver.bytes = bytes;
    return &driver;
}

static void unload(tide_device *device, void *module)
{
    (void)device;
    assert_ptr_equal(module, &driver);
    driver.unloads++;
    driver.name_count = 0;
    free(driver.code);
    driver.code = NULL;
}

static void *kernel(tide_device *device, void *module, const char *name)
{
    (void)device, (void)module;
    assert_non_null(memmem(driver.code, driver.bytes, name, strlen(name)));
    assert_in_range(driver.name_count, 0, 63);
    char *own = driver.names[driver.name_count++];
    snprintf(own, sizeof driver.names[0], "%s", name);
    return own;
}

static tide_status launch(tide_device *device, void *stream, void *name, size_t groups,
                          size_t group, const tide_argument *arguments, size_t count)
{
    (void)device, (void)stream;
    const void *block = NULL;
    if (driver.refuse_launches > 0)
        return driver.refuse_launches--, tide_device_close((tide_device *)(void *)&driver);
    if (count == 2)
        memcpy(&block, arguments[1].value, sizeof block);
    assert_in_range(arguments[0].bytes, sizeof(tide_segment), 4096);
    assert_true(
        emulation_kernel(name, (unsigned)groups, (unsigned)group, arguments[0].value, block));
    driver.launches++;
    return TIDE_OK;
}

static tide_status fill(tide_device *device, void *stream, void *data, const void *pattern,
                        size_t pattern_bytes, size_t count)
{
    (void)device, (void)stream;
    for (size_t i = 0; i < count; i++)
        memcpy((char *)data + i * pattern_bytes, pattern, pattern_bytes);
    return TIDE_OK;
}

static const tide_device_methods methods = {
    .load = load, .unload = unload, .kernel = kernel, .launch = launch, .fill = fill};

static tide_cuda own;

/* Each of its own: what is known of a device is known by its address. */
static tide_device *make_device(int architecture)
{
    static tide_device devices[16];
    static int made;
    assert_in_range(made, 0, 15);
    tide_device *device = &devices[made++];
    *device =
        (tide_device){.methods = &methods, .own = &own, .dl = {TIDE_DL_CUDA, 0}, .name = "cuda:0"};
    memset(&driver, 0, sizeof driver);
    driver.architecture = architecture;
    tide_cu.cuDeviceGetAttribute = attribute;
    tide_cu.cuDriverGetVersion = version;
    return device;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static double values[1000];
static uint32_t words[77];

static tide_frame_result try_fill(tide_device *device)
{
    static const double one = 1.5;
    tide_part parts[] = {{.data = values, .host = (void *)&one, .type = TIDE_F64, .count = 1000},
                         {.data = words, .type = TIDE_U32, .count = 77}};
    memset(values, 0xEE, sizeof values);
    memset(words, 0xEE, sizeof words);
    return tide_hooks_policy.help(&(tide_frame_work){
        .kind = TIDE_FRAME_FILL_PARTS, .device = device, .parts = parts, .count = 2});
}

static void expect_filled(void)
{
    for (size_t i = 0; i < 1000; i++)
        assert_true(values[i] == 1.5);
    for (size_t i = 0; i < 77; i++)
        assert_int_equal(words[i], 0);
}

static void expect_hash(tide_device *device)
{
    static _Alignas(64) uint64_t block[2];
    tide_part parts[] = {{.data = values, .type = TIDE_F64, .count = 1000},
                         {.data = words, .type = TIDE_U32, .count = 77}};
    tide_frame_work help = {
        .kind = TIDE_FRAME_HASH, .device = device, .parts = parts, .count = 2, .block = block};
    assert_int_equal(tide_hooks_policy.help(&help), TIDE_FRAME_QUEUED);
    assert_true(block[0] == tide_hash_bytes(values, sizeof values));
    assert_true(block[1] == tide_hash_bytes(words, sizeof words));
}

static void settle(tide_device *device, const char *why)
{
    char said[256];
    assert_int_equal(try_fill(device), TIDE_FRAME_ABSENT);
    assert_int_equal(tide_settle(SETTLE_MS), TIDE_OK);
    tide_modules_why(device, said, sizeof said);
    if (strstr(said, why) == NULL || (why[0] == '\0' && said[0] != '\0'))
        fail_msg("'%s', not '%s'", said, why);
    assert_int_equal(tide_modules_ready(device), why[0] == '\0');
}

static void the_first_frame_orders_them(void **unused)
{
    (void)unused;
    tide_device *device = make_device(90);
    settle(device, "");
    assert_int_equal(driver.loads, 1);
    assert_memory_equal(driver.code,
                        "\x7f"
                        "ELF",
                        4);
    assert_int_equal(try_fill(device), TIDE_FRAME_QUEUED);
    assert_int_equal(driver.launches, 1);
    expect_filled();
    expect_hash(device);
    tide_hooks_policy.close(device);
    assert_int_equal(driver.unloads, 1);
    assert_false(tide_modules_ready(device));
    settle(device, ""); /* opened again: all as before */
    assert_int_equal(try_fill(device), TIDE_FRAME_QUEUED);
    tide_hooks_policy.close(device);
}

static void a_newer_device_gets_ptx(void **unused)
{
    (void)unused;
    tide_device *device = make_device(990);
    settle(device, "");
    assert_non_null(memmem(driver.code, driver.bytes, ".version", 8));
    assert_int_equal(driver.code[driver.bytes], '\0'); /* drivers read it as a string */
    tide_hooks_policy.close(device);
}

static void what_cannot_be_had_is_absent(void **unused)
{
    (void)unused;
    tide_device *device = make_device(13);
    settle(device, "does not know sm_13");
    assert_int_equal(try_fill(device), TIDE_FRAME_ABSENT);
    device = make_device(0);
    settle(device, "compute capability");
    device = make_device(90);
    driver.refuse_load = true;
    settle(device, "refused");
    assert_int_equal(driver.launches, 0);
}

static void a_launch_that_fails_is_told(void **unused)
{
    (void)unused;
    tide_device *device = make_device(80);
    settle(device, "");
    driver.refuse_launches = 1;
    assert_int_equal(try_fill(device), TIDE_FRAME_FAILED);
    assert_int_not_equal(tide_error_status(), TIDE_OK);
    assert_int_equal(try_fill(device), TIDE_FRAME_QUEUED);
    tide_hooks_policy.close(device);
}

static void damaged_files_are_refused(void **unused)
{
    (void)unused;
    const tide_kernels_target sm_90 = {90, 12040}, sm_89 = {89, 12040};
    char head[TIDE_KERNELS_HEAD], file[2048], error[200];
    static const char code[] = "\x7f"
                               "ELF, or so";
    size_t bytes =
        tide_kernels_head_write(sm_90, "nvrtc 13.0 -arch=sm_90", "cubin", code, sizeof code, head);
    tide_kernels_code read;
    memcpy(file, head, bytes);
    memcpy(file + bytes, code, sizeof code);
    bytes += sizeof code;
    file[bytes] = '\0';
    assert_true(tide_kernels_code_read(file, bytes, sm_90, &read, error, sizeof error));
    assert_int_equal(read.bytes, sizeof code);
    assert_string_equal(read.compiler, "nvrtc 13.0 -arch=sm_90");
    assert_false(tide_kernels_code_read(file, bytes, sm_89, &read, error, sizeof error));
    for (size_t i = 0; i < bytes; i++) {
        file[i] ^= 1;
        assert_false(tide_kernels_code_read(file, bytes, sm_90, &read, error, sizeof error));
        file[i] ^= 1;
    }
    for (size_t cut = 0; cut < bytes; cut++) {
        char last = file[cut];
        file[cut] = '\0';
        assert_false(tide_kernels_code_read(file, cut, sm_90, &read, error, sizeof error));
        file[cut] = last;
    }
    assert_true(tide_kernels_code_read(file, bytes, sm_90, &read, error, sizeof error));
}

static uint64_t orders(void)
{
    tide_stager_figures figures;
    tide_round_lock();
    tide_stager_figures_get(&figures);
    tide_round_unlock();
    return figures.requests;
}

static const char *watched; /* a folder, or NULL */
static unsigned outside, open_outside;

tide_outside __real_tide_outside_enter(void);
tide_outside __wrap_tide_outside_enter(void);

/* Others may fork now, and the child would have open whatever is. */
tide_outside __wrap_tide_outside_enter(void)
{
    if (watched != NULL && tide_round_held()) {
        outside++;
        open_outside += count_open(watched) != 0;
    }
    return __real_tide_outside_enter();
}

static void kept_kernels_are_found_again(void **unused)
{
    (void)unused;
    char folder[] = "/tmp/tidepool-kept-XXXXXX", command[128], cache[64];
    assert_non_null(mkdtemp(folder));
    snprintf(cache, sizeof cache, "%s/cache", folder);
    assert_int_equal(mkdir(cache, 0700), 0);
    snprintf(command, sizeof command, "%s/tidepool", cache); /* or there was nothing to open */
    assert_int_equal(mkdir(command, 0700), 0);
    tide_store_start = folder; /* /tmp above it is everybody's */
    setenv("XDG_CACHE_HOME", cache, 1);
    tide_locate_environment_forget();
    assert_int_equal(tide_tune_set("artefact_cache", 1), TIDE_OK);
    uint64_t before = orders();
    watched = cache;
    for (int run = 0; run < 3; run++) {
        tide_device *device = make_device(90);
        if (run == 2) { /* one that is damaged is compiled anew */
            snprintf(command, sizeof command,
                     "for f in %s/tidepool/*.kernels; do echo x >>$f; done", cache);
            assert_int_equal(system(command), 0);
        }
        settle(device, "");
        assert_int_equal(try_fill(device), TIDE_FRAME_QUEUED);
        expect_filled();
        assert_int_equal(orders() - before, run == 2 ? 2 : 1);
        tide_hooks_policy.close(device);
    }
    watched = NULL;
    assert_true(outside > 0);
    assert_int_equal(open_outside, 0);
    assert_int_equal(tide_tune_set("artefact_cache", 0), TIDE_OK);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void without_nvrtc_there_are_the_plain_ways(void **unused)
{
    (void)unused;
    tide_round_lock();
    tide_stager_stop(true);
    tide_round_unlock();
    setenv("TIDEPOOL_NVRTC", "none", 1);
    tide_locate_environment_forget();
    tide_device *device = make_device(90);
    settle(device, "no NVRTC");
    assert_int_equal(try_fill(device), TIDE_FRAME_ABSENT);
    unsetenv("TIDEPOOL_NVRTC");
}

int main(int count, char **args)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_frame_orders_them),
        cmocka_unit_test(a_newer_device_gets_ptx),
        cmocka_unit_test(what_cannot_be_had_is_absent),
        cmocka_unit_test(a_launch_that_fails_is_told),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(kept_kernels_are_found_again),
        cmocka_unit_test(without_nvrtc_there_are_the_plain_ways),
    };
    char command[600];
    snprintf(command, sizeof command, "%s --kernels --architectures >/dev/null", args[1]);
    if (count != 2 || system(command) != 0) {
        printf("skipped: the stager finds no NVRTC\n");
        return 77;
    }
    setenv("TIDEPOOL_STAGER", args[1], 1);
    tide_tune_set("background", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
