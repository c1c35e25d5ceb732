/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that stand for several: they give what their parts give. */
#include "exec_cases.h"
#include "oom.h"

/* The compound is taken when the output is not wanted, and gives the same loss and gradients. */
static void alternative_equals_its_parts(void **state)
{
    (void)state;
    const struct gradient_case *c = &cases[6];
    struct sl_data_facts facts = facts_of(c);
    struct world fused, apart;
    open_world(&fused, data_tokens, c->layers, &facts, false);
    open_world(&apart, data_tokens, c->layers, &facts, true);
    assert_int_equal(fused.plan->call_count, apart.plan->call_count - 1);
    assert_equal_and_close(&fused, &apart, &facts);
}

/* A stack in one call gives what its layers give one by one: masks belong to the layer. */
static void stack_equals_its_layers(void **state)
{
    (void)state;
    static const char layers[] = "model: [{type: lstm, name: s, units: 4, layers: 2, dropout: 0.3,"
                                 " recurrent_dropout: 0.3, return_sequences: true}]\ntrain: {loss: mse, epochs: 1}";
    struct sl_data_facts facts = values_facts(3, true, 4);
    struct world stack, apart;
    open_world(&stack, data_values, layers, &facts, true);
    open_world(&apart, data_values, layers, &facts, true);
    assert_int_equal(stack.plan->call_count, 2); /* stack, loss */
    /* the layers one by one: a stored plan that names them */
    sl_exec_destroy(apart.exec);
    sl_plan_destroy(apart.plan);
    struct sl_plan_choice stored[] = {{"s.l0", "reference", "", SL_PHASE_TRAIN},
                                      {"s.l1", "reference", "", SL_PHASE_TRAIN},
                                      {"loss", "reference", "", SL_PHASE_TRAIN}};
    struct sl_plan_request request = {
        .graph = apart.graph, .registry = apart.registry, .stored = stored, .stored_count = 3};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    ok(sl_plan_create(&request, &apart.plan, &err), &err);
    assert_int_equal(apart.plan->call_count, 3);
    struct sl_exec_request exec = {.plan = apart.plan, .params = apart.params, .seed = 5};
    ok(sl_exec_create(&exec, &apart.exec, &err), &err);
    assert_equal_and_close(&stack, &apart, &facts);
}

/* A stack that is deeper than one operation may be runs layer by layer. No two of its layers share a mask, nor do they
 * share one with the next layer of the model. */
static void deep_stacks_run_layer_by_layer(void **state)
{
    (void)state;
    static const char layers[] = "model: [{type: rnn, name: deep, units: 2, layers: 130, dropout: 0.1,"
                                 " return_sequences: true}, {type: rnn, name: next, units: 2, dropout: 0.1,"
                                 " return_sequences: true}]\ntrain: {loss: mse, epochs: 1}";
    enum { OPERATIONS = 131 };
    _Static_assert(OPERATIONS > 2 * SEQLSTM_MAX_LAYERS, "deeper than one operation");
    struct sl_data_facts facts = values_facts(3, true, 2);
    struct world w;
    open_world(&w, data_values, layers, &facts, true);
    assert_int_equal(w.graph->alternative_count, 0);
    assert_int_equal(w.plan->call_count, OPERATIONS + 1); /* and the loss */
    uint64_t streams[OPERATIONS];
    for (int i = 0; i < OPERATIONS; i++) {
        const struct seqlstm_recurrent_desc *desc = &w.plan->calls[i].node->desc.recurrent;
        assert_int_equal(desc->head.op, SEQLSTM_OP_RECURRENT);
        assert_int_equal(desc->layers, 1);
        streams[i] = desc->stream_base;
        for (int k = 0; k < i; k++)
            assert_true(streams[i] >= streams[k] + SEQLSTM_STREAMS_PER_LAYER ||
                        streams[k] >= streams[i] + SEQLSTM_STREAMS_PER_LAYER);
    }
    struct sl_batch *batch = make_batch(&facts);
    assert_true(isfinite(run(&w, batch, false)));
    sl_batch_destroy(batch);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alternative_equals_its_parts),
        cmocka_unit_test(stack_equals_its_layers),
        cmocka_unit_test(deep_stacks_run_layer_by_layer),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
