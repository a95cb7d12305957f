/* SPDX-License-Identifier: MIT */
/* The entry points that programs use beside the library, for tests that run on any driver. */
#include "model.h"

#include "../cuda/beside.h"

static tide_cu_result beside_cuStreamBeginCapture(tide_cu_stream stream, int mode)
{
    if (mode < BESIDE_CAPTURE_GLOBAL || mode > TIDE_CU_CAPTURE_RELAXED)
        return TIDE_CU_INVALID_VALUE;
    fake_capture_begin_mode(stream, mode);
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
static tide_cu_result beside_cuGraphInstantiateWithFlags(beside_exec *out, beside_graph graph,
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

static tide_cu_result beside_cuCtxSetCurrent(tide_cu_context wanted)
{
    (void)control_pop();
    control_push((context *)(void *)wanted);
    return TIDE_CU_SUCCESS;
}

static tide_cu_result beside_cuCtxGetDevice(tide_cu_device *out)
{
    const context *current = control_current();
    *out = current != NULL ? (tide_cu_device)current->device : 0;
    return current != NULL ? TIDE_CU_SUCCESS : (tide_cu_result)INVALID_CONTEXT;
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
