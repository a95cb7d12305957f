/* SPDX-License-Identifier: MIT */
#include "program.h"

#include "tests/random.h"

static const char *const names[STEP_COUNT] = {
#define X(code, name, weight) #name,
    HAZARD_STEPS(X)
#undef X
};

static const unsigned char weights[STEP_COUNT] = {
#define X(code, name, weight) weight,
    HAZARD_STEPS(X)
#undef X
};

#define X(code, name, weight) +weight
_Static_assert(0 HAZARD_STEPS(X) == 128, "the weights of all steps are 128 together");
#undef X

static uint8_t code_of(unsigned drawn)
{
    uint8_t code = 0;
    for (unsigned end = weights[0]; drawn >= end; end += weights[code])
        code++;
    return code;
}

static bool is_of_a_pool(uint8_t code)
{
    return code == STEP_ACQUIRE || code == STEP_ENTER || code == STEP_LEAVE ||
           code == STEP_DECLARE || code == STEP_FILL || code == STEP_POOL || code == STEP_TRIM;
}

/* Some programs keep to few pools, so that much happens there. */
void program_generate(program *p, uint32_t seed)
{
    rng random = {seed};
    p->seed = seed;
    uint8_t pools = (uint8_t)(1 + rng_below(&random, 4));
    p->count = 20 + (size_t)rng_below(&random, STEPS_MAX - 20);
    for (size_t i = 0; i < p->count; i++) {
        uint64_t r = rng_next(&random);
        p->steps[i] = (step){code_of((unsigned)(r & 127)), (uint8_t)(r >> 8), (uint8_t)(r >> 16),
                             (uint8_t)(r >> 24)};
        if (is_of_a_pool(p->steps[i].code))
            p->steps[i].a %= pools;
    }
}

void program_print(const program *p, FILE *out)
{
    fprintf(out, "  seed %u\n", p->seed);
    for (size_t i = 0; i < p->count; i++)
        fprintf(out, "  %3zu %-14s %3u %3u %3u\n", i, names[p->steps[i].code], p->steps[i].a,
                p->steps[i].b, p->steps[i].c);
}
