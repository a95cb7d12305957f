/* SPDX-License-Identifier: MIT */
/* gpu_asks: what memory by the page and the fake driver take for granted and no document says, asked of the
 * machine's driver, or of the fake one: lines of JSON. Does cuMemCreate get what the driver's memory pool keeps? May memory be
 * mapped and unmapped while a stream is captured? 77: no device, or it maps nothing. */
#include <stdio.h>
#include <stdlib.h>

#include <tidepool/device.h>
#include <tidepool/tune.h>

#include "beside.h"
#include "runtime/device/cuda/cuda.h"

enum { PARTS = 64 };

static struct {
    tide_device *device;
    const tide_cuda *cuda;
    tide_device_information info;
    tide_cu_page_properties properties;
    beside_driver driver;
    size_t unit;
} asks;

static void must(tide_cu_result result, const char *what)
{
    if (result == TIDE_CU_SUCCESS)
        return;
    fprintf(stderr, "%s: %d\n", what, result);
    exit(EXIT_FAILURE);
}

/* ---- what the pool keeps ------------------------------------------------------------------------ */

static uint64_t kept(void)
{
    uint64_t bytes = 0;
    must(tide_cu.cuMemPoolGetAttribute(asks.cuda->pool, TIDE_CU_POOL_RESERVED, &bytes),
         "cuMemPoolGetAttribute");
    return bytes;
}

/* Until the driver refuses; how many parts. */
static size_t create(unsigned long long *handles, size_t count, size_t bytes)
{
    size_t n = 0;
    while (n < count &&
           tide_cu.cuMemCreate(&handles[n], bytes, &asks.properties, 0) == TIDE_CU_SUCCESS)
        n++;
    return n;
}

/* A quarter of the device is in the pool and free; then all is created that can be had. */
static void ask_of_the_pool(void)
{
    unsigned long long handles[2 * PARTS];
    tide_cu_address data = 0;
    const size_t part = asks.info.bytes / PARTS / asks.unit * asks.unit;
    must(tide_cu.cuMemAllocFromPoolAsync(&data, PARTS / 4 * part, asks.cuda->pool,
                                         asks.cuda->service),
         "cuMemAllocFromPoolAsync");
    must(tide_cu.cuMemFreeAsync(data, asks.cuda->service), "cuMemFreeAsync");
    must(tide_cu.cuStreamSynchronize(asks.cuda->service), "cuStreamSynchronize");
    const uint64_t before = kept();
    size_t count = create(handles, PARTS, part);
    const uint64_t after = kept();
    must(tide_cu.cuMemPoolTrimTo(asks.cuda->pool, 0), "cuMemPoolTrimTo");
    const size_t more = create(handles + count, PARTS, part);
    printf(
        "{\"asked\":\"what the pool keeps, of cuMemCreate\",\"bytes_kept\":%llu,\"said\":\"%s\"}\n",
        (unsigned long long)before,
        before == 0      ? "the pool keeps nothing"
        : after < before ? "had"
        : more > 0       ? "refused until the pool is trimmed"
                         : "refused");
    for (count += more; count > 0; count--)
        must(tide_cu.cuMemRelease(handles[count - 1]), "cuMemRelease");
}

/* ---- beside a capture ----------------------------------------------------------------------------- */

typedef struct answers {
    tide_cu_result map, unmap, end, launch; /* -1: not asked */
} answers;

static tide_cu_result map(tide_cu_address at)
{
    const tide_cu_access access = {.location = {TIDE_CU_LOCATION_DEVICE, asks.cuda->ordinal},
                                   .flags = TIDE_CU_ACCESS_READ_WRITE};
    unsigned long long handle = 0;
    tide_cu_result result = tide_cu.cuMemCreate(&handle, asks.unit, &asks.properties, 0);
    if (result != TIDE_CU_SUCCESS)
        return result;
    result = tide_cu.cuMemMap(at, asks.unit, 0, handle, 0);
    must(tide_cu.cuMemRelease(handle), "cuMemRelease");
    return result == TIDE_CU_SUCCESS ? tide_cu.cuMemSetAccess(at, asks.unit, &access, 1) : result;
}

/* The first unit is mapped before, and unmapped in the capture; the second the other way round. */
static answers capture(tide_cu_stream stream, int mode, tide_cu_address at)
{
    answers said = {.launch = -1};
    beside_graph graph = NULL;
    beside_exec exec = NULL;
    must(map(at), "cuMemMap");
    must(asks.driver.cuStreamBeginCapture(stream, mode), "cuStreamBeginCapture");
    said.map = map(at + asks.unit);
    if (said.map == TIDE_CU_SUCCESS)
        must(tide_cu.cuMemsetD8Async(at + asks.unit, 1, asks.unit, stream), "cuMemsetD8Async");
    said.unmap = tide_cu.cuMemUnmap(at, asks.unit);
    said.end = asks.driver.cuStreamEndCapture(stream, &graph);
    if (said.end == TIDE_CU_SUCCESS && said.map == TIDE_CU_SUCCESS) {
        must(asks.driver.cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiate");
        said.launch = asks.driver.cuGraphLaunch(exec, stream);
        must(tide_cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
        must(asks.driver.cuGraphExecDestroy(exec), "cuGraphExecDestroy");
        must(asks.driver.cuGraphDestroy(graph), "cuGraphDestroy");
    }
    if (said.unmap != TIDE_CU_SUCCESS)
        must(tide_cu.cuMemUnmap(at, asks.unit), "cuMemUnmap");
    if (said.map == TIDE_CU_SUCCESS)
        must(tide_cu.cuMemUnmap(at + asks.unit, asks.unit), "cuMemUnmap");
    return said;
}

static void ask_beside_captures(void)
{
    static const char *const modes[] = {"global", "thread_local", "relaxed"};
    tide_cu_stream stream = NULL;
    tide_cu_address at = 0;
    must(tide_cu.cuStreamCreate(&stream, TIDE_CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(tide_cu.cuMemAddressReserve(&at, 2 * asks.unit, asks.unit, 0, 0), "cuMemAddressReserve");
    for (int mode = 0; mode < 3; mode++) {
        const answers said = capture(stream, mode, at);
        printf("{\"asked\":\"pages in a capture\",\"mode\":\"%s\",\"map\":%d,\"unmap\":%d,"
               "\"end\":%d,\"launch\":%d}\n",
               modes[mode], said.map, said.unmap, said.end, said.launch);
    }
    must(tide_cu.cuMemAddressFree(at, 2 * asks.unit), "cuMemAddressFree");
    must(tide_cu.cuStreamDestroy(stream), "cuStreamDestroy");
}

int main(void)
{
    int direct = 0;
    if (tide_tune_set("cuda_memory", 1) != TIDE_OK || !beside_load(&asks.driver) ||
        (asks.device = tide_device_open("cuda:0")) == NULL)
        return 77;
    asks.cuda = tide_cuda_of(asks.device);
    if (asks.cuda->pages == NULL || asks.cuda->pool == NULL ||
        tide_device_info(asks.device, &asks.info) != TIDE_OK)
        return 77;
    must(tide_cu.cuCtxPushCurrent(tide_device_context(asks.device)), "cuCtxPushCurrent");
    must(tide_cu.cuDeviceGetAttribute(&direct, TIDE_CU_DEVICE_DIRECT, asks.cuda->ordinal),
         "cuDeviceGetAttribute");
    asks.properties =
        (tide_cu_page_properties){.allocation = TIDE_CU_ALLOCATION_PINNED,
                                  .location = {TIDE_CU_LOCATION_DEVICE, asks.cuda->ordinal},
                                  .direct = direct != 0};
    must(tide_cu.cuMemGetAllocationGranularity(&asks.unit, &asks.properties, 0),
         "cuMemGetAllocationGranularity");
    ask_of_the_pool();
    ask_beside_captures();
    return EXIT_SUCCESS;
}
