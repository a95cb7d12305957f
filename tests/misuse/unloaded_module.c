/* SPDX-License-Identifier: MIT */
/* A module asks for arrays, opens a scope, and is unloaded: reports still come, without its
 * words. */
#define _GNU_SOURCE
#include "diagnosed.h"

#include <dlfcn.h>

#include <tidepool/check.h>

int main(int count, char **arguments)
{
    char path[1024];
    need(count == 1 && strlen(arguments[0]) < sizeof path - 16);
    snprintf(path, sizeof path, "%s-module.so", arguments[0]);
    void *module = dlopen(path, RTLD_NOW);
    need(module != NULL);
    const char *file = dlsym(module, "place_file"), *function = dlsym(module, "place_function");
    need(file != NULL && function != NULL);
    tide_pool *pool = pool_at(TIDE_CHECK_POISON);
    tide_mark mark = tide_checkpoint(pool);
    tide_type types[] = {TIDE_F64};
    double *array = tide_acquire_slow(pool, TIDE_F64, 5, file, function, 77);
    (void)tide_typed_enter_slow(pool, 1, types, file, function, 88);
    float *inner = tide_acquire_slow(pool, TIDE_F32, 6, file, function, 99);
    EXPECT("  acquired  %s:99 in %s\n", file, function);
    EXPECT("  acquired  line 77 of code that has been unloaded");
    EXPECT("opened at line 88 of code that has been unloaded in pool");
    need(array != NULL && !tide_escape_check(inner));
    need(dlclose(module) == 0);
    need(tide_escape_check(array)); /* of an outer scope */
    need(tide_rewind(pool, mark) == TIDE_OK);
    mark = tide_checkpoint(pool);
    module = dlopen(path, RTLD_NOW);
    need(module != NULL);
    file = dlsym(module, "place_file");
    function = dlsym(module, "place_function");
    array = tide_acquire_slow(pool, TIDE_F64, 5, file, function, 77);
    need(dlclose(module) == 0);
    need(!tide_escape_check(array));
    return 0;
}
