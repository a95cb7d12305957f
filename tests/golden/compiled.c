/* SPDX-License-Identifier: MIT */
/* Compiled scopes: each path does what its like in paths.c does, by the code that the stager makes.
 * What is counted is a whole use: the site's plan, the call, and the code. */
#define _GNU_SOURCE
#include "compiled.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidepool/scope.h>
#include <tidepool/site.h>

#include "jit/spec/spec.h"
#include "runtime/scope/compiled.h"
#include "runtime/scope/plan.h"

#define USE(data)  __asm__ volatile("" : : "r"(data) : "memory")
#define KEEP()     __asm__ volatile("" : : : "memory")
#define PATH(name) static __attribute__((noinline)) void name(tide_pool *pool, size_t times)

static tide_spec spec;
static tide_plan plan;
static tide_site site = {.plan = &plan, .kind = TIDE_KIND_SCOPE};
static uint32_t shelves[2];
static tide_type both[] = {TIDE_F64, TIDE_I32};
static const tide_plan *none; /* of no types */

/* ---- paths ---- */

PATH(scope)
{
    for (size_t i = 0; i < times; i++) {
        tide_scope scope;
        tide_site_enter(&scope, pool, &site);
        KEEP();
        tide_site_leave(&scope);
    }
}

PATH(scope_acquires)
{
    for (size_t i = 0; i < times; i++) {
        tide_scope scope;
        tide_site_enter(&scope, pool, &site);
        USE(tide_acquire(pool, double, 100));
        USE(tide_acquire(pool, int32_t, 100));
        USE(tide_acquire(pool, double, 100));
        USE(tide_acquire(pool, int32_t, 100));
        tide_site_leave(&scope);
    }
}

/* Nested in a level that has saved nothing: the code's guards fail, at entry and at the end, and the
 * general path writes the log. */
PATH(guard_fails)
{
    for (size_t i = 0; i < times; i++) {
        tide_scope around, scope;
        none->enter(&around, pool, none, &site);
        tide_site_enter(&scope, pool, &site);
        KEEP();
        tide_site_leave(&scope);
        none->leave(&around);
    }
}

const golden_path golden_compiled_paths[] = {
    {"compiled-scope-2-types", scope, true},
    {"compiled-scope-4-acquires", scope_acquires, true},
    {"compiled-guard-fails", guard_fails, true},
};
const size_t golden_compiled_path_count =
    sizeof golden_compiled_paths / sizeof golden_compiled_paths[0];

/* ---- the site ---- */

static void make_spec(void)
{
    if (both[0] > both[1]) {
        both[0] = TIDE_I32;
        both[1] = TIDE_F64;
    }
    snprintf(spec.stem, sizeof spec.stem, "golden_scope");
    for (int i = 0; i < 2; i++)
        spec.items[spec.item_count++].type = both[i];
}

static bool make_plan(void)
{
    for (int i = 0; i < 2; i++)
        shelves[i] = tide_plan_shelf(both[i]);
    plan = tide_plans_general[TIDE_KIND_SCOPE];
    plan.type_count = 2;
    plan.types = both;
    plan.shelves = shelves;
    none = tide_plan_table(NULL, 0, "golden");
    return none != NULL;
}

/* ---- compiling ---- */

static bool write_spec(const char *path)
{
    static char text[TIDE_SPEC_SITE_BYTES * 2];
    size_t used = tide_spec_write_head(text, sizeof text);
    used += tide_spec_write(&spec, text + used, sizeof text - used);
    FILE *file = fopen(path, "w");
    return file != NULL && fwrite(text, 1, used, file) == used && fclose(file) == 0;
}

static bool run_stager(const char *stager, const char *text, const char *library)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        execl(stager, stager, "--compile", text, "-o", library, (char *)NULL);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void *symbol(void *library, const char *stem, const char *suffix)
{
    char name[TIDE_SPEC_STEM + 16];
    snprintf(name, sizeof name, "%s_%s", stem, suffix);
    return dlsym(library, name);
}

static bool load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *code;
    if (library == NULL)
        return false;
    const tide_runtime **table = symbol(library, "tide_object", "table");
    if (table == NULL)
        return false;
    *table = &tide_runtime_general;
    code = symbol(library, spec.stem, "enter");
    memcpy(&plan.enter, &code, sizeof code);
    code = symbol(library, spec.stem, "leave");
    memcpy(&plan.leave, &code, sizeof code);
    return true;
}

bool golden_compile(const char *stager)
{
    char folder[] = "/tmp/tidepool-golden-XXXXXX", text[64], library[64];
    make_spec();
    if (mkdtemp(folder) == NULL)
        return false;
    snprintf(text, sizeof text, "%s/spec", folder);
    snprintf(library, sizeof library, "%s/x.so", folder);
    bool good =
        make_plan() && write_spec(text) && run_stager(stager, text, library) && load(library);
    if (!good)
        fprintf(stderr, "golden: %s did not compile the site\n", stager);
    unlink(text);
    unlink(library);
    rmdir(folder);
    return good;
}
