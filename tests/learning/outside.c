/* SPDX-License-Identifier: MIT */
/* What the program may do while a round is in the dynamic linker or in a listener to events: fork,
 * step and exit from the constructor of a library, step under a lock that the listener wants.
 *
 * The linker's calls are wrapped (the option --wrap). When told to, the keeper stops before one
 * until the program is in a constructor, so has the linker's lock, for which the keeper waits next.
 * A call that hangs is ended by an alarm, which says in which scene. */
#define _GNU_SOURCE
#include "learning.h"

#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jit/learn/round.h"
#include "runtime/base/linker.h"
#include "runtime/base/registry.h"
#include "tests/gate.h"
#include "tests/in_linker.h"
#include "tests/watchdog.h"

/* ---- the keeper, stopped before the linker ------------------------------------------------- */

enum { CALL_DLOPEN, CALL_DLSYM, CALLS };
static const char *const call_names[CALLS] = {"dlopen", "dlsym"};

static void keeper_pass(int call)
{
    char name[16] = "";
    (void)pthread_getname_np(pthread_self(), name, sizeof name);
    if (strcmp(name, "tide-background") == 0)
        gate_pass(call);
}

void *__real_dlsym(void *handle, const char *name);
void *__wrap_dlsym(void *handle, const char *name);

static bool own_wanted; /* atomic: the next load is one of the main thread's own round */
static tide_status own_status;

/* As the constructor of a library that the loaded code needs would. */
static void settle_in_own_round(void)
{
    __atomic_store_n(&own_wanted, false, __ATOMIC_RELAXED);
    own_status = tide_settle(PATIENCE_MS);
}

static bool gate_passed;  /* atomic: the keeper is through the call */
static bool visit_wanted; /* atomic: the keeper visits the list of modules, too */

static int see_module(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)info, (void)size, (void)user;
    return 1;
}

UNOBSERVED void *__wrap_dlopen(const char *path, int flags)
{
    bool gated = gate_is_at(CALL_DLOPEN);
    if (__atomic_load_n(&own_wanted, __ATOMIC_RELAXED))
        settle_in_own_round();
    if (gated)
        keeper_pass(CALL_DLOPEN);
    if (gated && __atomic_load_n(&visit_wanted, __ATOMIC_RELAXED))
        assert_int_equal(tide_linker_each_module(see_module, NULL), 1);
    void *handle = __real_dlopen(path, flags);
    if (gated)
        __atomic_store_n(&gate_passed, true, __ATOMIC_RELEASE);
    return handle;
}

UNOBSERVED void *__wrap_dlsym(void *handle, const char *name)
{
    if (gate_is_at(CALL_DLSYM))
        keeper_pass(CALL_DLSYM);
    return __real_dlsym(handle, name);
}

/* Uses sites, each of another set of types, until the keeper stands before that call. */
static void bring_keeper_to(int call)
{
    static unsigned sites;
    char name[64];
    gate_close(call);
    __atomic_store_n(&gate_passed, false, __ATOMIC_RELAXED);
    set("background", 1);
    set("keeper_period", 1);
    snprintf(name, sizeof name, "outside: %u", sites++);
    use u = use_of(name, TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    expect_ok(tide_background_start());
    for (unsigned i = 0; !gate_is_reached(); i++) {
        static const tide_type types[] = {TIDE_F64, TIDE_I32, TIDE_F32, TIDE_I64};
        if (tier_of(u.site) == TIDE_TIER_COMPILED)
            u.types[0] = types[i / 400 % 4];
        use_times(&u, 10);
        usleep(200);
    }
}

/* ---- in a constructor ---------------------------------------------------------------------- */

/* It learns by itself what the parent was about to. Not so under ThreadSanitizer: its dlopen and
 * dlclose visit the linker's list under a lock of its own, and neither lock is made anew in a
 * child, so whatever the child loads may wait for ever for the keeper that it does not have. */
static void live_as_child(void)
{
    in_constructor = in_destructor = NULL; /* the second comes with exit */
    play("the child learns");
    set("background", 0);
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    use u = use_of("outside: in the child", TIDE_KIND_SCOPE, pool, 1, TIDE_F64);
    if (under_thread_sanitizer()) {
        use_times(&u, 10);
        _exit(7);
    }
    until(&u, TIDE_TIER_COMPILED);
    settle();
    expect_ok(tide_pool_destroy(pool));
    exit(7);
}

static unsigned children_lost; /* an assertion in a constructor would leave the linker locked */

static void fork_here(void)
{
    gate_let_pass();
    pid_t child = fork();
    if (child == 0)
        live_as_child();
    children_lost += wait_for_child(child) != 7;
}

static void step_here(void)
{
    gate_let_pass();
    for (unsigned i = 0; i < 10; i++)
        expect_ok(tide_step());
    (void)tide_settle(20);
}

/* The keeper is well: a new site comes to be compiled. */
static void expect_keeper_learns(void)
{
    static unsigned sites;
    char name[64];
    snprintf(name, sizeof name, "outside: afterwards %u", sites++);
    use u = use_of(name, TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    while (tier_of(u.site) != TIDE_TIER_COMPILED) {
        use_times(&u, 10);
        usleep(200);
    }
    expect_ok(tide_background_stop());
}

static void one_round_does_not_wait_for_its_own_end(void **state)
{
    (void)state;
    need_stager();
    play("settling inside one's own round");
    use u = use_of("outside: own", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    own_status = TIDE_OK;
    __atomic_store_n(&own_wanted, true, __ATOMIC_RELAXED);
    while (__atomic_load_n(&own_wanted, __ATOMIC_RELAXED)) {
        use_times(&u, 10);
        expect_ok(tide_step());
    }
    assert_int_equal(own_status, TIDE_ERROR_STATE);
    while (tier_of(u.site) != TIDE_TIER_COMPILED) {
        use_times(&u, 10);
        settle();
    }
    play(NULL);
}

static void visit_while_keeper_waits(const char *what, void (*visit)(void))
{
    static char name[64]; /* the watchdog says it, whenever */
    for (int call = 0; call < CALLS; call++) {
        snprintf(name, sizeof name, "%s, the keeper in %s", what, call_names[call]);
        play(name);
        bring_keeper_to(call);
        visit_linker(visit, visit); /* the keeper goes on into the linker meanwhile */
        expect_keeper_learns();
    }
    play(NULL);
}

static void a_constructor_may_fork_while_the_keeper_is_in_the_linker(void **state)
{
    (void)state;
    need_stager();
    visit_while_keeper_waits("a constructor forks", fork_here);
    assert_int_equal(children_lost, 0);
}

static bool fork_begun; /* atomic */

static void note_fork(void)
{
    __atomic_store_n(&fork_begun, true, __ATOMIC_RELEASE);
}

static void *fork_there(void *unused)
{
    pid_t child = fork_child(60);
    if (child == 0)
        _exit(__atomic_load_n(&gate_passed, __ATOMIC_ACQUIRE) ? 0 : 1);
    return wait_for_child(child) == 0 ? &fork_begun : unused;
}

/* Its child would find the linker's list locked. And the keeper may want to visit the list before it
 * comes out: a fork that waits keeps nobody from that. */
static void a_fork_waits_for_the_keeper_in_the_linker(void **state)
{
    (void)state;
    pthread_t thread;
    void *well = NULL;
    need_stager();
    play("a fork waits for the keeper in the linker");
    assert_int_equal(pthread_atfork(note_fork, NULL, NULL), 0); /* called before the library's */
    __atomic_store_n(&fork_begun, false, __ATOMIC_RELAXED);
    double patience = tide_round_fork_patience_ms;
    __atomic_store_n(&visit_wanted, true, __ATOMIC_RELAXED);
    bring_keeper_to(CALL_DLOPEN);
    tide_round_fork_patience_ms = 60000;
    assert_int_equal(pthread_create(&thread, NULL, fork_there, NULL), 0);
    while (!__atomic_load_n(&fork_begun, __ATOMIC_ACQUIRE))
        usleep(200);
    usleep(5000); /* it waits by now; if not, it will */
    gate_let_pass();
    assert_int_equal(pthread_join(thread, &well), 0);
    assert_non_null(well);
    tide_round_fork_patience_ms = patience;
    __atomic_store_n(&visit_wanted, false, __ATOMIC_RELAXED);
    expect_keeper_learns();
    play(NULL);
}

static void a_constructor_may_step_while_the_keeper_is_in_the_linker(void **state)
{
    (void)state;
    need_stager();
    visit_while_keeper_waits("a constructor steps", step_here);
}

static void exit_here(void)
{
    in_destructor = NULL;
    gate_let_pass();
    exit(3);
}

static void a_constructor_may_exit_while_the_keeper_is_in_the_linker(void **state)
{
    (void)state;
    need_stager();
    if (under_thread_sanitizer()) /* takes an exit from a constructor for an error of the program */
        skip();
    play("a constructor exits");
    pid_t child = fork();
    if (child == 0) {
        play("a constructor exits, in the child");
        bring_keeper_to(CALL_DLOPEN);
        visit_linker(exit_here, NULL);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
    play(NULL);
}

/* At the end of a process handlers go outside, too: the keeper does not go on meanwhile. */
static void take_the_keepers_round_over(void)
{
    enum { POLLS = 100 };
    uint64_t installs = learned().compiled;
    CHILD_MUST(!tide_round_close());
    gate_let_pass();
    while (!__atomic_load_n(&gate_passed, __ATOMIC_ACQUIRE))
        usleep(1000);
    for (unsigned i = 0; i < POLLS; i++) {
        unsigned let_go = tide_round_let_go();
        CHILD_MUST(let_go == 1);
        usleep(1000);
        tide_round_take_again(let_go);
        CHILD_MUST(learned().compiled == installs);
    }
    _exit(0);
}

static void a_round_that_was_taken_over_does_not_go_on(void **state)
{
    (void)state;
    need_stager();
    play("a round is taken over");
    pid_t child = fork_child(60);
    if (child == 0) {
        bring_keeper_to(CALL_DLOPEN);
        take_the_keepers_round_over();
    }
    expect_child_ends_well(child);
    play(NULL);
}

/* ---- in a listener ------------------------------------------------------------------------- */

static pthread_mutex_t lock_of_program = PTHREAD_MUTEX_INITIALIZER;
static bool listening; /* atomic */
static unsigned heard;

static bool visit_none(tide_site *site, void *user)
{
    (void)site;
    (void)user;
    return true;
}

static void listen_under_lock(const tide_event *event, void *user)
{
    (void)event;
    (void)user;
    assert_false(tide_registry_held());
    __atomic_store_n(&listening, true, __ATOMIC_RELEASE);
    pthread_mutex_lock(&lock_of_program);
    heard++;
    pthread_mutex_unlock(&lock_of_program);
    tide_site_each(visit_none, NULL);
}

static void fork_and_step(void)
{
    pid_t child = fork();
    if (child == 0) {
        set("background", 0);
        expect_ok(tide_step());
        exit(8);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 8);
}

static void a_listener_may_wait_for_a_lock_under_which_others_step(void **state)
{
    (void)state;
    play("a listener wants the program's lock");
    set("keeper_period", 1);
    pthread_mutex_lock(&lock_of_program);
    tide_event_set_handler(listen_under_lock, NULL);
    use u = use_of("outside: heard", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    use_times(&u, 1);
    expect_ok(tide_background_start());
    while (!__atomic_load_n(&listening, __ATOMIC_ACQUIRE))
        usleep(200);
    uint64_t rounds = learned().rounds;
    for (unsigned i = 0; i < 10; i++)
        expect_ok(tide_step());
    assert_true(learned().rounds == rounds); /* the listener's goes on: there was no other */
    expect_status(tide_settle(20), TIDE_ERROR_STATE);
    tide_site_each(visit_none, NULL);
    fork_and_step();
    assert_int_equal(heard, 0);
    pthread_mutex_unlock(&lock_of_program);
    expect_ok(tide_background_stop());
    tide_event_set_handler(NULL, NULL);
    assert_true(heard > 0);
    play(NULL);
}

static void listen_for_ever(const tide_event *event, void *user)
{
    (void)event;
    (void)user;
    __atomic_store_n(&listening, true, __ATOMIC_RELEASE);
    for (;;)
        pause();
}

static void *step_once(void *user)
{
    (void)tide_step();
    return user;
}

static void exit_beside_a_listener(bool by_keeper)
{
    pthread_t thread;
    play("a program exits beside a listener");
    __atomic_store_n(&listening, false, __ATOMIC_RELAXED);
    tide_event_set_handler(listen_for_ever, NULL);
    set("keeper_period", 1);
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    use u = use_of("outside: for ever", TIDE_KIND_SCOPE, pool, 1, TIDE_F64);
    use_times(&u, 1);
    if (by_keeper)
        CHILD_MUST(tide_background_start() == TIDE_OK);
    else
        CHILD_MUST(pthread_create(&thread, NULL, step_once, NULL) == 0);
    while (!__atomic_load_n(&listening, __ATOMIC_ACQUIRE))
        usleep(200);
    exit(6);
}

static void a_listener_that_does_not_return_does_not_keep_the_process(void **state)
{
    (void)state;
    expect_ok(tide_background_stop());
    for (unsigned by_keeper = 0; by_keeper < 2; by_keeper++) {
        pid_t child = fork_child(60);
        if (child == 0)
            exit_beside_a_listener(by_keeper != 0);
        assert_int_equal(wait_for_child(child), 6);
    }
}

/* ---- events, told by many threads ---------------------------------------------------------- */

enum { STEPPERS = 4, ORDERED_SITES = 6 };

static struct {
    tide_site *site;
    unsigned events;
    bool found, published;
} told[ORDERED_SITES];
static unsigned telling, told_out_of_order; /* atomic */
static bool stop_stepping;                  /* atomic */

/* One thread at a time listens, and for a site what happened first comes first. */
static void listen_in_order(const tide_event *event, void *user)
{
    (void)user;
    static _Thread_local unsigned deep;
    if (__atomic_fetch_add(&telling, 1, __ATOMIC_SEQ_CST) != deep++)
        __atomic_fetch_add(&told_out_of_order, 1, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < ORDERED_SITES; i++) {
        if (event->site == NULL || told[i].site != event->site)
            continue;
        bool first = told[i].events++ == 0;
        if (first != (event->kind == TIDE_EVENT_FOUND) ||
            (event->tier == TIDE_TIER_COMPILED && !told[i].published &&
             event->kind != TIDE_EVENT_PUBLISHED))
            __atomic_fetch_add(&told_out_of_order, 1, __ATOMIC_SEQ_CST);
        told[i].found = told[i].found || event->kind == TIDE_EVENT_FOUND;
        told[i].published = told[i].published || (event->kind == TIDE_EVENT_PUBLISHED &&
                                                  event->tier == TIDE_TIER_COMPILED);
    }
    expect_ok(tide_step()); /* its own, within the other */
    usleep(100);
    deep--;
    __atomic_fetch_sub(&telling, 1, __ATOMIC_SEQ_CST);
}

static void *step_along(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&stop_stepping, __ATOMIC_RELAXED)) {
        (void)tide_step();
        usleep(100);
    }
    return NULL;
}

static bool all_published(void)
{
    bool all = true;
    tide_round_lock();
    for (unsigned i = 0; i < ORDERED_SITES; i++)
        all = all && told[i].found && told[i].published;
    tide_round_unlock();
    return all;
}

static void events_of_a_site_stay_in_order_while_many_threads_step(void **state)
{
    (void)state;
    need_stager();
    play("many threads step");
    pthread_t threads[STEPPERS];
    use uses[ORDERED_SITES];
    char name[64];
    for (unsigned i = 0; i < ORDERED_SITES; i++) {
        snprintf(name, sizeof name, "outside: in order %u", i);
        uses[i] = use_of(name, TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
        told[i].site = uses[i].site;
    }
    tide_event_set_handler(listen_in_order, NULL);
    for (unsigned i = 0; i < STEPPERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, step_along, NULL), 0);
    while (!all_published())
        for (unsigned i = 0; i < ORDERED_SITES; i++)
            use_times(&uses[i], 10);
    __atomic_store_n(&stop_stepping, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < STEPPERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    tide_event_set_handler(NULL, NULL);
    assert_int_equal(told_out_of_order, 0);
    assert_int_equal(learned().untold, 0);
    play(NULL);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(one_round_does_not_wait_for_its_own_end),
        LEARNING_TEST(a_constructor_may_fork_while_the_keeper_is_in_the_linker),
        LEARNING_TEST(a_fork_waits_for_the_keeper_in_the_linker),
        LEARNING_TEST(a_constructor_may_step_while_the_keeper_is_in_the_linker),
        LEARNING_TEST(a_constructor_may_exit_while_the_keeper_is_in_the_linker),
        LEARNING_TEST(a_round_that_was_taken_over_does_not_go_on),
        LEARNING_TEST(a_listener_may_wait_for_a_lock_under_which_others_step),
        LEARNING_TEST(a_listener_that_does_not_return_does_not_keep_the_process),
        LEARNING_TEST(events_of_a_site_stay_in_order_while_many_threads_step),
    };
    if (count < 2)
        return 2;
    in_linker_module = arguments[1];
    return cmocka_run_group_tests_name("learning: outside", tests, learning_make_pool,
                                       learning_drop_pool);
}
