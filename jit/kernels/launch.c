/* SPDX-License-Identifier: MIT */
#include "jit/kernels/launch.h"

#include <stddef.h>
#include <stdint.h>

#include "jit/kernels/table.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/device/device.h"

static size_t launch_table_size(tide_kernels_language language)
{
    return language == TIDE_KERNELS_CUDA ? TIDE_SEGMENTS_MANY : TIDE_SEGMENTS_OPENCL;
}

/* OpenCL: a place of the table that is not used gets the buffer of one that is. */
static size_t launch_add_buffers(const tide_table *table, const void *used[TIDE_SEGMENTS_OPENCL],
                                 tide_argument *arguments, size_t count)
{
    const void *any_buffer = NULL;
    tide_assert(table->segments.count <= TIDE_SEGMENTS_OPENCL);
    for (size_t i = 0; i < table->segments.count; i++)
        any_buffer = table->buffers[i] != NULL ? table->buffers[i] : any_buffer;
    for (size_t i = 0; i < TIDE_SEGMENTS_OPENCL; i++) {
        bool there = i < table->segments.count && table->buffers[i] != NULL;
        used[i] = there ? table->buffers[i] : any_buffer;
        arguments[count++] = (tide_argument){&used[i], 0};
    }
    return count;
}

static tide_status launch_table(tide_kernels_language language, void *function,
                                const tide_frame_work *work, tide_kernel kernel,
                                const tide_table *table)
{
    const void *used[TIDE_SEGMENTS_OPENCL];
    tide_argument arguments[2 + TIDE_SEGMENTS_OPENCL];
    size_t count = 0;
    tide_assert(table->segments.count != 0 && function != NULL);
    tide_assert(kernel == TIDE_KERNEL_FILL || work->block != NULL);
    arguments[count++] =
        (tide_argument){&table->segments, tide_segments_bytes(launch_table_size(language))};
    if (kernel != TIDE_KERNEL_FILL)
        arguments[count++] = (tide_argument){&work->block, 0};
    if (language == TIDE_KERNELS_OPENCL && kernel != TIDE_KERNEL_FINISH)
        count = launch_add_buffers(table, used, arguments, count);
    tide_assert(count <= sizeof arguments / sizeof *arguments);
    return work->device->methods->launch(
        work->device, work->stream, function, kernel == TIDE_KERNEL_FINISH ? 1 : table->groups,
        language == TIDE_KERNELS_CUDA ? TIDE_GROUP_CUDA : TIDE_GROUP_OPENCL, arguments, count);
}

/* Launches the kernel on as many tables as the frame takes. */
static tide_status launch_kernel(tide_kernels_language language, void *const *kernels,
                                 const tide_frame_work *work, tide_kernel kernel)
{
    tide_table table;
    tide_table_place place = {0};
    while (tide_table_next(work, kernel, language, launch_table_size(language), &place, &table))
        if (table.groups != 0 || kernel == TIDE_KERNEL_FINISH)
            TIDE_FORWARD(launch_table(language, kernels[kernel], work, kernel, &table));
    return TIDE_OK;
}

/* Hashes and checks add to the block: it starts with zeros. */
static tide_status launch_clear_block(const tide_frame_work *work)
{
    static const uint64_t zero;
    return work->device->methods->fill(work->device, work->stream, work->block, &zero, sizeof zero,
                                       work->count);
}

static tide_kernel launch_kernel_of(const tide_frame_work *work)
{
    static const tide_kernel kernels[] = {
        [TIDE_FRAME_FILL_PARTS] = TIDE_KERNEL_FILL, [TIDE_FRAME_PACK] = TIDE_KERNEL_PACK,
        [TIDE_FRAME_UNPACK] = TIDE_KERNEL_UNPACK,   [TIDE_FRAME_HASH] = TIDE_KERNEL_HASH,
        [TIDE_FRAME_CHECK] = TIDE_KERNEL_CHECK,
    };
    tide_assert((size_t)work->kind < sizeof kernels / sizeof *kernels && work->count != 0);
    return kernels[work->kind];
}

bool tide_launch_possible(const tide_frame_work *work)
{
    return tide_table_possible(work, launch_kernel_of(work));
}

tide_status tide_launch(tide_kernels_language language, void *const *kernels,
                        const tide_frame_work *work)
{
    tide_kernel kernel = launch_kernel_of(work);
    if (kernel == TIDE_KERNEL_HASH || kernel == TIDE_KERNEL_CHECK)
        TIDE_FORWARD(launch_clear_block(work));
    TIDE_FORWARD(launch_kernel(language, kernels, work, kernel));
    return kernel == TIDE_KERNEL_HASH ? launch_kernel(language, kernels, work, TIDE_KERNEL_FINISH)
                                      : TIDE_OK;
}
