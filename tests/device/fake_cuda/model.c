/* SPDX-License-Identifier: MIT */
/* Work and its order. Each piece of work has the set of all that is before it, closed: with a
 * piece it holds all that is before that. So a piece may run when its set is done, and two pieces
 * are ordered if one is in the other's set. Events and waits are no work, only sets that are
 * handed on. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct use {
    unsigned op;
    fake_range range;
    const char *what;
    uint64_t stream;
} use;

static struct {
    work works[OPS];
    set before[OPS];
    const context *on[OPS];
    unsigned count, done_count;
    set done;
    use *uses;
    size_t use_count, use_room;
} model;

world fake;

void model_reset(void)
{
    for (unsigned op = 0; op < model.count; op++)
        code_drop(&model.works[op]);
    model.count = model.done_count = 0;
    model.done = (set){{0}};
    model.use_count = 0;
}

/* ---- hazards ------------------------------------------------------------------------------ */

static bool overlap(const fake_range *a, const fake_range *b)
{
    const char *left = a->data, *right = b->data;
    return (a->writes || b->writes) && left < right + b->bytes && right < left + a->bytes;
}

/* If both use the same bytes, the first time. */
static void report(const char *what, const char *who, const use *old, const fake_range *range)
{
    if (overlap(&old->range, range) && fake.hazard[0] == '\0')
        snprintf(fake.hazard, sizeof fake.hazard,
                 "%s on %s is not ordered with %s on stream %llu, both use %p (%zu and %zu bytes)",
                 what, who, old->what, (unsigned long long)old->stream, range->data, range->bytes,
                 old->range.bytes);
}

void model_check(const work *one, const set *before, const char *who)
{
    for (unsigned i = 0; i < one->range_count; i++) {
        const fake_range *range = &one->ranges[i];
        if (!memory_live(range->data, range->bytes))
            fake_complain("%s on %s uses %p (%zu bytes), which is not allocated", one->what, who,
                          range->data, range->bytes);
        for (size_t j = 0; j < model.use_count; j++)
            if (!set_has(before, model.uses[j].op))
                report(one->what, who, &model.uses[j], range);
    }
}

static void remember(const work *one, unsigned op, uint64_t number)
{
    if (model.use_count + FAKE_RANGES > model.use_room) {
        model.use_room = model.use_room * 2 + 1024;
        model.uses = realloc(model.uses, model.use_room * sizeof *model.uses);
        if (model.uses == NULL)
            abort();
    }
    for (unsigned i = 0; i < one->range_count; i++)
        model.uses[model.use_count++] = (use){op, one->ranges[i], one->what, number};
}

/* What a kernel used is known only after it has run: some of what is not ordered with it may have
 * been queued after it. */
void model_used(const work *one, const fake_range *range)
{
    unsigned op = (unsigned)(one - model.works);
    for (size_t i = 0; i < model.use_count; i++) {
        const use *old = &model.uses[i];
        bool ordered = old->op == op || set_has(&model.before[op], old->op) ||
                       set_has(&model.before[old->op], op);
        if (!ordered)
            report(one->what, "the device", old, range);
    }
    const work used = {.ranges = {*range}, .range_count = 1, .what = one->what};
    remember(&used, op, 0);
}

/* ---- queueing ----------------------------------------------------------------------------- */

/* The legacy default stream waits for the blocking ones of its context, and they for it. */
set model_tail(const lane *of)
{
    set tail = of->tail;
    set_join(&tail, &fake.known);
    if (of->blocking)
        set_join(&tail, &of->context->legacy->tail);
    if (of == of->context->legacy)
        for (int i = 0; i < STREAMS; i++)
            if (fake.streams[i].live && fake.streams[i].blocking &&
                fake.streams[i].context == of->context)
                set_join(&tail, &fake.streams[i].tail);
    return tail;
}

set model_everything(const context *of)
{
    set all = of->gone;
    for (int i = 0; i < STREAMS; i++)
        if (fake.streams[i].live && fake.streams[i].context == of)
            set_join(&all, &fake.streams[i].tail);
    set_join(&all, &fake.known);
    return all;
}

static unsigned add(const work *one, const set *before, const lane *on)
{
    char who[32];
    snprintf(who, sizeof who, "stream %llu", (unsigned long long)on->number);
    if (model.count == OPS) {
        fprintf(stderr, "fake_cuda: more than %d pieces of work without a synchronisation\n", OPS);
        abort();
    }
    model_check(one, before, who);
    unsigned op = model.count++;
    model.works[op] = *one;
    model.before[op] = *before;
    model.on[op] = on->context;
    code_keep(&model.works[op]);
    remember(one, op, on->number);
    return op;
}

static void record(lane *on, const work *one)
{
    capture *into = on->capture;
    if (into->count == NODES)
        abort();
    into->nodes[into->count] = *one;
    code_keep(&into->nodes[into->count]);
    into->before[into->count] = on->captured;
    set_put(&on->captured, into->count++);
}

void model_queue(lane *on, const work *one)
{
    if (on->capture != NULL) {
        record(on, one);
        return;
    }
    set before = model_tail(on);
    set_put(&before, add(one, &before, on));
    on->tail = before;
}

/* Nodes that are not ordered within the graph are not ordered in its replay either. */
void model_replay(const capture *graph, lane *on)
{
    static set node_sets[NODES];
    const set start = model_tail(on);
    for (unsigned i = 0; i < graph->count; i++) {
        set before = start;
        for (unsigned j = 0; j < i; j++)
            if (set_has(&graph->before[i], j))
                set_join(&before, &node_sets[j]);
        set_put(&before, add(&graph->nodes[i], &before, on));
        node_sets[i] = before;
        set_join(&on->tail, &before);
    }
    set_join(&on->tail, &start);
}

/* ---- running ------------------------------------------------------------------------------ */

static bool is_ready(unsigned op)
{
    return !set_has(&model.done, op) && set_within(&model.before[op], &model.done);
}

/* On a device that is lost nothing runs any more. */
static void run(unsigned op)
{
    const work *one = &model.works[op];
    if (one->run != NULL && !model.on[op]->lost)
        one->run(one);
    set_put(&model.done, op);
    model.done_count++;
}

/* A random piece of `these` (NULL: of all) that may run. */
static bool run_one(const set *these)
{
    unsigned found = 0, chosen = 0;
    for (unsigned op = 0; op < model.count; op++)
        if ((these == NULL || set_has(these, op)) && is_ready(op) && fake_random() % ++found == 0)
            chosen = op;
    if (found != 0)
        run(chosen);
    return found != 0;
}

bool model_done(const set *these)
{
    return set_within(these, &model.done);
}

void model_finish(const set *these)
{
    while (!model_done(these) && run_one(these)) {
    }
    set_join(&fake.known, these);
    model_settle();
}

/* One call in eight something runs. */
void model_advance(void)
{
    if (fake_random() % 8 == 0)
        (void)run_one(NULL);
}

/* When the host has seen all of it done, whatever comes is after it: nothing need be remembered. */
void model_settle(void)
{
    if (model.done_count != model.count)
        return;
    for (unsigned op = 0; op < model.count; op++)
        if (!set_has(&fake.known, op))
            return;
    model_reset();
    memory_settle();
    fake.known = (set){{0}};
    for (int i = 0; i < STREAMS; i++)
        fake.streams[i].tail = (set){{0}};
    for (int i = 0; i < DEVICES; i++)
        fake.contexts[i].gone = (set){{0}};
    for (int i = 0; i < EVENTS; i++)
        fake.events[i].before = (set){{0}};
}

unsigned model_pending(void)
{
    return model.count - model.done_count;
}
