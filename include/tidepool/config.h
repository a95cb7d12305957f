/* SPDX-License-Identifier: MIT */
/* What the other headers need from the compiler: visibility, branch hints, C and C++ at once.
 *
 * The headers need GNU C (GCC or Clang): `cleanup`, statement expressions, __atomic builtins. */
#ifndef TIDEPOOL_CONFIG_H
#define TIDEPOOL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if !defined(__GNUC__)
#error "Tidepool needs GNU C: GCC or Clang"
#endif

#define TIDEPOOL_VERSION_MAJOR 0
#define TIDEPOOL_VERSION_MINOR 1
#define TIDEPOOL_VERSION_PATCH 0

#ifdef __cplusplus
#define TIDE_BEGIN_DECLS extern "C" {
#define TIDE_END_DECLS   }
#define TIDE_ALIGNOF(T)  alignof(T)
#else
#define TIDE_BEGIN_DECLS
#define TIDE_END_DECLS
#define TIDE_ALIGNOF(T) _Alignof(T)
#endif

/* Exported. No function of the library throws. C++ callers know this, so the compiler makes no
 * code that would catch an exception. */
#define TIDE_API      __attribute__((visibility("default"), nothrow))
#define TIDE_API_DATA __attribute__((visibility("default")))
/* Tells the linker's garbage collection to keep a variable that is reached through its section
 * only. Older compilers have no attribute for this. */
#if defined(__has_attribute) && (!defined(__clang_major__) || __clang_major__ >= 13)
#if __has_attribute(retain)
#define TIDE_RETAIN retain
#endif
#endif
#ifndef TIDE_RETAIN
#define TIDE_RETAIN unused
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
