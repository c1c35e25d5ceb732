/* SPDX-License-Identifier: Apache-2.0 */
/* What one step gives and takes: sums, its factor, states and masks of its own, rows of embeddings and complete
 * gradients as it goes, and the tensors that a watcher reads. */
#include "exec_cases.h"
#include "oom.h"

#define VALUES_TRAIN "\ntrain: {loss: mse, epochs: 1}"

static struct sl_exec_result make_step(struct world *w, const struct sl_batch *batch, const struct sl_exec_step *step)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_exec_result result;
    ok(sl_exec_run(w->exec, batch, step, &result, &err), &err);
    return result;
}

/* The weight of a row is not its loss, and two numbers for each row are no two rows. */
static void a_step_gives_both_sums(void **state)
{
    (void)state;
    struct sl_data_facts facts = values_facts(3, false, 2);
    struct world w;
    facts.has_weight = true;
    open_world(&w, data_values, "model: [{type: lstm, units: 2}]" VALUES_TRAIN, &facts, true);
    struct sl_batch *batch = make_batch(&facts);
    for (int k = 0; k < B; k++)
        ((float *)(uintptr_t)batch->weight.values)[k] = 0.5f + (float)k;
    const struct sl_exec_step step = {.normaliser = 1};
    const struct sl_exec_result result = make_step(&w, batch, &step);
    const struct sl_field output = sl_exec_get_output(w.exec);
    double loss = 0;
    for (int k = 0; k < B; k++)
        for (int f = 0; f < 2; f++) {
            const double off = (double)output.values[2 * k + f] - (double)batch->target.values[2 * k + f];
            loss += (0.5 + k) * off * off / 2;
        }
    assert_true(fabs(result.loss_sum - loss) <= 1e-5 * loss);
    assert_true(result.weight_sum == 0.5 + 1.5 + 2.5 + 3.5 + 4.5);
    assert_true(result.weight_sum == sl_exec_weigh(w.exec, batch));
    assert_int_equal(result.rows, R);
    sl_batch_destroy(batch);
    close_world(&w);
}

/* Also where gradients are added to. */
static void each_step_has_its_own_factor(void **state)
{
    (void)state;
    struct sl_data_facts facts = values_facts(3, false, 2);
    struct world w;
    open_world(&w, data_values, "model: [{type: lstm, units: 2}]" VALUES_TRAIN, &facts, true);
    struct sl_batch *batch = make_batch(&facts);
    float first[256];
    assert_true(w.params->elems <= 256);
    make_step(&w, batch, &(struct sl_exec_step){.normaliser = 1});
    memcpy(first, w.params->grads, (size_t)w.params->elems * sizeof *first);
    make_step(&w, batch, &(struct sl_exec_step){.normaliser = 0.25, .loss_scale = 8, .accumulate = true});
    for (int64_t e = 0; e < w.params->elems; e++)
        assert_true(fabsf(w.params->grads[e] - 3 * first[e]) <= 1e-6f * (1 + fabsf(first[e])));
    sl_batch_destroy(batch);
    close_world(&w);
}

/* A step that adds to gradients begins at zero states like any other, unless its batch goes on. */
static void states_begin_anew_in_every_step(void **state)
{
    (void)state;
    struct sl_data_facts facts = values_facts(3, true, 2);
    struct world w;
    open_world(&w, "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}, batching: {bptt: 4}}\n",
               "model: [{type: lstm, units: 2, return_sequences: true}]" VALUES_TRAIN, &facts, true);
    struct sl_batch *batch = make_batch(&facts);
    const double alone = make_step(&w, batch, &(struct sl_exec_step){.normaliser = 1}).loss_sum;
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        const struct sl_exec_step step = {.normaliser = 1, .accumulate = accumulate};
        batch->carry_state = false;
        assert_true(make_step(&w, batch, &step).loss_sum == alone);
        batch->carry_state = true;
        assert_true(make_step(&w, batch, &step).loss_sum != alone);
    }
    sl_batch_destroy(batch);
    close_world(&w);
}

/* By the epoch, and weights by the step of their masks. */
static void masks_are_those_of_the_step(void **state)
{
    (void)state;
    static const char *const layers[] = {
        "model: [{type: lstm, units: 4}, {type: dropout, rate: 0.5},"
        " {type: dense, units: 2}]" VALUES_TRAIN,
        "model: [{type: lstm, units: 4, weight_drop: 0.5}, {type: dense, units: 2}]" VALUES_TRAIN};
    for (int drops_weights = 0; drops_weights < 2; drops_weights++) {
        struct sl_data_facts facts = values_facts(3, false, 2);
        struct world w;
        open_world(&w, data_values, layers[drops_weights], &facts, true);
        struct sl_batch *batch = make_batch(&facts);
        double losses[4];
        for (int k = 0; k < 4; k++) {
            const struct sl_exec_step step = {
                .normaliser = 1, .epoch = 1 + (uint64_t)(k == 1), .weight_mask_step = 1 + (uint32_t)(k == 2)};
            losses[k] = make_step(&w, batch, &step).loss_sum;
        }
        assert_true(losses[1] != losses[0]);
        assert_int_equal(losses[2] != losses[0], drops_weights);
        assert_true(losses[3] == losses[0]);
        sl_batch_destroy(batch);
        close_world(&w);
    }
}

/* ---- on the way ---- */

static struct world watched;
static struct sl_buf told;
static float tails[8][512]; /* gradients from some element on, when they were said to be complete */
static int64_t froms[8];
static int tail_count;

static void tell_rows(void *context, int64_t offset, const int32_t *ids, int64_t count)
{
    (void)context;
    for (int32_t v = 0; v < watched.params->view_count; v++)
        if (watched.params->views[v].offset_elems == offset)
            sl_buf_printf(&told, "%s:", watched.params->views[v].name);
    for (int64_t k = 0; k < count; k++)
        sl_buf_printf(&told, " %d", ids[k]);
    sl_buf_append_text(&told, "; ");
}

static void keep_tail(void *context, int64_t from)
{
    (void)context;
    assert_true(tail_count < 8 && watched.params->elems - from <= 512);
    froms[tail_count] = from;
    memcpy(tails[tail_count++], watched.params->grads + from,
           (size_t)(watched.params->trainable_elems - from) * sizeof(float));
}

/* What was said to be complete does not change any more; in the end all is. */
static void gradients_are_complete_when_they_are_said_to_be(void **state)
{
    (void)state;
    struct sl_data_facts facts = token_facts(true, 7);
    open_world(&watched, data_tokens,
               "model: [{type: embedding, name: emb, dim: 4}, {type: lstm, units: 3, return_sequences: true},"
               " {type: layer_norm}, {type: output, activation: softmax}]\n"
               "train: {loss: cross_entropy, task: tag, epochs: 1}",
               &facts, true);
    struct sl_batch *batch = make_batch(&facts);
    make_step(&watched, batch, &(struct sl_exec_step){.normaliser = 1}); /* other gradients than zero */
    tail_count = 0;
    make_step(&watched, batch, &(struct sl_exec_step){.normaliser = 0.5, .on_rows = tell_rows, .on_grads = keep_tail});
    assert_string_equal(sl_buf_text(&told), "emb.w: 0 3 6 2 5 1 4 0 3 6 2; ");
    assert_true(tail_count >= 4 && froms[tail_count - 1] == 0);
    for (int k = 0; k < tail_count; k++) {
        assert_true(k == 0 || froms[k] <= froms[k - 1]);
        assert_memory_equal(tails[k], watched.params->grads + froms[k],
                            (size_t)(watched.params->trainable_elems - froms[k]) * sizeof(float));
    }
    assert_true(froms[1] > 0 && froms[1] < watched.params->trainable_elems); /* not only at the end */
    sl_buf_deinit(&told);
    sl_batch_destroy(batch);
    close_world(&watched);
}

static seqlstm_status tell_slots(void *context, struct sl_exec *exec, const struct sl_node *node,
                                 struct seqlstm_error *err)
{
    (void)context;
    sl_buf_printf(&told, "%s on %s:", node->name, sl_exec_get_backend(exec, node));
    for (int32_t s = 0; s < node->slot_count; s++) {
        const float *values;
        int64_t elems;
        if (node->slots[s] < 0 || watched.graph->tensors[node->slots[s]].dtype != SEQLSTM_DTYPE_FLOAT32)
            continue;
        SEQLSTM_TRY(sl_exec_read(exec, node->slots[s], &values, &elems, err));
        assert_non_null(values);
        sl_buf_printf(&told, " %s[%d]", watched.graph->tensors[node->slots[s]].name, (int)elems);
    }
    sl_buf_append_text(&told, "; ");
    return SEQLSTM_OK;
}

/* Each with as many numbers as the batch has rows for, or the parameter elements. */
static void a_watcher_reads_every_tensor(void **state)
{
    (void)state;
    struct sl_data_facts facts = values_facts(3, false, 2);
    const struct sl_node stranger = {.name = "stranger"};
    open_world(&watched, data_values,
               "model: [{type: lstm, name: cell, units: 5}, {type: dense, name: out, units: 2}]" VALUES_TRAIN, &facts,
               true);
    struct sl_batch *batch = make_batch(&facts);
    sl_exec_watch(watched.exec, tell_slots, NULL);
    make_step(&watched, batch, &(struct sl_exec_step){.normaliser = 1});
    assert_string_equal(sl_exec_get_backend(watched.exec, &stranger), "?");
    assert_string_equal(sl_buf_text(&told),
                        "cell on reference: input[33] cell.l0.forward.last[25] cell.l0.forward.w_x[60]"
                        " cell.l0.forward.w_h[100] cell.l0.forward.bias[20];"
                        " out on reference: cell.l0.forward.last[25] out[10] out.w[10] out.bias[2];"
                        " loss on reference: out[10] target[10]; ");
    sl_buf_deinit(&told);
    sl_batch_destroy(batch);
    close_world(&watched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_gives_both_sums),
        cmocka_unit_test(each_step_has_its_own_factor),
        cmocka_unit_test(states_begin_anew_in_every_step),
        cmocka_unit_test(masks_are_those_of_the_step),
        cmocka_unit_test(gradients_are_complete_when_they_are_said_to_be),
        cmocka_unit_test(a_watcher_reads_every_tensor),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
