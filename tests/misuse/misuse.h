/* SPDX-License-Identifier: MIT */
/* One mistake, made in one form of scope, or in all of them one after the other.
 *
 * A program says what the mistake is: a function `misuse`. With a form's number as its argument
 * it makes the mistake once, which a sanitizer answers by ending the program. Without, it makes
 * it in every form, and exits with 99 only if Valgrind objected each time. */
#ifndef TIDEPOOL_TESTS_MISUSE_H
#define TIDEPOOL_TESTS_MISUSE_H

#include "../forms.h"

#include <stdio.h>

#if defined(TIDE_HAVE_VALGRIND)
#include <valgrind/valgrind.h>
#endif

static void misuse(const form *f, tide_pool *pool);

static unsigned objections(void)
{
#if defined(TIDE_HAVE_VALGRIND)
    return VALGRIND_COUNT_ERRORS;
#else
    return 0;
#endif
}

static void misuse_once(const form *f)
{
    tide_pool *pool = pool_of(TIDE_CHECK_POISON);
    misuse(f, pool);
    tide_pool_reset(pool);
    tide_pool_destroy(pool);
}

static int misuse_each(void)
{
    size_t noticed = 0;
    EACH_FORM(f)
    {
        unsigned before = objections();
        misuse_once(f);
        bool now = objections() > before;
        if (!now)
            fprintf(stderr, "unnoticed: %s\n", f->name);
        noticed += now;
    }
    fprintf(stderr, "noticed %zu of %zu\n", noticed, form_count());
    return noticed == form_count() ? 99 : 1;
}

int main(int count, char **arguments)
{
    forms_prepare_all();
    if (count < 2)
        return misuse_each();
    misuse_once(form_at((size_t)atoi(arguments[1])));
    fprintf(stderr, "unnoticed\n");
    return 0;
}

/* An array of 10 doubles, acquired in a slot with room for 100, and kept beyond its scope. */
static void misuse_acquire(tide_pool *pool, void *state)
{
    double **kept = state;
    tide_mark mark = tide_checkpoint(pool);
    tide_fill(pool, double, 100, 1.0);
    tide_rewind(pool, mark);
    *kept = tide_fill(pool, double, 10, 2.0);
}

#endif
