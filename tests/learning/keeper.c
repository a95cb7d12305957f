/* SPDX-License-Identifier: MIT */
/* The keeper: when it appears and when it does not, that it does what stepping by hand does, and
 * that neither exit nor fork minds it, with a compile under way or not.
 *
 * Called with the name of a scene as its argument, this program plays it and does no test. */
#define _GNU_SOURCE
#include "learning.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidepool/learn.h>
#include <tidepool/site.h>
#include <tidepool/upkeep.h>

#include "jit/learn/round.h"
#include "jit/stager/stager.h"

/* Of a sanitizer's own threads nothing is known: then only keepers count. */
static bool counts_as_task(const char *task)
{
    char path[64], name[32] = "";
    if (task[0] == '.')
        return false;
    if (!under_sanitizer())
        return true;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", task);
    FILE *file = fopen(path, "re");
    if (file != NULL && fgets(name, sizeof name, file) == NULL)
        name[0] = '\0';
    if (file != NULL)
        fclose(file);
    return strcmp(name, "tide-background\n") == 0;
}

static size_t tasks(void)
{
    size_t count = 0;
    DIR *list = opendir("/proc/self/task");
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list)) != NULL;)
        count += counts_as_task(entry->d_name);
    closedir(list);
    return count;
}

/* A thread that was waited for stays in the list for a moment; a keeper names itself. */
static void expect_tasks(size_t wanted)
{
    for (unsigned i = 0; i < PATIENCE_MS && tasks() != wanted; i++)
        usleep(1000);
    assert_int_equal(tasks(), wanted);
}

/* Uses the site while the keeper does all else. */
static void until_kept(const use *u, tide_tier tier)
{
    for (unsigned i = 0; i < PATIENCE_MS && (tier_of(u->site) != tier || i == 0); i++) {
        use_times(u, 50);
        usleep(1000);
    }
    assert_int_equal(tier_of(u->site), tier);
}

static const char *self; /* this program, as it was called: Valgrind is not what starts again */

/* ---- appearing --------------------------------------------------------------------------- */

static void no_thread_appears_before_some_window_is_full(void **state)
{
    (void)state;
    enum { SITES = 20, WINDOW = 200 };
    use uses[SITES];
    set("background", 1);
    size_t before = tasks();
    for (unsigned i = 0; i < SITES; i++) {
        char name[64];
        snprintf(name, sizeof name, "keeper: seldom %u", i);
        uses[i] = use_of(name, i % TIDE_KIND_COUNT, learning_pool, 2, TIDE_F64, TIDE_I32);
        use_times(&uses[i], WINDOW - 1);
    }
    assert_false(tide_background_running());
    assert_int_equal(tasks(), before);
    use_times(&uses[7], 1);
    assert_true(tide_background_running());
    expect_tasks(before + 1);
    for (unsigned i = 0; i < SITES; i++)
        use_times(&uses[i], WINDOW);
    expect_tasks(before + 1);
    expect_ok(tide_background_stop());
    assert_false(tide_background_running());
    expect_tasks(before);
}

static void a_stopped_keeper_comes_back_only_when_called(void **state)
{
    (void)state;
    size_t before = tasks();
    set("background", 1);
    expect_ok(tide_background_stop());
    expect_ok(tide_background_stop());
    use u = use_of("keeper: stopped", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    use_times(&u, 1000);
    assert_false(tide_background_running());
    expect_ok(tide_background_start());
    expect_ok(tide_background_start());
    assert_true(tide_background_running());
    expect_tasks(before + 1);
    for (unsigned i = 0; i < scaled(200, 20); i++) {
        expect_ok(tide_background_stop());
        expect_tasks(before);
        expect_ok(tide_background_start());
    }
    expect_ok(tide_background_stop());
}

/* What holds a keeper up in the middle of a round: a listener that waits for the test. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool entered, free;
} gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false};

static void wait_at_gate(const tide_event *event, void *user)
{
    (void)event, (void)user;
    pthread_mutex_lock(&gate.mutex);
    gate.entered = true;
    pthread_cond_broadcast(&gate.changed);
    while (!gate.free)
        pthread_cond_wait(&gate.changed, &gate.mutex);
    pthread_mutex_unlock(&gate.mutex);
}

/* Returns NULL if the keeper had gone when stopping it returned. */
static void *stop_and_look(void *user)
{
    bool stopped = tide_background_stop() == TIDE_OK;
    pthread_mutex_lock(&gate.mutex);
    bool gone = gate.free;
    pthread_mutex_unlock(&gate.mutex);
    return stopped && gone ? NULL : user;
}

static void two_that_stop_the_keeper_both_wait_until_it_is_gone(void **state)
{
    (void)state;
    pthread_t threads[2];
    void *results[2];
    gate.entered = gate.free = false;
    set("background", 1);
    tide_event_set_handler(wait_at_gate, NULL);
    expect_ok(tide_background_start());
    use u = use_of("keeper: two stop", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    use_times(&u, 1000);
    pthread_mutex_lock(&gate.mutex);
    while (!gate.entered)
        pthread_cond_wait(&gate.changed, &gate.mutex);
    pthread_mutex_unlock(&gate.mutex);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, stop_and_look, results), 0);
    usleep(50000); /* in which a stop that does not wait returns; one that waits takes no harm */
    pthread_mutex_lock(&gate.mutex);
    gate.free = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.mutex);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], &results[i]), 0);
        assert_null(results[i]);
    }
    assert_false(tide_background_running());
    tide_event_set_handler(NULL, NULL);
}

static void *learn_for_ever(void *user)
{
    const use *u = user;
    for (;;) {
        tide_site_reset(u->site);
        use_times(u, 500);
        (void)tide_settle(1000); /* waits for the stager, where a thread may be cancelled */
        pthread_testcancel();
    }
    return NULL;
}

/* Else nobody could do a round any more. */
static void a_thread_cancelled_in_a_round_leaves_no_lock_behind(void **state)
{
    (void)state;
    need_stager();
    use u = use_of("keeper: cancelled", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    for (unsigned i = 0; i < scaled(20, 5); i++) {
        pthread_t thread;
        void *result = NULL;
        assert_int_equal(pthread_create(&thread, NULL, learn_for_ever, &u), 0);
        usleep(1000 * (1 + i % 10));
        assert_int_equal(pthread_cancel(thread), 0);
        assert_int_equal(pthread_join(thread, &result), 0);
        assert_ptr_equal(result, PTHREAD_CANCELED);
        expect_ok(tide_step());
    }
    settle();
}

static void *start_and_stop(void *unused)
{
    for (unsigned i = 0; i < 50; i++) {
        (void)tide_background_start();
        (void)tide_background_running();
        (void)tide_background_stop();
    }
    return unused;
}

static void starting_and_stopping_from_many_threads_ends_as_the_last_said(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, start_and_stop, NULL), 0);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    expect_ok(tide_background_stop());
    assert_false(tide_background_running());
    expect_ok(tide_background_start());
    assert_true(tide_background_running());
    expect_ok(tide_background_stop());
    assert_false(tide_background_running());
}

/* ---- the same as by hand ----------------------------------------------------------------- */

enum { PROGRAM = 7 };

/* Sites of a small program, a copy of its own for each way of running it. */
static void write_program(use *out, const char *way)
{
    static const struct {
        tide_kind kind;
        uint32_t count;
        tide_type types[6];
    } sites[PROGRAM] = {
        {TIDE_KIND_SCOPE, 1, {TIDE_F64}},
        {TIDE_KIND_SCOPE, 3, {TIDE_F64, TIDE_I32, TIDE_F64}},
        {TIDE_KIND_SCOPE, 6, {TIDE_F64, TIDE_I32, TIDE_F32, TIDE_U8, TIDE_I64, TIDE_U16}},
        {TIDE_KIND_FRAME, 3, {TIDE_F64, TIDE_I32, TIDE_F64}},
        {TIDE_KIND_ACQUIRE, 1, {TIDE_I32}},
        {TIDE_KIND_ARRAY, 1, {TIDE_F32}},
        {TIDE_KIND_DISPATCH, 1, {TIDE_C64}},
    };
    for (unsigned i = 0; i < PROGRAM; i++) {
        char name[64];
        snprintf(name, sizeof name, "keeper: program %u %s", i, way);
        out[i] = use_of(name, sites[i].kind, learning_pool, 0);
        out[i].count = sites[i].count;
        memcpy(out[i].types, sites[i].types, sizeof sites[i].types);
    }
}

/* A slot of 4 MiB that is used no more, and a small one that is. */
static void need_little(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    assert_non_null(tide_acquire_type(pool, TIDE_U8, 100));
}

static void expect_keeper_frees(const char *setting, const char *period)
{
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    set("auto_trim", 0);
    set("auto_compact", 0);
    set(setting, 1);
    set(period, 3);
    set("keeper_period", 1);
    {
        TIDE_SCOPE(pool);
        assert_non_null(tide_acquire_type(pool, TIDE_U8, 100));
        assert_non_null(tide_acquire_type(pool, TIDE_F32, 1 << 20));
    }
    assert_true(stats_of(pool).bytes_held >= 1 << 22);
    expect_ok(tide_background_start());
    for (unsigned i = 0; i < PATIENCE_MS && stats_of(pool).bytes_held >= 1 << 22; i++) {
        need_little(pool);
        usleep(1000);
    }
    expect_ok(tide_background_stop());
    assert_true(stats_of(pool).bytes_held < 1 << 20);
    CHECK_POOL(pool);
    expect_ok(tide_pool_destroy(pool));
}

static void the_keeper_trims_and_compacts_as_steps_do(void **state)
{
    (void)state;
    expect_keeper_frees("auto_compact", "compact_period");
    expect_keeper_frees("auto_trim", "trim_period");
}

static uint64_t served_after(tide_pool *pool, uint64_t rounds)
{
    tide_round_request_memory_after(rounds);
    need_little(pool);
    return stats_of(pool).requests;
}

/* Without the thread: what it does between two rounds. */
static void the_keeper_asks_after_each_period_and_not_before(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    set("auto_trim", 0);
    set("auto_compact", 1);
    set("compact_period", 10);
    (void)served_after(pool, 10); /* what was counted before is of another period */
    uint64_t before = stats_of(pool).requests;
    assert_int_equal(served_after(pool, 9), before);
    assert_int_equal(served_after(pool, 1), before + 1);
    assert_int_equal(served_after(pool, 9), before + 1);
    assert_int_equal(served_after(pool, 100), before + 2);
    set("auto_compact", 0);
    assert_int_equal(served_after(pool, 100), before + 2);
    expect_ok(tide_pool_destroy(pool));
}

static void keeper_and_hand_come_to_the_same_plans(void **state)
{
    (void)state;
    need_stager();
    use by_hand[PROGRAM], kept[PROGRAM];
    write_program(by_hand, "by hand");
    write_program(kept, "kept");
    for (unsigned i = 0; i < PROGRAM; i++)
        until(&by_hand[i], TIDE_TIER_COMPILED);
    set("background", 1);
    set("keeper_period", 1);
    expect_ok(tide_background_start());
    for (unsigned i = 0; i < PROGRAM; i++)
        until_kept(&kept[i], TIDE_TIER_COMPILED);
    expect_ok(tide_background_stop());
    for (unsigned i = 0; i < PROGRAM; i++) {
        tide_site_information a = info_of(by_hand[i].site), b = info_of(kept[i].site);
        assert_int_equal(a.tier, b.tier);
        assert_int_equal(a.type_count, b.type_count);
        assert_memory_equal(a.types, b.types, a.type_count * sizeof a.types[0]);
        settle();
        expect_executed(&kept[i], 100);
        expect_executed(&by_hand[i], 100);
    }
}

static uint64_t round_number(void)
{
    tide_round_lock();
    uint64_t number = tide_round_number();
    tide_round_unlock();
    return number;
}

/* Where nothing happens the keeper sleeps ever longer, and counts the rounds that it left out. A
 * window that is full wakes it. */
static void a_keeper_sleeps_when_nothing_happens(void **state)
{
    (void)state;
    settle();
    set("background", 1);
    set("keeper_period", 1);
    expect_ok(tide_background_start());
    uint64_t rounds = learned().rounds, number = round_number(), made = 0;
    while (round_number() < number + 1000)
        usleep(1000);
    made = learned().rounds - rounds; /* asked for first: rounds may pass between the questions */
    assert_in_range(made, 1, (round_number() - number) / 10);
    use u = use_of("keeper: wakes", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    while (tier_of(u.site) == TIDE_TIER_FULL) {
        use_times(&u, 10);
        usleep(100);
    }
    expect_ok(tide_background_stop());
}

/* ---- programs that end ------------------------------------------------------------------- */

/* All of a scene's files lie here. */
static char folder[] = "/tmp/tidepool-scene-XXXXXX";

/* Plays a scene in a process of its own, which must end by itself with that status; then no
 * process and no file of it may be left. */
static void play(const char *name, int expected)
{
    need_stager();
    pid_t child = fork_child(100);
    if (child == 0) {
        setenv("XDG_RUNTIME_DIR", folder, 1);
        setenv("TMPDIR", folder, 1);
        execl(self, "scene", name, (char *)NULL);
        _exit(126);
    }
    int status = wait_for_child(child);
    if (status != expected)
        fail_msg("scene '%s': status %d", name, status);
    while (waitpid(-1, NULL, 0) > 0) /* what it left behind has become ours */
        continue;
    assert_int_equal(count_entries(folder, NULL), 0);
}

static use scene_use(unsigned i)
{
    char name[32];
    snprintf(name, sizeof name, "scene %u", i);
    return use_of(name, TIDE_KIND_SCOPE, learning_pool, 2, TIDE_F64, TIDE_I32);
}

/* So that many compiles are under way. */
static void order_some(void)
{
    for (unsigned i = 0; i < 20; i++) {
        use u = scene_use(i);
        use_times(&u, 200);
    }
}

static void scene_exit_with_keeper_and_compile(void)
{
    set("background", 1);
    set("keeper_period", 1);
    order_some();
    while (learned().ordered == 0)
        usleep(100);
    assert_true(tide_background_running());
    exit(3);
}

static void scene_exit_by_hand_mid_compile(void)
{
    order_some();
    expect_ok(tide_step());
    assert_true(learned().ordered >= 20);
    exit(3);
}

static void exit_when_published(const tide_event *event, void *user)
{
    (void)user;
    if (event->kind == TIDE_EVENT_PUBLISHED && event->tier == TIDE_TIER_COMPILED)
        exit(4);
}

static void scene_exit_from_a_listener_in_the_keeper(void)
{
    set("keeper_period", 1);
    tide_event_set_handler(exit_when_published, NULL);
    use u = scene_use(0);
    expect_ok(tide_background_start());
    for (;;) {
        use_times(&u, 50);
        usleep(1000);
    }
}

static void scene_exit_from_a_listener_while_stepping(void)
{
    tide_event_set_handler(exit_when_published, NULL);
    use u = scene_use(0);
    until(&u, TIDE_TIER_COMPILED);
    exit(1);
}

static void exit_when_found(const tide_event *event, void *user)
{
    (void)user;
    if (event->kind != TIDE_EVENT_FOUND)
        return;
    expect_ok(tide_background_start());
    usleep(20000); /* the keeper is waiting for this round to end by now; if not, it will be */
    exit(4);
}

static void scene_exit_from_a_listener_with_the_keeper_waiting(void)
{
    use u = scene_use(0);
    set("keeper_period", 1);
    tide_event_set_handler(exit_when_found, NULL);
    use_times(&u, 1);
    expect_ok(tide_step());
    exit(1);
}

static void *exit_here(void *unused)
{
    (void)unused;
    exit(3);
}

static bool exit_from_visitor(tide_site *site, void *user)
{
    (void)site, (void)user;
    exit(tide_step() == TIDE_ERROR_STATE ? 5 : 6); /* a visitor has the registry: a step refuses */
}

/* The keeper works on, and wants the registry that the visitor's thread has. */
static void scene_exit_from_a_visitor_of_sites(void)
{
    use u = scene_use(0);
    expect_ok(tide_background_start());
    for (unsigned i = 0; i < 100; i++)
        use_times(&u, 50);
    tide_site_each(exit_from_visitor, NULL);
}

static void scene_exit_from_another_thread(void)
{
    pthread_t thread;
    set("background", 1);
    order_some();
    expect_ok(tide_background_start());
    pthread_create(&thread, NULL, exit_here, NULL);
    pthread_join(thread, NULL);
    exit(1);
}

/* Nothing is tidied up: the stager must notice by itself. */
static void scene_underscore_exit_mid_compile(void)
{
    order_some();
    expect_ok(tide_step());
    _exit(3);
}

static void scene_killed_after_compiling(void)
{
    use u = scene_use(0);
    until(&u, TIDE_TIER_COMPILED);
    _exit(3);
}

/* What the program does when main is over. */
static tide_site *late;

static void use_sites_at_exit(void)
{
    use u = {.site = late, .pool = learning_pool, .count = 1, .types = {TIDE_F64}};
    for (unsigned i = 0; i < 500; i++)
        if (!use_once(&u))
            _exit(1);
    (void)tide_step();
}

static void scene_sites_used_by_exit_handlers(void)
{
    use u = scene_use(0);
    late = u.site;
    atexit(use_sites_at_exit); /* before the library's own handler: run after it */
    set("background", 1);
    set("keeper_period", 1);
    until_kept(&u, TIDE_TIER_COMPILED);
    exit(3);
}

static const struct play {
    const char *name;
    void (*play)(void);
    int status;
} scenes[] = {
    {"exit_with_keeper_and_compile", scene_exit_with_keeper_and_compile, 3},
    {"exit_by_hand_mid_compile", scene_exit_by_hand_mid_compile, 3},
    {"exit_from_a_listener_in_the_keeper", scene_exit_from_a_listener_in_the_keeper, 4},
    {"exit_from_a_listener_while_stepping", scene_exit_from_a_listener_while_stepping, 4},
    {"exit_from_a_listener_with_the_keeper_waiting",
     scene_exit_from_a_listener_with_the_keeper_waiting, 4},
    {"exit_from_a_visitor_of_sites", scene_exit_from_a_visitor_of_sites, 5},
    {"exit_from_another_thread", scene_exit_from_another_thread, 3},
    {"underscore_exit_mid_compile", scene_underscore_exit_mid_compile, 3},
    {"killed_after_compiling", scene_killed_after_compiling, 3},
    {"sites_used_by_exit_handlers", scene_sites_used_by_exit_handlers, 3},
};
enum { SCENES = sizeof scenes / sizeof *scenes };

static void programs_end_well_whatever_learning_does(void **state)
{
    (void)state;
    need_stager();
    tide_round_lock();
    tide_stager_stop(); /* or it would be taken for a process left behind */
    tide_round_unlock();
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_non_null(mkdtemp(folder));
    for (unsigned i = 0; i < SCENES; i++)
        for (unsigned times = 0; times < 3; times++)
            play(scenes[i].name, scenes[i].status);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

/* Nobody has needed the parent's keeper: the child's first window is who needs one. */
static void be_child_of_an_idle_keeper(void)
{
    tide_pool *pool = tide_pool_create(NULL);
    use u = {
        .site = tide_site_register("keeper: child"), .pool = pool, .count = 1, .types = {TIDE_F64}};
    CHILD_MUST(pool != NULL && use_once(&u) && use_once(&u));
    CHILD_MUST(!tide_background_running());
    for (unsigned i = 0; !under_sanitizer() && i < 1000; i++)
        CHILD_MUST(use_once(&u));
    CHILD_MUST(tide_background_running() != under_sanitizer());
    exit(0);
}

/* In a program of its own, with the settings that every program begins with: a pool starts the
 * keeper where the setting says so, and only there. */
static int begin_with_a_pool(void)
{
    set("background", 0);
    if (tide_pool_create(NULL) == NULL || tide_background_running())
        return 1;
    set("background", 1);
    if (tide_pool_create(NULL) == NULL || tide_background_running())
        return 5;
    set("background", 2);
    if (tide_background_running() || tide_pool_create(NULL) == NULL || !tide_background_running())
        return 2;
    expect_tasks(under_sanitizer() ? 1 : 2);
    pid_t child = fork_child(100);
    if (child == 0)
        be_child_of_an_idle_keeper();
    expect_child_ends_well(child);
    return 3;
}

static void the_first_pool_starts_it_where_that_is_wanted(void **state)
{
    (void)state;
    pid_t child = fork_child(100);
    if (child == 0) {
        execl(self, "scene", "begin_with_a_pool", (char *)NULL);
        _exit(126);
    }
    assert_int_equal(wait_for_child(child), 3);
}

static int play_scene(const char *name)
{
    if (strcmp(name, "begin_with_a_pool") == 0)
        return begin_with_a_pool();
    settings_of_tests();
    learning_pool = tide_pool_create(NULL);
    for (unsigned i = 0; i < SCENES; i++)
        if (strcmp(scenes[i].name, name) == 0)
            scenes[i].play();
    return 2;
}

/* ---- fork -------------------------------------------------------------------------------- */

static uint64_t stagers_at_fork;

/* The child learns a site of its own to the end, by its own stager. */
static void learn_in_child(unsigned number)
{
    char name[64];
    uint64_t runs = 0;
    snprintf(name, sizeof name, "born in child %u", number);
    use u = {
        .site = tide_site_register(name), .pool = learning_pool, .count = 1, .types = {TIDE_F64}};
    CHILD_MUST(u.site != NULL);
    CHILD_MUST(!tide_background_running());
    for (unsigned i = 0; i < 500 && tier_of(u.site) != TIDE_TIER_COMPILED; i++) {
        for (unsigned j = 0; j < 100; j++)
            CHILD_MUST(use_once(&u));
        CHILD_MUST(tide_settle(PATIENCE_MS) == TIDE_OK);
        CHILD_MUST(tide_step() == TIDE_OK);
    }
    CHILD_MUST(tier_of(u.site) == TIDE_TIER_COMPILED);
    CHILD_MUST(use_once(&u));
    runs = runs_of(u.site);
    for (unsigned j = 0; j < 100; j++)
        CHILD_MUST(use_once(&u));
    CHILD_MUST(runs_of(u.site) == runs + 100);
    CHILD_MUST(learned().stagers > stagers_at_fork);
    CHILD_MUST(tide_pool_check(learning_pool) == TIDE_OK);
}

static pid_t fork_learner(void)
{
    stagers_at_fork = learned().stagers;
    return fork_child(100);
}

/* A site whose compile is under way, but nobody is told. A stager that is fast, or a step that is
 * slow, may have the code there by the end of the step: then another site, of other types. */
static use use_with_compile_under_way(void)
{
    static const tide_type types[] = {TIDE_I32, TIDE_U8,  TIDE_I8,  TIDE_U16,
                                      TIDE_I16, TIDE_U32, TIDE_U64, TIDE_I64};
    for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
        char name[64];
        snprintf(name, sizeof name, "fork: ordered %u", i);
        use u = use_of(name, TIDE_KIND_SCOPE, learning_pool, 2, TIDE_F32, types[i]);
        use_times(&u, 200);
        expect_ok(tide_step());
        if (strcmp(reason_of(u.site), "sent to the stager") == 0)
            return u;
    }
    fail_msg("each was compiled within its step");
    return (use){0};
}

/* Compiled code that the parent had goes on in the child. */
static void parent_and_child_both_learn_on_after_a_fork(void **state)
{
    (void)state;
    need_stager();
    use known = use_of("fork: known", TIDE_KIND_SCOPE, learning_pool, 2, TIDE_F64, TIDE_I32);
    until(&known, TIDE_TIER_COMPILED);
    use ordered = use_with_compile_under_way();
    pid_t child = fork_learner();
    if (child == 0) {
        uint64_t runs = runs_of(known.site);
        for (unsigned i = 0; i < 100; i++)
            CHILD_MUST(use_once(&known) && use_once(&ordered));
        CHILD_MUST(runs_of(known.site) >= runs + 99);
        learn_in_child(0);
        for (unsigned i = 0; i < 4000 && tier_of(ordered.site) != TIDE_TIER_COMPILED; i++) {
            CHILD_MUST(use_once(&ordered));
            CHILD_MUST(tide_step() == TIDE_OK);
            CHILD_MUST(tide_settle(PATIENCE_MS) == TIDE_OK); /* what the parent ordered, again */
        }
        CHILD_MUST(tier_of(ordered.site) == TIDE_TIER_COMPILED);
        exit(0);
    }
    settle();
    expect_child_ends_well(child);
    until(&ordered, TIDE_TIER_COMPILED);
    assert_int_equal(info_of(ordered.site).compiles, 1);
    expect_executed(&ordered, 100);
    expect_executed(&known, 100);
    use later = use_of("fork: later", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_U8);
    until(&later, TIDE_TIER_COMPILED);
}

/* At whatever place the keeper is in its round. */
static void forks_beside_a_busy_keeper_harm_nobody(void **state)
{
    (void)state;
    need_stager();
    set("keeper_period", 1);
    set("window_every", 1);
    expect_ok(tide_background_start());
    for (unsigned i = 0; i < scaled(40, 4); i++) {
        char name[64];
        snprintf(name, sizeof name, "fork: beside %u", i);
        use u = use_of(name, i % TIDE_KIND_COUNT, learning_pool, 2, TIDE_F64, TIDE_I32);
        use_times(&u, 220);
        usleep(i * 397 % 3000);
        pid_t child = fork_learner();
        if (child == 0) {
            for (unsigned j = 0; j < 300; j++)
                CHILD_MUST(use_once(&u));
            CHILD_MUST(tide_step() == TIDE_OK);
            if (i % 8 == 0)
                learn_in_child(i);
            exit(0);
        }
        until_kept(&u, TIDE_TIER_COMPILED);
        expect_child_ends_well(child);
    }
    expect_ok(tide_background_stop());
}

/* A child that does not step gets a keeper of its own. */
static void a_child_gets_a_keeper_of_its_own(void **state)
{
    (void)state;
    need_stager();
    if (under_thread_sanitizer()) {
        print_message("ThreadSanitizer wants no threads in a child\n");
        skip();
    }
    expect_ok(tide_background_start());
    pid_t child = fork_learner();
    if (child == 0) {
        set("background", 1);
        set("keeper_period", 1);
        CHILD_MUST(!tide_background_running());
        use u = use_of("fork: kept", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
        for (unsigned i = 0; i < PATIENCE_MS && tier_of(u.site) != TIDE_TIER_COMPILED; i++) {
            for (unsigned j = 0; j < 50; j++)
                CHILD_MUST(use_once(&u));
            usleep(1000);
        }
        CHILD_MUST(tide_background_running());
        CHILD_MUST(tier_of(u.site) == TIDE_TIER_COMPILED);
        exit(0);
    }
    expect_child_ends_well(child);
    assert_true(tide_background_running());
    expect_ok(tide_background_stop());
}

int main(int argc, char **argv)
{
    self = argv[0];
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(no_thread_appears_before_some_window_is_full),
        LEARNING_TEST(a_stopped_keeper_comes_back_only_when_called),
        LEARNING_TEST(a_thread_cancelled_in_a_round_leaves_no_lock_behind),
        LEARNING_TEST(two_that_stop_the_keeper_both_wait_until_it_is_gone),
        LEARNING_TEST(starting_and_stopping_from_many_threads_ends_as_the_last_said),
        LEARNING_TEST(a_keeper_sleeps_when_nothing_happens),
        LEARNING_TEST(the_keeper_trims_and_compacts_as_steps_do),
        LEARNING_TEST(the_keeper_asks_after_each_period_and_not_before),
        LEARNING_TEST(keeper_and_hand_come_to_the_same_plans),
        LEARNING_TEST(parent_and_child_both_learn_on_after_a_fork),
        LEARNING_TEST(forks_beside_a_busy_keeper_harm_nobody),
        LEARNING_TEST(a_child_gets_a_keeper_of_its_own),
        LEARNING_TEST(the_first_pool_starts_it_where_that_is_wanted),
        LEARNING_TEST(programs_end_well_whatever_learning_does),
    };
    if (argc > 1)
        return play_scene(argv[1]);
    return cmocka_run_group_tests_name("learning: keeper", tests, learning_make_pool,
                                       learning_drop_pool);
}
