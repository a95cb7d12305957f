/* SPDX-License-Identifier: MIT */
/* The forms of scope: one function each opens a scope for a menu's types and interprets inside. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/dynamic.h>
#include <tidepool/learn.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>

#include "interpret.h"
#include "tests/hooks.h"

typedef void enter_function(struct machine *machine, struct frame *frame);

static void expect_tier(struct machine *machine, const tide_plan *plan, tide_tier tier)
{
    if (plan->tier != tier)
        oracle_wrong(&machine->oracle, "the scope runs at the %s tier, must be %s",
                     tide_tier_name(plan->tier), tide_tier_name(tier));
}

/* A block that `opening` turns into a scope. */
#define BLOCK(opening, data)                              \
    enum outcome outcome;                                 \
    do {                                                  \
        opening;                                          \
        outcome = machine_inside(machine, frame, (data)); \
    } while (0)

/* ---- TIDE_SCOPE, one site for each menu -------------------------------------------------- */

#define SITE_FORM(form, menu, tier)                                              \
    static void form##_##menu(struct machine *machine, struct frame *frame)      \
    {                                                                            \
        bool again = true;                                                       \
        while (again) {                                                          \
            BLOCK(TIDE_SCOPE_AT(scope, machine->pool, "model-" #form "-" #menu); \
                  expect_tier(machine, scope.plan, tier(scope)), NULL);          \
            again = machine_after(machine, frame, outcome);                      \
        }                                                                        \
    }
/* Where nothing can be compiled the table stands in, if somebody wants that form by its name. So it does
 * for more types than code saves. */
static tide_tier compiled_tier = TIDE_TIER_COMPILED;

static tide_tier compiled_tier_of(uint32_t types)
{
    return types <= TIDE_SCOPE_SAVED ? compiled_tier : TIDE_TIER_TABLE;
}

#define IS_FULL(scope)      TIDE_TIER_FULL
#define IS_COMPILED(scope)  compiled_tier_of((scope).plan->type_count)
#define IS_TABLE(scope)     TIDE_TIER_TABLE
#define IS_ANY(scope)       (scope).plan->tier
#define FULL_FORM(menu)     SITE_FORM(full, menu, IS_FULL)
#define TABLE_FORM(menu)    SITE_FORM(table, menu, IS_TABLE)
#define OBSERVED_FORM(menu) SITE_FORM(observed, menu, IS_ANY)
MODEL_MENUS(FULL_FORM)
MODEL_MENUS(TABLE_FORM)
#define COMPILED_FORM(menu) SITE_FORM(compiled, menu, IS_COMPILED)
MODEL_MENUS(OBSERVED_FORM)
MODEL_MENUS(COMPILED_FORM)

/* ---- TIDE_SCOPE_TYPES -------------------------------------------------------------------- */

/* TIDE_SCOPE_TYPES wants the types in a row; the menus are lists for a macro. */
#define TYPES_0 double
#define TYPES_1 double, int32_t
#define TYPES_2 float, float, uint8_t
#define TYPES_3 struct model_point, double, struct model_wide
#define TYPES_4 int8_t, int16_t, int32_t, int64_t, float, double, tide_c128, bool

#define SCOPE_TYPES(pool, ...) TIDE_SCOPE_TYPES(pool, __VA_ARGS__)
#define TYPES_FORM(menu)                                                   \
    static void types_##menu(struct machine *machine, struct frame *frame) \
    {                                                                      \
        bool again = true;                                                 \
        while (again) {                                                    \
            BLOCK(SCOPE_TYPES(machine->pool, TYPES_##menu), NULL);         \
            again = machine_after(machine, frame, outcome);                \
        }                                                                  \
    }
MODEL_MENUS(TYPES_FORM)

/* ---- TIDE_FRAME -------------------------------------------------------------------------- */

static size_t frame_count(const struct frame *frame, unsigned i)
{
    size_t bits = model_types[frame->menu->index[i]].bits;
    return operand_scope_count(frame->op.b, frame->op.c, i, bits);
}

#define N(i)    frame_count(frame, i)
#define FRAME_0 (double, a, N(0))
#define FRAME_1 (double, a, N(0)), (int32_t, b, N(1))
#define FRAME_2 (float, a, N(0)), (float, b, N(1)), (uint8_t, c, N(2))
#define FRAME_3 (struct model_point, a, N(0)), (double, b, N(1)), (struct model_wide, c, N(2))
#define FRAME_4                                                                    \
    (int8_t, a, N(0)), (int16_t, b, N(1)), (int32_t, c, N(2)), (int64_t, d, N(3)), \
        (float, e, N(4)), (double, f, N(5)), (tide_c128, g, N(6)), (bool, h, N(7))
#define NAMES_0 a
#define NAMES_1 a, b
#define NAMES_2 a, b, c
#define NAMES_3 a, b, c
#define NAMES_4 a, b, c, d, e, f, g, h

/* A frame without arrays is a scope that names the same types. */
#define FRAME(pool, ...) TIDE_FRAME(pool, __VA_ARGS__)
#define DATA(...)        ((void *const[]){__VA_ARGS__})
#define FRAME_FORM(menu)                                                               \
    static enum outcome framed_##menu(struct machine *machine, struct frame *frame)    \
    {                                                                                  \
        BLOCK(FRAME(machine->pool, FRAME_##menu), DATA(NAMES_##menu));                 \
        return outcome;                                                                \
    }                                                                                  \
    static enum outcome unframed_##menu(struct machine *machine, struct frame *frame)  \
    {                                                                                  \
        BLOCK(SCOPE_TYPES(machine->pool, TYPES_##menu), NULL);                         \
        return outcome;                                                                \
    }                                                                                  \
    static void frame_##menu(struct machine *machine, struct frame *frame)             \
    {                                                                                  \
        bool again = true;                                                             \
        while (again)                                                                  \
            again = machine_after(machine, frame,                                      \
                                  frame->furnished ? framed_##menu(machine, frame)     \
                                                   : unframed_##menu(machine, frame)); \
    }
MODEL_MENUS(FRAME_FORM)

/* ---- TIDE_LOOP --------------------------------------------------------------------------- */

/* A turn is the next round, and only seen to be over when that begins. */
static void loop_any(struct machine *machine, struct frame *frame)
{
    enum outcome outcome = OUTCOME_STOP;
    TIDE_LOOP(machine->pool, i, SIZE_MAX)
    {
        if (i > 0 && !machine_after(machine, frame, outcome))
            return;
        outcome = machine_inside(machine, frame, NULL);
        if (outcome != OUTCOME_TURN)
            break;
    }
    machine_after(machine, frame, outcome);
}

/* ---- marks and scopes for FFI ------------------------------------------------------------ */

static void expect(struct machine *machine, tide_status status, tide_status expected,
                   const char *call)
{
    if (status != expected)
        oracle_wrong(&machine->oracle, "%s: %s, must be %s (%s)", call, tide_status_name(status),
                     tide_status_name(expected), tide_error_message());
}

static void marks_any(struct machine *machine, struct frame *frame)
{
    bool again = true;
    while (again) {
        tide_mark mark = tide_checkpoint(machine->pool);
        enum outcome outcome = machine_inside(machine, frame, NULL);
        bool open = oracle_is_open(&machine->oracle, frame->level);
        if (machine_failed(machine))
            return;
        expect(machine, tide_rewind(machine->pool, mark), open ? TIDE_OK : TIDE_ERROR_STALE,
               "tide_rewind");
        again = machine_after(machine, frame, outcome);
        if (machine->oracle.plant == PLANT_FORM && outcome == OUTCOME_TURN)
            machine->status = TIDE_ERROR_STATE;
    }
}

static void ffi_any(struct machine *machine, struct frame *frame)
{
    static tide_site *sites[MENU_COUNT];
    unsigned menu = (unsigned)(frame->menu - model_menus);
    if (sites[menu] == NULL && menu > 0) {
        char name[32];
        snprintf(name, sizeof name, "model-ffi-%u", menu);
        sites[menu] = tide_site_register(name);
    }
    bool again = true;
    while (again) {
        tide_scope scope;
        expect(machine, tide_scope_enter(machine->pool, sites[menu], &scope), TIDE_OK,
               "tide_scope_enter");
        enum outcome outcome = machine_inside(machine, frame, NULL);
        bool open = oracle_is_open(&machine->oracle, frame->level);
        if (machine_failed(machine))
            return;
        expect(machine, tide_scope_leave(&scope), open ? TIDE_OK : TIDE_ERROR_STALE,
               "tide_scope_leave");
        expect(machine, tide_scope_leave(&scope), TIDE_ERROR_STALE, "tide_scope_leave again");
        again = machine_after(machine, frame, outcome);
    }
}

/* ---- which function ---------------------------------------------------------------------- */

#define FULL_NAME(menu)     full_##menu,
#define TABLE_NAME(menu)    table_##menu,
#define OBSERVED_NAME(menu) observed_##menu,
#define COMPILED_NAME(menu) compiled_##menu,
#define TYPES_NAME(menu)    types_##menu,
#define FRAME_NAME(menu)    frame_##menu,
/* clang-format off */
#define ANY(function) {function, function, function, function, function}
/* clang-format on */

static enter_function *const enter_functions[FORM_COUNT][MENU_COUNT] = {
    [FORM_FULL] = {MODEL_MENUS(FULL_NAME)},
    [FORM_TABLE] = {MODEL_MENUS(TABLE_NAME)},
    [FORM_OBSERVED] = {MODEL_MENUS(OBSERVED_NAME)},
    [FORM_COMPILED] = {MODEL_MENUS(COMPILED_NAME)},
    [FORM_TYPES] = {MODEL_MENUS(TYPES_NAME)},
    [FORM_FRAME] = {MODEL_MENUS(FRAME_NAME)},
    [FORM_LOOP] = ANY(loop_any),
    [FORM_MARKS] = ANY(marks_any),
    [FORM_FFI] = ANY(ffi_any),
};

void machine_enter(struct machine *machine, struct frame *frame)
{
    enter_functions[frame->form][frame->menu - model_menus](machine, frame);
}

/* ---- sites ------------------------------------------------------------------------------- */

static tide_site *found_sites[FORM_COUNT][MENU_COUNT];

/* "model-table-3" */
static bool note_site(tide_site *site, void *user)
{
    (void)user;
    tide_site_information info;
    tide_site_info(site, &info);
    for (unsigned form = 0; form < FORM_COUNT; form++)
        for (unsigned menu = 0; menu < MENU_COUNT; menu++) {
            char name[32];
            snprintf(name, sizeof name, "model-%s-%u", form_names[form], menu);
            if (strcmp(name, info.name) == 0)
                found_sites[form][menu] = site;
        }
    return true;
}

static void require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "model: %s: %s\n", what, tide_error_message());
    exit(EXIT_FAILURE);
}

static tide_site *declare_site(enum form form, unsigned menu)
{
    tide_type ids[MENU_MAX];
    model_menu_ids(&model_menus[menu], ids);
    tide_site *site = found_sites[form][menu];
    require(site != NULL, "a static site is missing from the list");
    require(tide_site_declare(site, ids, model_menus[menu].count) == TIDE_OK, "declare");
    return site;
}

static void pin_site(enum form form, unsigned menu, tide_tier tier)
{
    tide_site *site = found_sites[form][menu];
    require(site != NULL, "a static site is missing from the list");
    if (tier == TIDE_TIER_TABLE)
        declare_site(form, menu);
    require(tide_site_pin(site, tier) == TIDE_OK, "pin");
}

bool machine_can_compile(void)
{
    return stager_is_there();
}

static void prepare_compiled(void)
{
    if (!machine_can_compile())
        compiled_tier = TIDE_TIER_TABLE;
    for (unsigned menu = 0; menu < MENU_COUNT; menu++)
        declare_site(FORM_COMPILED, menu);
    require(tide_tune_set("learn", 1) == TIDE_OK, "learn");
    if (machine_can_compile())
        require(tide_settle(60000) == TIDE_OK, "settle");
    require(tide_tune_set("learn", 0) == TIDE_OK, "learn");
    for (unsigned menu = 0; menu < MENU_COUNT; menu++)
        require(tide_site_pin(found_sites[FORM_COMPILED][menu],
                              compiled_tier_of((uint32_t)model_menus[menu].count)) == TIDE_OK,
                "a site was not compiled");
}

/* Nothing is learned but what the compiled form needs, before anything runs. */
void machine_prepare_sites(void)
{
    require(tide_tune_set("learn", 0) == TIDE_OK && tide_tune_set("background", 0) == TIDE_OK &&
                tide_tune_set("trial", 0) == TIDE_OK && tide_tune_set("count_runs", 1) == TIDE_OK,
            "settings");
    tide_site_each(note_site, NULL);
    for (unsigned menu = 0; menu < MENU_COUNT; menu++) {
        pin_site(FORM_FULL, menu, TIDE_TIER_FULL);
        pin_site(FORM_TABLE, menu, TIDE_TIER_TABLE);
    }
    prepare_compiled();
}

uint64_t machine_compiled_runs(void)
{
    uint64_t runs = 0;
    for (unsigned menu = 0; menu < MENU_COUNT; menu++) {
        tide_site_information info;
        require(tide_site_info(found_sites[FORM_COMPILED][menu], &info) == TIDE_OK, "info");
        runs += info.runs;
    }
    return runs;
}

void machine_pin_observed(void)
{
    for (unsigned menu = 0; menu < MENU_COUNT; menu++)
        pin_site(FORM_OBSERVED, menu, menu % 2 != 0 ? TIDE_TIER_TABLE : TIDE_TIER_FULL);
}

/* Only sites of the observed form change plans under way: the others are what their names say. */
void machine_repin(struct machine *machine, const struct operation *op)
{
    if (machine->form != FORM_OBSERVED && machine->form != FORM_MIXED)
        return;
    unsigned menu = op->a % MENU_COUNT;
    if (op->b % 3 == 2)
        require(tide_site_reset(found_sites[FORM_OBSERVED][menu]) == TIDE_OK, "reset");
    pin_site(FORM_OBSERVED, menu, op->b % 3 == 1 ? TIDE_TIER_TABLE : TIDE_TIER_FULL);
}
