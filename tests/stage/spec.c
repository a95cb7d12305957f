/* SPDX-License-Identifier: MIT */
/* Specs as text: what is written is read again, and nothing else is. */
#include "support.h"

#include <inttypes.h>
#include <stdio.h>

static char text[TIDE_SPEC_SITE_BYTES * 4];

static void check_same(const tide_spec *a, const tide_spec *b)
{
    assert_string_equal(a->stem, b->stem);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->item_count, b->item_count);
    for (uint32_t i = 0; i < a->item_count; i++) {
        assert_int_equal(a->items[i].type, b->items[i].type);
        assert_string_equal(a->items[i].name, b->items[i].name);
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    tide_spec specs[] = {spec_of("a", true, (tide_type)1, (tide_type)3, 0),
                         spec_of("b_1", false, (tide_type)5, 0)};
    enum { COUNT = sizeof specs / sizeof *specs };
    strcpy(specs[0].items[1].name, "struct point<int, 3>\n%");
    strcpy(specs[1].items[0].name, "*"); /* as an empty one is written */
    size_t used = tide_spec_write_head(text, sizeof text);
    for (int i = 0; i < COUNT; i++)
        used += tide_spec_write(&specs[i], text + used, sizeof text - used);
    strcpy(specs[0].items[1].name, "struct_point_int__3___"); /* names are for the reader only */
    assert_int_equal(strlen(text), used);
    tide_spec_reader reader = {.text = text};
    uint64_t layout;
    assert_true(tide_spec_read_head(&reader, &layout));
    assert_true(layout == tide_compiled_layout());
    tide_spec got;
    for (int i = 0; i < COUNT; i++) {
        if (!tide_spec_read(&reader, &got))
            fail_msg("%s", reader.error);
        check_same(&got, &specs[i]);
    }
    assert_true(tide_spec_read(&reader, &got));
    assert_int_equal(got.item_count, 0);
    assert_string_equal(got.stem, "");
}

/* The longest site there can be still fits. */
static void test_longest(void **state)
{
    (void)state;
    tide_spec spec = {.count = true, .item_count = TIDE_SPEC_ITEMS};
    memset(spec.stem, 's', sizeof spec.stem - 1);
    for (int i = 0; i < TIDE_SPEC_ITEMS; i++) {
        spec.items[i].type = TIDE_TYPE_LIMIT - TIDE_SPEC_ITEMS + (tide_type)i;
        memset(spec.items[i].name, 'n', TIDE_SPEC_NAME - 1);
    }
    size_t used = tide_spec_write(&spec, text, TIDE_SPEC_SITE_BYTES);
    assert_true(used < TIDE_SPEC_SITE_BYTES);
    tide_spec got;
    tide_spec_reader reader = {.text = text};
    assert_true(tide_spec_read(&reader, &got));
    check_same(&got, &spec);
}

/* ---- hostile text ---- */

static const struct hostile {
    const char *text, *says;
} hostile_sites[] = {
    {"site scope a\n", "ends too soon"},
    {"site scope a", "does not end"},
    {"site scope a\nend\n", "no items"},
    {"site scope a\ntype f64 3\n", "line 3: the text ends"},
    {"site hope a\n", "is not 'site scope'"},
    {"sites scope a\n", "is not 'site scope'"},
    {"site scope 1a\n", "stem '1a'"},
    {"site scope a-b\n", "stem 'a-b'"},
    {"site scope \n", "stem ''"},
    {"site scope a b\ntype f64 3\nend\n", "not written as"},
    {"site scope  a\ntype f64 3\nend\n", "not written as"},
    {"\n", "is not 'site scope'"},
    {"site scope a\ntype f64 0\n", "from 1 to 65535"},
    {"site scope a\ntype f64 65536\n", "from 1 to 65535"},
    {"site scope a\ntype f64 18446744073709551617\n", "from 1 to 65535"},
    {"site scope a\ntype f64 -1\n", "from 1 to 65535"},
    {"site dispatch a\n", "is not 'site scope'"},
    {"site scope a\ntype key-0 0\n", "from 1 to 65535"},
    {"site scope a\ntype f64\n", "from 1 to 65535"},
    {"site scope a\ntype f64 03\nend\n", "not written as"},
    {"site scope a\ntype f64 4294967299\nend\n", "not written as"},
    {"site scope a\ntype f64 3 4\nend\n", "not written as"},
    {"site scope a\ntype f%6 3\nend\n", "not written as"},
    {"site scope a\ntype f/ 3\nend\n", "not written as"},
    {"site scope a\ntype \x1b[31m 3\nend\n", "not written as"},
    {"site scope a\ncount\ncount\ntype f64 3\nend\n", "not written as"},
    {"site scope a\ntype f64 3\ncount\nend\n", "not written as"},
    {"site scope a\ntype f64 3\ntype f64 3\nend\n", "do not ascend"},
    {"site scope a\ntype f64 3\ntype f32 2\nend\n", "do not ascend"},
    {"site scope a\narray f64 3 0\nend\n", "'array' where 'type'"},
    {"site scope a\ntype a 1\ntype b 2\ntype c 3\ntype d 4\ntype e 5\nend\n", "more than 4 types"},
};

static void test_hostile_sites(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hostile_sites / sizeof *hostile_sites; i++) {
        tide_spec spec;
        tide_spec_reader reader = {.text = hostile_sites[i].text};
        if (tide_spec_read(&reader, &spec))
            fail_msg("accepted: %s", hostile_sites[i].text);
        if (strstr(reader.error, hostile_sites[i].says) == NULL)
            fail_msg("'%s' is not in '%s'", hostile_sites[i].says, reader.error);
        for (const char *c = reader.error; *c != '\0'; c++)
            assert_true(*c >= ' ' && *c <= '~');
    }
}

static void test_hostile_heads(void **state)
{
    static const char *const heads[] = {"",
                                        "tidepool-spec 2\n",
                                        "tidepool-spec 1\n",
                                        "tidepool-spec 1\nlayout\n",
                                        "tidepool-spec 1\nlayout 12\n",
                                        "tidepool-spec 1\nlayout 00000000000000zz\n",
                                        "tidepool-spec 1\nlayout 00000000000000AA\n",
                                        "tidepool-spec 1\nlayout +000000000000000\n",
                                        "tidepool-spec 1\nlayout 00000000000000000\n",
                                        "tidepool-spec 1\nlayout 0123456789abcdef"};
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        uint64_t layout;
        tide_spec_reader reader = {.text = heads[i]};
        if (tide_spec_read_head(&reader, &layout))
            fail_msg("accepted: %s", heads[i]);
        assert_int_not_equal(strlen(reader.error), 0);
    }
}

static void test_too_long_a_line(void **state)
{
    (void)state;
    memset(text, 'x', 2000);
    strcpy(text + 2000, "\n");
    tide_spec spec;
    tide_spec_reader reader = {.text = text};
    assert_false(tide_spec_read(&reader, &spec));
    assert_non_null(strstr(reader.error, "2000 bytes, limit"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_longest),
        cmocka_unit_test(test_hostile_sites),   cmocka_unit_test(test_hostile_heads),
        cmocka_unit_test(test_too_long_a_line),
    };
    return cmocka_run_group_tests_name("stage: spec", tests, NULL, NULL);
}
