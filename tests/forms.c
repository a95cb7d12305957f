/* SPDX-License-Identifier: MIT */
/* The harness: has sites compiled and pinned, makes scenes, compares pools, reads dead memory. */
#define _GNU_SOURCE
#include "forms.h"
#include "hooks.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tidepool/dynamic.h>
#include <tidepool/learn.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

#include "runtime/pool/core.h"

#if defined(TIDE_HAVE_VALGRIND)
#include <valgrind/valgrind.h>
#endif

static const pool_kind kinds[] = {
    {"unchecked", TIDE_CHECK_NONE, false, false}, {"warm", TIDE_CHECK_NONE, false, true},
    {"poison", TIDE_CHECK_POISON, false, false},  {"disabled", TIDE_CHECK_NONE, true, false},
    {"guarded", TIDE_CHECK_GUARD, false, false},
};
enum { KIND_COUNT = sizeof(kinds) / sizeof(kinds[0]) };

static const form *const tables[] = {forms_c, forms_cpp};
enum { TABLE_COUNT = sizeof(tables) / sizeof(tables[0]) };

static char noted[256];
static bool tiers_pinned; /* while a table is prepared its sites are at any tier */

void note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(noted, sizeof noted, format, arguments);
    va_end(arguments);
}

/* ---- forms ---- */

bool have_stager(void)
{
    static int have = -1;
    if (have < 0)
        have = stager_is_there();
    return have != 0;
}

static bool runs_here(const form *f)
{
    return f->tier != TIDE_TIER_COMPILED || have_stager();
}

size_t form_count(void)
{
    size_t count = 0;
    for (size_t t = 0; t < TABLE_COUNT; t++)
        for (const form *f = tables[t]; f->name != NULL; f++)
            count += runs_here(f);
    return count;
}

const form *form_at(size_t i)
{
    for (size_t t = 0; t < TABLE_COUNT; t++)
        for (const form *f = tables[t]; f->name != NULL; f++)
            if (runs_here(f) && i-- == 0)
                return f;
    return NULL;
}

struct search {
    const char *name;
    tide_site *found;
};

static bool site_is_named(tide_site *site, void *user)
{
    struct search *search = user;
    const char *name = site->name != NULL ? site->name : site->place.function;
    if (name != NULL && strcmp(name, search->name) == 0)
        search->found = site;
    return search->found == NULL;
}

tide_site *form_site(const form *f)
{
    struct search search = {f->site, NULL};
    tide_site_each(site_is_named, &search);
    assert_non_null(search.found);
    return search.found;
}

bool form_saves_all(const form *f)
{
    return f->site != NULL && f->tier == TIDE_TIER_FULL;
}

static tide_site_information info_of(const form *f)
{
    tide_site_information info;
    expect_ok(tide_site_info(form_site(f), &info));
    return info;
}

/* ---- preparing ---- */

static void no_body(tide_pool *pool, void *state)
{
    (void)pool;
    (void)state;
}

static void introduce(const form *f, tide_pool *pool)
{
    static const tide_type known[] = {TIDE_F64, TIDE_I32, TIDE_F64};
    expect_ok(f->run(pool, no_body, NULL)); /* in C++ a site is listed when first entered */
    if (f->declared)
        expect_ok(tide_site_declare(form_site(f), known, 3));
    if (f->site != NULL && f->tier != TIDE_TIER_COMPILED)
        expect_ok(tide_site_pin(form_site(f), f->tier));
}

#define EACH_COMPILED(f, table)                         \
    for (const form *f = (table); f->name != NULL; f++) \
        if (f->tier == TIDE_TIER_COMPILED)

static void use_often(const form *f, tide_pool *pool)
{
    double window;
    window = get_constant("window_calls");
    for (double i = 0; i < window; i++)
        expect_ok(f->run(pool, no_body, NULL));
}

/* All of them together: the stager compiles what is wanted at once. */
static bool compile_some(const form *table, tide_pool *pool)
{
    bool left = false;
    EACH_COMPILED(f, table)
    {
        if (info_of(f).tier == TIDE_TIER_COMPILED)
            continue;
        left = true;
        use_often(f, pool);
    }
    expect_ok(tide_settle(60000));
    return left;
}

/* Nobody watches it any more once what it was watched for is over. */
static void pin_compiled(const form *f, tide_pool *pool)
{
    tide_site_information info = info_of(f);
    if (info.tier != TIDE_TIER_COMPILED)
        fail_msg("%s is not compiled, but %s: %s", f->name, tide_tier_name(info.tier), info.reason);
    expect_ok(tide_site_pin(form_site(f), TIDE_TIER_COMPILED));
    for (int i = 0; i < 10 && info_of(f).observed; i++)
        use_often(f, pool);
    assert_false(info_of(f).observed);
}

/* While others are compiled, which lasts as many rounds as it likes, a site may be found idle: its
 * next window then opens some hundred rounds later. */
static void compile(const form *table, tide_pool *pool)
{
    enum { MOST = 500 };
    for (int i = 0; i < MOST && compile_some(table, pool); i++)
        continue;
    EACH_COMPILED(f, table)
    pin_compiled(f, pool);
}

/* Sites of the other tiers are not to be observed: they come before learning is switched on. */
bool forms_of_the_host = true;

void forms_prepare(const form *table)
{
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    expect_ok(tide_tune_set("background", 0));
    expect_ok(tide_tune_set("trial", 0));
    expect_ok(tide_tune_set("count_runs", 1));
    expect_ok(tide_tune_set("learn", 0));
    tiers_pinned = false;
    for (const form *f = table; f->name != NULL; f++)
        introduce(f, pool);
    expect_ok(tide_tune_set("learn", 1));
    if (have_stager())
        compile(table, pool);
    tiers_pinned = true;
    expect_ok(tide_pool_destroy(pool));
}

void forms_prepare_all(void)
{
    for (size_t t = 0; t < TABLE_COUNT; t++)
        forms_prepare(tables[t]);
}

void expect_tier(const tide_plan *plan, tide_tier tier)
{
    assert_non_null(plan);
    if (tiers_pinned)
        assert_string_equal(tide_tier_name(plan->tier), tide_tier_name(tier));
}

void form_run(const form *f, tide_pool *pool, form_body *body, void *state)
{
    check_status(f->run(pool, body, state), TIDE_OK, f->name, __FILE__, __LINE__);
}

void form_repeat(const form *f, tide_pool *pool, size_t count, form_body *body, void *state)
{
    if (f->repeat != NULL) {
        f->repeat(pool, count, body, state);
        return;
    }
    for (size_t i = 0; i < count; i++)
        form_run(f, pool, body, state);
}

struct nesting {
    size_t next, left; /* the form to open now, and how many */
    form_body *body;
    void *state;
};

static void nest_body(tide_pool *pool, void *state)
{
    struct nesting now = *(struct nesting *)state;
    if (now.left == 0) {
        now.body(pool, now.state);
        return;
    }
    const form *f = form_at(now.next % form_count());
    now.next++;
    now.left--;
    form_run(f, pool, nest_body, &now);
}

void form_nest(const form *first, size_t depth, tide_pool *pool, form_body *body, void *state)
{
    struct nesting nesting = {0, depth, body, state};
    while (form_at(nesting.next) != first)
        nesting.next++;
    nest_body(pool, &nesting);
}

/* ---- scenes ---- */

struct planned {
    const form_case *what;
    scene scene;
    char name[160];
};

static bool warm_up(tide_pool *pool)
{
    return tide_acquire(pool, double, 10) != NULL && tide_acquire(pool, int32_t, 10) != NULL &&
           tide_pool_reset(pool) == TIDE_OK;
}

static int scene_setup(void **state)
{
    struct planned *planned = *state;
    const tide_pool_options options = {.name = planned->name,
                                       .check = planned->scene.kind->check,
                                       .disabled = planned->scene.kind->disabled};
    planned->scene.pool = tide_pool_create(&options);
    noted[0] = 0;
    if (planned->scene.pool == NULL || (planned->scene.kind->warm && !warm_up(planned->scene.pool)))
        return -1;
    return 0;
}

static void scene_run(void **state)
{
    struct planned *planned = *state;
    planned->what->run(&planned->scene);
    CHECK_POOL(planned->scene.pool);
    assert_int_equal(tide_pool_depth(planned->scene.pool), 0);
    noted[0] = 0;
}

static int scene_teardown(void **state)
{
    struct planned *planned = *state;
    if (noted[0] != 0)
        print_error("%s: at %s\n", planned->name, noted);
    set_memory_fault(NULL); /* what follows is for tests that failed half-way */
    tide_pool_reset(planned->scene.pool);
    return tide_pool_destroy(planned->scene.pool) == TIDE_OK ? 0 : -1;
}

static bool is_scene(const form_case *what, const form *f, const pool_kind *kind)
{
    if (kind->warm && f->tier != TIDE_TIER_COMPILED)
        return false;
    return !what->slots_stay || !(kind->disabled || kind->check == TIDE_CHECK_GUARD);
}

static struct CMUnitTest plan_scene(struct planned *planned, const form_case *what, const form *f,
                                    const pool_kind *kind)
{
    planned->what = what;
    planned->scene.form = f;
    planned->scene.kind = kind;
    snprintf(planned->name, sizeof planned->name, "%s [%s, %s]", what->name, f->name, kind->name);
    const struct CMUnitTest test = {planned->name, scene_run, scene_setup, scene_teardown, planned};
    return test;
}

/* ---- the whole run ---- */

enum { COMPILED_MAX = 16 };

static uint64_t runs_before[COMPILED_MAX];

static void note_runs(void)
{
    size_t i = 0;
    EACH_FORM(f)
    if (f->tier == TIDE_TIER_COMPILED && i < COMPILED_MAX)
        runs_before[i++] = info_of(f).runs;
}

/* In warm pools its guards hold. */
static void compiled_code_was_run(void **state)
{
    (void)state;
    size_t i = 0;
    EACH_FORM(f)
    {
        if (f->tier != TIDE_TIER_COMPILED || i == COMPILED_MAX)
            continue;
        note("%s", f->name);
        assert_true(info_of(f).runs > runs_before[i++]);
    }
    assert_int_equal(i > 0, have_stager());
    noted[0] = 0;
}

int forms_main(const char *group, const form_case *cases, size_t case_count,
               const struct CMUnitTest *others, size_t other_count)
{
    size_t most = case_count * form_count() * KIND_COUNT, count = 0;
    struct planned *planned = calloc(most, sizeof *planned);
    struct CMUnitTest *tests = calloc(most + other_count + 1, sizeof *tests);
    if (planned == NULL || tests == NULL)
        return EXIT_FAILURE;
    forms_prepare_all();
    note_runs();
    if (!have_stager())
        print_message("no stager: the forms of the compiled tier are left out\n");
    for (size_t c = 0; c < case_count; c++) {
        for (size_t i = 0; i < form_count() * KIND_COUNT; i++) {
            const pool_kind *kind = &kinds[i % KIND_COUNT];
            const form *f = form_at(i / KIND_COUNT);
            if (is_scene(&cases[c], f, kind)) {
                tests[count] = plan_scene(&planned[count], &cases[c], f, kind);
                count++;
            }
        }
    }
    if (other_count > 0)
        memcpy(tests + count, others, other_count * sizeof *tests);
    count += other_count;
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(compiled_code_was_run);
    int failed = _cmocka_run_group_tests(group, tests, count, NULL, NULL);
    free(tests);
    free(planned);
    return failed;
}

/* ---- pools ---- */

tide_pool *pool_of(tide_check check)
{
    const tide_pool_options options = {.check = check};
    tide_pool *pool = tide_pool_create(&options);
    assert_non_null(pool);
    return pool;
}

void check_pool(const tide_pool *pool, const char *file, int line)
{
    if (tide_pool_check(pool) == TIDE_OK)
        return;
    print_error("the pool is not sound: %s\n", tide_error_message());
    _fail(file, line);
}

void check_status(tide_status got, tide_status expected, const char *call, const char *file,
                  int line)
{
    if (got == expected)
        return;
    print_error("%s gave '%s', not '%s'; last message: %s\n", call, tide_status_name(got),
                tide_status_name(expected), tide_error_message());
    _fail(file, line);
}

tide_pool_statistics stats_of(const tide_pool *pool)
{
    tide_pool_statistics stats;
    expect_ok(tide_pool_stats(pool, &stats));
    return stats;
}

tide_check check_of(const tide_pool *pool)
{
    return pool->core->check;
}

bool is_open_and_asked_nothing(const tide_pool *pool)
{
    const tide_pool_core *core = pool->core;
    return pool->log_room == (core->careful ? core->log.start : core->log.end) &&
           core->requests.asked == 0;
}

bool is_open_and_deferred(const tide_pool *pool)
{
    const tide_pool_core *core = pool->core;
    return pool->log_room == core->log.end && core->requests.asked != 0 && core->requests.deferred;
}

size_t slots_with_memory(const tide_pool *pool, tide_type type)
{
    const tide_row *row = &pool->core->rows.by_type[type];
    size_t count = 0;
    for (uint32_t i = 0; i < row->count; i++)
        count += row->slots[i].data != NULL;
    return count;
}

snapshot snapshot_take(const tide_pool *pool)
{
    snapshot s = {pool->tag, pool->log_top, pool->log_room, tide_type_count() + 1,
                  NULL,      stats_of(pool)};
    s.shelves = malloc(s.shelf_count * sizeof *s.shelves);
    assert_non_null(s.shelves);
    memcpy(s.shelves, pool->shelves, s.shelf_count * sizeof *s.shelves);
    return s;
}

void snapshot_same(const snapshot *before, const tide_pool *pool)
{
    assert_int_equal(pool->tag, before->tag);
    assert_ptr_equal(pool->log_top, before->log_top);
    assert_ptr_equal(pool->log_room, before->log_room);
    for (uint32_t type = 0; type < before->shelf_count; type++) {
        const tide_shelf *was = &before->shelves[type], *is = &pool->shelves[type];
        assert_ptr_equal(is->next, was->next);
        assert_int_equal(is->bit, was->bit);
        assert_memory_equal(is, was, sizeof *is);
    }
    tide_pool_statistics now = stats_of(pool);
    assert_memory_equal(&now, &before->stats, sizeof now);
}

void snapshot_drop(snapshot *s)
{
    free(s->shelves);
    s->shelves = NULL;
}

counts counts_of(const tide_pool *pool)
{
    tide_pool_statistics stats = stats_of(pool);
    counts now = {tide_pool_depth(pool), stats.slots_live, stats.bytes_live, stats.log_entries};
    assert_int_equal(stats.depth, now.depth);
    return now;
}

/* A scope may have the level around it save types that it needs. That stays until the level ends:
 * one entry for a shelf that has not moved since. A request may wait there, too. */
static void check_added_entries(const tide_pool *pool, size_t first)
{
    const tide_log *log = &pool->core->log;
    for (const tide_entry *entry = log->start + first; entry < pool->log_top; entry++) {
        if (entry->shelf == &log->undo[TIDE_UNDO_REQUEST])
            continue;
        assert_true(tide_shelf_real(pool, entry->shelf));
        assert_ptr_equal(entry->next, entry->shelf->next);
        for (const tide_entry *other = entry + 1; other < pool->log_top; other++)
            assert_ptr_not_equal(entry->shelf, other->shelf);
    }
}

void counts_same(counts before, const tide_pool *pool)
{
    counts now = counts_of(pool);
    CHECK_POOL(pool);
    assert_int_equal(now.depth, before.depth);
    assert_int_equal(now.live, before.live);
    assert_int_equal(now.bytes_live, before.bytes_live);
    if (now.depth == 0)
        assert_int_equal(now.log_entries, 0);
    assert_true(now.log_entries >= before.log_entries);
    check_added_entries(pool, before.log_entries);
}

/* ---- memory ---- */

/* Word by word, since most of what these tests do under Valgrind or a sanitizer is this. */
enum { WORD = sizeof(uint64_t) };

static uint64_t pattern(size_t word, unsigned seed)
{
    return (seed + UINT64_C(1)) * UINT64_C(0x9E3779B97F4A7C15) +
           word * UINT64_C(0xBF58476D1CE4E5B9);
}

void fill_bytes(void *data, size_t bytes, unsigned seed)
{
    uint8_t *to = data;
    for (size_t i = 0; i < bytes / WORD; i++)
        memcpy(to + i * WORD, &(uint64_t){pattern(i, seed)}, WORD);
    if (bytes % WORD != 0)
        memcpy(to + bytes / WORD * WORD, &(uint64_t){pattern(bytes / WORD, seed)}, bytes % WORD);
}

static inline void expect_word(const uint8_t *from, size_t n, uint64_t wanted)
{
    uint64_t found = wanted;
    memcpy(&found, from, n);
    if (found != wanted)
        fail_msg("something wrote over the %zu bytes at %p", n, (const void *)from);
}

void expect_bytes(const void *data, size_t bytes, unsigned seed)
{
    const uint8_t *from = data;
    for (size_t i = 0; i < bytes / WORD; i++)
        expect_word(from + i * WORD, WORD, pattern(i, seed));
    if (bytes % WORD != 0)
        expect_word(from + bytes / WORD * WORD, bytes % WORD, pattern(bytes / WORD, seed));
}

void *take(tide_pool *pool, tide_type type, size_t n, unsigned seed)
{
    uint8_t *data = tide_acquire_type(pool, type, n);
    if (data == NULL)
        fail_msg("acquire of %zu: %s", n, tide_error_message());
    assert_int_equal((uintptr_t)data % 64, 0);
    assert_int_equal((uintptr_t)data % tide_type_align(type), 0);
    fill_bytes(data, n * tide_type_size(type), seed);
    return data;
}

/* The kernel copies, by a call that neither AddressSanitizer nor Valgrind looks into. */
void read_behind(const void *from, void *to, size_t bytes)
{
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    assert_true(memory >= 0);
    memset(to, 0, bytes);
    long got = syscall(SYS_pread64, memory, to, bytes, (uintptr_t)from);
    close(memory);
    assert_int_equal(got, bytes);
}

tide_type fresh_type(void)
{
    static unsigned made;
    char name[32];
    snprintf(name, sizeof name, "fresh %u", made++);
    tide_type type = tide_type_register(name, 24, 8);
    assert_int_not_equal(type, TIDE_NO_TYPE);
    return type;
}

/* ---- the run ---- */

#if defined(__has_feature)
#define HAS(feature) __has_feature(feature)
#else
#define HAS(feature) 0
#endif

/* A refused allocation is what some tests are about, not a reason to stop. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1:atexit_sleep_ms=50"; /* a second in each process else */
}

bool under_sanitizer(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return HAS(address_sanitizer) || HAS(thread_sanitizer);
#endif
}

bool under_thread_sanitizer(void)
{
#if defined(__SANITIZE_THREAD__)
    return true;
#else
    return HAS(thread_sanitizer);
#endif
}

bool under_valgrind(void)
{
#if defined(TIDE_HAVE_VALGRIND)
    return RUNNING_ON_VALGRIND != 0;
#else
    return false;
#endif
}
