/* SPDX-License-Identifier: MIT */
/* What a site that has been learned costs in memory: what the C library has handed out, and the
 * pages of compiled code. */
#include "learning.h"

#include <malloc.h>
#include <stdio.h>

#include <tidepool/learn.h>

enum { TABLES = 1000, COMPILED = 128, MOST = 4096, PAGES_MOST = 6 };

static use uses[TABLES];

static void make_sites(const char *purpose, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "footprint: %s %u", purpose, i);
        uses[i] = use_of(name, TIDE_KIND_SCOPE, learning_pool, 2, TIDE_F64, TIDE_I32);
    }
}

static size_t handed_out(void)
{
    struct mallinfo2 now = mallinfo2();
    return now.uordblks + now.hblkhd;
}

/* Resident bytes of code objects. */
static size_t mapped_code(void)
{
    char line[512];
    bool ours = false;
    size_t kib = 0, sum = 0;
    FILE *maps = fopen("/proc/self/smaps", "re");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            ours = strstr(line, "/u") != NULL && strstr(line, ".so\n") != NULL &&
                   strstr(line, "tidepool") != NULL;
        else if (ours && sscanf(line, "Rss: %zu kB", &kib) == 1)
            sum += kib * 1024;
    }
    fclose(maps);
    return sum;
}

static unsigned at_tier(unsigned count, tide_tier tier)
{
    unsigned reached = 0;
    for (unsigned i = 0; i < count; i++)
        reached += tier_of(uses[i].site) == tier && !info_of(uses[i].site).observed;
    return reached;
}

static void learn_all(unsigned count, tide_tier tier)
{
    for (unsigned i = 0; i < 40 && (at_tier(count, tier) < count || i < 8); i++) {
        for (unsigned s = 0; s < count; s++)
            use_times(&uses[s], 100);
        settle();
        expect_ok(tide_step());
    }
    assert_int_equal(at_tier(count, tier), count);
}

static void need_accounts(void)
{
    if (under_sanitizer() || under_valgrind())
        skip();
}

static void a_site_with_a_table_costs_little(void **state)
{
    (void)state;
    need_accounts();
    set("break_even", 1e6);
    set("window_every", 1e6); /* no window stays open */
    make_sites("table", TABLES);
    size_t before = handed_out();
    learn_all(TABLES, TIDE_TIER_TABLE);
    size_t each = (handed_out() - before) / TABLES;
    print_message("%zu bytes for each site with a table\n", each);
    assert_in_range(each, 100, MOST);
}

static void a_site_with_code_costs_little(void **state)
{
    (void)state;
    need_accounts();
    need_stager();
    set("window_every", 1e6);
    set("window_rounds", 1e6); /* or a site would be found idle while others are compiled */
    make_sites("code", COMPILED);
    size_t before = handed_out(), code_before = mapped_code();
    size_t objects = (size_t)learned().code_objects;
    learn_all(COMPILED, TIDE_TIER_COMPILED);
    size_t each = (handed_out() - before) / COMPILED;
    size_t made = (size_t)learned().code_objects - objects;
    size_t code = (mapped_code() - code_before) / made;
    print_message("%zu bytes for each compiled site, %zu of pages for each of %zu code objects\n",
                  each, code, made);
    assert_in_range(each, 100, MOST);
    assert_in_range(code, 4096, PAGES_MOST * 4096);
}

int main(void)
{
    /* In this order: a site for which code is wanted is observed again some rounds later, which may
     * be in the next test. Of those with code there are few. */
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(a_site_with_code_costs_little),
        LEARNING_TEST(a_site_with_a_table_costs_little),
    };
    return cmocka_run_group_tests_name("learning: footprint", tests, learning_make_pool,
                                       learning_drop_pool);
}
