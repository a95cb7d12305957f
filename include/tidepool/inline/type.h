/* SPDX-License-Identifier: MIT */
/* Types as the compiler knows them: the built-in ones, and how tide_type_of finds the id of a C type. */
#ifndef TIDEPOOL_INLINE_TYPE_H
#define TIDEPOOL_INLINE_TYPE_H

#include <tidepool/inline/config.h>
#include <tidepool/inline/map.h>

TIDE_BEGIN_DECLS

/* An element type: a size, an alignment and a name. The id is valid in every pool and thread until the
 * process ends, but not in another copy of the library: each numbers its own types. 0 is no type. */
typedef uint32_t tide_type;

/* The built-in types: id, C name of the constant, element type in C, size in bits, short name. The
 * commonest come first, because the first few share a cache line in each pool. */
#define TIDE_BUILTIN_TYPES(X)                \
    X(1, TIDE_I32, int32_t, 32, "i32")       \
    X(2, TIDE_F32, float, 32, "f32")         \
    X(3, TIDE_F64, double, 64, "f64")        \
    X(4, TIDE_I64, int64_t, 64, "i64")       \
    X(5, TIDE_I8, int8_t, 8, "i8")           \
    X(6, TIDE_I16, int16_t, 16, "i16")       \
    X(7, TIDE_U8, uint8_t, 8, "u8")          \
    X(8, TIDE_U16, uint16_t, 16, "u16")      \
    X(9, TIDE_U32, uint32_t, 32, "u32")      \
    X(10, TIDE_U64, uint64_t, 64, "u64")     \
    X(11, TIDE_F16, tide_f16, 16, "f16")     \
    X(12, TIDE_BF16, tide_bf16, 16, "bf16")  \
    X(13, TIDE_C64, tide_c64, 64, "c64")     \
    X(14, TIDE_C128, tide_c128, 128, "c128") \
    X(15, TIDE_BOOL, bool, 8, "bool")        \
    X(16, TIDE_BIT, uint64_t, 1, "bit") /* packed, in whole 64-bit words */

enum {
    TIDE_NO_TYPE = 0,
#define TIDE_X(id, constant, ctype, bits, name) constant = id,
    TIDE_BUILTIN_TYPES(TIDE_X)
#undef TIDE_X
        TIDE_BUILTIN_COUNT = 16
};

/* One more than the most types that a copy of the library can have, the built-in ones included. */
#define TIDE_TYPE_LIMIT 65536u

/* Storage of the two 16-bit floats: IEEE 754 binary16, and the upper half of a binary32. */
typedef struct tide_f16 {
    uint16_t bits;
} tide_f16;
typedef struct tide_bf16 {
    uint16_t bits;
} tide_bf16;

__extension__ typedef __complex__ float tide_c64;
__extension__ typedef __complex__ double tide_c128;

/* Registers a type on first use and stores its id in *cell, which starts as 0. tide_type_of calls
 * it for types that are not built in. Returns what tide_type_register returns. Any thread. */
TIDE_API tide_type tide_type_learn(tide_type *cell, const char *name, size_t size, size_t align);

TIDE_INLINE tide_type tide_type_cached(tide_type *cell, const char *name, size_t size, size_t align)
{
    tide_type type = __atomic_load_n(cell, __ATOMIC_RELAXED);
    return TIDE_LIKELY(type != TIDE_NO_TYPE) ? type : tide_type_learn(cell, name, size, align);
}

TIDE_END_DECLS

/* The built-in type of each C type: of long and long long, char and signed char, two have one layout. */
/* clang-format off */
#define TIDE_C_TYPES(X)                                                                            \
    X(char, TIDE_AS(char, -1) < 0 ? TIDE_I8 : TIDE_U8) X(signed char, TIDE_I8)                     \
    X(unsigned char, TIDE_U8) X(short, TIDE_I16) X(unsigned short, TIDE_U16) X(int, TIDE_I32)      \
    X(unsigned int, TIDE_U32) X(long, sizeof(long) == 8 ? TIDE_I64 : TIDE_I32)                     \
    X(unsigned long, sizeof(long) == 8 ? TIDE_U64 : TIDE_U32) X(long long, TIDE_I64)               \
    X(unsigned long long, TIDE_U64) X(tide_f16, TIDE_F16) X(tide_bf16, TIDE_BF16) X(float, TIDE_F32) \
    X(double, TIDE_F64) X(tide_c64, TIDE_C64) X(tide_c128, TIDE_C128) X(bool, TIDE_BOOL)
/* clang-format on */

#ifndef __cplusplus

#define TIDE_TYPE_CELL(cell, ...)                                                            \
    __extension__({                                                                          \
        static tide_type cell;                                                               \
        tide_type_cached(&(cell), #__VA_ARGS__, sizeof(__VA_ARGS__), _Alignof(__VA_ARGS__)); \
    })

/* clang-format off */
#define TIDE_TYPE_CASE(ctype, id) ctype *: (tide_type)(id),
#define TIDE_TYPE_OF(cell, ...) \
    _Generic((__VA_ARGS__ *)0, TIDE_C_TYPES(TIDE_TYPE_CASE) default: TIDE_TYPE_CELL(cell, __VA_ARGS__))
/* clang-format on */

#else

/* Some C project includes this inside of its own extern "C". */
extern "C++" {
namespace tidepool
{
/* The id of T if T is built in, else 0. */
template <class T> struct builtin_type {
    static constexpr tide_type id = TIDE_NO_TYPE;
};
#define TIDE_X(ctype, constant)                     \
    template <> struct builtin_type<ctype> {        \
        static constexpr tide_type id = (constant); \
    };
TIDE_C_TYPES(TIDE_X)
#undef TIDE_X

/* Hidden: each module finds out the ids for itself. Shared by plugins that have copies of the
 * library of their own, an id would be wrong in all but one of them. */
#define TIDE_MODULE_OWN __attribute__((visibility("hidden")))

/* #T would give the letter T, not the type's name. The compiler spells that at the end of
 * __PRETTY_FUNCTION__: "… [with T = particle]" (GCC) or "… [T = particle]" (Clang). GCC would spell
 * typedefs after it, so the function is declared without any. All of the name decides, however long
 * it is. */
template <class T> TIDE_MODULE_OWN TIDE_COLD unsigned int learn_type(unsigned int *cell)
{
    char name[sizeof(__PRETTY_FUNCTION__)];
    const char *from = __builtin_strstr(__PRETTY_FUNCTION__, "T = ");
    from = from != nullptr ? from + 4 : __PRETTY_FUNCTION__;
    size_t length = __builtin_strlen(from);
    length -= length > 0 && from[length - 1] == ']';
    __builtin_memcpy(name, from, length);
    name[length] = '\0';
    return tide_type_learn(cell, name, sizeof(T), alignof(T));
}

/* Also std::pair, whose assignment is not trivial. (GCC knows no newer name of the second question,
 * and Clang warns of the old one.) */
template <class T> constexpr bool is_element()
{
#ifdef __clang__
    constexpr bool destructible = __is_trivially_destructible(T);
#else
    constexpr bool destructible = __has_trivial_destructor(T);
#endif
    static_assert(
        destructible && (__is_trivially_copyable(T) || __is_trivially_constructible(T, const T &)),
        "elements of a pool's array are raw memory: use a type that is trivially copyable and "
        "destructible, or a container on tidepool::resource");
    return true;
}

template <class T> TIDE_MODULE_OWN inline tide_type type_of()
{
    static_assert(is_element<T>());
    if constexpr (builtin_type<T>::id != TIDE_NO_TYPE) {
        return builtin_type<T>::id;
    } else {
        static tide_type cell;
        tide_type type = __atomic_load_n(&cell, __ATOMIC_RELAXED);
        return TIDE_LIKELY(type != TIDE_NO_TYPE) ? type : learn_type<T>(&cell);
    }
}
} // namespace tidepool
}

#endif

#endif
