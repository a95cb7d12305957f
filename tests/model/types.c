/* SPDX-License-Identifier: MIT */
#include "types.h"

#include <tidepool/check.h>

#include "runtime/array/array.h"

#define BUILTIN(id, constant, ctype, bits, name) {constant, name, bits, _Alignof(ctype)},

struct model_type model_types[MODEL_TYPES] = {
    TIDE_BUILTIN_TYPES(BUILTIN){0, "struct model_point", 8 * sizeof(struct model_point),
                                _Alignof(struct model_point)},
    {0, "struct model_wide", 8 * sizeof(struct model_wide), _Alignof(struct model_wide)},
    {0, "model.byte", 8, 1},
    {0, "model.three", 24, 1},
    {0, "model.twelve", 96, 4},
    {0, "model.line", 512, 64},
    {0, "model.sector", 4096, 512},
    {0, "model.page", 8 * 4096, 4096},
    {0, "model.pages", 8 * 8192, 4096},
    {0, "model.odd", 8 * 5001, 1},
    {0, "model.pair", 128, 8},
    {0, "model.pair", 128, 16}, /* one name, three types */
    {0, "model.pair", 256, 16},
    {0, "model.vector", 256, 32},
    {0, "model.seven", 56, 1},
    {0, "tide_array header", 8 * sizeof(tide_header), _Alignof(tide_header)},
};

#define MENU_INDEX(T, index) index,
#define MENU_ONE(T, index)   +1
#define MENU(number)         {0 MODEL_MENU_##number(MENU_ONE), {MODEL_MENU_##number(MENU_INDEX)}},

const struct menu model_menus[MENU_COUNT] = {MODEL_MENUS(MENU)};

unsigned model_overflows;

/* Programs misuse pools by the thousand; what matters is the status. But none writes where it
 * should not. */
static bool hush(tide_report_kind kind, const char *text, void *user)
{
    (void)text, (void)user;
    model_overflows += kind == TIDE_REPORT_OVERFLOW || kind == TIDE_REPORT_USE_AFTER_REWIND;
    return false;
}

void model_types_prepare(void)
{
    tide_report_set_handler(hush, NULL);
    model_types[MODEL_BUILTIN].id = tide_type_of(struct model_point);
    model_types[MODEL_BUILTIN + 1].id = tide_type_of(struct model_wide);
    model_types[MODEL_HEADER].id =
        tide_type_register("tide_array header", sizeof(tide_header), _Alignof(tide_header));
}

size_t model_bytes(unsigned index, size_t n)
{
    size_t bits = model_types[index].bits;
    return bits == 1 ? (n + 63) / 64 * 8 : n * (bits / 8);
}

void model_menu_ids(const struct menu *menu, tide_type ids[MENU_MAX])
{
    for (unsigned i = 0; i < menu->count; i++)
        ids[i] = model_types[menu->index[i]].id;
}
