/* SPDX-License-Identifier: MIT */
/* Mistakes that a sanitizer has to notice, one at a time:
 *
 *   mistakes NAME FORM   makes it once, in the form of that number: AddressSanitizer ends the program
 *   mistakes NAME        makes it in every form, and exits with 99 if Valgrind objected each time */
#include "../forms.h"

#include <stdio.h>

#if defined(TIDE_HAVE_VALGRIND)
#include <valgrind/valgrind.h>
#endif

/* An array of 10 doubles, acquired in a slot with room for 100, and kept beyond its scope. */
static void acquire_and_keep(tide_pool *pool, void *state)
{
    double **kept = state;
    tide_mark mark = tide_checkpoint(pool);
    tide_fill(pool, double, 100, 1.0);
    tide_rewind(pool, mark);
    *kept = tide_fill(pool, double, 10, 2.0);
}

static double *volatile kept_array;

static void keep(tide_pool *pool)
{
    double *kept = NULL;
    acquire_and_keep(pool, &kept);
    kept_array = kept;
}

static void read_kept(size_t at)
{
    volatile double seen = kept_array[at];
    (void)seen;
}

static void just_keep(tide_pool *pool, void *state)
{
    (void)state;
    keep(pool);
}

static void read_after_rewind(const form *f, tide_pool *pool)
{
    f->run(pool, just_keep, NULL);
    read_kept(3);
}

static void write_after_rewind(const form *f, tide_pool *pool)
{
    f->run(pool, just_keep, NULL);
    *(volatile double *)&kept_array[3] = 1;
}

static void reset_and_read(tide_pool *pool, void *state)
{
    (void)state;
    keep(pool);
    tide_pool_reset(pool);
    read_kept(0);
}

/* Of a scope that is still open. */
static void read_after_reset(const form *f, tide_pool *pool)
{
    f->run(pool, reset_and_read, NULL);
}

static void read_too_far(tide_pool *pool, void *state)
{
    (void)state;
    keep(pool);
    read_kept(10);
}

/* One element more than was asked for, in a slot that has room for it. */
static void read_past_the_end(const form *f, tide_pool *pool)
{
    f->run(pool, read_too_far, NULL);
}

static void acquire_shorter_and_read(tide_pool *pool, void *state)
{
    (void)state;
    tide_fill(pool, double, 3, 3.0);
    read_kept(9);
}

/* The same slot again, but shorter, through the old pointer beyond that. */
static void read_of_the_rewound_slot(const form *f, tide_pool *pool)
{
    f->run(pool, just_keep, NULL);
    f->run(pool, acquire_shorter_and_read, NULL);
}

/* No mistake at all: whoever objects to this is wrong. */
static void none(const form *f, tide_pool *pool)
{
    double *outer = tide_fill(pool, double, 10, 1.0);
    for (int i = 0; i < 3; i++) {
        f->run(pool, just_keep, NULL);
        tide_mark mark = tide_checkpoint(pool);
        f->run(pool, just_keep, NULL);
        double *inner = tide_fill(pool, double, 20, 2.0);
        volatile double seen = outer[9] + inner[19];
        tide_rewind(pool, mark);
        seen = outer[0];
        (void)seen;
    }
}

static const struct {
    const char *name;
    void (*make)(const form *f, tide_pool *pool);
} mistakes[] = {
    {"read_after_rewind", read_after_rewind},
    {"write_after_rewind", write_after_rewind},
    {"read_after_reset", read_after_reset},
    {"read_past_the_end", read_past_the_end},
    {"read_of_the_rewound_slot", read_of_the_rewound_slot},
    {"none", none},
};

static unsigned objections(void)
{
#if defined(TIDE_HAVE_VALGRIND)
    return VALGRIND_COUNT_ERRORS;
#else
    return 0;
#endif
}

static void make_once(size_t mistake, const form *f)
{
    tide_pool *pool = pool_of(TIDE_CHECK_POISON);
    mistakes[mistake].make(f, pool);
    tide_pool_reset(pool);
    tide_pool_destroy(pool);
}

static int make_in_each(size_t mistake)
{
    size_t noticed = 0;
    EACH_FORM(f)
    {
        unsigned before = objections();
        make_once(mistake, f);
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
    size_t mistake = 0, all = sizeof mistakes / sizeof *mistakes;
    while (mistake < all && (count < 2 || strcmp(arguments[1], mistakes[mistake].name) != 0))
        mistake++;
    if (mistake == all)
        return 2;
    forms_prepare_all();
    if (count == 2)
        return make_in_each(mistake);
    make_once(mistake, form_at((size_t)atoi(arguments[2])));
    fprintf(stderr, "unnoticed\n");
    return 0;
}
