/* SPDX-License-Identifier: Apache-2.0 */
/* What backends are given: bindings of shapes, axes, packed weights; and batches that are refused. */
#include <seqlstm/ext/rebind.h>

#include "exec_cases.h"
#include "oom.h"

static int binds, rebinds;

/* What the contract says of an axis, of which backends make use without looking. */
static void check_axis(const struct seqlstm_axis *axis)
{
    bool uniform = true;
    int64_t rows = 0;
    for (int64_t k = 0; k < axis->sequences; k++) {
        assert_true(k == 0 || axis->lengths[k] <= axis->lengths[k - 1]);
        uniform = uniform && axis->lengths[k] == axis->steps;
    }
    assert_int_equal((axis->flags & SEQLSTM_BIT_AXIS_UNIFORM) != 0, uniform);
    for (int64_t t = 0; t < axis->steps; t++) {
        int32_t alive = 0;
        while (alive < axis->sequences && axis->lengths[alive] > t)
            alive++;
        assert_int_equal(axis->batch_sizes[t], alive);
        assert_int_equal(axis->row_offsets[t], rows);
        rows += alive;
    }
    assert_int_equal(axis->rows, rows);
}

static seqlstm_status count_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                 const struct seqlstm_bind *bind, struct seqlstm_binding **out_binding,
                                 struct seqlstm_error *err)
{
    binds++;
    if (bind->axis) {
        check_axis(bind->axis);
        assert_true(0 <= bind->t0 && bind->t0 <= bind->t1 && bind->t1 <= bind->axis->steps);
        assert_int_equal(bind->rows,
                         bind->flags & SEQLSTM_BIT_BIND_ON_SEQUENCES ? bind->axis->sequences : bind->axis->rows);
    }
    return seqlstm_reference_query_v0(SEQLSTM_ABI_MINOR)->op_bind(op, queue, bind, out_binding, err);
}

/* Bindings that live, with what their axes were. */
static struct {
    struct seqlstm_binding *binding;
    const struct seqlstm_axis *axis;
    int64_t steps;
    int32_t longest;
} bound[64];

static seqlstm_status note_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                const struct seqlstm_bind *bind, struct seqlstm_binding **out_binding,
                                struct seqlstm_error *err)
{
    size_t at = 0;
    SEQLSTM_TRY(count_bind(op, queue, bind, out_binding, err));
    while (bound[at].binding)
        at++;
    assert_true(at < sizeof bound / sizeof *bound - 1);
    bound[at].binding = bind->axis ? *out_binding : NULL;
    bound[at].axis = bind->axis;
    bound[at].steps = bind->axis ? bind->axis->steps : 0;
    bound[at].longest = bind->axis ? bind->axis->lengths[0] : 0;
    return SEQLSTM_OK;
}

/* The axis of a binding is there, and as it was, until the binding goes. */
static void destroy_bound(struct seqlstm_binding *binding)
{
    for (size_t at = 0; binding && at < sizeof bound / sizeof *bound; at++)
        if (bound[at].binding == binding) {
            assert_int_equal(bound[at].axis->steps, bound[at].steps);
            assert_int_equal(bound[at].axis->lengths[0], bound[at].longest);
            bound[at].binding = NULL;
        }
    seqlstm_reference_query_v0(SEQLSTM_ABI_MINOR)->binding_destroy(binding);
}

/* A table without the function is as good as none. */
static const void *find_empty(struct seqlstm_instance *instance, const char *id)
{
    static const struct seqlstm_rebind extension = {.struct_size = sizeof extension};
    (void)instance;
    return strcmp(id, SEQLSTM_REBIND_EXTENSION) == 0 ? &extension : NULL;
}

static const struct seqlstm_backend *query_counting(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    table = *seqlstm_reference_query_v0(host_minor);
    table.op_bind = note_bind;
    table.binding_destroy = destroy_bound;
    table.get_extension = find_empty;
    return &table;
}

static const struct seqlstm_rebind *get_right(void)
{
    return seqlstm_reference_query_v0(SEQLSTM_ABI_MINOR)->get_extension(NULL, SEQLSTM_REBIND_EXTENSION);
}

/* Its bindings take no shape of three steps. */
static seqlstm_status count_rebind(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                   const struct seqlstm_bind *bind, struct seqlstm_error *err)
{
    if (bind->axis->steps == 3)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "not three steps");
    rebinds++;
    return get_right()->rebind(binding, queue, bind, err);
}

static const void *find_rebind(struct seqlstm_instance *instance, const char *id)
{
    static const struct seqlstm_rebind extension = {.struct_size = sizeof extension, .rebind = count_rebind};
    (void)instance;
    return strcmp(id, SEQLSTM_REBIND_EXTENSION) == 0 ? &extension : NULL;
}

static const struct seqlstm_backend *query_rebinding(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    table = *query_counting(host_minor);
    table.op_bind = count_bind;
    table.binding_destroy = seqlstm_reference_query_v0(host_minor)->binding_destroy;
    table.get_extension = find_rebind;
    return &table;
}

static int count_binds_of(struct world *w, int32_t length)
{
    const struct sl_batch_shape shape = {.sequences = 1,
                                         .lengths = &length,
                                         .input_kind = SL_FIELD_VALUES,
                                         .target_kind = SL_FIELD_VALUES,
                                         .input_features = 3,
                                         .target_features = 3,
                                         .input_on_steps = true,
                                         .target_on_steps = true};
    struct sl_batch *batch = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    const int before = binds;
    run(w, batch, false);
    sl_batch_destroy(batch);
    return binds - before;
}

/* A shape that came lately is not bound again; of those that are kept, the one goes that was not used for longest. */
static void shapes_are_bound_once(void **state)
{
    (void)state;
    struct sl_data_facts facts = values_facts(3, true, 3);
    facts.envelope = (struct sl_envelope){.sequences = 1, .steps = SL_SHAPES_BOUND + 1, .rows = SL_SHAPES_BOUND + 1};
    struct world w;
    world_query = query_counting;
    open_world(&w, data_values, "model: [{type: dense, units: 3}]\ntrain: {loss: mse, epochs: 1}", &facts, true);
    world_query = seqlstm_reference_query_v0;
    for (int32_t length = 1; length <= SL_SHAPES_BOUND; length++)
        assert_true(count_binds_of(&w, length) > 0);
    for (int32_t length = 1; length <= SL_SHAPES_BOUND; length++)
        if (length != 3)
            assert_int_equal(count_binds_of(&w, length), 0);
    assert_true(count_binds_of(&w, SL_SHAPES_BOUND + 1) > 0); /* instead of 3 */
    for (int32_t length = 1; length <= SL_SHAPES_BOUND + 1; length++)
        if (length != 3)
            assert_int_equal(count_binds_of(&w, length), 0);
    assert_true(count_binds_of(&w, 3) > 0);
    close_world(&w);
}

/* A new shape takes over the bindings of the oldest one, where the backend can change them. */
static void bindings_are_changed_in_place(void **state)
{
    (void)state;
    struct sl_data_facts facts = values_facts(3, true, 3);
    facts.envelope = (struct sl_envelope){.sequences = 1, .steps = 2 * SL_SHAPES_BOUND, .rows = 2 * SL_SHAPES_BOUND};
    struct world w;
    world_query = query_rebinding;
    open_world(&w, data_values, "model: [{type: dense, units: 3}]\ntrain: {loss: mse, epochs: 1}", &facts, true);
    world_query = seqlstm_reference_query_v0;
    rebinds = 0;
    for (int32_t length = SL_SHAPES_BOUND + 1; length <= 2 * SL_SHAPES_BOUND; length++)
        assert_true(count_binds_of(&w, length) > 0);
    assert_int_equal(rebinds, 0);
    assert_int_equal(count_binds_of(&w, 5), 0);
    assert_true(rebinds > 0);
    rebinds = 0;
    assert_true(count_binds_of(&w, 3) > 0);
    assert_int_equal(rebinds, 0);
    close_world(&w);
}

/* Every binding of every case: of steps and of sequences, ragged and uniform. */
static void axes_are_what_the_contract_says(void **state)
{
    (void)state;
    world_query = query_counting;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_data_facts facts = facts_of(&cases[i]);
        struct world w;
        open_world(&w, cases[i].tokens ? data_tokens : data_values, cases[i].layers, &facts, cases[i].need_output);
        struct sl_batch *batch = make_batch(&facts);
        binds = 0;
        run(&w, batch, false);
        assert_true(binds > 0);
        sl_batch_destroy(batch);
        close_world(&w);
    }
    world_query = seqlstm_reference_query_v0;
}

/* Operations are told that all sequences are equally long exactly if the data say so. */
static void uniform_data_are_told(void **state)
{
    (void)state;
    for (int uniform = 0; uniform < 2; uniform++) {
        struct sl_data_facts facts = values_facts(3, true, 2);
        facts.envelope.uniform = uniform;
        struct world w;
        open_world(&w, data_values,
                   "model: [{type: lstm, units: 2, return_sequences: true}]\ntrain: {loss: mse, epochs: 1}", &facts,
                   true);
        for (int32_t n = 0; n < w.graph->node_count; n++)
            assert_int_equal((w.graph->nodes[n].desc.head.flags & SEQLSTM_BIT_DESC_UNIFORM) != 0, uniform);
        close_world(&w);
    }
}

static seqlstm_status (*plain_sizes)(const struct seqlstm_op *, struct seqlstm_sizes *, struct seqlstm_error *);
static int packs;

static seqlstm_status sizes_with_packed(const struct seqlstm_op *op, struct seqlstm_sizes *sizes,
                                        struct seqlstm_error *err)
{
    seqlstm_status status = plain_sizes(op, sizes, err);
    sizes->packed_bytes = 64;
    return status;
}

static seqlstm_status count_pack(const struct seqlstm_op *op, struct seqlstm_queue *queue, void *const *slots,
                                 void *packed, const struct seqlstm_step *step, struct seqlstm_error *err)
{
    (void)op, (void)queue, (void)slots, (void)step, (void)err;
    assert_non_null(packed);
    packs++;
    return SEQLSTM_OK;
}

/* Not with each batch of an accumulated update, or of an evaluation. */
static void weights_are_packed_when_they_change_only(void **state)
{
    (void)state;
    struct sl_data_facts facts = values_facts(3, false, 5);
    struct world w;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    open_world(&w, data_values, "model: [{type: lstm, units: 5}]\ntrain: {loss: mse, epochs: 1}", &facts, true);
    struct seqlstm_backend *table = (void *)(uintptr_t)sl_backend_get_table(w.plan->calls[0].backend);
    sl_exec_destroy(w.exec);
    sl_plan_destroy(w.plan);
    plain_sizes = table->op_sizes; /* the reference uses weights as they are */
    table->op_sizes = sizes_with_packed;
    table->weights_pack = count_pack;
    struct sl_plan_request request = {.graph = w.graph, .registry = w.registry};
    ok(sl_plan_create(&request, &w.plan, &err), &err);
    struct sl_exec_request exec = {.plan = w.plan, .params = w.params, .seed = 5};
    ok(sl_exec_create(&exec, &w.exec, &err), &err);
    struct sl_batch *batch = make_batch(&facts);
    const int once = w.plan->call_count;
    packs = 0;
    run(&w, batch, false);
    assert_int_equal(packs, once);
    run(&w, batch, true);
    run(&w, batch, true);
    assert_int_equal(packs, once);
    w.params->version++;
    run(&w, batch, false);
    assert_int_equal(packs, 2 * once);
    sl_batch_destroy(batch);
    close_world(&w);
}

static void too_large_batch_is_refused(void **state)
{
    (void)state;
    struct sl_data_facts facts = values_facts(3, false, 5);
    facts.envelope.rows = R - 1;
    struct world w;
    open_world(&w, data_values, "model: [{type: lstm, units: 5}]\ntrain: {loss: mse, epochs: 1}", &facts, true);
    struct sl_batch *batch = make_batch(&facts);
    struct sl_exec_step step = {.normaliser = 1};
    struct sl_exec_result result;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_false(sl_exec_fits(w.exec, batch));
    assert_int_equal(sl_exec_run(w.exec, batch, &step, &result, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "11 rows"));
    sl_batch_destroy(batch);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_bound_once),
        cmocka_unit_test(bindings_are_changed_in_place),
        cmocka_unit_test(axes_are_what_the_contract_says),
        cmocka_unit_test(uniform_data_are_told),
        cmocka_unit_test(weights_are_packed_when_they_change_only),
        cmocka_unit_test(too_large_batch_is_refused),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
