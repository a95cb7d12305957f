/* SPDX-License-Identifier: MIT */
/* Nodes of memory, by a model: a thread gets back what was released near it before it gets what was
 * released near others. */
#include "bed.h"

#include <pthread.h>

#include "runtime/base/node.h"
#include "runtime/base/test_hooks.h"

static _Thread_local unsigned node_now;
static unsigned node_asked; /* atomic */

static unsigned node_of_thread(void)
{
    __atomic_fetch_add(&node_asked, 1, __ATOMIC_RELAXED);
    return node_now;
}

static int model_begins(void **state)
{
    (void)state;
    node_asked = 0;
    tide_node_model = node_of_thread;
    return 0;
}

static int model_ends(void **state)
{
    (void)state;
    tide_node_model = NULL;
    return 0;
}

static bool among(tide_buffer buffer, const tide_buffer *of, int count)
{
    while (count > 0 && (uint32_t)of[count - 1].slot != (uint32_t)buffer.slot)
        count--;
    return count > 0;
}

enum { EACH = 3 };

/* Large ones, which lie in no thread's cell. Three were released on node 1, then three on node 2. */
static void a_thread_gets_its_own_nodes_buffers_first(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    tide_buffer of[3][EACH], got[2 * EACH];
    for (unsigned i = 0; i < 2 * EACH; i++)
        of[1 + i / EACH][i % EACH] = acquired(buffers, MIB);
    for (node_now = 1; node_now <= 2; node_now++)
        expect_ok(tide_buffer_release_many(buffers, of[node_now], EACH));
    assert_int_equal(stats_of(buffers).cached, 2 * EACH);
    node_now = 1; /* those of node 2 came last, and would go first */
    for (int i = 0; i < 2 * EACH; i++) {
        got[i] = acquired(buffers, MIB);
        assert_true(among(got[i], of[i < EACH ? 1 : 2], EACH));
    }
    assert_int_equal(stats_of(buffers).misses, 2 * EACH);
    assert_true(node_asked >= 4 * EACH);
    expect_ok(tide_buffer_release_many(buffers, got, 2 * EACH));
    expect_ok(tide_buffers_destroy(buffers));
}

/* They are cached all the same: counted, bounded and trimmed together. */
static void bounds_and_trims_are_of_all_nodes(void **state)
{
    (void)state;
    tide_buffers *buffers = made(&(tide_buffers_options){.count_max = 4});
    tide_buffer held[2 * EACH];
    for (int i = 0; i < 2 * EACH; i++)
        held[i] = acquired(buffers, MIB);
    for (unsigned i = 0; i < 2 * EACH; i++) {
        node_now = i % 2;
        expect_ok(tide_buffer_release(buffers, held[i]));
    }
    assert_int_equal(stats_of(buffers).cached, 4);
    assert_int_equal(stats_of(buffers).dropped, 2);
    assert_int_equal(tide_buffers_trim(buffers, 0).slots, 4);
    assert_int_equal(stats_of(buffers).bytes_cached, 0);
    expect_ok(tide_buffers_destroy(buffers));
}

typedef struct node_visit {
    tide_buffers *buffers;
    unsigned node;
    tide_buffer held[EACH];
    const tide_buffer *expected; /* NULL: they are new */
} node_visit;

/* Small ones, which the thread's end gives to its node. */
static void *node_visitor(void *argument)
{
    node_visit *v = argument;
    node_now = v->node;
    for (int i = 0; i < EACH; i++) {
        v->held[i] = acquired(v->buffers, 4 * KIB);
        assert_true(v->expected == NULL || among(v->held[i], v->expected, EACH));
    }
    return NULL;
}

static void *node_leaver(void *argument)
{
    node_visit *v = argument;
    node_now = v->node;
    expect_ok(tide_buffer_release_many(v->buffers, v->held, EACH));
    return NULL;
}

static void in_a_thread(void *(*run)(void *), node_visit *v)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, v), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void cells_go_to_the_node_of_their_thread(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    node_visit of[2] = {{buffers, 1, {{0}}, NULL}, {buffers, 2, {{0}}, NULL}};
    for (int i = 0; i < 2; i++)
        in_a_thread(node_visitor, &of[i]);
    for (int i = 0; i < 2; i++)
        in_a_thread(node_leaver, &of[i]);
    for (int i = 0; i < 2; i++) {
        node_visit again = {buffers, of[i].node, {{0}}, of[i].held};
        in_a_thread(node_visitor, &again);
        in_a_thread(node_leaver, &again);
    }
    assert_int_equal(stats_of(buffers).misses, 2 * EACH);
    expect_ok(tide_buffers_destroy(buffers));
}

static void the_system_is_asked(void **state)
{
    (void)state;
    assert_int_equal(tide_nodes_of_list("0\n"), 1);
    assert_int_equal(tide_nodes_of_list("0-1\n"), 2);
    assert_int_equal(tide_nodes_of_list("0,2-3\n"), 4);
    assert_int_equal(tide_nodes_of_list("0-255\n"), TIDE_NODES_MAX);
    assert_int_equal(tide_nodes_of_list(""), 1);
    assert_true(tide_nodes() >= 1 && tide_nodes() <= TIDE_NODES_MAX);
    assert_true(tide_node() < TIDE_NODES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_thread_gets_its_own_nodes_buffers_first, model_begins,
                                        model_ends),
        cmocka_unit_test_setup_teardown(bounds_and_trims_are_of_all_nodes, model_begins,
                                        model_ends),
        cmocka_unit_test_setup_teardown(cells_go_to_the_node_of_their_thread, model_begins,
                                        model_ends),
        cmocka_unit_test(the_system_is_asked),
    };
    return cmocka_run_group_tests_name("nodes of memory", tests, NULL, NULL);
}
