/* SPDX-License-Identifier: MIT */
/* For what stands in the place of the linker's calls: sanitizers make such calls before they can
 * observe anything. */
#ifndef TIDEPOOL_TESTS_UNOBSERVED_H
#define TIDEPOOL_TESTS_UNOBSERVED_H

#if defined __has_attribute
#if __has_attribute(disable_sanitizer_instrumentation)
#define UNOBSERVED __attribute__((disable_sanitizer_instrumentation))
#endif
#endif
#ifndef UNOBSERVED
#define UNOBSERVED
#endif

#endif
