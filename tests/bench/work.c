/* SPDX-License-Identifier: MIT */
/* The states of cases that are written once for each form, and the comparison of their sums. */
#include "work.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <tidepool/site.h>

/* --- states ------------------------------------------------------------------------------- */

static bench_work *work_make(const bench_case *job)
{
    bench_work *s = bench_state_make(sizeof *s);
    s->sizes = job->sizes;
    s->job = job;
    return s;
}

void *bench_work_pool(const bench_case *job)
{
    bench_work *s = work_make(job);
    s->tide = bench_tide_make(job, false);
    s->context = s->tide->pool;
    return s;
}

void *bench_work_bump(const bench_case *job)
{
    bench_work *s = work_make(job);
    s->bump = bench_bump_make(job);
    s->context = s->bump;
    return s;
}

void *bench_work_glibc(const bench_case *job)
{
    const bench_malloc *heap = bench_malloc_find("glibc");
    if (heap == NULL)
        return NULL;
    bench_work *s = work_make(job);
    s->context = heap;
    return s;
}

void *bench_work_stack(const bench_case *job)
{
    return work_make(job);
}

void bench_work_free(void *state)
{
    bench_work *s = state;
    if (s->tide != NULL)
        bench_tide_free(s->tide);
    if (s->bump != NULL)
        bench_bump_free(s->bump);
    bench_state_free(s, sizeof *s);
}

/* --- call sites --------------------------------------------------------------------------- */

static size_t work_row_length(const tide_type *row)
{
    size_t length = 0;
    while (length < BENCH_WORK_TYPES && row[length] != TIDE_NO_TYPE)
        length++;
    return length;
}

void bench_work_pin(bench_work *s, tide_site *sites, size_t count, tide_tier tier,
                    const bench_work_row *types)
{
    s->sites = sites;
    s->site_count = count;
    s->tier = tier;
    for (size_t i = 0; i < count; i++) {
        if (tide_site_declare(&sites[i], types[i], work_row_length(types[i])) != TIDE_OK ||
            tide_site_pin(&sites[i], tier) != TIDE_OK)
            bench_die("%s", tide_error_message());
    }
}

static bool work_at_its_tier(const bench_work *s)
{
    for (size_t i = 0; i < s->site_count; i++) {
        tide_site_information info;
        if (tide_site_info(&s->sites[i], &info) == TIDE_OK && info.tier == s->tier &&
            !info.observed)
            continue;
        bench_complain("site %zu of %s is not at tier %s, or is observed", i, s->job->name,
                       tide_tier_name(s->tier));
        return false;
    }
    return true;
}

/* --- sums --------------------------------------------------------------------------------- */

/* The sum of a step of a case, once for all its variants, which run in one process. */
static bool work_same(const bench_case *job, uint64_t step)
{
    enum { MOST = 32 };
    static struct {
        const bench_case *job;
        uint64_t step;
    } known[MOST];
    static size_t count;
    for (size_t i = 0; i < count; i++)
        if (known[i].job == job)
            return known[i].step == step;
    assert(count < MOST);
    known[count].job = job;
    known[count++].step = step;
    return true;
}

void bench_work_proved(void *state, bench_work_run *run)
{
    bench_work *s = state;
    s->sum = 0;
    if (run(s, s->job->step) != s->job->step)
        bench_die("%s lost operations", s->job->name);
    if (s->sum == 0 || !work_same(s->job, s->sum))
        bench_die("%s: the variants do not do the same work", s->job->name);
    s->step = s->sum;
    s->sum = 0;
    if (s->tide != NULL)
        bench_tide_warm(s->tide);
}

bool bench_work_verify(void *state, uint64_t operations)
{
    const bench_work *s = state;
    if (s->sum != operations / s->job->step * s->step) {
        bench_complain("%s: a step did other work than the first", s->job->name);
        return false;
    }
    return work_at_its_tier(s) && (s->bump == NULL || bench_bump_empty(s->bump)) &&
           (s->tide == NULL || bench_tide_verify(s->tide, operations));
}

/* --- the proof ---------------------------------------------------------------------------- */

void bench_work_fill(void *data, size_t bytes, int value)
{
    if (data == NULL)
        bench_die("an array is missing");
    memset(data, value, bytes);
}

void bench_work_check(const void *data, size_t bytes, int value)
{
    const unsigned char *first = data;
    if (first[0] != (unsigned char)value || memcmp(first, first + 1, bytes - 1) != 0)
        bench_die("an array was overwritten");
}
