/* SPDX-License-Identifier: MIT */
/* A program with tunables. It lists them before it uses any; then it works, for so many uses as it
 * is told, or until its standard input ends. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/tidepool.h>
#include <tidepool/tunable.h>

TIDE_VARIANTS(target_work, "work", "slow", "fast", "slower");
TIDE_MEASURED(target_body, "body");
TIDE_KNOB(target_file, "of the file", 0, 10, 5);

/* How many steps of work: the fast one has a hundredth of the others'. */
static double target_steps(uint32_t which, uint64_t key)
{
    static const int steps[] = {20000, 200, 40000};
    volatile double sum = 0;
    for (int i = 0; i < steps[(which + key) % 3]; i++)
        sum += i;
    return sum;
}

static void target_use(uint64_t key)
{
    TIDE_MEASURE(&target_work, key, which);
    (void)target_steps(which, key);
}

static int64_t target_knob(void)
{
    TIDE_SCOPE_NAMED(tide_pool_local(), "of a function");
    TIDE_MEASURE(&target_body, 0, unused);
    return tide_tunable("in a function", 8, 64) + tide_tunable_value(&target_file);
}

static bool target_list(tide_tunable *tunable, void *user)
{
    (void)user;
    printf("%s %ld\n", tunable->name, (long)tide_tunable_value(tunable));
    return true;
}

static bool target_list_site(tide_site *site, void *user)
{
    (void)user;
    tide_site_information info;
    if (tide_site_info(site, &info) == TIDE_OK)
        printf("site %s\n", info.name);
    return true;
}

static bool target_is_over(void)
{
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    return poll(&input, 1, 0) > 0;
}

int main(int count, char **args)
{
    if (count > 1 && strcmp(args[1], "list") == 0) {
        tide_tunable_each(target_list, NULL);
        tide_site_each(target_list_site, NULL);
        return 0;
    }
    long uses = count > 2 ? atol(args[2]) : 0;
    tide_pool *pool = tide_pool_local();
    (void)pool;
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    for (long i = 0; uses != 0 ? i < uses : !target_is_over(); i++) {
        target_use((uint64_t)i % 2);
        (void)target_knob();
    }
    for (uint32_t i = 0; uses != 0 && i < 2; i++) {
        tide_tunable_row row;
        if (!tide_tunable_row_get(&target_work, i, &row))
            return 1;
        printf("key %d: %s%s, other uses %d\n", (int)row.key, row.candidates[row.choice].name,
               row.settled ? ", settled" : "", (int)row.candidates[(row.choice + 1) % 3].uses);
    }
    return 0;
}
