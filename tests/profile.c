/* SPDX-License-Identifier: MIT */
/* What is observed of a site: scopes, and what they acquired, at every tier. */
#define _GNU_SOURCE
#include "forms.h"

#include <stdio.h>

#include <tidepool/dynamic.h>
#include <tidepool/profile.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>

static tide_site_profile profile_of(const tide_site *site)
{
    tide_site_profile profile;
    expect_ok(tide_profile_site(site, &profile));
    assert_true(profile.type_count <= 32);
    return profile;
}

static tide_profile_type seen(const tide_site_profile *profile, tide_type type)
{
    for (uint32_t i = 0; i < profile->type_count; i++)
        if (profile->types[i].type == type)
            return profile->types[i];
    return (tide_profile_type){0};
}

static void expect_grown(const tide_site_profile *before, const tide_site_profile *after,
                         tide_type type, uint64_t scopes, uint64_t slots)
{
    tide_profile_type was = seen(before, type), is = seen(after, type);
    assert_int_equal(is.scopes - was.scopes, scopes);
    assert_int_equal(is.slots - was.slots, slots);
}

/* Runs the body in ten scopes of the form, observed; what that added, before and after. */
static bool observe_ten(const scene *s, form_body *body, void *state, tide_site_profile *before,
                        tide_site_profile *after)
{
    if (s->form->site == NULL)
        return false;
    tide_site *site = form_site(s->form);
    *before = profile_of(site);
    expect_ok(tide_profile_observe(true));
    for (size_t i = 0; i < 10; i++)
        s->form->run(s->pool, body, state);
    expect_ok(tide_profile_observe(false));
    *after = profile_of(site);
    assert_int_equal(after->scopes - before->scopes, 10);
    s->form->run(s->pool, body, state);
    assert_int_equal(profile_of(site).scopes, after->scopes); /* nobody looks any more */
    return true;
}

static void take_two_and_one(tide_pool *pool, void *state)
{
    (void)state;
    take(pool, TIDE_F64, 10, 1);
    take(pool, TIDE_F64, 10, 2);
    take(pool, TIDE_F32, 10, 3);
    CHECK_POOL(pool);
}

static void each_type_is_counted_with_its_slots(const scene *s)
{
    tide_site_profile before, after;
    if (!observe_ten(s, take_two_and_one, NULL, &before, &after))
        return;
    expect_grown(&before, &after, TIDE_F64, 10, 20);
    expect_grown(&before, &after, TIDE_F32, 10, 10);
    expect_grown(&before, &after, TIDE_I32, 0, 0); /* saved by some plans, needed by none */
    assert_int_equal(after.other, before.other);
    assert_true(seen(&after, TIDE_F64).slots_max >= 2);
    assert_int_equal(after.bytes - before.bytes, 10 * (2 * 80 + 40));
    counts_same((counts){0, 0, 0, 0}, s->pool);
}

static void bytes_of_many_slots_are_those_of_the_first(void **state)
{
    (void)state;
    tide_site *site = tide_site_register("many slots");
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    tide_site_information information;
    tide_scope scope;
    expect_ok(tide_profile_observe(true));
    expect_ok(tide_scope_enter(pool, site, &scope));
    for (size_t i = 0; i < 1000; i++)
        take(pool, TIDE_F64, i < 64 ? 10 : 1, 1);
    take(pool, TIDE_BIT, 65, 1); /* two words */
    expect_ok(tide_scope_leave(&scope));
    expect_ok(tide_profile_observe(false));
    assert_int_equal(profile_of(site).bytes, 1000 * 80 + 16);
    expect_ok(tide_site_info(site, &information));
    assert_true(information.samples == 1 && information.use_bytes == 1000 * 80 + 16);
    expect_ok(tide_site_reset(site));
    expect_ok(tide_site_info(site, &information));
    assert_true(information.use_bytes == 0);
    expect_ok(tide_pool_destroy(pool));
}

static void take_in_inner_scopes(tide_pool *pool, void *state)
{
    (void)state;
    take(pool, TIDE_U8, 10, 1);
    tide_mark mark = tide_checkpoint(pool);
    take(pool, TIDE_U8, 10, 2);
    take(pool, TIDE_I16, 10, 2);
    expect_ok(tide_rewind(pool, mark));
    TIDE_SCOPE_TYPES(pool, int16_t);
    take(pool, TIDE_I16, 10, 3);
}

static void what_inner_scopes_took_is_theirs(const scene *s)
{
    tide_site_profile before, after;
    if (!observe_ten(s, take_in_inner_scopes, NULL, &before, &after))
        return;
    expect_grown(&before, &after, TIDE_U8, 10, 10);
    expect_grown(&before, &after, TIDE_I16, 0, 0);
}

static const form_case cases[] = {
    CASE(each_type_is_counted_with_its_slots),
    CASE(what_inner_scopes_took_is_theirs),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(bytes_of_many_slots_are_those_of_the_first),
};

/* What is observed here is observed because the test says so. */
int main(void)
{
    if (tide_tune_set("learn", 0) != TIDE_OK)
        return EXIT_FAILURE;
    return FORMS_MAIN("profile", cases, others);
}
