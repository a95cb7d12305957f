/* SPDX-License-Identifier: MIT */
/* What orders take, in counts: contexts of libgccjit, functions that it compiles, processes, and
 * who starts them. A stager is handed three orders of sixteen sites: of one form; of that form
 * again, under other names; of sixteen other forms. */
#include "support.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/scope/kind.h"

enum { SITES = 16, ORDERS = 3, LOG_ROOM = 4096 };

static const char *counter; /* the library that counts libgccjit's work */

/* ---- orders ---- */

/* The form-th form of a kind: each of another type. */
static tide_spec site_of(tide_kind kind, unsigned order, unsigned site, unsigned form)
{
    char stem[32];
    snprintf(stem, sizeof stem, "order%u_site%u", order, site);
    tide_type type = (tide_type)(1 + form);
    if (kind != TIDE_KIND_ARRAY)
        return spec_of(kind, stem, false, type, 0);
    tide_spec spec = spec_of(kind, stem, false, 0);
    spec_add_array(&spec, type, 2, 3, 4);
    return spec;
}

static void write_order(FILE *out, tide_kind kind, unsigned order)
{
    static char request[(SITES + 1) * TIDE_SPEC_SITE_BYTES];
    size_t used = tide_spec_write_head(request, sizeof request);
    for (unsigned i = 0; i < SITES; i++) {
        tide_spec spec = site_of(kind, order, i, order < ORDERS ? 0 : 1 + i);
        used += tide_spec_write(&spec, request + used, sizeof request - used);
    }
    fprintf(out, "order %u %zu\n%s", order, used, request);
}

static void write_orders(tide_kind kind)
{
    FILE *out = fopen(write_file("orders", ""), "w");
    assert_non_null(out);
    for (unsigned order = 1; order <= ORDERS; order++)
        write_order(out, kind, order);
    assert_int_equal(fclose(out), 0);
}

/* ---- the log ---- */

/* An assembler and a linker that say who started them. */
static void make_tool(const char *name)
{
    char script[1024];
    snprintf(
        script, sizeof script,
        "#!/bin/sh\necho \"%s $(cat /proc/$PPID/comm)\" >> %s/log\nPATH='%s'\nexec %s \"$@\"\n",
        name, test_folder(), getenv("PATH"), name);
    assert_int_equal(chmod(write_file(name, script), 0700), 0);
}

static void run_orders(tide_kind kind)
{
    char command[2048];
    static char said[4096];
    write_orders(kind);
    snprintf(command, sizeof command,
             "cd %s && mkdir out && LD_PRELOAD=%s TIDEPOOL_TEST_LOG=%s/log "
             "ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 PATH=%s:$PATH "
             "%s --serve %s/out < orders && test ! -e out",
             test_folder(), counter, test_folder(), test_folder(), stager, test_folder());
    const char *args[] = {"/bin/sh", "-c", command, NULL};
    int status = run_program(args, said, sizeof said);
    unsigned good = 0;
    for (const char *at = said; (at = strstr(at, "\nok ")) != NULL; at++)
        good++;
    if (status != 0 || good != ORDERS)
        fail_msg("status %d: %s", status, said);
}

static const char *read_log(void)
{
    static char log[LOG_ROOM];
    char path[128];
    snprintf(path, sizeof path, "%s/log", test_folder());
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    log[fread(log, 1, sizeof log - 1, in)] = '\0';
    fclose(in);
    unlink(path);
    return log;
}

static char *expect_compile(char *out, unsigned functions)
{
    out += sprintf(out, "context\n");
    for (unsigned i = 0; i < functions; i++)
        out += sprintf(out, "function\n");
    return out;
}

static char *expect_tools(char *out)
{
    return out + sprintf(out, "as tidepool-stage\nld tidepool-stage\n");
}

/* ---- the tests ---- */

static void expect_counts(tide_kind kind)
{
    char expected[LOG_ROOM], *end = expected;
    unsigned functions = tide_kind_opens_level(kind) ? 2 : 1; /* to enter, and to leave */
    end = expect_tools(expect_compile(end, functions));
    end = expect_tools(end);
    expect_tools(expect_compile(end, SITES * functions));
    run_orders(kind);
    assert_string_equal(read_log(), expected);
}

#define COUNT_TEST(name, KIND)           \
    static void name(void **state)       \
    {                                    \
        (void)state;                     \
        expect_counts(TIDE_KIND_##KIND); \
    }
COUNT_TEST(scopes, SCOPE)
COUNT_TEST(frames, FRAME)
COUNT_TEST(acquires, ACQUIRE)
COUNT_TEST(arrays, ARRAY)

static int make_tools(void **state)
{
    (void)state;
    make_tool("as");
    make_tool("ld");
    return 0;
}

static int clean(void **state)
{
    (void)state;
    remove_test_folder();
    return 0;
}

int main(int count, char **args)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scopes),
        cmocka_unit_test(frames),
        cmocka_unit_test(acquires),
        cmocka_unit_test(arrays),
    };
    if (count != 3)
        return 2;
    stager = args[1];
    counter = args[2];
    return cmocka_run_group_tests(tests, make_tools, clean);
}
