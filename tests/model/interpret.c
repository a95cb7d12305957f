/* SPDX-License-Identifier: MIT */
#include "interpret.h"
#include "group.h"
#include "tests/hooks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/buffers.h>
#include <tidepool/limit.h>
#include <tidepool/profile.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

#ifdef TIDE_HAVE_VALGRIND
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

/* ---- what can be seen ------------------------------------------------------------------- */

static const char *const observed_names[] = {
    "operation",   "status",   "depth",     "live",    "slots",        "bytes held", "bytes live",
    "allocations", "releases", "exchanges", "content", "bytes pinned", "requests"};

static void compare(struct machine *machine, const struct observation *seen,
                    const struct observation *expected)
{
    const uint64_t *a = &seen->operation, *b = &expected->operation;
    for (size_t i = 0; i < sizeof *seen / sizeof *a; i++)
        if (a[i] != b[i])
            oracle_wrong(&machine->oracle, "%s is %llu, in another form it was %llu",
                         observed_names[i], (unsigned long long)a[i], (unsigned long long)b[i]);
}

/* The end of a step: everything is checked, and compared with the other form. */
static void observe(struct machine *machine)
{
    struct oracle *oracle = &machine->oracle;
    if (machine_failed(machine))
        return;
    oracle_check(oracle);
    struct trace *trace = machine->trace;
    if (trace->count == TRACE_MAX || machine_failed(machine))
        return;
    const tide_pool_statistics *now = &oracle->now;
    struct observation seen = {machine->next,
                               machine->status,
                               now->depth,
                               now->slots_live,
                               now->slots,
                               now->bytes_held,
                               now->bytes_live,
                               now->allocations,
                               now->releases - oracle->came_unsure,
                               now->exchanges,
                               oracle_digest(oracle),
                               now->bytes_exported,
                               now->requests};
    if (machine->reference != NULL && trace->count < machine->reference->count)
        compare(machine, &seen, &machine->reference->seen[trace->count]);
    trace->seen[trace->count++] = seen;
    machine->status = TIDE_OK;
}

/* ---- scopes ----------------------------------------------------------------------------- */

static enum outcome interpret_in(struct machine *machine, struct frame *frame);

/* Does memory go or come at entry, or are lots drawn for guards, so that the oracle has to follow
 * array by array? */
static bool is_restless(const struct oracle *oracle)
{
    bool near_limit = oracle->pin_count > 0 || oracle->guard_every != 0;
    return oracle->requests != 0 || oracle->guard_every > 1 || oracle->piecemeal ||
           oracle->process || (oracle->limit_bytes != 0 && near_limit);
}

/* A scope acquires at entry only what certainly fits the pool's limit: a frame that gets only
 * some of its arrays cannot be compared with other forms. */
static bool can_furnish(const struct machine *machine, const struct frame *frame)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < frame->menu->count; i++) {
        unsigned type = frame->menu->index[i];
        size_t n = operand_scope_count(frame->op.b, frame->op.c, i, model_types[type].bits);
        bytes += 2 * model_bytes(type, n) + 256;
    }
    size_t limit = machine->oracle.limit_bytes;
    return !is_restless(&machine->oracle) && frame->op.b > 0 &&
           machine->oracle.live_count + frame->menu->count <= ORACLE_LIVE &&
           (limit == 0 || machine->oracle.now.bytes_held + bytes <= limit);
}

/* Tells the oracle of the arrays of a frame, or acquires the same ones in another form. */
static void furnish(struct machine *machine, const struct frame *frame, void *const *data)
{
    const struct menu *menu = frame->menu;
    for (unsigned i = 0; i < menu->count && !machine_failed(machine); i++) {
        unsigned type = menu->index[i];
        size_t n = operand_scope_count(frame->op.b, frame->op.c, i, model_types[type].bits);
        tide_type id = model_types[type].id;
        void *array = data != NULL ? data[i] : tide_acquire_inline(machine->pool, id, n, TIDE_HERE);
        if (array == NULL)
            oracle_wrong(&machine->oracle, "an array at entry: %s", tide_error_message());
        else
            oracle_acquired(&machine->oracle, type, array, n, CONTENT_LEFT);
    }
}

enum outcome machine_inside(struct machine *machine, struct frame *frame, void *const *data)
{
    if (!frame->adrift) {
        frame->level = oracle_open(&machine->oracle);
        if (frame->furnished)
            furnish(machine, frame, data);
    }
    observe(machine);
    return interpret_in(machine, frame);
}

/* Between two rounds of a loop nothing can be observed: the level stays. */
bool machine_after(struct machine *machine, struct frame *frame, enum outcome outcome)
{
    bool turns = outcome == OUTCOME_TURN;
    machine->frame = frame->outer;
    if (machine_failed(machine))
        return false;
    oracle_close(&machine->oracle, frame->level);
    if (!turns)
        observe(machine);
    frame->furnished = can_furnish(machine, frame);
    return turns;
}

static void enter(struct machine *machine, const struct operation *op)
{
    const struct menu *menu = &model_menus[op->a % MENU_COUNT];
    if (machine->depth == DEPTH_MAX || machine->oracle.level_count + 1 >= ORACLE_LEVELS)
        return;
    enum form form = machine->form != FORM_MIXED ? machine->form : operand_form(op->a, op->c);
    struct frame frame = {.outer = machine->frame, .op = *op, .form = form, .menu = menu};
    frame.furnished = can_furnish(machine, &frame);
    machine->depth++;
    machine_enter(machine, &frame);
    machine->frame = frame.outer;
    machine->depth--;
}

/* ---- the loop --------------------------------------------------------------------------- */

static void leak(struct machine *machine, const struct operation *op)
{
    struct frame *target = machine->frame;
    for (unsigned i = 0; i < 1 + op->a % 3u && target->outer != NULL; i++) {
        target = target->outer;
        machine->depth--;
    }
    if (target != machine->frame)
        longjmp(target->landing, 1);
}

/* What was requested is done where a scope is entered at the root: not where a loop goes on. */
static void withdraw_requests(struct machine *machine)
{
    struct oracle *oracle = &machine->oracle;
    if (oracle->requests == 0 || oracle->levels[0].id != machine->frame->level)
        return;
    if (tide_pool_request(machine->pool, 0) != TIDE_OK)
        oracle_wrong(oracle, "tide_pool_request: %s", tide_error_message());
    oracle->requests = 0;
}

/* A scope whose level was taken away stays as it is: a loop goes on without a level, and
 * entering again, in the other forms, would be another program. */
static bool turns(struct machine *machine)
{
    struct frame *frame = machine->frame;
    if (frame->outer == NULL)
        return false;
    if (oracle_is_open(&machine->oracle, frame->level)) {
        withdraw_requests(machine);
        return true;
    }
    frame->adrift = true;
    return frame->form == FORM_LOOP;
}

static enum outcome interpret(struct machine *machine)
{
    while (machine->next < machine->end && !machine_failed(machine)) {
        struct operation op = program_operation(machine->program, machine->next++);
        machine->oracle.step = machine->next;
        machine->done++;
        switch (op.code) {
        case OPERATION_ENTER: enter(machine, &op); break;
        case OPERATION_LEAVE:
            if (machine->frame->outer != NULL)
                return OUTCOME_LEAVE;
            break;
        case OPERATION_TURN:
            if (turns(machine))
                return OUTCOME_TURN;
            break;
        case OPERATION_LEAK: leak(machine, &op); break;
        default: machine_operate(machine, &op);
        }
        observe(machine);
    }
    return OUTCOME_STOP;
}

/* Where a leak lands. */
static enum outcome interpret_in(struct machine *machine, struct frame *frame)
{
    machine->frame = frame;
    if (setjmp(frame->landing) != 0) {
        machine->frame = frame;
        observe(machine);
    }
    return interpret(machine);
}

static void *interpret_on_thread(void *user)
{
    struct machine *machine = user;
    struct frame root = {0};
    if (tide_pool_adopt(machine->pool) != TIDE_OK)
        oracle_wrong(&machine->oracle, "adopt: %s", tide_error_message());
    interpret_in(machine, &root);
    return NULL;
}

void machine_hand_over(struct machine *machine, const struct operation *op)
{
    enum { THREADS_MAX = 2 };
    if (machine->threads == THREADS_MAX)
        return;
    struct frame *frame = machine->frame;
    size_t end = machine->end, depth = machine->depth;
    size_t until = machine->next + 1 + op->a % 32u;
    machine->end = until < end ? until : end;
    machine->threads++;
    pthread_t thread;
    if (pthread_create(&thread, NULL, interpret_on_thread, machine) != 0)
        abort();
    pthread_join(thread, NULL);
    machine->threads--;
    machine->end = end;
    machine->frame = frame;
    machine->depth = depth;
    if (tide_pool_adopt(machine->pool) != TIDE_OK)
        oracle_wrong(&machine->oracle, "adopt: %s", tide_error_message());
}

/* ---- a whole program -------------------------------------------------------------------- */

void model_prepare(void)
{
    static bool prepared;
    if (prepared)
        return;
    prepared = true;
    model_types_prepare();
    machine_prepare_sites();
}

unsigned model_all_forms(void)
{
    unsigned all = (1u << FORM_COUNT) - 1;
    return machine_can_compile() ? all : all & ~(1u << FORM_COMPILED);
}

/* Guarded arrays of earlier pools wait in one quarantine of the process, and yield where a mapping
 * cannot be had: each form is to find it empty. */
static void empty_quarantine(void)
{
    double size = 0;
    size = get_constant("quarantine");
    set_constant("quarantine", 0);
    tide_tune_set("guard_sample", 1);
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.check = TIDE_CHECK_GUARD});
    if (pool == NULL || tide_acquire(pool, double, 1) == NULL || tide_pool_reset(pool) != TIDE_OK ||
        tide_pool_destroy(pool) != TIDE_OK)
        abort();
    set_constant("quarantine", size);
}

/* What a pool is made of besides. */
static void prepare_memory(struct machine *machine, const struct pool_choice *choice)
{
    enum { ALIGNED = 16384 }; /* the same pieces in each form, whatever the types' alignment */
    if (choice->memory_bytes != 0)
        machine->memory = aligned_alloc(ALIGNED, choice->memory_bytes);
    if (choice->buffers)
        machine->buffers = tide_buffers_create(NULL, NULL);
    tide_limit_statistics now;
    if ((choice->memory_bytes != 0 && machine->memory == NULL) ||
        choice->buffers != (machine->buffers != NULL) || tide_limit_stats(&now) != TIDE_OK)
        abort();
    size_t most = choice->process_bytes != 0 ? now.bytes_held + choice->process_bytes : 0;
    if (choice->group)
        group_enter(most);
    else if (tide_limit_set(&(tide_limit_options){.hard_bytes = most}) != TIDE_OK)
        abort();
}

static void return_memory(struct machine *machine)
{
    group_leave();
    if (tide_limit_set(NULL) != TIDE_OK)
        oracle_wrong(&machine->oracle, "tide_limit_set: %s", tide_error_message());
    if (machine_failed(machine))
        return;
    if (tide_buffers_destroy(machine->buffers) != TIDE_OK)
        oracle_wrong(&machine->oracle, "tide_buffers_destroy: %s", tide_error_message());
    free(machine->memory);
}

static tide_pool *make_pool(const struct machine *machine, const struct pool_choice *choice)
{
    tide_pool_options options = {.name = "model",
                                 .limit_bytes = choice->limit_bytes,
                                 .memory = machine->memory,
                                 .memory_bytes = choice->memory_bytes,
                                 .buffers = machine->buffers,
                                 .check = choice->check,
                                 .disabled = choice->disabled};
    return tide_pool_create(&options);
}

static void begin(struct machine *machine, const struct program *program, enum plant plant)
{
    struct pool_choice choice = program_pool(program);
    enum { GAIN = 2, EXCHANGE = 64 }; /* KiB; a small gain, or few compacts would do anything */
    if (choice.check == TIDE_CHECK_GUARD)
        empty_quarantine();
    if (choice.check != TIDE_CHECK_NONE)
        tide_pool_trim(tide_pool_local(),
                       TIDE_ALL_TYPES); /* it takes a kept pool, and leaves none */
    set_constant("compact_gain", GAIN);
    tide_tune_set("trim_after", choice.trim_after);
    set_constant("exchange", choice.exchange_all ? 0 : EXCHANGE);
    tide_tune_set("guard_sample", choice.guard_sample);
    prepare_memory(machine, &choice);
    machine->pool = make_pool(machine, &choice);
    struct oracle *oracle = &machine->oracle;
    oracle_begin(oracle, machine->pool);
    bool guarded = choice.check == TIDE_CHECK_GUARD;
    oracle->checked = choice.check != TIDE_CHECK_NONE;
    oracle->poison = oracle->checked && (!guarded || choice.guard_sample == 1);
    oracle->guard_every = guarded ? choice.guard_sample : 0;
    oracle->disabled = choice.disabled;
    oracle->limit_bytes = choice.limit_bytes + choice.memory_bytes; /* never both */
    oracle->piecemeal = choice.memory_bytes != 0;
    oracle->process = choice.process_bytes != 0;
    oracle->buffers = choice.buffers;
    oracle->exchange_bytes = choice.exchange_all ? 0 : EXCHANGE * 1024;
    oracle->compact_gain = GAIN * 1024;
    oracle->trim_after = choice.trim_after;
    if (machine->pool != NULL)
        oracle_draw_guard(oracle);
    oracle->plant = plant;
    oracle->blind = RUNNING_ON_VALGRIND != 0;
    if (machine->pool == NULL)
        oracle_wrong(oracle, "no pool: %s", tide_error_message());
}

/* A pool found wrong is left alone: taking it down could only hide what was found. */
static void finish(struct machine *machine)
{
    struct oracle *oracle = &machine->oracle;
    tide_status expected = oracle->level_count > 0 ? TIDE_ERROR_STATE : TIDE_OK;
    oracle_verify(oracle);
    tide_status status = tide_pool_destroy(machine->pool);
    if (status != expected)
        oracle_wrong(oracle, "tide_pool_destroy at depth %zu: %s", oracle->level_count,
                     tide_status_name(status));
    oracle_reset(oracle);
    if (status != TIDE_OK &&
        (tide_pool_reset(machine->pool) != TIDE_OK || tide_pool_destroy(machine->pool) != TIDE_OK))
        oracle_wrong(oracle, "reset and destroy: %s", tide_error_message());
    oracle_outlived(oracle);
}

size_t model_run_form(const struct program *program, enum form form, enum plant plant,
                      struct trace *trace, const struct trace *reference, char wrong[512])
{
    model_prepare();
    struct machine *machine = calloc(1, sizeof *machine);
    machine->program = program;
    machine->end = program_operations(program);
    machine->form = form;
    machine->trace = trace;
    machine->reference = reference;
    trace->count = 0;
    begin(machine, program, plant);
    struct frame root = {0};
    tide_profile_observe(form == FORM_OBSERVED);
    if (form == FORM_OBSERVED)
        machine_pin_observed();
    if (!machine_failed(machine))
        interpret_in(machine, &root);
    finish(machine);
    return_memory(machine);
    oracle_end(&machine->oracle);
    strcpy(wrong, machine->oracle.wrong);
    size_t done = machine->done;
    free(machine);
    return done;
}

size_t model_run(const struct program *program, unsigned forms, enum plant plant, char wrong[640])
{
    static struct trace traces[2];
    const struct trace *reference = NULL;
    size_t done = 0;
    wrong[0] = '\0';
    for (unsigned form = 0; form < FORM_COUNT && wrong[0] == '\0'; form++) {
        if ((forms >> form & 1) == 0)
            continue;
        struct trace *trace = &traces[reference != NULL];
        char said[512];
        done += model_run_form(program, form, plant, trace, reference, said);
        if (said[0] != '\0')
            snprintf(wrong, 640, "form %s: %s", form_names[form], said);
        reference = &traces[0];
    }
    return done;
}
