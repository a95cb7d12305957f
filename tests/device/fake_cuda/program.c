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

/* Its work goes on. */
void fake_stream_destroy(void *handle)
{
    fake_lock();
    lane *gone = handle;
    if (!gone->live)
        control_fault("the stream", handle);
    gone->live = false;
    set_join(&gone->context->gone, &gone->tail);
    fake_unlock();
}

/* As in the context that the stream belongs to. */
static void with_context(lane *on, void (*call)(lane *on, void *user), void *user)
{
    fake_lock();
    if (!on->live)
        control_fault("the stream", on);
    model_advance();
    control_push(on->context);
    call(on, user);
    (void)control_pop();
    fake_unlock();
}

typedef struct launch {
    fake_kernel *run;
    const void *arguments;
    size_t bytes;
    const fake_range *ranges;
    unsigned count;
} launch;

static void launch_on(lane *on, void *user)
{
    const launch *of = user;
    (void)entry_launch(on, of->run, of->arguments, of->bytes, of->ranges, of->count);
}

void fake_launch(void *stream, fake_kernel *run, const void *arguments, size_t bytes,
                 const fake_range *ranges, unsigned count)
{
    launch of = {run, arguments, bytes, ranges, count};
    with_context(stream, launch_on, &of);
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

static void order_on(lane *on, void *before)
{
    event between = {.live = true};
    capture_record(&between, before);
    (void)capture_wait(on, &between);
}

void fake_order(void *before, void *after)
{
    with_context(after, order_on, before);
}

/* All of a context where `on` is its legacy stream: more than that stream alone would wait for. */
static void synchronise_on(lane *on, void *user)
{
    (void)user;
    set tail = on == on->context->legacy ? model_everything(on->context) : model_tail(on);
    model_finish(&tail);
}

void fake_synchronise(void *stream)
{
    with_context(stream, synchronise_on, NULL);
}

/* NULL: there is no such device. */
static lane *legacy_of(unsigned device)
{
    fake_lock();
    const context *of = &fake.contexts[device];
    lane *legacy = device < fake.devices ? of->legacy : NULL;
    fake_unlock();
    return legacy;
}

void fake_synchronise_all(void)
{
    for (unsigned i = 0; i < DEVICES; i++) {
        lane *legacy = legacy_of(i);
        if (legacy != NULL)
            fake_synchronise(legacy);
    }
}

/* ---- graphs ------------------------------------------------------------------------------- */

static void begin_on(lane *on, void *mode)
{
    capture_begin(on, *(const int *)mode);
}

void fake_capture_begin(void *stream)
{
    (void)fake_capture_begin_mode(stream, FAKE_GLOBAL);
}

int fake_capture_begin_mode(void *stream, int mode)
{
    with_context(stream, begin_on, &mode);
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

static void replay_on(lane *on, void *graph)
{
    model_replay(graph, on);
}

int fake_graph_launch(void *graph, void *stream)
{
    with_context(stream, replay_on, graph);
    return 0;
}

int fake_graph_destroy(void *graph)
{
    fake_lock();
    drop_graph(graph);
    fake_unlock();
    return 0;
}
