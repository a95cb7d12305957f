/* SPDX-License-Identifier: MIT */
/* Generic functions: methods by type, added and replaced while others call; dispatched by macros,
 * by calls and by compiled code, which all find the same method. */
#include "forms.h"

#include <pthread.h>
#include <stdio.h>

#include <tidepool/dynamic.h>
#include <tidepool/generic.h>
#include <tidepool/learn.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>

#include "random.h"

/* What a call did: the number of the method that ran, and how often any did. */
struct call {
    unsigned method, times;
};

#define METHOD(number)                      \
    static void method_##number(void *args) \
    {                                       \
        struct call *call = args;           \
        call->method = number;              \
        call->times++;                      \
    }
METHOD(1)
METHOD(2)
METHOD(3)
METHOD(4)

static tide_generic *make(const char *name)
{
    tide_generic *generic = tide_generic_create(name);
    assert_non_null(generic);
    assert_string_equal(tide_generic_name(generic), name);
    return generic;
}

/* ---- ways to call ------------------------------------------------------------------------- */

static void by_macro(tide_generic *generic, tide_type type, void *args)
{
    TIDE_DISPATCH(generic, type, args);
}

static tide_site *call_site(void)
{
    return tide_site_register_kind("generics: dispatch", TIDE_KIND_DISPATCH);
}

static void by_call(tide_generic *generic, tide_type type, void *args)
{
    tide_site_dispatch(call_site(), generic, type, args);
}

typedef void way(tide_generic *generic, tide_type type, void *args);
static way *const ways[] = {by_macro, by_call};
enum { WAYS = sizeof ways / sizeof *ways };

/* The method that runs, 0: none. Each way agrees, and so does tide_generic_find. */
static unsigned called(tide_generic *generic, tide_type type)
{
    struct call first = {0, 0};
    by_macro(generic, type, &first);
    for (size_t i = 0; i < WAYS; i++) {
        struct call call = {0, 0};
        ways[i](generic, type, &call);
        assert_int_equal(call.method, first.method);
        assert_int_equal(call.times, call.method != 0);
    }
    assert_int_equal(tide_generic_find(generic, type) != NULL, first.method != 0);
    return first.method;
}

/* ---- methods ------------------------------------------------------------------------------ */

static void a_call_runs_the_method_of_its_type(void **state)
{
    (void)state;
    tide_generic *generic = make("own methods");
    expect_ok(tide_generic_add(generic, TIDE_F64, method_1));
    expect_ok(tide_generic_add(generic, TIDE_I32, method_2));
    assert_int_equal(called(generic, TIDE_F64), 1);
    assert_int_equal(called(generic, TIDE_I32), 2);
    assert_ptr_equal(tide_generic_find(generic, TIDE_F64), method_1);
    assert_int_equal(tide_generic_unmet(generic), 0);
}

static void a_method_is_replaced(void **state)
{
    (void)state;
    tide_generic *generic = make("replaced");
    expect_ok(tide_generic_add(generic, TIDE_F64, method_1));
    assert_int_equal(called(generic, TIDE_F64), 1);
    expect_ok(tide_generic_add(generic, TIDE_F64, method_2));
    assert_int_equal(called(generic, TIDE_F64), 2);
}

static void a_type_without_a_method_has_the_one_of_all_types(void **state)
{
    (void)state;
    tide_generic *generic = make("fallback");
    tide_type fresh = fresh_type();
    expect_ok(tide_generic_add(generic, TIDE_F64, method_1));
    expect_ok(tide_generic_add(generic, TIDE_ALL_TYPES, method_3));
    assert_int_equal(called(generic, TIDE_F64), 1);
    assert_int_equal(called(generic, TIDE_F32), 3); /* beside one that has */
    assert_int_equal(called(generic, fresh), 3);
    expect_ok(tide_generic_add(generic, TIDE_ALL_TYPES, method_4));
    assert_int_equal(called(generic, TIDE_F32), 4);
    expect_ok(tide_generic_add(generic, TIDE_F32, method_2));
    assert_int_equal(called(generic, TIDE_F32), 2);
}

static void a_call_without_a_method_is_counted_and_said(void **state)
{
    (void)state;
    tide_generic *generic = make("poor");
    expect_ok(tide_generic_add(generic, TIDE_F64, method_1));
    const tide_type without[] = {TIDE_F32, tide_type_count(), TIDE_TYPE_LIMIT, UINT32_MAX - 1};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        struct call call = {0, 0};
        uint64_t unmet = tide_generic_unmet(generic);
        for (size_t w = 0; w < WAYS; w++)
            ways[w](generic, without[i], &call);
        assert_int_equal(call.times, 0);
        assert_int_equal(tide_error_status(), TIDE_ERROR_TYPE);
        assert_non_null(strstr(tide_error_message(), "'poor' has no method for type"));
        assert_int_equal(tide_generic_unmet(generic), unmet + WAYS);
        assert_null(tide_generic_find(generic, without[i]));
        assert_int_equal(tide_error_status(), TIDE_ERROR_TYPE);
        assert_int_equal(tide_generic_unmet(generic), unmet + WAYS); /* asking is no call */
    }
}

/* ---- wrong calls -------------------------------------------------------------------------- */

static void what_cannot_be_added_changes_nothing(void **state)
{
    (void)state;
    tide_generic *generic = make("unchanged");
    expect_ok(tide_generic_add(generic, TIDE_F64, method_1));
    expect_status(tide_generic_add(NULL, TIDE_F64, method_2), TIDE_ERROR_ARGUMENT);
    expect_status(tide_generic_add(generic, TIDE_F64, NULL), TIDE_ERROR_ARGUMENT);
    expect_status(tide_generic_add(generic, TIDE_ALL_TYPES, NULL), TIDE_ERROR_ARGUMENT);
    expect_status(tide_generic_add(generic, TIDE_NO_TYPE, method_2), TIDE_ERROR_TYPE);
    expect_status(tide_generic_add(generic, tide_type_count() + 1, method_2), TIDE_ERROR_TYPE);
    expect_status(tide_generic_add(generic, TIDE_TYPE_LIMIT, method_2), TIDE_ERROR_TYPE);
    assert_int_equal(called(generic, TIDE_F64), 1);
    assert_null(tide_generic_find(generic, TIDE_F32));
}

static void a_generic_function_needs_a_name(void **state)
{
    (void)state;
    assert_null(tide_generic_create(NULL));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    assert_null(tide_generic_create(""));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    assert_ptr_not_equal(make("twins"), make("twins")); /* it need not be unique */
    assert_string_equal(tide_generic_name(NULL), "");
}

static void a_call_of_nothing_runs_nothing(void **state)
{
    (void)state;
    struct call call = {0, 0};
    tide_generic *generic = make("not called");
    expect_ok(tide_generic_add(generic, TIDE_F64, method_1));
    for (size_t i = 0; i < WAYS; i++) {
        ways[i](NULL, TIDE_F64, &call);
        assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    }
    assert_null(tide_generic_find(NULL, TIDE_F64));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_generic_unmet(NULL), 0);
    assert_int_equal(call.times, 0);
}

/* ---- compiled ----------------------------------------------------------------------------- */

static void learned_way(tide_generic *generic, tide_type type, void *args)
{
    TIDE_DISPATCH(generic, type, args);
}

static bool is_learned_way(tide_site *site, void *user)
{
    const char *function = site->place.function;
    if (function != NULL && strcmp(function, "learned_way") == 0)
        *(tide_site **)user = site;
    return true;
}

static tide_site *learned_site(void)
{
    tide_site *site = NULL;
    tide_site_each(is_learned_way, &site);
    assert_non_null(site);
    return site;
}

static tide_site_information info_of_learned(void)
{
    tide_site_information info;
    expect_ok(tide_site_info(learned_site(), &info));
    return info;
}

static void call_often(tide_generic *generic, struct call *call)
{
    for (unsigned i = 0; i < 240; i++)
        learned_way(generic, i % 3 != 0 ? TIDE_F64 : TIDE_I32, call);
}

static void have_it_learned(tide_generic *generic)
{
    struct call call = {0, 0};
    expect_ok(tide_tune_set("learn", 1));
    for (int i = 0; i < 500 && info_of_learned().tier != TIDE_TIER_TABLE; i++) {
        call_often(generic, &call);
        expect_ok(tide_settle(60000));
    }
    note("%s", info_of_learned().reason);
    assert_string_equal(tide_tier_name(info_of_learned().tier), "table");
    expect_ok(tide_site_pin(learned_site(), TIDE_TIER_TABLE));
    call_often(generic, &call); /* whatever is still watched */
}

static unsigned learned_call(tide_generic *generic, tide_type type)
{
    struct call call = {0, 0};
    learned_way(generic, type, &call);
    return call.method;
}

/* It finds what is added, replaced or given to others after it was made. */
static void a_table_calls_what_the_lookup_would(void **state)
{
    (void)state;
    tide_generic *generic = make("in the table"), *other = make("not in it");
    expect_ok(tide_generic_add(generic, TIDE_F64, method_1));
    expect_ok(tide_generic_add(generic, TIDE_I32, method_2));
    expect_ok(tide_generic_add(other, TIDE_F64, method_4));
    have_it_learned(generic);
    tide_site_information before = info_of_learned();
    assert_int_equal(learned_call(generic, TIDE_F64), 1);
    assert_int_equal(learned_call(generic, TIDE_I32), 2);
    assert_int_equal(info_of_learned().misses, before.misses);
    expect_ok(tide_generic_add(generic, TIDE_F64, method_3));
    assert_int_equal(learned_call(generic, TIDE_F64), 3);
    assert_int_equal(learned_call(generic, TIDE_F32), 0);
    expect_ok(tide_generic_add(generic, TIDE_ALL_TYPES, method_4));
    assert_int_equal(learned_call(generic, TIDE_F32), 4);
    assert_int_equal(learned_call(other, TIDE_F64), 4);
    assert_int_equal(learned_call(other, TIDE_I32), 0);
    assert_int_equal(learned_call(NULL, TIDE_F64), 0);
    assert_int_equal(info_of_learned().misses, before.misses + 5);
}

/* ---- threads ------------------------------------------------------------------------------ */

enum { CALLERS = 4 };

static struct crowd {
    tide_generic *generic;
    bool stop;
    uint64_t calls, wrong;
} crowd;

/* Either method of a type is right, none is not. */
static void *call_on(void *state)
{
    (void)state;
    uint64_t wrong = 0;
    for (unsigned i = 0; !__atomic_load_n(&crowd.stop, __ATOMIC_RELAXED); i++) {
        struct call call = {0, 0};
        tide_type type = i % 3 != 0 ? TIDE_F64 : TIDE_I32;
        (i % 2 != 0 ? by_macro : learned_way)(crowd.generic, type, &call);
        bool right = type == TIDE_F64 ? call.method == 1 || call.method == 3
                                      : call.method == 2 || call.method == 4;
        wrong += !right || call.times != 1;
        __atomic_fetch_add(&crowd.calls, 1, __ATOMIC_RELAXED);
    }
    __atomic_fetch_add(&crowd.wrong, wrong, __ATOMIC_RELAXED);
    return NULL;
}

/* So often, and until the others have called so often. */
static void add_on(size_t rounds)
{
    for (size_t i = 0; i < rounds || __atomic_load_n(&crowd.calls, __ATOMIC_RELAXED) < rounds;
         i++) {
        expect_ok(tide_generic_add(crowd.generic, TIDE_F64, i % 2 ? method_1 : method_3));
        expect_ok(tide_generic_add(crowd.generic, TIDE_I32, i % 2 ? method_2 : method_4));
        expect_ok(tide_generic_add(crowd.generic, TIDE_ALL_TYPES, method_1));
        if (i < rounds)
            expect_ok(tide_generic_add(crowd.generic, fresh_type(), method_2));
        expect_ok(tide_step());
    }
}

static void methods_are_added_while_others_call(void **state)
{
    (void)state;
    pthread_t threads[CALLERS];
    expect_ok(tide_tune_set("learn", 1));
    crowd = (struct crowd){.generic = make("crowd")};
    expect_ok(tide_generic_add(crowd.generic, TIDE_F64, method_1));
    expect_ok(tide_generic_add(crowd.generic, TIDE_I32, method_2));
    for (size_t i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_on, NULL), 0);
    add_on(scaled(1000, 50));
    __atomic_store_n(&crowd.stop, true, __ATOMIC_RELAXED);
    for (size_t i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(crowd.wrong, 0);
    assert_int_equal(tide_generic_unmet(crowd.generic), 0);
    expect_ok(tide_settle(60000));
}

/* ---- by keys ------------------------------------------------------------------------------ */

static void keys_choose_methods_as_types_do(void **state)
{
    (void)state;
    tide_generic *generic = tide_generic_create_keys("keys", 300);
    assert_non_null(generic);
    assert_string_equal(tide_generic_name(generic), "keys");
    expect_ok(tide_generic_add(generic, 0, method_1));
    expect_ok(tide_generic_add(generic, 299, method_2)); /* no type has this number */
    assert_int_equal(called(generic, 0), 1);
    assert_int_equal(called(generic, 299), 2);
    assert_int_equal(called(generic, 7), 0);
    assert_non_null(strstr(tide_error_message(), "'keys' has no method for key 7"));
    assert_true(tide_generic_unmet(generic) > 0);
    expect_ok(tide_generic_add(generic, TIDE_ALL_TYPES, method_3));
    assert_int_equal(called(generic, 7), 3);
    assert_int_equal(called(generic, 300), 3);
    assert_int_equal(called(generic, UINT32_MAX), 3);
}

static void what_is_no_key_gets_no_method(void **state)
{
    (void)state;
    tide_generic *few = tide_generic_create_keys("few", 1);
    tide_generic *all = tide_generic_create_keys("all", TIDE_TYPE_LIMIT);
    expect_status(tide_generic_add(few, 1, method_1), TIDE_ERROR_TYPE);
    assert_non_null(strstr(tide_error_message(), "1 is no key of 'few', which has 1"));
    expect_ok(tide_generic_add(all, TIDE_TYPE_LIMIT - 1, method_1));
    assert_int_equal(called(all, TIDE_TYPE_LIMIT - 1), 1);
    expect_status(tide_generic_add(all, TIDE_TYPE_LIMIT, method_1), TIDE_ERROR_TYPE);
    assert_null(tide_generic_create_keys("none", 0));
    expect_status(tide_error_status(), TIDE_ERROR_ARGUMENT);
    assert_null(tide_generic_create_keys("too many", TIDE_TYPE_LIMIT + 1));
    assert_null(tide_generic_create_keys("", 1));
    assert_null(tide_generic_create_keys(NULL, 1));
    assert_non_null(strstr(tide_error_message(), "tide_generic_create_keys"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_runs_the_method_of_its_type),
        cmocka_unit_test(a_method_is_replaced),
        cmocka_unit_test(a_type_without_a_method_has_the_one_of_all_types),
        cmocka_unit_test(a_call_without_a_method_is_counted_and_said),
        cmocka_unit_test(what_cannot_be_added_changes_nothing),
        cmocka_unit_test(a_generic_function_needs_a_name),
        cmocka_unit_test(a_call_of_nothing_runs_nothing),
        cmocka_unit_test(a_table_calls_what_the_lookup_would),
        cmocka_unit_test(methods_are_added_while_others_call),
        cmocka_unit_test(keys_choose_methods_as_types_do),
        cmocka_unit_test(what_is_no_key_gets_no_method),
    };
    if (tide_tune_set("background", 0) != TIDE_OK || tide_tune_set("trial", 0) != TIDE_OK ||
        tide_tune_set("count_runs", 1) != TIDE_OK || tide_tune_set("learn", 0) != TIDE_OK)
        return EXIT_FAILURE;
    return cmocka_run_group_tests_name("generics", tests, NULL, NULL);
}
