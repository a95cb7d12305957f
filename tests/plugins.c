/* SPDX-License-Identifier: MIT */
/* Libraries that come and go: their sites appear with them and leave with them. Arguments: the
 * plugin in C and the one in C++. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dlfcn.h>
#include <link.h>

#include <tidepool/dynamic.h>
#include <tidepool/profile.h>
#include <tidepool/site.h>
#include <tidepool/upkeep.h>

#include <cmocka.h>

#include "plugin.h"

static const char *path_c, *path_cpp;

typedef struct plugin {
    void *handle;
    size_t (*run)(tide_pool *pool);
    tide_type (*type)(void);
    uintptr_t first, last; /* where it is loaded */
} plugin;

/* ISO C has no conversion from an object pointer to a function pointer; POSIX has. */
static void find(plugin *p, const char *name, void *function)
{
    void *found = dlsym(p->handle, name);
    assert_non_null(found);
    memcpy(function, &found, sizeof found);
}

static int note_range(struct dl_phdr_info *info, size_t size, void *user)
{
    plugin *p = user;
    uintptr_t first = UINTPTR_MAX, last = 0, inside;
    (void)size;
    memcpy(&inside, &p->run, sizeof inside);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        first = start < first ? start : first;
        last =
            start + info->dlpi_phdr[i].p_memsz > last ? start + info->dlpi_phdr[i].p_memsz : last;
    }
    if (inside < first || inside >= last)
        return 0;
    p->first = first;
    p->last = last;
    return 1;
}

static plugin load(const char *path)
{
    plugin p = {.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (p.handle == NULL)
        fail_msg("%s", dlerror());
    find(&p, "plugin_run", &p.run);
    find(&p, "plugin_type", &p.type);
    assert_int_equal(dl_iterate_phdr(note_range, &p), 1);
    return p;
}

static void unload(plugin *p, const char *path)
{
    assert_int_equal(dlclose(p->handle), 0);
    assert_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD)); /* it is really gone */
}

/* ---- looking at the list ---- */

typedef struct census {
    const plugin *plugin;
    size_t inside, named; /* sites in the plugin's memory; sites with a plugin's name */
} census;

static bool points_inside(const plugin *p, const void *pointer)
{
    return (uintptr_t)pointer >= p->first && (uintptr_t)pointer < p->last;
}

static bool count_site(tide_site *site, void *user)
{
    census *c = user;
    const void *pointers[] = {site, site->name, site->place.function, site->place.file, site->plan};
    bool inside = false;
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++)
        inside = inside || points_inside(c->plugin, pointers[i]);
    c->inside += inside;
    c->named += site->name != NULL && strncmp(site->name, "plugin: ", 8) == 0;
    return true;
}

static census count_sites(const plugin *p)
{
    census c = {p, 0, 0};
    tide_site_each(count_site, &c);
    return c;
}

static tide_pool *make_pool(void)
{
    tide_pool *pool = tide_pool_create(NULL);
    assert_non_null(pool);
    return pool;
}

static void drop_pool(tide_pool *pool)
{
    assert_int_equal(tide_pool_check(pool), TIDE_OK);
    assert_int_equal(tide_pool_depth(pool), 0);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

/* ---- tests ---- */

static void sites_of_c_appear_when_their_library_is_loaded(void **state)
{
    (void)state;
    size_t before = tide_site_count();
    plugin p = load(path_c);
    census c = count_sites(&p);
    assert_int_equal(c.inside, PLUGIN_SITES);
    assert_int_equal(c.named, PLUGIN_SITES);
    assert_int_equal(tide_site_count(), before + PLUGIN_SITES);
    unload(&p, path_c);
    assert_int_equal(tide_site_count(), before);
}

static void come_and_go(const char *path)
{
    size_t before = tide_site_count();
    tide_pool *pool = make_pool();
    plugin p = load(path);
    assert_int_equal(p.run(pool), PLUGIN_ARRAYS);
    census c = count_sites(&p);
    assert_int_equal(c.inside, c.named);
    assert_true(c.inside >= PLUGIN_SITES);
    assert_int_equal(tide_site_count(), before + c.inside);
    tide_type type = p.type();
    char name[64] = "";
    strncpy(name, tide_type_name(type), sizeof name - 1);
    unload(&p, path);
    c = count_sites(&p);
    assert_int_equal(c.inside, 0);
    assert_int_equal(c.named, 0);
    assert_int_equal(tide_site_count(), before);
    assert_string_equal(tide_type_name(type), name); /* the type stays */
    assert_int_equal(tide_type_size(type), 24);
    drop_pool(pool);
}

static void sites_leave_with_their_library(void **state)
{
    (void)state;
    come_and_go(path_c);
    come_and_go(path_cpp);
}

static void a_library_may_come_back_many_times(void **state)
{
    (void)state;
    come_and_go(path_c);
    come_and_go(path_cpp);
    uint32_t types = tide_type_count();
    for (int i = 0; i < 30; i++) {
        come_and_go(path_c);
        come_and_go(path_cpp);
    }
    assert_int_equal(tide_type_count(), types);
}

static void both_may_be_loaded_and_one_unloaded(void **state)
{
    (void)state;
    size_t before = tide_site_count();
    tide_pool *pool = make_pool();
    plugin c = load(path_c), cpp = load(path_cpp);
    assert_int_equal(c.run(pool), PLUGIN_ARRAYS);
    assert_int_equal(cpp.run(pool), PLUGIN_ARRAYS);
    unload(&c, path_c);
    assert_int_equal(count_sites(&c).inside, 0);
    assert_true(count_sites(&cpp).inside >= PLUGIN_SITES);
    assert_int_equal(cpp.run(pool), PLUGIN_ARRAYS);
    unload(&cpp, path_cpp);
    assert_int_equal(tide_site_count(), before);
    drop_pool(pool);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sites_of_c_appear_when_their_library_is_loaded),
        cmocka_unit_test(sites_leave_with_their_library),
        cmocka_unit_test(a_library_may_come_back_many_times),
        cmocka_unit_test(both_may_be_loaded_and_one_unloaded),
    };
    if (count != 3)
        return EXIT_FAILURE;
    path_c = arguments[1];
    path_cpp = arguments[2];
    return cmocka_run_group_tests_name("plugins", tests, NULL, NULL);
}
