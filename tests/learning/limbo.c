/* SPDX-License-Identifier: MIT */
/* Retired code is unloaded when nobody can be inside it, and not before: the argument of
 * jit/cache/limbo.h, put to the test. Where code was unloaded nothing lies any more (code.h), so
 * whoever is still in it dies. */
#define _GNU_SOURCE
#include "code.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "jit/cache/limbo.h"
#include "jit/cache/shared.h"
#include "jit/cache/test_hooks.h"
#include "runtime/base/os.h"
#include "runtime/pool/core.h"
#include "runtime/scope/site.h"
#include "tests/random.h"

static const tide_kind kinds_with_pools[] = {TIDE_KIND_SCOPE, TIDE_KIND_FRAME, TIDE_KIND_ACQUIRE,
                                             TIDE_KIND_ARRAY};
enum { POOLED = sizeof kinds_with_pools / sizeof *kinds_with_pools };

/* A site of its own, learned, its code taken away. */
static void prepare(code *c, tide_kind kind, const char *purpose, tide_pool *pool, uint32_t types)
{
    char name[64];
    need_stager();
    snprintf(name, sizeof name, "limbo: %s, %s, %u", purpose, tide_kind_name(kind), types);
    use u =
        use_of(name, kind, pool, types, TIDE_F64, TIDE_I32, TIDE_F32, TIDE_U8, TIDE_I64, TIDE_U16);
    code_prepare(c, &u);
    code_round(c);
    assert_int_equal(code_loaded(c), 0);
}

static void rounds(code *c, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        code_round(c);
}

/* Code waits for passes alone; for whoever sleeps, too. */
static int by_passes(void **state)
{
    tide_limbo_looks_at_sleepers = false;
    return learning_setup(state);
}

static int by_both(void **state)
{
    tide_limbo_looks_at_sleepers = true;
    return learning_teardown(state);
}

#define PASSES_TEST(function) cmocka_unit_test_setup_teardown(function, by_passes, by_both)

/* ---- two passes of every pool ------------------------------------------------------------ */

static void code_goes_when_every_pool_has_passed_twice(void **state)
{
    (void)state;
    tide_pool *busy = pool_of(TIDE_CHECK_NONE);
    for (unsigned k = 0; k < POOLED; k++) {
        code c;
        tide_pool *idle = NULL;
        prepare(&c, kinds_with_pools[k], "twice", busy, 2);
        use u = c.u, other;
        idle = pool_of(TIDE_CHECK_NONE);
        other = u;
        other.pool = idle;
        use_times(&other, 1);
        assert_true(code_load(&c));
        expect_executed(&c.u, 10);
        code_retire(&c);
        assert_int_equal(learned().waiting, 1);
        for (unsigned i = 0; i < 10; i++) {
            rounds(&c, 1);
            use_times(&u, 5);
        }
        assert_int_equal(code_loaded(&c), 1); /* the other pool has not passed at all */
        use_times(&other, 5);
        rounds(&c, 5);
        assert_int_equal(code_loaded(&c), 1); /* once only: it was asked again after that */
        use_times(&other, 1);
        rounds(&c, 2);
        assert_int_equal(code_loaded(&c), 0);
        assert_int_equal(learned().waiting, 0);
        assert_int_equal(c.unloaded, 1);
        expect_ok(tide_pool_destroy(idle));
        code_drop(&c);
    }
    expect_ok(tide_pool_destroy(busy));
}

/* It stays loaded, but does not count: else a server's workers could be full from the start. */
static void code_that_waited_in_the_parent_stays_in_the_child(void **state)
{
    (void)state;
    code c;
    tide_pool *busy = pool_of(TIDE_CHECK_NONE), *idle;
    prepare(&c, TIDE_KIND_SCOPE, "forked", busy, 2);
    idle = pool_of(TIDE_CHECK_NONE);
    use u = c.u, other = u;
    other.pool = idle;
    use_times(&other, 1);
    assert_true(code_load(&c));
    code_retire(&c);
    rounds(&c, 1); /* asks both pools, and the idle one never passes */
    assert_int_equal(learned().waiting, 1);
    pid_t child = fork_child(60);
    if (child == 0) {
        CHILD_MUST(learned().waiting == 0);
        for (unsigned i = 0; i < 10; i++)
            CHILD_MUST(use_once(&u) && use_once(&other) && tide_step() == TIDE_OK);
        CHILD_MUST(learned().waiting == 0 && code_loaded(&c) == 1);
        _exit(0);
    }
    expect_child_ends_well(child);
    for (unsigned i = 0; i < 4; i++) { /* each is asked twice, and looked at after that */
        use_times(&u, 5);
        use_times(&other, 5);
        rounds(&c, 1);
    }
    assert_int_equal(learned().waiting, 0);
    assert_int_equal(code_loaded(&c), 0);
    expect_ok(tide_pool_destroy(idle));
    expect_ok(tide_pool_destroy(busy));
    code_drop(&c);
}

static void a_pool_that_is_gone_or_came_later_is_not_waited_for(void **state)
{
    (void)state;
    code c;
    tide_pool *busy = pool_of(TIDE_CHECK_NONE), *gone;
    prepare(&c, TIDE_KIND_SCOPE, "gone", busy, 2);
    gone = pool_of(TIDE_CHECK_NONE);
    use u = c.u, other = u;
    other.pool = gone;
    use_times(&other, 1);
    assert_true(code_load(&c));
    use_times(&u, 1);
    code_retire(&c);
    rounds(&c, 1); /* asks both */
    tide_pool *later = pool_of(TIDE_CHECK_NONE);
    for (unsigned i = 0; i < 4; i++) {
        use_times(&u, 2);
        rounds(&c, 1);
    }
    assert_int_equal(code_loaded(&c), 1);
    expect_ok(tide_pool_destroy(gone));
    rounds(&c, 2);
    assert_int_equal(code_loaded(&c), 0);
    expect_ok(tide_pool_destroy(later));
    expect_ok(tide_pool_destroy(busy));
    code_drop(&c);
}

/* A loop that runs for hours in one scope does not keep code alive. */
static void a_pool_inside_a_long_scope_passes_too(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    for (unsigned k = 0; k < POOLED; k++) {
        code c;
        tide_scope outer;
        prepare(&c, kinds_with_pools[k], "long", pool, 3);
        assert_true(code_load(&c));
        expect_ok(tide_scope_enter(pool, NULL, &outer));
        double *kept = take(pool, TIDE_F64, 100, 1);
        use_times(&c.u, 5);
        code_retire(&c);
        for (unsigned i = 0; i < 4; i++) {
            rounds(&c, 1);
            use_times(&c.u, 3);
        }
        assert_int_equal(code_loaded(&c), 0);
        expect_bytes(kept, 100 * sizeof *kept, 1);
        expect_ok(tide_scope_leave(&outer));
        CHECK_POOL(pool);
        code_drop(&c);
    }
    expect_ok(tide_pool_destroy(pool));
}

/* ---- whoever sleeps ---------------------------------------------------------------------- */

/* A thread with a pool of its own, which it uses once and no more. */
static struct {
    use u;
    sem_t used, go;
    bool in_scope, well;
} idler;

static void *idle(void *unused)
{
    tide_pool *pool = tide_pool_create(NULL);
    tide_scope scope;
    (void)unused;
    idler.u.pool = pool;
    idler.well = use_once(&idler.u);
    if (idler.in_scope)
        tide_site_enter(&scope, pool, idler.u.site);
    sem_post(&idler.used);
    while (sem_wait(&idler.go) != 0)
        continue;
    if (idler.in_scope)
        tide_site_leave(&scope);
    idler.well = idler.well && use_once(&idler.u) && tide_pool_destroy(pool) == TIDE_OK;
    return NULL;
}

static pthread_t start_idler(const use *u, bool in_scope)
{
    pthread_t thread;
    idler.u = *u;
    idler.in_scope = in_scope;
    assert_int_equal(sem_init(&idler.used, 0, 0), 0);
    assert_int_equal(sem_init(&idler.go, 0, 0), 0);
    assert_int_equal(pthread_create(&thread, NULL, idle, NULL), 0);
    while (sem_wait(&idler.used) != 0)
        continue;
    return thread;
}

static void end_idler(pthread_t thread)
{
    sem_post(&idler.go);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(idler.well);
}

static void need_sleepers_told(void)
{
    if (under_valgrind() || access("/proc/self/syscall", R_OK) != 0) {
        print_message("who sleeps where is not told here\n");
        skip();
    }
}

/* It goes to sleep after it has posted, and may be seen before. */
static void rounds_until_unloaded(code *c)
{
    rounds(c, 1);
    for (unsigned i = 0; code_loaded(c) != 0 && i < PATIENCE_MS; i++) {
        usleep(1000);
        rounds(c, 1);
    }
    assert_int_equal(code_loaded(c), 0);
    assert_int_equal(learned().waiting, 0);
}

static void a_thread_that_sleeps_keeps_no_code(void **state)
{
    (void)state;
    need_sleepers_told();
    for (unsigned k = 0; k < POOLED; k++) {
        static code c; /* it names the code: on this stack it would look like a return address */
        tide_pool *pool = pool_of(TIDE_CHECK_NONE);
        prepare(&c, kinds_with_pools[k], "asleep", pool, 2);
        assert_true(code_load(&c));
        pthread_t thread = start_idler(&c.u, kinds_with_pools[k] == TIDE_KIND_SCOPE);
        code_retire(&c);
        rounds_until_unloaded(&c);
        end_idler(thread);
        expect_ok(tide_pool_destroy(pool));
        code_drop(&c);
    }
}

/* The question that it need not answer stands in the pool, and the answer says nothing of the next
 * question. */
static void a_pool_that_was_excused_passes_three_times_the_next_time(void **state)
{
    (void)state;
    static code c;
    need_sleepers_told();
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    prepare(&c, TIDE_KIND_SCOPE, "excused", pool, 2);
    assert_true(code_load(&c));
    code_retire(&c);
    rounds_until_unloaded(&c);
    assert_true(pool->core->requests.unanswered);
    tide_limbo_looks_at_sleepers = false;
    assert_true(code_load(&c));
    code_retire(&c);
    for (unsigned passes = 0; passes < 3; passes++) {
        rounds(&c, 3);
        assert_int_equal(code_loaded(&c), 1);
        use_times(&c.u, 1);
    }
    rounds(&c, 2);
    assert_int_equal(code_loaded(&c), 0);
    tide_limbo_looks_at_sleepers = true;
    expect_ok(tide_pool_destroy(pool));
    code_drop(&c);
}

static unsigned unloads_told;

static void count_unloads(const tide_event *event, void *user)
{
    (void)user;
    unloads_told += event->kind == TIDE_EVENT_RETIRED;
}

static void retire_plan_of(const use *u)
{
    tide_learner *learner = u->site->record->learner;
    code c = {.u = *u, .learner = learner, .number = learner->in_force};
    c.plan = learner->plans[c.number];
    code_retire(&c);
}

/* Code of dispatches belongs to no pool, and stays: one piece for each number of tests, whatever
 * site it was compiled for, also while no site has it. What is retired of it keeps nothing waiting,
 * and is not told as unloaded. */
static void code_of_dispatches_is_shared_and_stays(void **state)
{
    (void)state;
    need_stager();
    use first = use_of("limbo: first dispatch", TIDE_KIND_DISPATCH, NULL, 1, TIDE_F64);
    use second = use_of("limbo: second dispatch", TIDE_KIND_DISPATCH, NULL, 1, TIDE_I32);
    until(&first, TIDE_TIER_COMPILED);
    tide_learning_statistics before = learned();
    size_t loaded = tide_artefact_count(), waiting = tide_limbo_count();
    until(&second, TIDE_TIER_COMPILED);
    assert_int_equal(learned().compiled, before.compiled);
    assert_int_equal(learned().kept, before.kept + 1);
    expect_executed(&first, 100);
    expect_executed(&second, 100);

    const tide_plan *plan = first.site->plan;
    unsigned char *address;
    memcpy(&address, &plan->dispatch, sizeof address);
    unsigned char byte = *address;
    unloads_told = 0;
    tide_event_set_handler(count_unloads, NULL);
    set("learn", 0);
    retire_plan_of(&first);
    retire_plan_of(&second);
    assert_int_equal(tide_limbo_count(), waiting);
    for (unsigned i = 0; i < 5; i++)
        expect_ok(tide_step());
    assert_int_equal(tide_artefact_count(), loaded);
    assert_int_equal(*address, byte); /* a call may be in it */
    assert_int_equal(unloads_told, 0);
    use_times(&first, 100);

    set("learn", 1);
    use third = use_of("limbo: third dispatch", TIDE_KIND_DISPATCH, NULL, 1, TIDE_F32);
    until(&third, TIDE_TIER_COMPILED);
    assert_int_equal(learned().compiled, before.compiled);
    expect_executed(&third, 100);
}

/* As of a process that forks between an order and its answer. */
static void a_second_artefact_of_the_same_dispatches_stays_too(void **state)
{
    (void)state;
    need_stager();
    char error[256];
    use u = use_of("limbo: twice", TIDE_KIND_DISPATCH, NULL, 1, TIDE_F64);
    code c;
    set("artefact_cache", 0);
    until(&u, TIDE_TIER_COMPILED);
    code_prepare(&c, &u);
    size_t loaded = tide_artefact_count();
    tide_artefact *copy = tide_artefact_load(c.paths[0], false, error, sizeof error);
    assert_non_null(copy);
    tide_spec spec;
    tide_learner_spec(c.learner, c.plan, &spec);
    tide_shared_keep(&spec, copy);
    tide_artefact_drop(copy);
    assert_int_equal(tide_artefact_count(), loaded + 1);
    code_drop(&c);
}

/* ---- scopes that outlive their code ------------------------------------------------------ */

enum ending { LEFT, INNER_SKIPPED, RESET, OUTER_REWOUND, ENDINGS };

/* Retires and unloads while a scope of that code is open; another site's uses make the pool
 * pass. */
static void unload_inside(code *c, const use *passer)
{
    code_retire(c);
    for (unsigned i = 0; i < 4; i++) {
        rounds(c, 1);
        use_times(passer, 3);
    }
    assert_int_equal(code_loaded(c), 0);
}

static void open(const use *u, tide_scope *scope)
{
    size_t sizes[USE_TYPES];
    void *data[USE_TYPES];
    for (uint32_t i = 0; i < u->count; i++)
        sizes[i] = 10;
    if (u->site->kind == TIDE_KIND_SCOPE)
        tide_site_enter(scope, u->pool, u->site);
    else
        tide_site_enter_frame(scope, u->pool, u->site, u->count, u->types, sizes, data);
}

/* One scope of compiled code, whose end finds the code gone. `saved`: the level around has saved
 * all shelves, so the scope keeps them out of the log. */
static void outlive(code *c, const use *passer, bool saved, enum ending how)
{
    tide_pool *pool = c->u.pool;
    tide_scope outer, scope, inner;
    counts at_root = counts_of(pool);
    expect_ok(tide_scope_enter(pool, NULL, &outer));
    for (uint32_t i = 0; i < c->u.count && saved; i++)
        take(pool, c->u.types[i], 3, i);
    counts before = counts_of(pool);
    assert_true(code_load(c));
    use_times(&c->u, 1);
    uint64_t runs = runs_of(c->u.site);
    open(&c->u, &scope);
    assert_int_equal(runs_of(c->u.site), runs + 1);
    for (uint32_t i = 0; i < c->u.count; i++)
        take(pool, c->u.types[i], 10, i);
    take(pool, TIDE_C64, 5, 99); /* which the plan does not know */
    if (how == INNER_SKIPPED) {
        open(&c->u, &inner); /* by compiled code, too, and never left */
        take(pool, TIDE_C128, 5, 99);
    }
    unload_inside(c, passer);
    if (how == RESET) {
        expect_ok(tide_pool_reset(pool));
        tide_site_leave(&scope);
        counts_same((counts){0, 0, 0, 0}, pool);
    } else if (how == OUTER_REWOUND) {
        expect_ok(tide_scope_leave(&outer));
        tide_site_leave(&scope);
        counts_same(at_root, pool);
    } else {
        tide_site_leave(&scope);
        counts_same(before, pool);
        expect_ok(tide_scope_leave(&outer));
        counts_same(at_root, pool);
    }
    CHECK_POOL(pool);
}

static void a_scope_outlives_its_code_and_ends_well(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    use passer = use_of("limbo: passer", TIDE_KIND_SCOPE, pool, 1, TIDE_I16);
    use_times(&passer, 1);
    for (tide_kind kind = TIDE_KIND_SCOPE; kind <= TIDE_KIND_FRAME; kind++)
        for (uint32_t types = 1; types <= (kind == TIDE_KIND_FRAME ? 4 : 6); types++) {
            code c;
            prepare(&c, kind, "outlived", pool, types);
            for (enum ending how = 0; how < ENDINGS; how++) {
                outlive(&c, &passer, false, how);
                outlive(&c, &passer, true, how);
            }
            expect_ok(tide_pool_reset(pool));
            code_drop(&c);
        }
    expect_ok(tide_pool_destroy(pool));
}

/* ---- at every instruction ---------------------------------------------------------------- */

#if defined(__x86_64__)

/* A thread that makes one use of a site one instruction at a time, and stops at the n-th, and again
 * when its pool has passed. While it stands still the code is retired and many rounds are made. */
static struct {
    const use *u;
    const code *c;
    enum state { IDLE, GO, AT_INSTRUCTION, AFTER_PASS, DONE, QUIT } state; /* atomic */
    uint64_t steps, stop, passes;
    bool stopped, passed, in_code, well;
    unsigned outside; /* instructions at which the thread was found to be outside */
    int thread;       /* its number, once it has gone */
} walk;

static void walk_to(enum state state)
{
    __atomic_store_n(&walk.state, state, __ATOMIC_RELEASE);
    syscall(SYS_futex, &walk.state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static enum state walk_state(void)
{
    return __atomic_load_n(&walk.state, __ATOMIC_ACQUIRE);
}

/* For signal handlers, too. */
static enum state wait_while(enum state state)
{
    while (walk_state() == state)
        syscall(SYS_futex, &walk.state, FUTEX_WAIT, state, NULL, NULL, 0);
    return walk_state();
}

static void stand_still(enum state state)
{
    walk_to(state);
    wait_while(state);
}

static uint64_t passes_of(const tide_pool *pool)
{
    return __atomic_load_n(&pool->core->requests.passes, __ATOMIC_ACQUIRE);
}

static void on_step(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    ucontext_t *at = context;
    const void *address = (const void *)(uintptr_t)at->uc_mcontext.gregs[REG_RIP];
    if (walk.steps++ == walk.stop) {
        walk.stopped = true;
        walk.in_code = code_holds(walk.c, address);
        walk.passes = passes_of(walk.u->pool);
        stand_still(AT_INSTRUCTION);
    } else if (walk.stopped && !walk.passed && passes_of(walk.u->pool) != walk.passes) {
        walk.passed = true;
        stand_still(AFTER_PASS);
        at->uc_mcontext.gregs[REG_EFL] &= ~0x100; /* the rest at full speed */
    }
}

/* Sets or clears the processor's trap flag; the stack below the red zone. */
#define TRAP(operation)                                               \
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\t" operation \
                     ", (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" :: \
                         : "cc", "memory")

/* The use and nothing else. */
static __attribute__((noinline)) bool use_stepping(const use *u)
{
    tide_scope scope;
    size_t sizes[USE_TYPES] = {1, 1, 1, 1};
    void *data[USE_TYPES];
    bool well = true;
    tide_mark mark = tide_checkpoint(u->pool);
    (void)tide_acquire_type(u->pool, u->types[0], 1);
    TRAP("orq $0x100");
    if (u->site->kind == TIDE_KIND_SCOPE) {
        tide_site_enter(&scope, u->pool, u->site);
        tide_site_leave(&scope);
    } else if (u->site->kind == TIDE_KIND_FRAME) {
        tide_site_enter_frame(&scope, u->pool, u->site, u->count, u->types, sizes, data);
        well = data[0] != NULL && data[1] != NULL;
        tide_site_leave(&scope);
    } else if (u->site->kind == TIDE_KIND_ACQUIRE) {
        well = tide_site_acquire_inline(u->site, u->pool, u->types[0], 5) != NULL;
    } else {
        well = tide_site_array_inline(u->site, u->pool, u->types[0], u->ndim, u->shape) != NULL;
    }
    TRAP("andq $~0x100");
    return tide_rewind(u->pool, mark) == TIDE_OK && well;
}

static void *walker(void *unused)
{
    (void)unused;
    walk.thread = tide_os_thread_number();
    for (;;) {
        enum state state = walk_state();
        if (state == QUIT)
            return NULL;
        if (state == GO) {
            walk.well = tide_pool_adopt(walk.u->pool) == TIDE_OK && use_stepping(walk.u);
            walk_to(DONE);
        } else {
            wait_while(state);
        }
    }
}

/* It says where it stands, and then goes to sleep. */
static void wait_until_walker_sleeps(void)
{
    char state = system_state(walk.thread);
    for (unsigned i = 0; i < 10 * PATIENCE_MS && state != 'S'; i++) {
        usleep(100);
        state = system_state(walk.thread);
    }
    assert_int_equal(state, 'S');
}

/* False when the use has fewer instructions. */
static bool retire_at(code *c, uint64_t instruction, unsigned *inside)
{
    expect_ok(tide_pool_adopt(c->u.pool));
    walk.steps = 0;
    walk.stop = instruction;
    walk.stopped = walk.passed = walk.in_code = false;
    assert_true(code_load(c));
    use_times(&c->u, 2);
    walk_to(GO);
    enum state state = wait_while(GO);
    if (state == AT_INSTRUCTION) {
        wait_until_walker_sleeps();
        code_retire(c);
        rounds(c, 3);
        if (walk.in_code || !tide_limbo_looks_at_sleepers)
            assert_int_equal(code_loaded(c), 1);
        *inside += walk.in_code;
        walk.outside += code_loaded(c) == 0;
        walk_to(IDLE);
        state = wait_while(IDLE);
    }
    if (state == AFTER_PASS) {
        rounds(c, 3);
        if (!tide_limbo_looks_at_sleepers)
            assert_int_equal(code_loaded(c), 1); /* once is not enough */
        walk_to(IDLE);
        state = wait_while(IDLE);
    }
    assert_int_equal(state, DONE);
    assert_true(walk.well);
    walk_to(IDLE);
    expect_ok(tide_pool_adopt(c->u.pool));
    if (!walk.stopped)
        code_retire(c);
    for (unsigned i = 0; i < 4; i++) {
        rounds(c, 1);
        use_times(&c->u, 2);
    }
    assert_int_equal(code_loaded(c), 0);
    CHECK_POOL(c->u.pool);
    return walk.stopped;
}

/* Where the code was unloaded though the use would have come back to it, the use dies. */
static void retire_at_any_instruction(const char *purpose)
{
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO}, before;
    pthread_t thread;
    if (under_sanitizer() || under_valgrind()) {
        print_message("a sanitizer or Valgrind steps by itself\n");
        skip();
    }
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
    walk_to(IDLE);
    assert_int_equal(pthread_create(&thread, NULL, walker, NULL), 0);
    for (unsigned k = 0; k < POOLED; k++) {
        static code c;
        unsigned inside = 0;
        uint64_t instruction = 0;
        prepare(&c, kinds_with_pools[k], purpose, pool, 2);
        walk.u = &c.u;
        walk.c = &c;
        walk.outside = 0;
        while (retire_at(&c, instruction, &inside))
            instruction++;
        assert_in_range(inside, 10, instruction); /* it stood still in compiled code, too */
        assert_in_range(walk.outside, tide_limbo_looks_at_sleepers ? 1 : 0, instruction - inside);
        code_drop(&c);
    }
    walk_to(QUIT);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(sigaction(SIGTRAP, &before, NULL), 0);
    expect_ok(tide_pool_destroy(pool));
}

static void retiring_at_any_instruction_of_a_use_is_safe(void **state)
{
    (void)state;
    retire_at_any_instruction("stepped");
}

static void looking_at_a_sleeper_at_any_instruction_is_safe(void **state)
{
    (void)state;
    need_sleepers_told();
    retire_at_any_instruction("looked at");
}

#endif

/* ---- many threads ------------------------------------------------------------------------ */

enum { HAMMERS = 4 };

static struct {
    code codes[POOLED];
    bool stop, failed; /* atomic */
} anvil;

/* Uses every site, nested at times, with a pool that is replaced now and then. */
static void *hammer(void *seed)
{
    rng random = {(uintptr_t)seed};
    tide_pool *pool = tide_pool_create(NULL);
    for (uint64_t i = 0; !__atomic_load_n(&anvil.stop, __ATOMIC_RELAXED); i++) {
        use u = anvil.codes[rng_below(&random, POOLED)].u;
        u.pool = pool;
        tide_scope outer;
        bool nested = rng_below(&random, 4) == 0, well;
        if (nested)
            tide_site_enter(&outer, pool, anvil.codes[0].u.site);
        well = use_once(&u) && use_once(&u);
        if (nested)
            tide_site_leave(&outer);
        if (!well || tide_pool_depth(pool) != 0)
            __atomic_store_n(&anvil.failed, true, __ATOMIC_RELAXED);
        if (rng_below(&random, 20000) == 0) {
            tide_pool_destroy(pool);
            pool = tide_pool_create(NULL);
        }
    }
    bool well = tide_pool_check(pool) == TIDE_OK && tide_pool_destroy(pool) == TIDE_OK;
    return (void *)(uintptr_t)well;
}

static void plans_come_and_go_thousands_of_times_under_threads(void **state)
{
    (void)state;
    pthread_t threads[HAMMERS];
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    size_t loads = 0, wanted = scaled(2000, 200);
    for (unsigned k = 0; k < POOLED; k++)
        prepare(&anvil.codes[k], kinds_with_pools[k], "hammered", pool, 2);
    expect_ok(tide_pool_destroy(pool)); /* nobody would make it pass */
    anvil.stop = anvil.failed = false;
    for (uintptr_t i = 0; i < HAMMERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, (void *)i), 0);
    while (loads < wanted && !__atomic_load_n(&anvil.failed, __ATOMIC_RELAXED)) {
        for (unsigned k = 0; k < POOLED; k++) {
            code *c = &anvil.codes[k];
            if (c->last >= 0)
                code_retire(c);
            loads += code_load(c);
        }
        code_round(&anvil.codes[loads % POOLED]);
        sched_yield();
    }
    __atomic_store_n(&anvil.stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < HAMMERS; i++) {
        void *well;
        assert_int_equal(pthread_join(threads[i], &well), 0);
        assert_non_null(well);
    }
    assert_false(anvil.failed);
    for (unsigned k = 0; k < POOLED; k++) {
        assert_true(runs_of(anvil.codes[k].u.site) > 0);
        code_drop(&anvil.codes[k]);
        rounds(&anvil.codes[k], 3);
        assert_int_equal(code_loaded(&anvil.codes[k]), 0);
        assert_true(anvil.codes[k].unloaded > 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PASSES_TEST(code_goes_when_every_pool_has_passed_twice),
        PASSES_TEST(code_that_waited_in_the_parent_stays_in_the_child),
        PASSES_TEST(a_pool_that_is_gone_or_came_later_is_not_waited_for),
        LEARNING_TEST(a_thread_that_sleeps_keeps_no_code),
        LEARNING_TEST(a_pool_that_was_excused_passes_three_times_the_next_time),
        LEARNING_TEST(a_pool_inside_a_long_scope_passes_too),
        LEARNING_TEST(a_scope_outlives_its_code_and_ends_well),
#if defined(__x86_64__)
        PASSES_TEST(retiring_at_any_instruction_of_a_use_is_safe),
        LEARNING_TEST(looking_at_a_sleeper_at_any_instruction_is_safe),
#endif
        LEARNING_TEST(plans_come_and_go_thousands_of_times_under_threads),
        LEARNING_TEST(code_of_dispatches_is_shared_and_stays),
        LEARNING_TEST(a_second_artefact_of_the_same_dispatches_stays_too),
    };
    return cmocka_run_group_tests_name("learning: limbo", tests, NULL, NULL);
}
