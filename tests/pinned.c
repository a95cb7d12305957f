/* SPDX-License-Identifier: MIT */
/* Exported memory, once its consumer is done with it and the pool too, is anyone's: nothing that a
 * checking pool told AddressSanitizer of it may outlive it. (The pool's later arrays would not
 * notice: their acquire says which bytes are live.) */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>
#include <tidepool/array.h>
#include <tidepool/dlpack.h>
#include <tidepool/tidepool.h>

enum { LARGE = 8 << 20, SMALL = 5 << 20 };

/* An array of the first bytes of a larger slot, so that the rest is forbidden; exported. */
static tide_dl_managed *export_part(tide_pool *pool)
{
    const int64_t large = LARGE, small = SMALL;
    TIDE_LOOP(pool, i, 1)
    assert_non_null(tide_array_acquire(pool, TIDE_U8, 1, &large));
    tide_mark mark = tide_checkpoint(pool);
    tide_array *array = tide_array_acquire(pool, TIDE_U8, 1, &small);
    assert_non_null(array);
    tide_dl_managed *managed = tide_array_export(pool, array);
    assert_non_null(managed);
    assert_int_equal(tide_rewind(pool, mark), TIDE_OK);
    return managed;
}

static void memory_given_back_by_a_consumer_is_anyones(void **state)
{
    (void)state;
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.check = TIDE_CHECK_POISON});
    assert_non_null(pool);
    tide_dl_managed *managed = export_part(pool);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    void *was = managed->tensor.data;
    memset(was, 1, SMALL);
    managed->deleter(managed);
    void *now = mmap(was, LARGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (now == MAP_FAILED || now != was)
        skip();
    memset(now, 2, LARGE);
    assert_int_equal(munmap(now, LARGE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_given_back_by_a_consumer_is_anyones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
