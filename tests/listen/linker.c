/* SPDX-License-Identifier: MIT */
/* tide_listen by who has the dynamic linker's lock, where the setting has had a thread begin a
 * moment ago: that one waits in the linker. And by who comes when the process ends.
 * Argument: the module. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tidepool/tidepool.h>

#include "../support.h"

static const char *module;
static char folder[] = "/tmp/tide-linker-XXXXXX";
static tide_status begun, again;
static bool named;

static bool there_is_a_socket(void)
{
    char path[sizeof folder + 40];
    snprintf(path, sizeof path, "%s/tidepool/%d.sock", folder, (int)getpid());
    return access(path, F_OK) == 0;
}

/* Of the module. */
void begin_in_linker(void);
void begin_in_linker(void)
{
    tide_pool *pool = tide_pool_create(NULL); /* by which a thread begins */
    begun = tide_listen(NULL);
    named = there_is_a_socket();
    again = tide_listen(NULL);
    if (pool == NULL || tide_pool_destroy(pool) != TIDE_OK)
        abort();
}

static void load_and_end(void)
{
    void *loaded = dlopen(module, RTLD_NOW | RTLD_LOCAL);
    bool good = loaded != NULL && begun == TIDE_OK && again == TIDE_OK && named &&
                there_is_a_socket() && tide_listen_end() == TIDE_OK && !there_is_a_socket();
    if (!good)
        fprintf(stderr, "%s, %d %d %d: %s\n", loaded == NULL ? dlerror() : "loaded", (int)begun,
                (int)again, (int)named, tide_error_message());
    exit(good ? 0 : 1);
}

static void a_constructor_need_not_wait_for_the_thread(void **state)
{
    (void)state;
    pid_t child = fork_child(60);
    if (child == 0)
        load_and_end();
    expect_child_ends_well(child);
}

int main(int count, char **args)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constructor_need_not_wait_for_the_thread),
    };
    module = count > 1 ? args[1] : "";
    if (mkdtemp(folder) == NULL || setenv("XDG_RUNTIME_DIR", folder, 1) != 0 ||
        tide_tune_set("listen", 1) != TIDE_OK)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char path[sizeof folder + 10];
    snprintf(path, sizeof path, "%s/tidepool", folder);
    (void)rmdir(path);
    (void)rmdir(folder);
    return failed;
}
