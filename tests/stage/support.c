/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "runtime/scope/plan.h"

const char *stager;

/* ---- specs ---- */

static void add(tide_spec *spec, tide_type type)
{
    tide_spec_item *item = &spec->items[spec->item_count++];
    const char *name = tide_type_name(type);
    item->type = type;
    snprintf(item->name, sizeof item->name, "%s", name != NULL ? name : "unknown");
}

tide_spec spec_of(const char *stem, int count, ...)
{
    tide_spec spec = {.count = count != 0};
    va_list args;
    snprintf(spec.stem, sizeof spec.stem, "%s", stem);
    va_start(args, count);
    for (tide_type type; (type = va_arg(args, tide_type)) != TIDE_NO_TYPE;)
        add(&spec, type);
    va_end(args);
    return spec;
}

/* ---- files and programs ---- */

const char *test_folder(void)
{
    static char folder[64];
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "/tmp/tidepool-stage-XXXXXX");
        assert_non_null(mkdtemp(folder));
    }
    return folder;
}

void remove_test_folder(void)
{
    DIR *folder = opendir(test_folder());
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.')
            assert_int_equal(unlinkat(dirfd(folder), entry->d_name, 0), 0);
    closedir(folder);
    assert_int_equal(rmdir(test_folder()), 0);
}

const char *write_file(const char *name, const char *text)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) < 0, 0);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void become(const char *const *args, const int ends[2])
{
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    execv(args[0], (char *const *)args);
    _exit(127);
}

int run_program(const char *const *args, char *said, size_t room)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork_child(0);
    if (child == 0)
        become(args, ends);
    close(ends[1]);
    read_to_end(ends[0], said, room);
    return wait_for_child(child);
}

/* ---- compiled code ---- */

/* As the library does it. */
static void *load(const char *library)
{
    void *made = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (made == NULL)
        fail_msg("%s", dlerror());
    const uint64_t *magic = code_of(made, "tide_object", "_magic");
    const uint64_t *layout = code_of(made, "tide_object", "_layout");
    assert_true(*magic == TIDE_CODE_MAGIC && *layout == tide_compiled_layout());
    const tide_runtime **table = code_of(made, "tide_object", "_table");
    *table = &tide_runtime_general;
    return made;
}

void *compile_specs(const tide_spec *specs, uint32_t count)
{
    static char text[TIDE_SPEC_SITE_BYTES * (TIDE_SPEC_SITES + 2)], said[4096];
    static unsigned number;
    char library[128];
    size_t used = tide_spec_write_head(text, sizeof text);
    for (uint32_t i = 0; i < count; i++)
        used += tide_spec_write(&specs[i], text + used, sizeof text - used);
    snprintf(library, sizeof library, "%s/%u.so", test_folder(), number++);
    const char *args[] = {stager, "--compile", write_file("spec", text), "-o", library, NULL};
    int status = run_program(args, said, sizeof said);
    if (status != 0)
        fail_msg("%s\n%s", said, text);
    assert_string_equal(said, "");
    return load(library);
}

void *code_of(void *object, const char *stem, const char *suffix)
{
    char name[TIDE_SPEC_STEM + 16];
    snprintf(name, sizeof name, "%s%s", stem, suffix);
    void *code = dlsym(object, name);
    if (code == NULL)
        fail_msg("no symbol %s", name);
    return code;
}

static void use_code(tide_plan *plan, const tide_spec *spec, void *compiled)
{
    void *code = code_of(compiled, spec->stem, "_enter");
    memcpy(&plan->enter, &code, sizeof code);
    code = code_of(compiled, spec->stem, "_leave");
    memcpy(&plan->leave, &code, sizeof code);
}

void plan_of(test_plan *out, const tide_spec *spec, void *compiled)
{
    *out = (test_plan){0};
    out->plan = tide_plans_general[TIDE_KIND_SCOPE];
    for (uint32_t i = 0; i < spec->item_count; i++) {
        out->types[i] = spec->items[i].type;
        out->shelves[i] = tide_plan_shelf(spec->items[i].type);
    }
    out->plan.type_count = spec->item_count;
    out->plan.types = out->types;
    out->plan.shelves = out->shelves;
    out->plan.counts = &out->counts;
    tide_plan_bring_near(&out->plan);
    tide_plan_use_table(&out->plan);
    if (compiled != NULL)
        use_code(&out->plan, spec, compiled);
}
