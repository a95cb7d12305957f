/* SPDX-License-Identifier: MIT */
/* hazards: random programs of pools, buffers, exports and graphs on four streams of the fake
 * driver, whose work happens late and in any order that it may. See world.h for what is checked. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidepool/tune.h>

#include "tests/device/cuda/support.h"
#include "world.h"

static void (*const does[STEP_COUNT])(const step *s) = {
#define X(code, name, weight) step_##name,
    HAZARD_STEPS(X)
#undef X
};

static void look(size_t after)
{
    if (w.wrong[0] == '\0' && fake_hazard() != NULL)
        world_wrong("%s", fake_hazard());
    if (w.wrong[0] == '\0' && fake_violation() != NULL)
        world_wrong("%s", fake_violation());
    if (w.wrong[0] == '\0' && unexpected() != 0)
        world_wrong("a kernel reads %u bytes that were not written last", unexpected());
    if (w.wrong[0] == '\0')
        return;
    char text[320];
    snprintf(text, sizeof text, "%.300s", w.wrong);
    snprintf(w.wrong, sizeof w.wrong, "after step %zu: %s", after, text);
}

bool program_run(const program *p, enum plant plant, char wrong[400])
{
    bool begun = world_begin(p->seed, plant);
    for (size_t i = 0; begun && i < p->count && w.wrong[0] == '\0'; i++) {
        does[p->steps[i].code](&p->steps[i]);
        if (w.queued > 1500)
            step_synchronise(&(step){.b = 1});
        look(i);
    }
    if (w.wrong[0] == '\0') {
        world_end();
        look(p->count);
    }
    memcpy(wrong, w.wrong, sizeof w.wrong);
    return wrong[0] == '\0';
}

/* ---- in a process of its own ----------------------------------------------------------------- */

static unsigned mapped; /* calls of all programs that map memory by the page */

static bool trial_fails(const program *p, enum plant plant, char wrong[400])
{
    struct {
        char said[400];
        unsigned mapped;
    } told = {{0}, 0};
    int ends[2];
    if (pipe(ends) != 0)
        abort();
    pid_t child = fork_child(60);
    if (child == 0) {
        bool right = program_run(p, plant, told.said);
        told.mapped = fake_calls("cuMemMap");
        _exit(write(ends[1], &told, sizeof told) == sizeof told && right ? 0 : 1);
    }
    close(ends[1]);
    (void)read_to_end(ends[0], (char *)&told, sizeof told);
    int status = wait_for_child(child);
    memcpy(wrong, told.said, sizeof told.said);
    mapped += told.mapped;
    if (status != 0 && wrong[0] == '\0')
        snprintf(wrong, 400, "it ended with status %d", status);
    return status != 0;
}

/* Leaves out as many steps as it can while it still fails. */
static void shrink(program *p, char wrong[400])
{
    for (size_t part = p->count / 2; part > 0; part /= 2)
        for (size_t from = 0; from + part <= p->count;) {
            char said[400];
            program less = *p;
            memmove(&less.steps[from], &less.steps[from + part],
                    (p->count - from - part) * sizeof *less.steps);
            less.count -= part;
            if (!trial_fails(&less, PLANT_NONE, said)) {
                from += part;
                continue;
            }
            *p = less;
            memcpy(wrong, said, sizeof said);
        }
}

static int report(program *p, char wrong[400])
{
    fprintf(stderr, "hazards: seed %u: %s\n", p->seed, wrong);
    shrink(p, wrong);
    fprintf(stderr, "shrunk to %zu steps: %s\n", p->count, wrong);
    program_print(p, stderr);
    return 1;
}

/* ---- many ------------------------------------------------------------------------------------ */

/* Memory by the page was not asked for, or mapped. */
static bool is_mapped_if_asked(void)
{
    double asked = 0;
    return tide_tune_get("cuda_memory", &asked) == TIDE_OK && (asked == 0 || mapped != 0);
}

static int run_many(uint32_t first, uint32_t count)
{
    char wrong[400];
    program p;
    for (uint32_t i = 0; i < count; i++) {
        program_generate(&p, first + i);
        if (trial_fails(&p, PLANT_NONE, wrong))
            return report(&p, wrong);
    }
    printf("%u programs, nothing found%s\n", count, is_mapped_if_asked() ? "" : ", nothing mapped");
    return is_mapped_if_asked() ? 0 : 1;
}

/* What is broken must be found, and by more than luck. */
static int run_planted(enum plant plant, const char *name, uint32_t count)
{
    unsigned found = 0;
    char wrong[400], first[400] = "";
    program p;
    for (uint32_t seed = 1; seed <= count; seed++) {
        program_generate(&p, seed);
        if (trial_fails(&p, plant, wrong) && found++ == 0)
            memcpy(first, wrong, sizeof first);
    }
    printf("%s: %u of %u programs found it, the first: %s\n", name, found, count, first);
    return found != 0 && found * 50 >= count ? 0 : 1;
}

static const char *const plants[PLANT_COUNT] = {
#define X(plant, name) name,
    HAZARD_PLANTS(X)
#undef X
};

static int use(void)
{
    fputs("hazards [--seed N] [--programs N] [--plants]\n", stderr);
    return 2;
}

int main(int count, char **arguments)
{
    uint32_t seed = 1, programs = 1000;
    int status = 0;
    enum plant first = PLANT_NONE, last = PLANT_NONE;
    for (int i = 1; i < count; i++) {
        const char *next = i + 1 < count ? arguments[i + 1] : "";
        if (strcmp(arguments[i], "--plants") == 0)
            first = PLANT_NONE + 1, last = PLANT_COUNT - 1;
        else if (strcmp(arguments[i], "--seed") == 0)
            seed = (uint32_t)strtoul(next, NULL, 10), i++;
        else if (strcmp(arguments[i], "--programs") == 0)
            programs = (uint32_t)strtoul(next, NULL, 10), i++;
        else
            return use();
    }
    fake_reset(1, seed); /* maps the device once, not in each program's process */
    (void)tide_tune_set("background", 0);
    (void)tide_tune_set("frame_kernels", 0); /* the fake driver loads none */
    for (enum plant plant = first; plant != PLANT_NONE && plant <= last; plant++)
        status |= run_planted(plant, plants[plant], programs);
    return first != PLANT_NONE ? status : run_many(seed, (uint32_t)scaled(programs, 50));
}
