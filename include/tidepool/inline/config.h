/* SPDX-License-Identifier: MIT */
/* What the other headers need from the compiler: visibility, branch hints, C and C++ at once.
 *
 * The headers need GNU C (GCC or Clang): `cleanup`, statement expressions, __atomic builtins. */
#ifndef TIDEPOOL_INLINE_CONFIG_H
#define TIDEPOOL_INLINE_CONFIG_H

/* A file that nobody has: the one error at which compilers stop. */
#if !defined(__GNUC__)
#include <Tidepool needs GNU C: GCC or Clang>
#elif defined(__cplusplus) && __cplusplus < 201703L
#include <Tidepool needs C++17 or later: compile with -std=c++17>
#elif !defined(__cplusplus) && __STDC_VERSION__ + 0 < 201112L
#include <Tidepool needs C11 or later: compile with -std=c11, or with -std=gnu11>
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* TIDE_AS(T, value): a cast. Macros use it, for what a macro makes stands in the program, and C++
 * programs may be warned of C's casts. TIDE_BEGIN_DECLS switches that warning off for the inline
 * functions of the headers. TIDE_SEMICOLON stands at the end of a macro that wants a semicolon
 * after it and is a declaration. */
#ifdef __cplusplus
#define TIDE_BEGIN_DECLS                                                  \
    _Pragma("GCC diagnostic push")                                        \
        _Pragma("GCC diagnostic ignored \"-Wold-style-cast\"") extern "C" \
    {
#define TIDE_END_DECLS \
    }                  \
    _Pragma("GCC diagnostic pop")
#define TIDE_AS(T, ...) static_cast<T>(__VA_ARGS__)
#define TIDE_AUTO       auto
#define TIDE_SEMICOLON  static_assert(true, "")
#else
#define TIDE_BEGIN_DECLS
#define TIDE_END_DECLS
#define TIDE_AS(T, ...) ((T)(__VA_ARGS__))
#define TIDE_AUTO       __extension__ __auto_type
#define TIDE_SEMICOLON  _Static_assert(1, "")
#endif

/* The static library is compiled with TIDEPOOL_STATIC: the module that it is linked into shows
 * nothing of it to others. Programs that link it need not define the word. */
#ifdef TIDEPOOL_STATIC
#define TIDE_VISIBILITY "hidden"
#else
#define TIDE_VISIBILITY "default"
#endif

/* Exported. No function of the library throws. C++ callers know this, so the compiler makes no
 * code that would catch an exception. */
#define TIDE_API      __attribute__((visibility(TIDE_VISIBILITY), nothrow))
#define TIDE_API_DATA __attribute__((visibility(TIDE_VISIBILITY)))
/* Tells the linker's garbage collection to keep a variable that is reached through its section
 * only. Older compilers have no attribute for this. */
#if __has_attribute(retain)
#define TIDE_RETAIN retain
#else
#define TIDE_RETAIN unused
#endif

/* Stands at the end of each struct that a program hands to the library, to be read or filled: room
 * for members of later versions, so that the struct keeps its size. It is zero. Options in which it
 * is not are refused (TIDE_ERROR_ARGUMENT): they ask for what this library does not know. */
#define TIDE_GROWTH uint64_t growth_[8]

/* Behind a member of options: it is zero where the program does not name it, of which C++ compilers
 * then do not warn. */
#ifdef __cplusplus
#define TIDE_ZERO = {}
#else
#define TIDE_ZERO
#endif

#define TIDE_COLD        __attribute__((cold, noinline))
#define TIDE_INLINE      static inline __attribute__((always_inline, unused))
#define TIDE_LIKELY(x)   __builtin_expect(!!(x), 1)
#define TIDE_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* The value, loaded by itself. When a structure is copied, compilers join its fields to vectors.
 * The fast path would then have to take the vectors apart again in every scope. */
#define TIDE_APART(value)                              \
    __extension__({                                    \
        __typeof__((value) + 0) tide_apart_ = (value); \
        __asm__("" : "+r"(tide_apart_));               \
        tide_apart_;                                   \
    })

/* Stands between two tests that seldom fail. Without it compilers compute both and branch once.
 * This takes more instructions than two branches that are always predicted. */
#define TIDE_ONE_BY_ONE() __asm__ volatile("")

/* Names that are unique in a translation unit, so that two scopes may share a line. */
#define TIDE_PASTE_(a, b) a##b
#define TIDE_PASTE(a, b)  TIDE_PASTE_(a, b)
#define TIDE_UNIQUE(stem) TIDE_PASTE(stem, __COUNTER__)

#endif
