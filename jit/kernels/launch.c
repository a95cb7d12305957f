/* SPDX-License-Identifier: MIT */
#include "jit/kernels/launch.h"

#include "jit/kernels/table.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/device/device.h"

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

static tide_status launch_table(tide_kernels_language language, void *kernel,
                                const tide_frame_work *work, const tide_table *table)
{
    const void *used[TIDE_SEGMENTS_OPENCL];
    tide_argument arguments[2 + TIDE_SEGMENTS_OPENCL];
    size_t count = 0;
    tide_assert(table->segments.count != 0 && kernel != NULL);
    tide_assert((work->kind == TIDE_FRAME_FILL_PARTS) == (work->block == NULL));
    arguments[count++] =
        (tide_argument){&table->segments, tide_segments_bytes(tide_table_size(language))};
    if (work->block != NULL)
        arguments[count++] = (tide_argument){&work->block, 0};
    if (language == TIDE_KERNELS_OPENCL)
        count = launch_add_buffers(table, used, arguments, count);
    tide_assert(count <= sizeof arguments / sizeof *arguments);
    return work->device->methods->launch(
        work->device, work->stream, kernel, table->groups,
        language == TIDE_KERNELS_CUDA ? TIDE_GROUP_CUDA : TIDE_GROUP_OPENCL, arguments, count);
}

tide_status tide_launch(tide_kernels_language language, void *kernel, const tide_frame_work *work)
{
    tide_table table;
    tide_table_place place = {0};
    while (tide_table_next(work, language, &place, &table))
        if (table.groups != 0)
            TIDE_FORWARD(launch_table(language, kernel, work, &table));
    return TIDE_OK;
}
