/* SPDX-License-Identifier: MIT */
/* The entry points that programs use beside the library, for tests that run on any driver. */
#include "model.h"

#include "../cuda/beside.h"

static tide_cu_result beside_cuStreamCreate(tide_cu_stream *out, unsigned flags)
{
    const context *current = control_current();
    if (current == NULL || flags != BESIDE_NON_BLOCKING)
        return current == NULL ? (tide_cu_result)INVALID_CONTEXT : TIDE_CU_INVALID_VALUE;
    *out = fake_stream_create(current->device);
    return TIDE_CU_SUCCESS;
}

static tide_cu_result beside_cuStreamDestroy(tide_cu_stream stream)
{
    fake_stream_destroy(stream);
    return TIDE_CU_SUCCESS;
}

static tide_cu_result beside_cuStreamBeginCapture(tide_cu_stream stream, int mode)
{
    if (mode != BESIDE_CAPTURE_GLOBAL)
        return TIDE_CU_INVALID_VALUE;
    fake_capture_begin(stream);
    return TIDE_CU_SUCCESS;
}

static tide_cu_result beside_cuStreamEndCapture(tide_cu_stream stream, beside_graph *out)
{
    void *graph = NULL;
    int result = fake_capture_end(stream, &graph);
    *out = graph;
    return result;
}

/* A graph is what is launched. */
static tide_cu_result beside_cuGraphInstantiate(beside_exec *out, beside_graph graph,
                                                unsigned long long flags)
{
    *out = (beside_exec)(void *)graph;
    return flags == 0 ? TIDE_CU_SUCCESS : TIDE_CU_INVALID_VALUE;
}

static tide_cu_result beside_cuGraphLaunch(beside_exec graph, tide_cu_stream stream)
{
    fake_graph_launch(graph, stream);
    return TIDE_CU_SUCCESS;
}

static tide_cu_result beside_cuGraphExecDestroy(beside_exec graph)
{
    return graph != NULL ? TIDE_CU_SUCCESS : TIDE_CU_INVALID_VALUE;
}

static tide_cu_result beside_cuGraphDestroy(beside_graph graph)
{
    fake_graph_destroy(graph);
    return TIDE_CU_SUCCESS;
}

void *beside_find(const char *name, int version)
{
    static const struct {
        const char *name;
        int version;
        void *function;
    } table[] = {
#define X(name, version, arguments) {#name, version, (void *)beside_##name},
        BESIDE_ENTRIES(X)
#undef X
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0 && table[i].version == version)
            return table[i].function;
    return NULL;
}
