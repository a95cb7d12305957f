/* SPDX-License-Identifier: MIT */
/* What PyTorch tells of its captures, and the memory of captured graphs. A pool of graphs is an
 * instance of buffers of its own, so what is freed in a capture serves later tensors of that capture,
 * and of others of the same pool, and nobody else. A pool that PyTorch has released, and of which
 * nothing is live, stays in the list. It goes where memory is short, or in a trim, for the host has to
 * wait for the device then: a launch may be in flight on any stream. */
#ifndef TIDEPOOL_RUNTIME_ADAPTOR_GRAPHS_H
#define TIDEPOOL_RUNTIME_ADAPTOR_GRAPHS_H

#include <tidepool/adaptors.h>
#include <tidepool/buffers.h>

enum { TIDE_ADAPTORS = 64, TIDE_STREAM_LEGACY = 1 };

typedef struct tide_graph_pool {
    struct tide_graph_pool *next;
    tide_torch_pool id;
    tide_buffers *buffers;
    uint32_t uses; /* begun, and not released                       */
    uint32_t held; /* by captures under way, and by calls of memory */
} tide_graph_pool;

/* One device: opened once, and there until the process ends. */
typedef struct tide_adaptor {
    tide_device *device;                  /* atomic, set before the buffers                   */
    tide_buffers *buffers;                /* atomic, NULL: not open yet                       */
    tide_graph_pool *pools;               /* a list                             */
    struct tide_graph_begun *begun;       /* atomic: captures under way, a list */
    struct tide_graph_recorded *recorded; /* atomic: a list                    */
} tide_adaptor;

extern tide_adaptor tide_adaptors[TIDE_ADAPTORS];

/* NULL: it is not open. */
static inline tide_buffers *tide_adaptor_buffers(const tide_adaptor *of)
{
    return __atomic_load_n(&of->buffers, __ATOMIC_ACQUIRE);
}

/* By the device's number; NULL with a message: there is no such. `ready`: it is open now. */
tide_adaptor *tide_adaptor_of(int device, const char *call);
tide_adaptor *tide_adaptor_ready(int device, const char *call);

/* NULL: nobody has taken memory of the device here. */
tide_adaptor *tide_adaptor_on(const tide_device *device);

/* Whose memory a tensor on the stream gets now, held, or NULL: no graph's. */
tide_graph_pool *tide_graph_pool_for(tide_adaptor *of, void *stream);

/* Whose memory this is, held; NULL: no graph's. */
tide_graph_pool *tide_graph_pool_of(tide_adaptor *of, const void *data);
void tide_graph_pool_let_go(tide_graph_pool *pool);

/* It is freed on the stream, which from now on comes after those that were recorded for it. False, with
 * a message: it cannot, so the memory stays held. */
bool tide_graph_order_recorded(tide_adaptor *of, const void *data, void *stream);

#endif
