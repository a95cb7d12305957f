/* SPDX-License-Identifier: MIT */
/* What PyTorch tells of its captures, and the memory of captured graphs. A pool of graphs is an
 * instance of buffers of its own, so what is freed in a capture serves later tensors of that capture,
 * and of others of the same pool, and nobody else. It goes when PyTorch has released the pool and
 * nothing of it is live; then the host waits for the device, for a launch may be in flight on any
 * stream. */
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
    uint32_t sweeps;                      /* threads that end pools now         */
} tide_adaptor;

tide_status tide_graph_pool_begin(tide_adaptor *of, tide_torch_pool id,
                                  const tide_torch_capture *capture, const char *call);
void tide_graph_pool_end(tide_adaptor *of, tide_torch_pool id);
void tide_graph_pool_release(tide_adaptor *of, tide_torch_pool id);

/* Whose memory a tensor on the stream gets now, held, or NULL: no graph's. */
tide_graph_pool *tide_graph_pool_ask(tide_adaptor *of, void *stream);

static inline tide_graph_pool *tide_graph_pool_for(tide_adaptor *of, void *stream)
{
    return TIDE_LIKELY(__atomic_load_n(&of->begun, __ATOMIC_ACQUIRE) == NULL)
               ? NULL
               : tide_graph_pool_ask(of, stream);
}

/* Whose memory this is, held; NULL: no graph's. */
tide_graph_pool *tide_graph_pool_of(tide_adaptor *of, const void *data);
void tide_graph_pool_let_go(tide_adaptor *of, tide_graph_pool *pool);

/* Ends the pools that were released and have nothing live. What cannot be waited for stays, for the next
 * sweep. True: this sweep ended some; one beside another finds none, and does not wait for it. */
bool tide_graph_sweep(tide_adaptor *of);

/* The memory is used on that stream, too, until it is freed. */
tide_status tide_graph_record(tide_adaptor *of, void *data, void *stream, const char *call);

/* It is freed on the stream, which from now on comes after those that were recorded for it. False, with
 * a message: it cannot, so the memory stays held. */
bool tide_graph_order_recorded(tide_adaptor *of, const void *data, void *stream);

static inline bool tide_graph_follow_recorded(tide_adaptor *of, const void *data, void *stream)
{
    return TIDE_LIKELY(__atomic_load_n(&of->recorded, __ATOMIC_ACQUIRE) == NULL) ||
           tide_graph_order_recorded(of, data, stream);
}

tide_status tide_graph_stats(tide_adaptor *of, tide_torch_statistics *out);
tide_status tide_graph_blocks(tide_adaptor *of, tide_torch_block *out, size_t room, size_t *count);

#endif
