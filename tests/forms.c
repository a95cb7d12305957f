/* SPDX-License-Identifier: MIT */
/* The forms by number, how their sites are compiled and pinned, and how bodies run in them. */
#include "forms.h"
#include "hooks.h"

#include <tidepool/learn.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

static const form *const tables[] = {forms_c, forms_cpp};
enum { TABLE_COUNT = sizeof(tables) / sizeof(tables[0]) };

static bool tiers_pinned; /* while a table is prepared its sites are at any tier */

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

tide_site_information form_info(const form *f)
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
        if (form_info(f).tier == TIDE_TIER_COMPILED)
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
    tide_site_information info = form_info(f);
    if (info.tier != TIDE_TIER_COMPILED)
        fail_msg("%s is not compiled, but %s: %s", f->name, tide_tier_name(info.tier), info.reason);
    expect_ok(tide_site_pin(form_site(f), TIDE_TIER_COMPILED));
    for (int i = 0; i < 10 && form_info(f).observed; i++)
        use_often(f, pool);
    assert_false(form_info(f).observed);
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
