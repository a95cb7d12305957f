/* SPDX-License-Identifier: MIT */
/* What each operation does to the pool, and tells the oracle. Not those that open or end scopes. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/array.h>
#include <tidepool/dynamic.h>
#include <tidepool/learn.h>
#include <tidepool/limit.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

#include "interpret.h"
#include "runtime/base/os.h"
#include "tests/hooks.h"

/* A type of the family counts as the one below it until this program has registered it: then a
 * program means the same whatever ran in the process before. */
unsigned machine_type(const struct machine *machine, uint8_t a)
{
    unsigned index = a % MODEL_CHOICE;
    if (index < MODEL_STATIC || (machine->registered >> (index - MODEL_STATIC) & 1) != 0)
        return index;
    return index % MODEL_STATIC;
}

static void expect(struct machine *machine, tide_status status, tide_status expected,
                   const char *call)
{
    if (status != expected)
        oracle_wrong(&machine->oracle, "%s: %s, must be %s", call, tide_status_name(status),
                     tide_status_name(expected));
}

/* ---- acquire ---------------------------------------------------------------------------- */

static enum fault fault_mode;
static unsigned *faults;

static bool inject_fault(size_t bytes)
{
    (void)bytes;
    return fault_mode == FAULT_ALL ? ++*faults > 0 : ++*faults == 1;
}

void machine_faults(struct machine *machine, uint8_t c)
{
    faults = &machine->oracle.faults;
    *faults = 0;
    fault_mode = operand_fault(c);
    set_memory_fault(fault_mode != FAULT_NONE ? inject_fault : NULL);
}

const unsigned char model_fill_value[8192] = {[0] = 0x5a, [1] = 0xa5, [7] = 0x77, [5000] = 0x11};
static const bool set_bit = true;

static void *acquire_as(tide_pool *pool, tide_type id, size_t n, enum fill fill)
{
    switch (fill) {
    case FILL_INLINE: return tide_acquire_inline(pool, id, n, TIDE_HERE);
    case FILL_ZEROS: return tide_zeros_type(pool, id, n);
    case FILL_ONES: return tide_ones_type(pool, id, n);
    case FILL_VALUE:
        return tide_fill_type(pool, id, n,
                              id == TIDE_BIT ? (const void *)&set_bit : model_fill_value);
    default: return tide_acquire_type(pool, id, n);
    }
}

/* One element with the value 1, as bytes; false where a type has none. */
static bool make_one(tide_type id, unsigned char one[16])
{
    memset(one, 0, 16);
    double real = 1;
    float single = 1;
    switch (id) {
    case TIDE_F64:
    case TIDE_C128: memcpy(one, &real, sizeof real); return true;
    case TIDE_F32:
    case TIDE_C64: memcpy(one, &single, sizeof single); return true;
    case TIDE_F16: one[1] = 0x3c; return true;
    case TIDE_BF16:
        one[0] = 0x80;
        one[1] = 0x3f;
        return true;
    default: one[0] = 1; return id != TIDE_NO_TYPE && id <= TIDE_BOOL;
    }
}

static bool repeats(const unsigned char *data, size_t n, const unsigned char *value, size_t size)
{
    if (n == 0)
        return true;
    return memcmp(data, value, size) == 0 && memcmp(data, data + size, (n - 1) * size) == 0;
}

/* Bits are set from the first on; what the last word has beyond them is nobody's. */
static bool bits_are(const unsigned char *data, size_t n, bool value)
{
    for (size_t i = 0; i < n; i++)
        if ((data[i / 8] >> i % 8 & 1) != value)
            return false;
    return true;
}

void machine_check_filled(struct machine *machine, unsigned type, const unsigned char *data,
                          size_t n, enum fill fill)
{
    static const unsigned char zero[8192];
    unsigned char one[16];
    size_t size = model_types[type].bits / 8;
    bool right = true;
    if (fill < FILL_ZEROS)
        return;
    if (model_types[type].id == TIDE_BIT)
        right = bits_are(data, n, fill != FILL_ZEROS);
    else if (fill == FILL_ONES)
        right = make_one(model_types[type].id, one) && repeats(data, n, one, size);
    else
        right = repeats(data, n, fill == FILL_ZEROS ? zero : model_fill_value, size);
    if (!right)
        oracle_wrong(&machine->oracle, "%zu %s are not filled as they should be", n,
                     model_types[type].name);
}

/* May this acquire fail, and like this? Nothing fails that is served from memory at hand. */
bool machine_may_fail(const struct machine *machine, unsigned type, size_t n, tide_status status)
{
    const struct oracle *oracle = &machine->oracle;
    return !oracle_serves(oracle, type, n) && oracle_may_lack(oracle, model_bytes(type, n), status);
}

/* Known before anything is done. */
static bool is_refused(unsigned type, enum fill fill)
{
    unsigned char one[16];
    return fill == FILL_ONES && model_types[type].id != TIDE_BIT &&
           !make_one(model_types[type].id, one);
}

static void judge_failure(struct machine *machine, unsigned type, size_t n, enum fill fill)
{
    struct oracle *oracle = &machine->oracle;
    bool refused = is_refused(type, fill);
    machine->status = tide_error_status();
    if (!refused)
        oracle_reached(oracle, type);
    oracle_refused(oracle, "an acquire");
    if (refused ? machine->status != TIDE_ERROR_TYPE
                : !machine_may_fail(machine, type, n, machine->status))
        oracle_wrong(oracle, "acquire failed: %s", tide_error_message());
}

static void acquire(struct machine *machine, const struct operation *op)
{
    struct oracle *oracle = &machine->oracle;
    if (oracle->live_count == ORACLE_LIVE)
        return;
    unsigned type = machine_type(machine, op->a);
    enum fill fill = operand_fill(op->c);
    size_t n = operand_count(op->b, model_types[type].bits);
    uint64_t allocations = oracle->allocations;
    machine_faults(machine, op->c);
    unsigned char *data = acquire_as(machine->pool, model_types[type].id, n, fill);
    set_memory_fault(NULL);
    if (data == NULL) {
        judge_failure(machine, type, n, fill);
        return;
    }
    machine_check_filled(machine, type, data, n, fill);
    oracle_acquired(oracle, type, data, n, fill < FILL_ZEROS ? CONTENT_LEFT : CONTENT_FILLED);
    if (fault_mode == FAULT_ALL && oracle->allocations != allocations && !oracle->buffers &&
        !oracle->piecemeal)
        oracle_wrong(oracle, "memory was allocated though every allocation fails");
}

/* ---- marks ------------------------------------------------------------------------------ */

static void mark(struct machine *machine, const struct operation *op)
{
    (void)op;
    struct oracle *oracle = &machine->oracle;
    if (oracle->level_count + DEPTH_MAX >= ORACLE_LEVELS)
        return;
    tide_mark made = tide_checkpoint(machine->pool);
    if (made.pool != machine->pool) {
        oracle_wrong(oracle, "checkpoint: %s", tide_error_message());
        return;
    }
    machine->marks[machine->mark_count++ % MARKS] = (struct kept_mark){made, oracle_open(oracle)};
}

static void rewind_one(struct machine *machine, const struct kept_mark *kept)
{
    bool open = oracle_close(&machine->oracle, kept->level);
    open |= machine->oracle.plant == PLANT_STALE;
    tide_status status = tide_rewind(machine->pool, kept->mark);
    expect(machine, status, open ? TIDE_OK : TIDE_ERROR_STALE, "tide_rewind");
    machine->status = status;
}

/* Marks that never were: of no pool, of another, with another number, of another place. */
static void rewind_forged(struct machine *machine, tide_mark forged, unsigned how)
{
    static tide_pool *other;
    if (other == NULL)
        other = tide_pool_create(NULL);
    if (how == 0)
        forged.pool = NULL;
    else if (how == 1)
        forged = tide_checkpoint(other);
    else if (how == 2)
        forged.serial += 1000000;
    else
        forged.position = SIZE_MAX / 64;
    tide_status status = tide_rewind(machine->pool, forged);
    if (how < 2)
        expect(machine, status, TIDE_ERROR_ARGUMENT, "tide_rewind of a mark of another pool");
    else if (status != TIDE_ERROR_ARGUMENT && status != TIDE_ERROR_STALE)
        oracle_wrong(&machine->oracle, "a forged mark: %s", tide_status_name(status));
    if (how == 1)
        expect(machine, tide_rewind(other, forged), TIDE_OK, "tide_rewind of the other pool");
}

static void rewind_mark(struct machine *machine, const struct operation *op)
{
    size_t kept = machine->mark_count < MARKS ? machine->mark_count : MARKS;
    if (kept == 0)
        return;
    size_t number = machine->mark_count - 1 - op->a % kept;
    const struct kept_mark *chosen = &machine->marks[number % MARKS];
    if (op->b >= 240) {
        rewind_forged(machine, chosen->mark, op->b % 4);
        return;
    }
    rewind_one(machine, chosen);
    if (op->c % 8 == 7)
        rewind_one(machine, chosen);
}

/* ---- the whole pool --------------------------------------------------------------------- */

static void trim(struct machine *machine, const struct operation *op)
{
    unsigned type = op->b % 2 == 0 ? MODEL_TYPES : machine_type(machine, op->a);
    tide_type id = type == MODEL_TYPES ? TIDE_ALL_TYPES : model_types[type].id;
    oracle_trimmed(&machine->oracle, type, tide_pool_trim(machine->pool, id));
}

static void compact(struct machine *machine, const struct operation *op)
{
    unsigned type = op->b % 2 == 0 ? MODEL_TYPES : machine_type(machine, op->a);
    tide_type id = type == MODEL_TYPES ? TIDE_ALL_TYPES : model_types[type].id;
    oracle_compacted(&machine->oracle, type, tide_pool_compact(machine->pool, id));
}

struct asking {
    tide_pool *pool;
    uint32_t requests;
    bool step;
    tide_status status;
};

static void *ask(void *user)
{
    struct asking *asking = user;
    if (asking->step) {
        tide_tune_set("auto_trim", (asking->requests & TIDE_REQUEST_TRIM) != 0);
        tide_tune_set("auto_compact", (asking->requests & TIDE_REQUEST_COMPACT) != 0);
    }
    asking->status = asking->step ? tide_step() : tide_pool_request(asking->pool, asking->requests);
    return NULL;
}

static void ask_from(struct machine *machine, struct asking *asking, bool other)
{
    pthread_t thread;
    if (!other)
        ask(asking);
    else if (pthread_create(&thread, NULL, ask, asking) == 0)
        pthread_join(thread, NULL);
    else
        abort();
    expect(machine, asking->status, TIDE_OK, "a request");
    if (other) /* whose steps take from a pool that has served none for long, while its owner sleeps */
        oracle_pressed(&machine->oracle, MODEL_TYPES);
}

/* From this thread or another, directly or by the library's own rounds, which take back no more than they
 * have asked for. What several rounds in a row ask for at the root is served in between. */
static void request(struct machine *machine, const struct operation *op)
{
    struct oracle *oracle = &machine->oracle;
    struct asking asking = {machine->pool, op->a % 4, op->b % 2 == 1, TIDE_OK};
    uint32_t requests = asking.step ? oracle_lately(asking.requests) : asking.requests;
    uint32_t own = asking.step ? oracle_lately(UINT32_MAX) : UINT32_MAX;
    if (asking.step && oracle->level_count == 0 && oracle->requests != 0)
        oracle_serve(oracle); /* else a step may trim its own thread's pool by age, at once */
    for (unsigned more = asking.step ? op->c / 4 % 4 : 0;; more--) {
        ask_from(machine, &asking, op->c % 4 == 3);
        oracle->requests = requests == 0 ? oracle->requests & ~own : oracle->requests | requests;
        if (more == 0 || oracle->level_count > 0)
            return;
        oracle_serve(oracle);
    }
}

static void foreign_run(void *(*run)(void *), void *user)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, user) != 0)
        abort();
    pthread_join(thread, NULL);
}

struct wanting {
    int owner; /* the thread of the model's pool, as the system knows it */
    size_t bytes;
};

/* Has no room below the limit of the process, and takes free memory of the model's pool, if that has
 * some and no scope is open in it. Not before its owner is asleep, or forms could not be compared. */
static void *want_memory(void *user)
{
    const struct wanting *want = user;
    tide_limit_statistics now;
    tide_pool *pool = tide_pool_create(NULL);
    while (!tide_os_thread_sleeps(want->owner))
        sched_yield();
    if (pool == NULL || tide_limit_stats(&now) != TIDE_OK ||
        tide_limit_set(&(tide_limit_options){.hard_bytes = now.bytes_held + 1}) != TIDE_OK)
        abort();
    (void)tide_acquire_type(pool, TIDE_U8, want->bytes);
    if (tide_pool_reset(pool) != TIDE_OK || tide_pool_destroy(pool) != TIDE_OK ||
        tide_limit_set(&(tide_limit_options){.hard_bytes = now.hard_bytes}) != TIDE_OK)
        abort();
    return NULL;
}

static void want_from_afar(struct machine *machine, const struct operation *op)
{
    struct wanting want = {tide_os_thread_number(), (size_t)(1 + op->b) << 10};
    if (machine->oracle.blind) /* no thread is taken for idle there */
        return;
    foreign_run(want_memory, &want);
    oracle_pressed(&machine->oracle, MODEL_TYPES);
}

/* Most of its memory is free then, for who wants it. */
static void reset(struct machine *machine, const struct operation *op)
{
    oracle_reset(&machine->oracle);
    expect(machine, tide_pool_reset(machine->pool), TIDE_OK, "tide_pool_reset");
    if (op->a % 2 == 1)
        want_from_afar(machine, op);
}

static void empty(struct machine *machine)
{
    oracle_reset(&machine->oracle);
    expect(machine, tide_pool_empty(machine->pool), TIDE_OK, "tide_pool_empty");
    oracle_emptied(&machine->oracle);
}

/* Prints to nowhere: the text must be made without harm in any state. */
static void inspect(struct machine *machine)
{
    static FILE *nowhere;
    if (nowhere == NULL)
        nowhere = fopen("/dev/null", "w");
    expect(machine, tide_pool_print(machine->pool, nowhere), TIDE_OK, "tide_pool_print");
    oracle_verify(&machine->oracle);
}

/* ---- types ------------------------------------------------------------------------------ */

static void register_type(struct machine *machine, const struct operation *op)
{
    struct model_type *type = &model_types[MODEL_STATIC + op->a % MODEL_FAMILY];
    uint32_t before = tide_type_count();
    tide_type id = tide_type_register(type->name, type->bits / 8, type->align);
    uint32_t made = tide_type_count() - before;
    bool first = type->id == TIDE_NO_TYPE;
    if (id == TIDE_NO_TYPE || (first ? made != 1 || id != before + 1 : made != 0 || id != type->id))
        oracle_wrong(&machine->oracle, "registering %s gave %u, %u types were made: %s", type->name,
                     id, made, tide_error_message());
    type->id = id;
    machine->registered |= 1u << (op->a % MODEL_FAMILY);
    if (tide_type_size(id) != type->bits / 8 || tide_type_align(id) != type->align ||
        strcmp(tide_type_name(id), type->name) != 0)
        oracle_wrong(&machine->oracle, "type %s is not what it was registered as", type->name);
}

/* ---- calls that must fail ---------------------------------------------------------------- */

enum { ENORMOUS = 4 }; /* only found to be too large where memory is sought */

static tide_status refuse_acquire(tide_pool *pool, unsigned how)
{
    void *data = NULL;
    tide_type unknown = tide_type_count() + 1;
    switch (how) {
    case 0: data = tide_acquire_type(pool, TIDE_NO_TYPE, 1); break;
    case 1: data = tide_acquire_type(pool, unknown, 1); break;
    case 2: data = tide_acquire_type(pool, UINT32_MAX, 1); break;
    case 3: data = tide_acquire_inline(pool, TIDE_F64, (size_t)-1, TIDE_HERE); break;
    case ENORMOUS: data = tide_acquire_type(pool, TIDE_U8, SIZE_MAX - 62); break;
    case 5: data = tide_zeros_type(pool, TIDE_C128, SIZE_MAX / 16 + 2); break;
    case 6: data = tide_acquire_type(NULL, TIDE_F64, 1); break;
    default: data = tide_fill_type(pool, TIDE_F64, 1, NULL);
    }
    return data == NULL ? tide_error_status() : TIDE_OK;
}

static const tide_status acquire_refusals[] = {
    TIDE_ERROR_TYPE, TIDE_ERROR_TYPE, TIDE_ERROR_TYPE,     TIDE_ERROR_SIZE,
    TIDE_ERROR_SIZE, TIDE_ERROR_SIZE, TIDE_ERROR_ARGUMENT, TIDE_ERROR_ARGUMENT};

static tide_status status_of_mark(tide_mark mark)
{
    return mark.pool == NULL ? tide_error_status() : TIDE_OK;
}

static void refuse(struct machine *machine, const struct operation *op)
{
    unsigned how = op->a % 9;
    if (how < 8) {
        expect(machine, refuse_acquire(machine->pool, how), acquire_refusals[how],
               "an acquire that must fail");
        if (how == ENORMOUS)
            oracle_reached(&machine->oracle, TIDE_U8 - 1);
    } else if (machine->oracle.level_count > 0) {
        expect(machine, tide_pool_destroy(machine->pool), TIDE_ERROR_STATE, "tide_pool_destroy");
    } else {
        return;
    }
    oracle_refused(&machine->oracle, "a call that must fail");
}

/* ---- another thread without the pool ----------------------------------------------------- */

static void foreign_status(struct machine *machine, tide_status status, const char *call)
{
    expect(machine, status, TIDE_ERROR_THREAD, call);
    if (strstr(tide_error_message(), "model") == NULL)
        oracle_wrong(&machine->oracle, "%s: the message lacks the pool: %s", call,
                     tide_error_message());
}

static void *use_from_afar(void *user)
{
    struct machine *machine = user;
    tide_pool *pool = machine->pool;
    tide_scope scope;
    if (tide_acquire_inline(pool, TIDE_F64, 1, TIDE_HERE) != NULL)
        oracle_wrong(&machine->oracle, "a foreign thread acquired");
    foreign_status(machine, tide_error_status(), "acquire");
    foreign_status(machine, status_of_mark(tide_checkpoint(pool)), "tide_checkpoint");
    foreign_status(machine, tide_scope_enter(pool, NULL, &scope), "tide_scope_enter");
    foreign_status(machine, tide_pool_reset(pool), "tide_pool_reset");
    foreign_status(machine, tide_pool_empty(pool), "tide_pool_empty");
    foreign_status(machine, tide_pool_destroy(pool), "tide_pool_destroy");
    if (tide_pool_trim(pool, TIDE_ALL_TYPES).slots != 0)
        oracle_wrong(&machine->oracle, "a foreign thread trimmed");
    foreign_status(machine, tide_error_status(), "tide_pool_trim");
    return NULL;
}

/* A pool that does not check takes the caller's word that the threads agree. */
static void *use_unchecked(void *user)
{
    struct machine *machine = user;
    expect(machine, tide_rewind(machine->pool, tide_checkpoint(machine->pool)), TIDE_OK,
           "a checkpoint and rewind on another thread");
    return NULL;
}

static void foreign(struct machine *machine, const struct operation *op)
{
    if (op->a % 2 == 1) {
        want_from_afar(machine, op);
    } else if (machine->oracle.checked) {
        foreign_run(use_from_afar, machine);
    } else {
        foreign_run(use_unchecked, machine);
        oracle_served(&machine->oracle);
    }
}

/* ---- which ------------------------------------------------------------------------------ */

void machine_operate(struct machine *machine, const struct operation *op)
{
    switch (op->code) {
    case OPERATION_ACQUIRE: acquire(machine, op); break;
    case OPERATION_ARRAY: machine_array(machine, op); break;
    case OPERATION_VIEW: machine_view(machine, op); break;
    case OPERATION_EXPORT: machine_export(machine, op); break;
    case OPERATION_DROP: machine_drop(machine, op); break;
    case OPERATION_IMPORT: machine_import(machine, op); break;
    case OPERATION_ESCAPE: machine_escape(machine, op); break;
    case OPERATION_REQUEST: request(machine, op); break;
    case OPERATION_WRITE:
        if (operand_grows(op->c))
            machine_grow(machine, op);
        else
            oracle_write(&machine->oracle, op->a, op->b);
        break;
    case OPERATION_MARK: mark(machine, op); break;
    case OPERATION_REWIND: rewind_mark(machine, op); break;
    case OPERATION_TRIM: trim(machine, op); break;
    case OPERATION_COMPACT: compact(machine, op); break;
    case OPERATION_RESET: reset(machine, op); break;
    case OPERATION_EMPTY: empty(machine); break;
    case OPERATION_REGISTER: register_type(machine, op); break;
    case OPERATION_REFUSE: refuse(machine, op); break;
    case OPERATION_PIN: machine_repin(machine, op); break;
    case OPERATION_HANDOVER: machine_hand_over(machine, op); break;
    case OPERATION_FOREIGN: foreign(machine, op); break;
    default: inspect(machine);
    }
}
