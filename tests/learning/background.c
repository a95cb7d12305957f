/* SPDX-License-Identifier: MIT */
/* The background thread: when it appears and when it does not, that it does what stepping by hand
 * does, and that neither exit nor fork minds it, with a compile under way or not.
 *
 * Called with the name of a scene as its argument, this program plays it and does no test. */
#define _GNU_SOURCE
#include "learning.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidepool/learn.h>
#include <tidepool/site.h>
#include <tidepool/upkeep.h>

#include "tests/hooks.h"

/* Of a sanitizer's own threads nothing is known: then only the library's count. */
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

/* A thread that was waited for stays in the list for a moment; ours names itself. */
static void expect_tasks(size_t wanted)
{
    for (unsigned i = 0; i < PATIENCE_MS && tasks() != wanted; i++)
        usleep(1000);
    assert_int_equal(tasks(), wanted);
}

/* Uses the site while the thread does all else. */
static void until_learned(const use *u, tide_tier tier)
{
    if (tier == TIDE_TIER_COMPILED)
        tier = best_tier(u->site->kind);
    for (unsigned i = 0; i < PATIENCE_MS && (tier_of(u->site) != tier || i == 0); i++) {
        use_times(u, 50);
        usleep(1000);
    }
    assert_int_equal(tier_of(u->site), tier);
}

static const char *self; /* this program, as it was called: Valgrind is not what starts again */

/* ---- appearing --------------------------------------------------------------------------- */

/* The tests up to the first that stops the thread are of one that comes and goes by itself. */

static void no_thread_appears_before_some_window_is_full(void **state)
{
    (void)state;
    enum { SITES = 20, WINDOW = 200 };
    use uses[SITES];
    allow_background();
    size_t before = tasks();
    for (unsigned i = 0; i < SITES; i++) {
        char name[64];
        snprintf(name, sizeof name, "background: seldom %u", i);
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
    set("background_idle", 20);
    expect_tasks(before);
}

static void no_thread_appears_while_nothing_is_learned(void **state)
{
    (void)state;
    enum { WINDOW = 200 };
    use u = use_of("background: not learned", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    allow_background();
    use_times(&u, WINDOW - 1);
    set("learn", 0);
    use_times(&u, 2);
    assert_false(tide_background_running());
}

/* Nobody steps. One site is used no more, of the other no use was observed. */
static void what_was_used_while_nothing_was_learned_is_noticed_afterwards(void **state)
{
    (void)state;
    enum { WINDOW = 200 };
    use full = use_of("background: filled", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    use late = use_of("background: late", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    size_t before = tasks();
    set("window_rounds", 1e9);
    allow_background();
    use_times(&full, WINDOW - 1);
    set("learn", 0);
    use_times(&full, 1);
    use_times(&late, 1);
    assert_false(tide_background_running());
    assert_false(info_of(late.site).observed);
    set("learn", 1);
    assert_true(tide_background_running());
    for (unsigned i = 0; i < PATIENCE_MS && tier_of(full.site) != TIDE_TIER_TABLE; i++)
        usleep(1000);
    assert_int_equal(tier_of(full.site), TIDE_TIER_TABLE);
    assert_true(info_of(late.site).observed);
    set("background_idle", 20);
    expect_tasks(before);
}

/* Nobody steps, and the site is used no more. */
static void what_was_used_without_a_thread_is_noticed_by_one(void **state)
{
    (void)state;
    use u = use_of("background: filled before", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    size_t before = tasks();
    use_times(&u, 200);
    assert_false(tide_background_running());
    assert_int_equal(tier_of(u.site), TIDE_TIER_FULL);
    set("background", 1);
    assert_true(tide_background_running());
    for (unsigned i = 0; i < PATIENCE_MS && tier_of(u.site) == TIDE_TIER_FULL; i++)
        usleep(1000);
    assert_int_not_equal(tier_of(u.site), TIDE_TIER_FULL);
    expect_types(u.site, 1, TIDE_F64);
    set("background_idle", 20);
    expect_tasks(before);
}

static void a_stopped_thread_comes_back_only_when_called(void **state)
{
    (void)state;
    size_t before = tasks();
    set("background", 1);
    expect_ok(tide_background_stop());
    expect_ok(tide_background_stop());
    use u = use_of("background: stopped", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
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

static unsigned wakes; /* atomic: all broadcasts of the process */

int __real_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);

int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
    __atomic_fetch_add(&wakes, 1, __ATOMIC_RELAXED);
    return __real_pthread_cond_broadcast(condition);
}

/* Who wants it wakes it, unless it is wanted already. */
static void a_thread_that_is_wanted_is_woken_once(void **state)
{
    (void)state;
    use u = use_of("background: wanted", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    set("background_period", 1e5); /* no round comes but the first */
    expect_ok(tide_site_declare(u.site, u.types, 1));
    uint64_t rounds = learned().rounds;
    expect_ok(tide_background_start());
    for (unsigned i = 0; i < PATIENCE_MS && learned().rounds == rounds; i++)
        usleep(1000);
    unsigned before = __atomic_load_n(&wakes, __ATOMIC_RELAXED);
    expect_ok(tide_background_start());
    assert_int_equal(__atomic_load_n(&wakes, __ATOMIC_RELAXED), before + 1);
    for (unsigned i = 0; i < 1000; i++)
        expect_ok(tide_site_compile_now(u.site));
    assert_int_equal(__atomic_load_n(&wakes, __ATOMIC_RELAXED), before + 1);
    expect_ok(tide_background_stop());
}

/* ---- going ------------------------------------------------------------------------------- */

static void use_until_running(const use *u)
{
    for (unsigned i = 0; i < PATIENCE_MS && !tide_background_running(); i++)
        use_times(u, 50);
    assert_true(tide_background_running());
}

static void it_ends_when_nothing_happens_and_comes_back_by_itself(void **state)
{
    (void)state;
    size_t before = tasks();
    set("background", 1);
    set("background_period", 1);
    set("background_idle", 20);
    set("stager_idle", 1);
    use u = use_of("background: goes", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    for (unsigned times = 0; times < 3; times++) {
        uint64_t windows = learned().windows;
        for (unsigned i = 0; i < PATIENCE_MS && learned().windows == windows; i++) {
            use_times(&u, 50);
            usleep(100);
        }
        assert_true(learned().windows > windows);
        expect_tasks(before);
        assert_false(tide_background_running());
    }
    u.types[0] = TIDE_I32;
    until_learned(&u, TIDE_TIER_TABLE); /* and learns what the site does now */
    expect_types(u.site, 1, TIDE_I32);
}

/* The system lets go of a thread after the thread has said that it ends. */
static void expect_alone(void)
{
    assert_false(tide_background_running());
    if (!under_sanitizer())                         /* which may have threads of its own */
        assert_int_equal(unshare(CLONE_THREAD), 0); /* refused beside another thread */
}

/* At whatever place the thread is in its round. */
static void whoever_forks_is_alone(void **state)
{
    (void)state;
    set("background", 1);
    set("background_period", 1);
    set("window_every", 1);
    use u = use_of("background: forks", TIDE_KIND_SCOPE, learning_pool, 2, TIDE_F64, TIDE_I32);
    for (unsigned times = 0; times < scaled(20, 3); times++) {
        use_until_running(&u);
        usleep(times * 397 % 3000);
        pid_t child = fork_child(100);
        if (child == 0)
            _exit(0);
        expect_alone();
        expect_child_ends_well(child);
    }
    expect_ok(tide_background_start());
    pid_t child = fork_child(100);
    if (child == 0)
        _exit(0);
    expect_child_ends_well(child);
    assert_true(tide_background_running()); /* the program wants it */
    expect_ok(tide_background_stop());
}

static bool ordering; /* atomic */

static void *order_on(void *site)
{
    while (__atomic_load_n(&ordering, __ATOMIC_RELAXED)) {
        (void)tide_site_compile_now(site);
        usleep(20);
    }
    return NULL;
}

/* Another thread wants the thread back while this one waits for its end. */
static void a_fork_ends_a_thread_that_others_start(void **state)
{
    (void)state;
    pthread_t other;
    use u = use_of("background: ordered on", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    set("background", 1);
    expect_ok(tide_site_declare(u.site, u.types, 1));
    __atomic_store_n(&ordering, true, __ATOMIC_RELAXED);
    assert_int_equal(pthread_create(&other, NULL, order_on, u.site), 0);
    for (unsigned times = 0; times < scaled(200, 20); times++) {
        pid_t child = fork_child(100);
        if (child == 0)
            _exit(0);
        expect_child_ends_well(child);
    }
    __atomic_store_n(&ordering, false, __ATOMIC_RELAXED);
    pthread_join(other, NULL);
    expect_ok(tide_background_stop());
}

/* ---- the same as by hand ----------------------------------------------------------------- */

enum { PROGRAM = 7 };

/* A slot of 4 MiB that is used no more, and a small one that is. */
static void need_little(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    assert_non_null(tide_acquire_type(pool, TIDE_U8, 100));
}

static void expect_freed(const char *setting, const char *period)
{
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    set("auto_trim", 0);
    set("auto_compact", 0);
    set(setting, 1);
    set(period, 3);
    set("background_period", 1);
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

static void the_thread_trims_and_compacts_as_steps_do(void **state)
{
    (void)state;
    expect_freed("auto_compact", "compact_period");
    expect_freed("auto_trim", "trim_period");
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

static void scene_exit_with_thread_and_compile(void)
{
    set("background", 1);
    set("background_period", 1);
    order_some();
    while (learned().ordered == 0)
        usleep(100);
    assert_true(tide_background_running());
    exit(3);
}

/* Nothing is tidied up: the stager must notice by itself. */
static void scene_underscore_exit_mid_compile(void)
{
    order_some();
    expect_ok(tide_step());
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
    set("background_period", 1);
    until_learned(&u, TIDE_TIER_COMPILED);
    exit(3);
}

static void *use_a_while(void *unused)
{
    order_some();
    return unused;
}

static _Noreturn void leave_to_a_thread(void)
{
    pthread_t thread;
    set("background", 1);
    set("background_period", 1);
    pthread_create(&thread, NULL, use_a_while, NULL);
    pthread_detach(thread);
    pthread_exit(NULL);
}

static void scene_main_is_over_before_its_threads(void)
{
    leave_to_a_thread();
}

static const struct play {
    const char *name;
    void (*play)(void);
    int status;
} scenes[] = {
    {"exit_with_thread_and_compile", scene_exit_with_thread_and_compile, 3},
    {"underscore_exit_mid_compile", scene_underscore_exit_mid_compile, 3},
    {"main_is_over_before_its_threads", scene_main_is_over_before_its_threads, 0},
    {"sites_used_by_exit_handlers", scene_sites_used_by_exit_handlers, 3},
};
enum { SCENES = sizeof scenes / sizeof *scenes };

/* A process whose main is over lives as long as a thread of ThreadSanitizer's own, for ever. */
static bool stays_for_ever(const struct play *one)
{
    return under_thread_sanitizer() && strncmp(one->name, "main_is_over", 12) == 0;
}

static void programs_end_well_whatever_learning_does(void **state)
{
    (void)state;
    need_stager();
    stop_compiler_process(); /* or it would be taken for one left behind */
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_non_null(mkdtemp(folder));
    for (unsigned i = 0; i < SCENES; i++)
        for (unsigned times = 0; times < 3 && !stays_for_ever(&scenes[i]); times++)
            play(scenes[i].name, scenes[i].status);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

static int play_scene(const char *name)
{
    settings_of_tests();
    learning_pool = tide_pool_create(NULL);
    for (unsigned i = 0; i < SCENES; i++)
        if (strcmp(scenes[i].name, name) == 0)
            scenes[i].play();
    return 2;
}

/* ---- fork -------------------------------------------------------------------------------- */

/* Uses of compiled code go on; what changes is not noticed. */
static void *work_in_child(void *user)
{
    use u = *(const use *)user, born = u;
    u.pool = born.pool = tide_pool_local();
    born.site = tide_site_register("fork: born in a child");
    uint64_t runs = runs_of(u.site);
    CHILD_MUST(u.pool != NULL && born.site != NULL);
    for (unsigned i = 0; i < 1000; i++)
        CHILD_MUST(use_once(&u) && use_once(&born));
    CHILD_MUST(tide_step() == TIDE_OK && tide_settle(0) == TIDE_OK);
    CHILD_MUST(runs_of(u.site) >= runs + 990 && tier_of(u.site) == TIDE_TIER_COMPILED);
    CHILD_MUST(tier_of(born.site) == TIDE_TIER_FULL);
    u.types[0] = TIDE_U16;
    for (unsigned i = 0; i < 1000; i++)
        CHILD_MUST(use_once(&u));
    CHILD_MUST(tier_of(u.site) == TIDE_TIER_COMPILED && info_of(u.site).types[0] != TIDE_U16);
    CHILD_MUST(tide_background_start() == TIDE_ERROR_STATE && !tide_background_running());
    return NULL;
}

static void be_child(const use *u, bool in_a_thread)
{
    pthread_t thread;
    uint64_t rounds = learned().rounds;
    CHILD_MUST(!tide_background_running());
    set("background", 1);
    if (in_a_thread && !under_thread_sanitizer())
        CHILD_MUST(pthread_create(&thread, NULL, work_in_child, (void *)(uintptr_t)u) == 0 &&
                   pthread_join(thread, NULL) == 0);
    else
        (void)work_in_child((void *)(uintptr_t)u);
    CHILD_MUST(learned().rounds == rounds && tide_pool_check(learning_pool) == TIDE_OK);
    exit(0);
}

static void a_child_keeps_its_plans_and_learns_nothing(void **state)
{
    (void)state;
    need_stager();
    set("background_period", 1);
    use known = use_of("fork: known", TIDE_KIND_SCOPE, learning_pool, 2, TIDE_F64, TIDE_I32);
    until(&known, TIDE_TIER_COMPILED);
    for (unsigned in_a_thread = 0; in_a_thread < 2; in_a_thread++) {
        expect_ok(tide_background_start());
        pid_t child = fork_child(100);
        if (child == 0)
            be_child(&known, in_a_thread != 0);
        expect_child_ends_well(child);
        assert_true(tide_background_running());
        expect_ok(tide_background_stop());
    }
    expect_executed(&known, 100);
    use later = use_of("fork: later", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_U8);
    until(&later, TIDE_TIER_COMPILED);
}

int main(int argc, char **argv)
{
    self = argv[0];
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(no_thread_appears_before_some_window_is_full),
        LEARNING_TEST(no_thread_appears_while_nothing_is_learned),
        LEARNING_TEST(what_was_used_while_nothing_was_learned_is_noticed_afterwards),
        LEARNING_TEST(what_was_used_without_a_thread_is_noticed_by_one),
        LEARNING_TEST(it_ends_when_nothing_happens_and_comes_back_by_itself),
        LEARNING_TEST(whoever_forks_is_alone),
        LEARNING_TEST(a_fork_ends_a_thread_that_others_start),
        LEARNING_TEST(a_stopped_thread_comes_back_only_when_called),
        LEARNING_TEST(a_thread_that_is_wanted_is_woken_once),
        LEARNING_TEST(the_thread_trims_and_compacts_as_steps_do),
        LEARNING_TEST(a_child_keeps_its_plans_and_learns_nothing),
        LEARNING_TEST(programs_end_well_whatever_learning_does),
    };
    if (argc > 1)
        return play_scene(argv[1]);
    return cmocka_run_group_tests_name("learning: background", tests, learning_make_pool,
                                       learning_drop_pool);
}
