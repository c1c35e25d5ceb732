/* SPDX-License-Identifier: Apache-2.0 */
/* Backends that fail, or write where they may not: each function of each operation fails once, and each slot of each
 * operation is damaged once. The errors name the operation; what was bound is released, and the next run is right. */
#include "oom.h"
#include "passing_backend.h"

#include "exec/exec_private.h"
#include "exec/place/place.h"
#include "registry/watch/watch.h"

enum {
    B = 3,
    STEPS = 4,
    ROWS = 9,
    FEATURES = 2,
    TARGETS = 2,
    WORKSPACE_BYTES = 8192,
    RESERVE_BYTES = 4096,
    PACKED_BYTES = 64
};

static const char data[] = "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\n";
static const char layers[] = "model: [{type: lstm, name: cell, units: 3, return_sequences: true},"
                             " {type: dense, name: out, units: 2, kernel_regularizer: {l1: 0.1}}]\n"
                             "train: {loss: mse, epochs: 1, clip_value: 0.5, optimizer: {type: adam}}";
static const struct sl_data_facts facts = {.input = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = FEATURES},
                                           .target = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = TARGETS},
                                           .has_steps = true,
                                           .envelope = {.sequences = B, .steps = STEPS, .rows = ROWS}};

/* ---- the backend ------------------------------------------------------------------------------------------------- */

static struct world w;
static enum sl_plugin_function faulty; /* the function that fails or damages */
static int calls_before;               /* so many of its calls are right; below 0: it has done it */
static bool damages;                   /* in place of failing */

static void size(struct seqlstm_sizes *sizes)
{
    sizes->packed_bytes = PACKED_BYTES;
    assert_true(sizes->workspace_bytes <= WORKSPACE_BYTES && sizes->reserve_bytes <= RESERVE_BYTES);
    sizes->workspace_bytes = WORKSPACE_BYTES;
    sizes->reserve_bytes = sizes->reserve_bytes > 0 ? RESERVE_BYTES : 0;
}

static const struct sl_plan *packing; /* for several executors; NULL: for one */

/* Only the parameters are there. */
static void expect_params(const struct seqlstm_op *op, void *const *slots)
{
    int found = 0;
    for (int32_t c = 0; c < packing->call_count; c++)
        for (int32_t s = 0; s < packing->calls[c].node->slot_count && packing->calls[c].op == op; s++) {
            const int32_t t = packing->calls[c].node->slots[s];
            const struct sl_tensor *tensor = t >= 0 ? &packing->graph->tensors[t] : NULL;
            const bool is_param = tensor && tensor->role == SL_TENSOR_PARAM;
            assert_ptr_equal(slots[s],
                             is_param ? w.params->values + w.params->views[tensor->owner].offset_elems : NULL);
            found += is_param;
        }
    assert_true(found > 0);
}

/* What is damaged, of the slots of call `wrong_call`: that slot, behind what it has or its last byte; or what lies
 * behind the workspace, the reserve or a gradient. */
enum where { BEHIND, WITHIN, WORKSPACE, RESERVE, GRADIENT };
static enum where where;
static int32_t wrong_call, wrong_slot;

static void damage(const struct passed *passed)
{
    const struct sl_call *call = &w.plan->calls[wrong_call];
    const int32_t t = call->node->slots[wrong_slot];
    char *at = where == WORKSPACE  ? (char *)passed->workspace + call->sizes.workspace_bytes
               : where == RESERVE  ? (char *)passed->reserve + call->sizes.reserve_bytes
               : where == GRADIENT ? (char *)passed->grads[wrong_slot] + sl_plan_get_tensor_bytes(w.plan, t)
               : where == BEHIND   ? (char *)passed->slots[wrong_slot] + sl_plan_get_tensor_bytes(w.plan, t)
                                   : (char *)passed->slots[wrong_slot] + sl_exec_get_bytes(w.exec, t) - 1;
    *at ^= 1;
}

static bool is_wrong; /* the call that is passed on */

static seqlstm_status fail_once(const struct passed *call, struct seqlstm_error *err)
{
    if (packing && call->function == SL_FUNCTION_WEIGHTS_PACK)
        expect_params(call->op, call->slots);
    is_wrong = call->function == faulty && calls_before-- == 0;
    if (is_wrong && !damages)
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "on purpose");
    return SEQLSTM_OK;
}

static void damage_once(const struct passed *call)
{
    if (is_wrong && call->function == SL_FUNCTION_WEIGHTS_PACK)
        ((char *)call->packed)[PACKED_BYTES] ^= 1;
    else if (is_wrong)
        damage(call);
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static struct sl_batch *make_batch(const int32_t *lengths)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_batch_shape shape = {.sequences = B,
                                         .lengths = lengths,
                                         .input_kind = SL_FIELD_VALUES,
                                         .input_features = FEATURES,
                                         .input_on_steps = true,
                                         .target_kind = SL_FIELD_VALUES,
                                         .target_features = TARGETS,
                                         .target_on_steps = true};
    struct sl_batch *batch = NULL;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    for (int64_t i = 0; i < batch->axis.rows * FEATURES; i++)
        ((float *)(uintptr_t)batch->input.values)[i] = number((uint64_t)i);
    for (int64_t i = 0; i < batch->axis.rows * TARGETS; i++)
        ((float *)(uintptr_t)batch->target.values)[i] = number(100 + (uint64_t)i);
    return batch;
}

static void open(void)
{
    faulty = SL_FUNCTION_NONE;
    passing_count = 0;
    passing_before = fail_once;
    passing_after = damage_once;
    passing_sizes = size;
    world_query = passing_query;
    open_world(&w, data, layers, &facts, true);
}

static seqlstm_status make_step(const struct sl_batch *batch, struct sl_exec_result *result, struct seqlstm_error *err)
{
    const struct sl_exec_update update = {.count = 1, .learning_rate = 0.1};
    const struct sl_exec_step step = {.epoch = 3, .normaliser = 1, .update = &update};
    *err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
    return sl_exec_run(w.exec, batch, &step, result, err);
}

/* What one step leaves that no other has gone before. */
struct left {
    double loss;
    float values[256];
};

static struct left run_right(const struct sl_batch *batch)
{
    struct seqlstm_error err;
    struct sl_exec_result result;
    struct left left = {0};
    ok(make_step(batch, &result, &err), &err);
    left.loss = result.loss_sum;
    assert_true(w.params->elems <= 256);
    memcpy(left.values, w.params->values, (size_t)w.params->elems * sizeof(float));
    return left;
}

static const int32_t full[] = {4, 3, 2}; /* as many rows as the plan has room for */

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void note_failures(struct sl_buf *said, const struct sl_batch *batch, enum sl_plugin_function function,
                          const struct left *expected)
{
    for (int n = 0; n < 100; n++) {
        struct seqlstm_error err;
        struct sl_exec_result result;
        open();
        faulty = function;
        calls_before = n;
        const seqlstm_status status = make_step(batch, &result, &err);
        const bool failed = calls_before < 0;
        faulty = SL_FUNCTION_NONE;
        if (failed) {
            assert_int_equal(status, SEQLSTM_DEVICE);
            sl_buf_printf(said, "%s\n", err.message);
            const struct left again = run_right(batch);
            if (memcmp(&again, expected, sizeof again) != 0)
                fail_msg("call %d of %s failed: the next step is another one", n, sl_plugin_function_name(function));
        }
        close_world(&w);
        assert_int_equal(passing_live, 0);
        if (!failed)
            return;
    }
}

/* The operations of the model in their order, and those of the update: penalty, limit, norm, optimizer. Those that were
 * called before are right; so a failed update has changed no weight. */
static void a_function_that_fails_is_named_with_its_operation(void **state)
{
    (void)state;
    static const enum sl_plugin_function functions[] = {SL_FUNCTION_OP_BIND, SL_FUNCTION_WEIGHTS_PACK,
                                                        SL_FUNCTION_FORWARD, SL_FUNCTION_BACKWARD};
    static const char expected_text[] = "cell on reference (op_bind): on purpose\n"
                                        "out on reference (op_bind): on purpose\n"
                                        "loss on reference (op_bind): on purpose\n"
                                        "vector on reference (op_bind): on purpose\n"
                                        "vector on reference (op_bind): on purpose\n"
                                        "squared_norm on reference (op_bind): on purpose\n"
                                        "optimizer on reference (op_bind): on purpose\n"
                                        "cell on reference (weights_pack): on purpose\n"
                                        "out on reference (weights_pack): on purpose\n"
                                        "loss on reference (weights_pack): on purpose\n"
                                        "cell on reference (forward): on purpose\n"
                                        "out on reference (forward): on purpose\n"
                                        "loss on reference (forward): on purpose\n"
                                        "vector on reference (forward): on purpose\n"
                                        "vector on reference (forward): on purpose\n"
                                        "squared_norm on reference (forward): on purpose\n"
                                        "optimizer on reference (forward): on purpose\n"
                                        "loss on reference (backward): on purpose\n"
                                        "out on reference (backward): on purpose\n"
                                        "cell on reference (backward): on purpose\n";
    struct sl_batch *batch = make_batch(full);
    struct sl_buf said = {0};
    open();
    const struct left expected = run_right(batch);
    close_world(&w);
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        note_failures(&said, batch, functions[k], &expected);
    assert_string_equal(sl_buf_text(&said), expected_text);
    sl_buf_deinit(&said);
    sl_batch_destroy(batch);
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

static char noted[256]; /* of the damage, at the moment when it is found */

static void note_damage(const char *message)
{
    snprintf(noted, sizeof noted, "%s", message);
}

static void note_one(struct sl_buf *said, const struct sl_batch *batch, enum sl_plugin_function function, int nth)
{
    struct seqlstm_error err;
    struct sl_exec_result result;
    char begin[128];
    open();
    faulty = function;
    calls_before = nth;
    damages = true;
    noted[0] = 0;
    const seqlstm_status status = make_step(batch, &result, &err);
    const char *node = w.plan->calls[wrong_call].node->name, *name = sl_plugin_function_name(function);
    snprintf(begin, sizeof begin, "%s on reference (%s): the backend reference is faulty: its %s ", node, name, name);
    assert_int_equal(status, SEQLSTM_INTERNAL);
    assert_int_equal(strncmp(err.message, begin, strlen(begin)), 0);
    assert_string_equal(noted, strstr(err.message, "the backend"));
    sl_buf_printf(said, "%s, %s: %s\n", node, name, err.message + strlen(begin));
    damages = false;
    close_world(&w);
}

/* Every output, and every slot that may only be read; the gradients of inputs; workspace, reserve and packed weights.
 */
static void what_is_damaged_is_named(void **state)
{
    (void)state;
    static const char expected[] =
        "cell, forward: changed `input`, which it may only read\n"
        "cell, backward: changed `input`, which it may only read\n"
        "cell, forward: wrote beyond its output `cell`\n"
        "cell, forward: changed `cell.l0.forward.w_x`, which it may only read\n"
        "cell, backward: changed `cell.l0.forward.w_x`, which it may only read\n"
        "cell, forward: changed `cell.l0.forward.w_h`, which it may only read\n"
        "cell, backward: changed `cell.l0.forward.w_h`, which it may only read\n"
        "cell, forward: changed `cell.l0.forward.bias`, which it may only read\n"
        "cell, backward: changed `cell.l0.forward.bias`, which it may only read\n"
        "cell, forward: wrote beyond the 8192 bytes of workspace that its op_sizes asked for\n"
        "cell, backward: wrote beyond the 8192 bytes of workspace that its op_sizes asked for\n"
        "cell, forward: wrote beyond the 4096 bytes of reserve that its op_sizes asked for\n"
        "cell, backward: wrote beyond the 4096 bytes of reserve that its op_sizes asked for\n"
        "cell, weights_pack: wrote beyond the 64 bytes of packed weights that its op_sizes asked for\n"
        "out, forward: changed `cell`, which it may only read\n"
        "out, backward: changed `cell`, which it may only read\n"
        "out, backward: wrote beyond the gradient of `cell`\n"
        "out, forward: wrote beyond its output `out`\n"
        "out, forward: changed `out.w`, which it may only read\n"
        "out, backward: changed `out.w`, which it may only read\n"
        "out, forward: changed `out.bias`, which it may only read\n"
        "out, backward: changed `out.bias`, which it may only read\n"
        "out, forward: wrote beyond the 8192 bytes of workspace that its op_sizes asked for\n"
        "out, backward: wrote beyond the 8192 bytes of workspace that its op_sizes asked for\n"
        "out, weights_pack: wrote beyond the 64 bytes of packed weights that its op_sizes asked for\n"
        "loss, forward: changed `out`, which it may only read\n"
        "loss, backward: changed `out`, which it may only read\n"
        "loss, backward: wrote beyond the gradient of `out`\n"
        "loss, forward: wrote beyond the 8192 bytes of workspace that its op_sizes asked for\n"
        "loss, backward: wrote beyond the 8192 bytes of workspace that its op_sizes asked for\n"
        "loss, weights_pack: wrote beyond the 64 bytes of packed weights that its op_sizes asked for\n";
    struct sl_batch *batch = make_batch(full);
    struct sl_buf said = {0};
    open();
    const int32_t calls = w.plan->call_count;
    enum sl_slot_role roles[4][64];
    bool has_grad[4][64], has_reserve[4];
    int32_t counts[4];
    assert_true(calls <= 4);
    for (int32_t c = 0; c < calls; c++) {
        counts[c] = w.exec->calls[c].slot_count;
        has_reserve[c] = w.plan->calls[c].sizes.reserve_bytes > 0;
        for (int32_t s = 0; s < counts[c]; s++) {
            const int32_t t = w.plan->calls[c].node->slots[s];
            roles[c][s] = w.exec->calls[c].roles[s];
            has_grad[c][s] = t >= 0 && w.graph->tensors[t].needs_grad && w.plan->grad_offsets[t] >= 0;
        }
    }
    close_world(&w);
    sl_watch_on_damage(note_damage);
    for (wrong_call = 0; wrong_call < calls; wrong_call++) {
        const int nth = wrong_call, back = calls - 1 - wrong_call;
        for (wrong_slot = 0; wrong_slot < counts[wrong_call]; wrong_slot++) {
            const enum sl_slot_role role = roles[wrong_call][wrong_slot];
            where = role == SL_SLOT_OUTPUT ? BEHIND : WITHIN;
            if (role == SL_SLOT_OUTPUT || role == SL_SLOT_INPUT || role == SL_SLOT_PARAM)
                note_one(&said, batch, SL_FUNCTION_FORWARD, nth);
            if (role == SL_SLOT_INPUT || role == SL_SLOT_PARAM)
                note_one(&said, batch, SL_FUNCTION_BACKWARD, back);
            where = GRADIENT;
            if (role == SL_SLOT_INPUT && has_grad[wrong_call][wrong_slot])
                note_one(&said, batch, SL_FUNCTION_BACKWARD, back);
        }
        wrong_slot = 0;
        where = WORKSPACE;
        note_one(&said, batch, SL_FUNCTION_FORWARD, nth);
        note_one(&said, batch, SL_FUNCTION_BACKWARD, back);
        where = RESERVE;
        if (has_reserve[wrong_call])
            note_one(&said, batch, SL_FUNCTION_FORWARD, nth);
        if (has_reserve[wrong_call])
            note_one(&said, batch, SL_FUNCTION_BACKWARD, back);
        note_one(&said, batch, SL_FUNCTION_WEIGHTS_PACK, nth);
    }
    sl_watch_on_damage(NULL);
    assert_string_equal(sl_buf_text(&said), expected);
    sl_buf_deinit(&said);
    sl_batch_destroy(batch);
}

/* The first four runs of a shape, and each eighth; also of one that was forgotten and comes again. What a call reads is
 * looked at in the executor's first two runs, whatever their shapes. */
static void runs_are_looked_at(void **state)
{
    (void)state;
    struct sl_batch *batch = make_batch(full);
    struct sl_buf said = {0};
    struct seqlstm_error err;
    struct sl_exec_result result;
    open();
    damages = true;
    wrong_call = wrong_slot = 0;
    where = WORKSPACE;
    for (int turn = 0; turn < 2; turn++) {
        for (int k = 1; k <= 20; k++) {
            faulty = SL_FUNCTION_FORWARD;
            calls_before = 0;
            if (make_step(batch, &result, &err) != SEQLSTM_OK)
                sl_buf_printf(&said, "%d ", k);
        }
        faulty = SL_FUNCTION_NONE;
        for (int32_t n = 0; n < SL_EXEC_SHAPES && turn == 0; n++) {
            struct sl_batch *other = make_batch((const int32_t[]){1 + n % STEPS, n / STEPS, 0});
            ok(make_step(other, &result, &err), &err);
            sl_batch_destroy(other);
        }
    }
    assert_string_equal(sl_buf_text(&said), "1 2 3 4 8 16 1 2 3 4 8 16 ");
    sl_buf_deinit(&said);
    damages = false;
    close_world(&w);
    sl_batch_destroy(batch);
}

static void what_is_read_is_looked_at_in_two_runs(void **state)
{
    (void)state;
    struct sl_batch *const batches[] = {make_batch(full), make_batch((const int32_t[]){3, 1, 0})};
    struct seqlstm_error err;
    struct sl_exec_result result;
    wrong_call = wrong_slot = 0;
    where = WITHIN;
    for (int apart = 0; apart < 2; apart++)
        for (int wrong = 1; wrong <= 4; wrong++) {
            open();
            damages = true;
            for (int k = 1; k <= wrong; k++) {
                faulty = k == wrong ? SL_FUNCTION_FORWARD : SL_FUNCTION_NONE;
                calls_before = 0;
                const seqlstm_status status = make_step(batches[apart * k % 2], &result, &err);
                assert_int_equal(status, k == wrong && k <= 2 ? SEQLSTM_INTERNAL : SEQLSTM_OK);
            }
            damages = false;
            close_world(&w);
        }
    sl_batch_destroy(batches[0]);
    sl_batch_destroy(batches[1]);
}

/* ---- weights that several executors share ------------------------------------------------------------------------ */

/* Packs for predictions with the model of the world. */
static seqlstm_status pack_once(struct sl_packed *packed, struct sl_memory *memory, struct seqlstm_error *err)
{
    struct sl_graph *graph;
    struct sl_plan *plan;
    const struct sl_graph_request request = {.model = w.model, .facts = &w.facts, .phase = SL_PHASE_PREDICT};
    *err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
    ok(sl_graph_create(&request, &graph, err), err);
    const struct sl_plan_request planned = {.graph = graph, .registry = w.registry};
    ok(sl_plan_create(&planned, &plan, err), err);
    packing = plan;
    const seqlstm_status status = sl_packed_init(packed, plan, w.params, NULL, memory, err);
    packing = NULL;
    assert_int_equal(status == SEQLSTM_OK, packed->buffer != NULL);
    sl_packed_deinit(packed);
    sl_plan_destroy(plan);
    sl_graph_destroy(graph);
    return status;
}

/* Errors and damage name the layer, the backend and the function; nothing stays behind. */
static void who_packs_wrongly_is_named(void **state)
{
    (void)state;
    static const char *const who[] = {"cell", "out"};
    struct sl_memory memory;
    struct sl_packed packed;
    struct seqlstm_error err;
    char expected[2][160];
    sl_memory_init(&memory);
    for (int n = 0; n < 2; n++) {
        snprintf(expected[0], sizeof expected[0], "%s on reference (weights_pack): on purpose", who[n]);
        snprintf(expected[1], sizeof expected[1],
                 "%s on reference (weights_pack): the backend reference is faulty: its weights_pack wrote beyond the "
                 "64 bytes of packed weights that its op_sizes asked for",
                 who[n]);
        for (int how = 0; how < 2; how++) {
            open();
            faulty = SL_FUNCTION_WEIGHTS_PACK;
            calls_before = n;
            damages = how == 1;
            assert_int_equal(pack_once(&packed, &memory, &err), how ? SEQLSTM_INTERNAL : SEQLSTM_DEVICE);
            assert_string_equal(err.message, expected[how]);
            damages = false;
            assert_int_equal(pack_once(&packed, &memory, &err), SEQLSTM_OK);
            assert_int_equal(packed.version, w.params->version);
            assert_int_equal(memory.live_blocks, 0);
            assert_int_equal(memory.live_bytes, 0);
            close_world(&w);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_that_fails_is_named_with_its_operation),
        cmocka_unit_test(what_is_damaged_is_named),
        cmocka_unit_test(runs_are_looked_at),
        cmocka_unit_test(what_is_read_is_looked_at_in_two_runs),
        cmocka_unit_test(who_packs_wrongly_is_named),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
