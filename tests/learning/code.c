/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "code.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/registry.h"
#include "runtime/scope/site.h"

/* ---- copies ------------------------------------------------------------------------------ */

static char folder[40]; /* as long as there are copies in it */

static void make_folder(void)
{
    if (folder[0] != '\0')
        return;
    snprintf(folder, sizeof folder, "/tmp/tidepool-code-XXXXXX");
    assert_non_null(mkdtemp(folder));
}

static void drop_folder(void)
{
    if (rmdir(folder) == 0)
        folder[0] = '\0';
}

static void copy_file(const char *from, const char *to)
{
    char buffer[1 << 16];
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (in < 0 || out < 0)
        fail_msg("%s to %s: %s", from, to, strerror(errno));
    for (ssize_t got; (got = read(in, buffer, sizeof buffer)) > 0;)
        assert_int_equal(write(out, buffer, (size_t)got), got);
    close(in);
    close(out);
}

static void copy_artefact(code *c)
{
    static unsigned made;
    Dl_info info;
    void *enter;
    make_folder();
    memcpy(&enter, &c->plan->code.enter, sizeof enter);
    assert_int_not_equal(dladdr(enter, &info), 0);
    for (int i = 0; i < CODE_COPIES; i++) {
        snprintf(c->paths[i], sizeof c->paths[i], "%s/copy-%u.so", folder, made++);
        copy_file(info.dli_fname, c->paths[i]);
    }
}

/* ---- where it lies ----------------------------------------------------------------------- */

struct search {
    const char *path;
    struct code_range found;
};

static int look(struct dl_phdr_info *info, size_t size, void *user)
{
    struct search *search = user;
    size_t end = 0;
    (void)size;
    if (info->dlpi_name == NULL || strcmp(info->dlpi_name, search->path) != 0)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD &&
            info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz > end)
            end = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
    search->found.start = (void *)info->dlpi_addr; // NOLINT
    search->found.bytes = (end + 4095) / 4096 * 4096;
    return 1;
}

static struct code_range find_range(const char *path)
{
    struct search search = {path, {NULL, 0}};
    dl_iterate_phdr(look, &search);
    return search.found;
}

/* No code shall come to lie here again. Should another thread have mapped memory here meanwhile,
 * that is as good: it cannot be executed. */
static void block(struct code_range range)
{
    (void)mmap(range.start, range.bytes, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

bool code_holds(const code *c, const void *address)
{
    for (int i = 0; i < CODE_COPIES; i++)
        if (c->ranges[i].start != NULL && (const char *)address >= (char *)c->ranges[i].start &&
            (const char *)address < (char *)c->ranges[i].start + c->ranges[i].bytes)
            return true;
    return false;
}

size_t code_loaded(const code *c)
{
    size_t count = 0;
    for (int i = 0; i < CODE_COPIES; i++)
        count += c->ranges[i].start != NULL;
    return count;
}

/* ---- giving and taking ------------------------------------------------------------------- */

static const char *const suffixes[TIDE_KIND_COUNT] = {"_enter", "_frame", "_acquire", "_array",
                                                      "_dispatch"};

bool code_load(code *c)
{
    char error[256];
    int i = (int)(c->turn++ % CODE_COPIES);
    if (c->ranges[i].start != NULL)
        return false;
    tide_artefact *artefact = tide_artefact_load(c->paths[i], false, error, sizeof error);
    if (artefact == NULL)
        fail_msg("%s", error);
    c->ranges[i] = find_range(c->paths[i]);
    assert_non_null(c->ranges[i].start);
    tide_kind kind = c->u.site->kind;
    void *enter = tide_artefact_find(artefact, c->plan->stem, suffixes[kind]);
    void *leave =
        kind <= TIDE_KIND_FRAME ? tide_artefact_find(artefact, c->plan->stem, "_leave") : NULL;
    assert_true(code_holds(c, enter));
    tide_registry_lock();
    tide_learned_load(c->plan, artefact, enter, leave);
    c->plan->state = TIDE_CODE_ADOPTED;
    tide_learner_use(c->learner, c->number, TIDE_REASON_untried);
    tide_registry_unlock();
    c->last = i;
    return true;
}

void code_retire(code *c)
{
    tide_registry_lock();
    tide_learned_unload(c->plan);
    tide_learner_use(c->learner, c->number, TIDE_REASON_retired);
    tide_registry_unlock();
    c->last = -1;
}

void code_round(code *c)
{
    expect_ok(tide_step());
    for (int i = 0; i < CODE_COPIES; i++)
        if (c->ranges[i].start != NULL && find_range(c->paths[i]).start == NULL) {
            block(c->ranges[i]);
            c->ranges[i].start = NULL;
            c->unloaded++;
        }
}

/* ---- the beginning and the end ----------------------------------------------------------- */

void code_prepare(code *c, const use *u)
{
    memset(c, 0, sizeof *c);
    c->u = *u;
    set("learn", 1);
    until(u, TIDE_TIER_COMPILED);
    set("learn", 0);
    set("auto_compact", 0);
    c->learner = u->site->record->learner;
    c->number = c->learner->in_force;
    c->plan = c->learner->plans[c->number];
    assert_int_equal(c->plan->state, TIDE_CODE_ADOPTED);
    copy_artefact(c);
    code_retire(c);
    for (int i = 0; i < 4; i++) {
        code_round(c);
        use_times(u, 2);
    }
}

void code_drop(code *c)
{
    if (c->last >= 0)
        code_retire(c);
    for (int i = 0; i < CODE_COPIES; i++)
        unlink(c->paths[i]);
    drop_folder();
}
