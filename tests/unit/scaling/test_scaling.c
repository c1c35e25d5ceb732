/* SPDX-License-Identifier: Apache-2.0 */
/* What the link between hosts adds to an update: by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "session/scaling/predict.h"
#include "oom.h"

static void assert_close(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-6 * fabs(expected)))
        fail_msg("%.9g, not %.9g", got, expected);
}

/* A million gradients, the last half of which is complete after 6 of 10 ms. */
static struct sl_scaling_costs make_costs(void)
{
    struct sl_scaling_costs costs = {.threads = 1, .stages = 1, .batches = 1, .elems = 1 << 20};
    costs.step_ns = costs.together_ns = 10e6;
    costs.update_ns = 1e6;
    costs.sequences = 64;
    costs.notes[0] = (struct sl_scaling_note){1 << 19, 6e6};
    costs.notes[1] = (struct sl_scaling_note){0, 10e6};
    costs.note_count = 2;
    return costs;
}

static const struct sl_scaling_link fast = {1e12, 1e-9}, slow = {1e9, 0};

static double predict(const struct sl_scaling_costs *costs, struct sl_scaling_place place)
{
    struct sl_scaling_row row = {0};
    place.element_bytes = place.element_bytes ? place.element_bytes : 4;
    sl_scaling_predict(costs, &place, &row);
    return row.update_ns;
}

static void a_sum_takes_twice_its_bytes(void **state)
{
    (void)state;
    const struct sl_scaling_link link = {1e9, 1e-6};
    assert_close(sl_scaling_all_reduce_s(&link, 2, 1e6), 2e-6 + 1e-3);
    assert_close(sl_scaling_all_reduce_s(&link, 5, 1e6), 6e-6 + 1.6e-3);
    assert_close(sl_scaling_all_reduce_s(&link, 1, 1e6) + 1, 1);
}

static void what_comes_after_backward_is_waited_for(void **state)
{
    (void)state;
    const struct sl_scaling_costs costs = make_costs();
    /* bundles of the least size are passed as soon as they are complete: the first half in time, at 1e9 bytes/s half of
     * 4 MiB in 2.1 ms; the other half begins at 10 ms */
    const double half = (1 << 19) * 4.0 / 1e9 * 1e9;
    const struct sl_scaling_place two = {.ranks = 4, .hosts = 2, .local = 2, .link = slow};
    assert_close(predict(&costs, two), 10e6 + half + 1e6 + 2 * 64.0);
    struct sl_scaling_place narrow = two;
    narrow.element_bytes = 2;
    assert_close(predict(&costs, narrow), 10e6 + half / 2 + 1e6 + 2 * 64.0);
    const struct sl_scaling_place one = {.ranks = 1, .hosts = 1};
    assert_close(predict(&costs, one), 11e6);
    struct sl_scaling_costs staged = costs; /* from a device to the host and back, only between hosts */
    staged.staging_ns = 4e6;
    assert_close(predict(&staged, two), 10e6 + half + 4e6 + 1e6 + 2 * 64.0);
    const struct sl_scaling_place here = {.ranks = 2, .hosts = 1};
    assert_close(predict(&staged, here), 11e6);
    const struct sl_scaling_place quick = {.ranks = 4, .hosts = 2, .local = 2, .link = fast};
    assert_true(predict(&costs, quick) < 11.01e6);
}

static void a_central_rank_takes_all(void **state)
{
    (void)state;
    struct sl_scaling_costs costs = make_costs();
    costs.weights_ns = 3e6;
    const struct sl_scaling_place central = {.ranks = 8, .hosts = 4, .local = 2, .link = slow, .central = true};
    /* six ranks of other hosts send 4 MiB each: from 6 ms on, without a pause; then the weights go out twice */
    const double bytes = (1 << 20) * 4.0;
    assert_close(predict(&costs, central), 6e6 + 6 * bytes + 1e6 + 2 * 64 * 1.5 + 3e6 + 2 * bytes);
    /* on one host, at a rate that is given, the other seven send; no measured time is used */
    const struct sl_scaling_place near = {.ranks = 8, .hosts = 1, .inner = slow, .central = true};
    assert_close(predict(&costs, near), 6e6 + 7 * bytes + 1e6 + 2 * bytes);
}

static void shards_are_added_as_a_tree(void **state)
{
    (void)state;
    struct sl_scaling_costs costs = make_costs();
    costs.shards = 2;
    costs.exchange_ns = 5e5;
    const double bytes = (1 << 20) * 4.0;
    const struct sl_scaling_place measured = {.ranks = 8, .hosts = 4, .local = 2, .link = slow};
    assert_close(predict(&costs, measured), 21e6 + 5e5 + 2 * bytes + 2 * 64 * 1.5);
    struct sl_scaling_place given = measured;
    given.inner = (struct sl_scaling_link){2e9, 0};
    assert_close(predict(&costs, given), 21e6 + bytes / 2 + 2 * bytes + 2 * 64 * 1.5);
}

static void less_is_exchanged_of_embeddings_and_factors(void **state)
{
    (void)state;
    struct sl_scaling_costs costs = make_costs();
    const struct sl_scaling_place place = {.ranks = 2, .hosts = 2, .local = 1, .link = slow};
    costs.matrices[0] = (struct sl_scaling_matrix){0, 1 << 10, 1 << 10, false, 0.1};
    costs.matrix_count = 1;
    /* two ranks use 0.19 of the rows */
    assert_close(predict(&costs, place), 11e6 + 0.19 * (1 << 20) * 4 + 1024 + 128);
    /* four ranks use 0.3439 of them, on any number of hosts */
    const struct sl_scaling_place pairs = {.ranks = 4, .hosts = 2, .local = 2, .link = slow};
    assert_close(predict(&costs, pairs), 11e6 + 0.3439 * (1 << 20) * 4 + 1024 + 128);
    const struct sl_scaling_place near = {.ranks = 4, .hosts = 1, .inner = slow};
    assert_close(predict(&costs, near), 11e6 + 1.5 * (0.3439 * (1 << 20) * 4 + 1024));
    costs.matrices[0].compressed = true;
    costs.compress_rank = 4;
    assert_close(predict(&costs, place), 11e6 + 2048 * 4 * 4 + 128);
    struct sl_scaling_place narrow = place; /* factors stay in float32 */
    narrow.element_bytes = 2;
    assert_close(predict(&costs, narrow), 11e6 + 2048 * 4 * 4 + 128);
    /* where more than half of the rows are used, all are sent: two ranks use 0.51, or 0.49 */
    costs.matrices[0] = (struct sl_scaling_matrix){0, 1 << 10, 1 << 10, false, 0.3};
    assert_close(predict(&costs, place), 11e6 + (1 << 20) * 4.0 + 1024 + 128);
    assert_close(predict(&costs, narrow), 11e6 + (1 << 20) * 2.0 + 1024 + 128);
    costs.matrices[0].used = 1 - sqrt(0.51);
    assert_close(predict(&costs, narrow), 11e6 + 0.49 * (1 << 20) * 2 + 1024 + 128);
    /* which rows these are is exchanged before them: the latency counts twice, as for the loss and the agreement */
    struct sl_scaling_place late = narrow;
    late.link.latency_s = 1e-3;
    assert_close(predict(&costs, late), 11e6 + 0.49 * (1 << 20) * 2 + 1024 + 2 * 2e6 + 128 + 2 * 2e6);
}

/* Bundles are cut from the last gradient on, so that what is left over is that of the first ones, which are complete
 * last: all others are under way before. */
static void the_first_bundle_is_what_is_left(void **state)
{
    (void)state;
    struct sl_scaling_costs costs = make_costs();
    const int64_t bundle = sl_reducer_choose_bundle(0, slow.bytes_per_s / 2);
    costs.elems = 2 * bundle + bundle / 2;
    costs.notes[0] = (struct sl_scaling_note){1, 6e6};
    costs.step_ns = costs.together_ns = 10e6 + 2 * 4.0 * (double)bundle;
    costs.notes[1].ns = costs.step_ns;
    const struct sl_scaling_place two = {.ranks = 2, .hosts = 2, .local = 1, .link = slow};
    assert_close(predict(&costs, two), costs.step_ns + 4.0 * (double)(bundle / 2) + 1e6 + 2 * 64.0);
    /* on one host its own link chooses the bundles, whatever the one between hosts is like */
    const struct sl_scaling_place near = {.ranks = 2, .hosts = 1, .inner = slow, .link = {1e12, 1}};
    assert_close(predict(&costs, near), costs.step_ns + 4.0 * (double)(bundle / 2) + 1e6);
}

/* Gradients that have come before the step ends cost nothing, and do not make it shorter; nor does a step that was
 * faster when its gradients were exchanged. */
static void what_comes_in_time_is_free(void **state)
{
    (void)state;
    struct sl_scaling_costs costs = make_costs();
    struct sl_scaling_row row = {0};
    costs.notes[0] = (struct sl_scaling_note){0, 2e6};
    costs.note_count = 1;
    const struct sl_scaling_place apart = {.ranks = 2, .hosts = 2, .local = 1, .link = {1e15, 0}, .element_bytes = 4};
    sl_scaling_predict(&costs, &apart, &row);
    assert_close(row.update_ns, 11e6);
    costs.together_ns = 9e6;
    const struct sl_scaling_place near = {.ranks = 2, .hosts = 1, .element_bytes = 4};
    sl_scaling_predict(&costs, &near, &row);
    assert_close(row.update_ns, 10e6);
    assert_close(row.compute_ns, 11e6);
    assert_close(row.exchange_ns + 1, 1);
}

/* What the ranks of a host exchange of a stage, where its link is not given: their share of what was measured. */
static void replicas_beside_each_other_share_what_was_measured(void **state)
{
    (void)state;
    struct sl_scaling_costs costs = make_costs();
    struct sl_scaling_row row = {0};
    costs.stages = 2;
    costs.exchange_ns = 6e5;
    const struct sl_scaling_place place = {.ranks = 12, .hosts = 2, .local = 6, .link = slow, .element_bytes = 4};
    sl_scaling_predict(&costs, &place, &row);
    assert_close(row.exchange_ns, 6e5 * 3 / 6 + (1 << 20) * 4.0 + 2 * 2 * 64.0);
}

static void replicas_of_a_pipeline_add_at_the_end(void **state)
{
    (void)state;
    struct sl_scaling_costs costs = make_costs();
    struct sl_scaling_row row = {0};
    costs.stages = 2;
    costs.alone_ns = 10e6;
    costs.stages_ns = 7e6;
    const struct sl_scaling_place place = {.ranks = 4, .hosts = 2, .local = 2, .link = slow, .element_bytes = 4};
    sl_scaling_predict(&costs, &place, &row);
    const double bytes = (1 << 20) * 4.0;
    assert_close(row.exchange_ns, bytes + 2 * 2 * 64.0);
    assert_close(row.update_ns, 7e6 + 1e6 + row.exchange_ns);
    assert_close(row.waiting_ns, 2e6);
    /* one rank on each host: half of the gradients go over its link; five stages on hosts of two: two fifths */
    const struct sl_scaling_place apart = {.ranks = 4, .hosts = 4, .local = 1, .link = slow, .element_bytes = 4};
    sl_scaling_predict(&costs, &apart, &row);
    assert_close(row.exchange_ns, bytes / 2 + 4 * 1.5 * 64);
    costs.stages = 5;
    const struct sl_scaling_place many = {.ranks = 10, .hosts = 5, .local = 2, .link = slow, .element_bytes = 4};
    sl_scaling_predict(&costs, &many, &row);
    assert_close(row.exchange_ns, bytes * 2 / 5 + 4 * 1.6 * 64);
}

/* A pipeline of which no replica has a sequence is idle with all its stages; ranks that no pipeline has are not
 * counted. */
static void ranks_without_a_sequence_are_idle(void **state)
{
    (void)state;
    for (int32_t stages = 1; stages <= 4; stages++)
        for (int32_t ranks = stages; ranks <= 24; ranks++)
            for (int64_t sequences = 1; sequences <= 9; sequences++) {
                const struct sl_scaling_place place = {
                    .ranks = ranks, .hosts = ranks, .local = 1, .link = slow, .element_bytes = 4};
                struct sl_scaling_costs costs = make_costs();
                struct sl_scaling_row row = {0};
                int32_t idle = 0;
                costs.stages = stages;
                costs.sequences = sequences;
                for (int32_t rank = 0; rank < ranks / stages * stages; rank++)
                    idle += rank / stages >= sequences;
                sl_scaling_predict(&costs, &place, &row);
                assert_int_equal(row.idle, idle);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_takes_twice_its_bytes),
        cmocka_unit_test(what_comes_after_backward_is_waited_for),
        cmocka_unit_test(a_central_rank_takes_all),
        cmocka_unit_test(shards_are_added_as_a_tree),
        cmocka_unit_test(less_is_exchanged_of_embeddings_and_factors),
        cmocka_unit_test(the_first_bundle_is_what_is_left),
        cmocka_unit_test(what_comes_in_time_is_free),
        cmocka_unit_test(replicas_beside_each_other_share_what_was_measured),
        cmocka_unit_test(replicas_of_a_pipeline_add_at_the_end),
        cmocka_unit_test(ranks_without_a_sequence_are_idle),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
