/* SPDX-License-Identifier: MIT */
/* The element types that programs use, by a small index that means the same in every run: the
 * built-in ones, two of C, a family registered at run time, and that of headers.
 *
 * And the menus: which types a scope names, and a frame acquires, at entry. */
#ifndef MODEL_TYPES_H
#define MODEL_TYPES_H

#include <tidepool/type.h>

struct model_point {
    double x, y;
    int32_t tag;
};
struct model_wide {
    _Alignas(128) unsigned char lanes[128];
};

enum {
    MODEL_BUILTIN = TIDE_BUILTIN_COUNT,
    MODEL_STATIC = MODEL_BUILTIN + 2,
    MODEL_FAMILY = 13,                          /* a profile has 32 places in all */
    MODEL_CHOICE = MODEL_STATIC + MODEL_FAMILY, /* those that a program can name */
    MODEL_HEADER = MODEL_CHOICE, /* what the library keeps the headers of views and imports in */
    MODEL_TYPES
};

struct model_type {
    tide_type id; /* TIDE_NO_TYPE: not registered in this process yet */
    const char *name;
    size_t bits, align;
};

extern struct model_type model_types[MODEL_TYPES];

/* Fills in the ids of the types that are not of the family. */
void model_types_prepare(void);

/* Reports of memory that was written or touched where nobody should have. */
extern unsigned model_overflows;

/* Bytes of n elements. */
size_t model_bytes(unsigned index, size_t n);

/* A menu's types in C, and their index here. At most MENU_MAX each. */
enum { MENU_MAX = 8 };
/* clang-format off */
#define MODEL_MENU_0(X) X(double, TIDE_F64 - 1)
#define MODEL_MENU_1(X) X(double, TIDE_F64 - 1) X(int32_t, TIDE_I32 - 1)
#define MODEL_MENU_2(X) X(float, TIDE_F32 - 1) X(float, TIDE_F32 - 1) X(uint8_t, TIDE_U8 - 1)
#define MODEL_MENU_3(X) X(struct model_point, 16) X(double, TIDE_F64 - 1) X(struct model_wide, 17)
#define MODEL_MENU_4(X)                                                           \
    X(int8_t, TIDE_I8 - 1) X(int16_t, TIDE_I16 - 1) X(int32_t, TIDE_I32 - 1)      \
    X(int64_t, TIDE_I64 - 1) X(float, TIDE_F32 - 1) X(double, TIDE_F64 - 1)       \
    X(tide_c128, TIDE_C128 - 1) X(bool, TIDE_BOOL - 1)
#define MODEL_MENUS(X) X(0) X(1) X(2) X(3) X(4)
/* clang-format on */

struct menu {
    unsigned count;
    unsigned char index[MENU_MAX];
};

enum { MENU_COUNT = 5 };
extern const struct menu model_menus[MENU_COUNT];

/* The ids of a menu's types. */
void model_menu_ids(const struct menu *menu, tide_type ids[MENU_MAX]);

#endif
