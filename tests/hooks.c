/* SPDX-License-Identifier: MIT */
#include "hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/tune.h>

#include "jit/learn/round.h"
#include "jit/learn/test_hooks.h"
#include "jit/stager/locate.h"
#include "jit/stager/stager.h"
#include "profiler/files/loaded.h"
#include "profiler/window.h"
#include "runtime/base/assert.h"
#include "runtime/base/registry.h"
#include "runtime/base/settings.h"
#include "runtime/base/shim.h"
#include "runtime/base/test_hooks.h"

void set_memory_fault(memory_fault *fault)
{
    tide_os_fault = fault;
}

memory_fault *get_memory_fault(void)
{
    return tide_os_fault;
}

static void must(bool done, const char *name)
{
    if (done)
        return;
    fprintf(stderr, "no constant or setting '%s' takes this value\n", name);
    abort();
}

void set_constant(const char *name, double value)
{
    must(tide_constant_set(name, value), name);
}

double get_constant(const char *name)
{
    static const char *const names[] = {
#define TIDE_CONSTANT(name, value, meaning) #name,
#include "runtime/base/constants.def"
#undef TIDE_CONSTANT
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return tide_constant_get((tide_constant)i);
    must(false, name);
    return 0;
}

void reset_constants(void)
{
    tide_constants_reset();
}

void set_either(const char *name, double value)
{
    must(tide_constant_set(name, value) || tide_tune_set(name, value) == TIDE_OK, name);
}

void allow_background(void)
{
    tide_setting_set(TIDE_SETTING_background, 1);
}

bool stager_is_there(void)
{
    char path[TIDE_LOCATE_PATH], error[512];
    return tide_locate_stager(path, sizeof path, error, sizeof error);
}

void stop_compiler_process(void)
{
    tide_round_lock();
    tide_stager_stop();
    tide_round_unlock();
}

void learn_in_a_child(void)
{
    tide_round_begin_again();
}

int assert_level(void)
{
    return TIDE_ASSERT_LEVEL;
}

extern void __tsan_init(void) __attribute__((weak));
extern void __msan_init(void) __attribute__((weak));

bool sanitizer_chooses_addresses(void)
{
    return &__tsan_init != NULL || &__msan_init != NULL || tide_shim_schedules();
}

bool profile_loaded_for(tide_site *site, tide_site_profile *out)
{
    tide_registry_lock();
    bool known = tide_profile_prior(site, out);
    tide_registry_unlock();
    return known;
}

void profile_take_window(tide_site *site, tide_site_profile *out)
{
    tide_registry_lock();
    tide_window_take(site, out);
    tide_registry_unlock();
}

void set_cgroup_root(const char *folder)
{
    tide_cgroup_root = folder;
}
