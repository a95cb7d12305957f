/* SPDX-License-Identifier: MIT */
/* The library says its version, and refuses headers that do not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/learn.h>
#include <tidepool/limit.h>
#include <tidepool/profile.h>
#include <tidepool/site.h>
#include <tidepool/tidepool.h>
#include <tidepool/version.h>

static void the_version_is_that_of_the_headers(void **state)
{
    char text[32];
    (void)state;
    snprintf(text, sizeof text, "%d.%d.%d", TIDEPOOL_VERSION_MAJOR, TIDEPOOL_VERSION_MINOR,
             TIDEPOOL_VERSION_PATCH);
    assert_string_equal(tide_version(), text);
    assert_int_equal(tide_version_check(), TIDE_OK);
}

/* Newer headers may call what the library lacks; another line may mean something else. */
static void headers_of_other_versions_are_refused(void **state)
{
    static const int wrong[] = {TIDEPOOL_VERSION + 1, TIDEPOOL_VERSION + 100,
                                TIDEPOOL_VERSION + 10000, -1};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(tide_version_fits(wrong[i]), TIDE_ERROR_STATE);
    assert_int_equal(tide_version_fits(TIDEPOOL_VERSION + 1), TIDE_ERROR_STATE);
    assert_non_null(strstr(tide_error_message(), tide_version()));
}

/* A member that is added takes its room from what is kept for it: programs that were compiled
 * before go on to work. */
_Static_assert(sizeof(tide_pool_options) == 80 + 64, "pools");
_Static_assert(sizeof(tide_pool_statistics) == 120 + 64, "what pools hold");
_Static_assert(sizeof(tide_buffers_options) == 56 + 64, "buffers");
_Static_assert(sizeof(tide_bucket_statistics) == 72 + 64, "what a bucket holds");
_Static_assert(sizeof(tide_buffers_statistics) == 160 + 64, "what buffers hold");
_Static_assert(sizeof(tide_limit_options) == 32 + 64, "limits");
_Static_assert(sizeof(tide_limit_statistics) == 56 + 64, "what is held");
_Static_assert(sizeof(tide_device_information) == 216 + 64, "devices");
_Static_assert(sizeof(tide_array_source) == 48 + 64, "arrays of other memory");
_Static_assert(sizeof(tide_learning_statistics) == 112 + 64, "learning");
_Static_assert(sizeof(tide_site_information) == 328 + 64, "sites");
_Static_assert(sizeof(tide_site_profile) == 808 + 64, "profiles");

static void options_of_a_later_version_are_refused(void **state)
{
    const tide_pool_options pool = {.growth_ = {0, 7}};
    const tide_buffers_options buffers = {.growth_ = {[7] = 1}};
    const tide_limit_options limit = {.growth_ = {1}};
    const tide_array_source source = {.type = TIDE_F64, .growth_ = {1}};
    (void)state;
    assert_null(tide_pool_create(&pool));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    assert_non_null(strstr(tide_error_message(), "later version"));
    assert_null(tide_buffers_create(NULL, &buffers));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_limit_set(&limit), TIDE_ERROR_ARGUMENT);
    assert_null(tide_array_wrap(tide_pool_local(), &source));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    assert_non_null(strstr(tide_error_message(), "later version"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_is_that_of_the_headers),
        cmocka_unit_test(options_of_a_later_version_are_refused),
        cmocka_unit_test(headers_of_other_versions_are_refused),
    };
    return cmocka_run_group_tests_name("version", tests, NULL, NULL);
}
