/* SPDX-License-Identifier: MIT */
/* The entry points that programs use beside the library, for tests that run on any driver. */
#include "model.h"

#include "../cuda/beside.h"

/* A graph is what is launched. */
static tide_cu_result beside_cuGraphInstantiateWithFlags(beside_exec *out, beside_graph graph,
                                                         unsigned long long flags)
{
    *out = (beside_exec)(void *)graph;
    return flags == 0 ? TIDE_CU_SUCCESS : TIDE_CU_INVALID_VALUE;
}

static tide_cu_result beside_cuGraphExecDestroy(beside_exec graph)
{
    return graph != NULL ? TIDE_CU_SUCCESS : TIDE_CU_INVALID_VALUE;
}

#define beside_cuStreamBeginCapture fake_capture_begin_mode
#define beside_cuStreamEndCapture   fake_capture_end
#define beside_cuGraphLaunch        fake_graph_launch
#define beside_cuGraphDestroy       fake_graph_destroy

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
