/* SPDX-License-Identifier: MIT */
/* Profiles as text, and what is loaded of a site, for tests. */
#ifndef TIDEPOOL_TESTS_PROFILE_TEXT_H
#define TIDEPOOL_TESTS_PROFILE_TEXT_H

#include "forms.h"
#include "hooks.h"

#include <stdio.h>
#include <string.h>

#include <tidepool/profile.h>

#define PROFILE_HEAD  "tidepool profile 3\n"
#define PROFILE_EMPTY PROFILE_HEAD "end 0\n"

/* A profile of one scope, which touched so many doubles. Until the next call. */
static inline const char *one_scope(const char *name, uint32_t line, const char *file,
                                    const char *function, unsigned uses)
{
    static char words[2048];
    snprintf(words, sizeof words,
             PROFILE_HEAD "type 8 8 \"f64\"\nscope %u %u 0 \"%s\" \"%s\" \"%s\"\n"
                          "uses 1 %u %u 2\nend 1\n",
             line, uses, name, file, function, uses, 2 * uses);
    return words;
}

static inline void load_words(const char *words)
{
    expect_ok(tide_profile_read(words, strlen(words), false));
}

static inline void merge_words(const char *words)
{
    expect_ok(tide_profile_read(words, strlen(words), true));
}

static inline bool has_prior(tide_site *site)
{
    tide_site_profile prior;
    return profile_loaded_for(site, &prior);
}

static inline void expect_prior(tide_site *site, uint64_t scopes, tide_type type, uint64_t slots)
{
    tide_site_profile prior;
    assert_true(profile_loaded_for(site, &prior));
    assert_int_equal(prior.scopes, scopes);
    assert_int_equal(prior.types[0].type, type);
    assert_int_equal(prior.types[0].scopes, scopes);
    assert_int_equal(prior.types[0].slots, slots);
}

#endif
