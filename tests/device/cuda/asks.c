/* SPDX-License-Identifier: MIT */
/* gpu_asks: what memory by the page and the fake driver take for granted and no document says, asked of the
 * machine's driver, or of the fake one: a line of JSON. Does cuMemCreate get what the driver's memory pool keeps?
 * 77: no device, or it maps nothing. */
#include <stdio.h>
#include <stdlib.h>

#include <tidepool/device.h>
#include <tidepool/tune.h>

#include "runtime/device/cuda/cuda.h"

enum { PARTS = 64 };

static struct {
    tide_device *device;
    const tide_cuda *cuda;
    tide_device_information info;
    tide_cu_page_properties properties;
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

int main(void)
{
    int direct = 0;
    if (tide_tune_set("cuda_memory", 1) != TIDE_OK ||
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
    return EXIT_SUCCESS;
}
