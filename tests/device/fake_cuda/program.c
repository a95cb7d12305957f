/* SPDX-License-Identifier: MIT */
/* What a test does as a program that uses the driver beside the library: streams, kernels, graphs.
 */
#include <stdlib.h>

#include "model.h"

void fake_use_device(int device)
{
    while (control_pop() != NULL) {
    }
    if (device >= 0)
        control_push(&fake.contexts[device]);
}

int fake_current_device(void)
{
    return control_current() != NULL ? (int)control_current()->device : -1;
}

static void *create_stream(unsigned device, bool blocking)
{
    fake_lock();
    lane *made = control_new_stream(&fake.contexts[device], blocking);
    fake_unlock();
    return made;
}

void *fake_stream_create(unsigned device)
{
    return create_stream(device, false);
}

void *fake_stream_create_blocking(unsigned device)
{
    return create_stream(device, true);
}

/* Between the two it is as in the context that the stream belongs to. */
static lane *enter(void *stream)
{
    lane *on = stream;
    fake_lock();
    if (!on->live)
        control_fault("the stream", on);
    model_advance();
    control_push(on->context);
    return on;
}

static void leave(void)
{
    (void)control_pop();
    fake_unlock();
}

void fake_stream_destroy(void *stream)
{
    entry_stream_ends(enter(stream));
    leave();
}

void fake_launch(void *stream, fake_kernel *run, const void *arguments, size_t bytes,
                 const fake_range *ranges, unsigned count)
{
    (void)entry_launch(enter(stream), run, arguments, bytes, ranges, count);
    leave();
}

void fake_host_uses(void *data, size_t bytes, bool writes)
{
    fake_lock();
    const work one = {.ranges = {{data, bytes, writes}}, .range_count = 1, .what = "a use"};
    model_check(&one, &fake.known, "the host");
    fake_unlock();
}

void fake_handed_out(void *stream, void *data, size_t bytes)
{
    fake_lock();
    const work one = {
        .ranges = {{data, bytes, true}}, .range_count = 1, .what = "what is handed out"};
    const set tail = model_tail(stream);
    model_check(&one, &tail, "a stream");
    fake_unlock();
}

void fake_order(void *before, void *after)
{
    event between = {.live = true};
    lane *on = enter(after);
    capture_record(&between, before);
    (void)capture_wait(on, &between);
    leave();
}

void fake_synchronise(void *stream)
{
    const set tail = model_tail(enter(stream));
    model_finish(&tail);
    leave();
}

void fake_synchronise_all(void)
{
    fake_lock();
    for (context *of = fake.contexts; of < fake.contexts + fake.devices; of++) {
        const set all = model_everything(of);
        model_finish(&all);
    }
    fake_unlock();
}

/* ---- graphs ------------------------------------------------------------------------------- */

void fake_capture_begin(void *stream)
{
    (void)fake_capture_begin_mode(stream, FAKE_GLOBAL);
}

int fake_capture_begin_mode(void *stream, int mode)
{
    capture_begin(enter(stream), mode);
    leave();
    return 0;
}

static void drop_graph(capture *of)
{
    for (unsigned i = 0; i < of->count; i++)
        code_drop(&of->nodes[i]);
    free(of);
}

int fake_capture_end(void *stream, void **graph)
{
    fake_lock();
    lane *on = stream;
    capture *of = on->capture;
    int result = capture_finish(on, of);
    *graph = result == 0 ? of : NULL;
    if (result != 0)
        drop_graph(of);
    fake_unlock();
    return result;
}

int fake_graph_launch(void *graph, void *stream)
{
    model_replay(graph, enter(stream));
    leave();
    return 0;
}

int fake_graph_destroy(void *graph)
{
    fake_lock();
    drop_graph(graph);
    fake_unlock();
    return 0;
}
