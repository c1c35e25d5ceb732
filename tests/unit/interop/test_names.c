/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of layers under the names of PyTorch and Keras: each value at the place that the table of names.h says, and
 * back. */
#include "names_world.h"

#include <unistd.h>

#include "interop/names.h"
#include "ok.h"
#include "oom.h"
#include "scratch.h"

/* A tensor of the file. `blocks`: the gates of `param` in the order of its rows, or columns with a "T" in front; "."
 * are zeros. */
struct expected {
    const char *name, *shape, *param, *blocks;
};

static void check_tensor(const struct sl_safetensors *file, const struct expected *x)
{
    const struct sl_safetensors_entry *entry = sl_safetensors_find(file, x->name);
    const int32_t p = find_param(x->param);
    const bool transposed = x->blocks[0] == 'T';
    const char *blocks = x->blocks + transposed;
    const int64_t count = (int64_t)strlen(blocks), columns = w.graph->params[p].columns;
    char shape[40] = "";
    float got[VALUES_MOST];
    if (entry == NULL)
        fail_msg("there is no %s", x->name);
    for (int32_t d = 0; d < entry->rank; d++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%d", d ? "," : "", (int)entry->shape[d]);
    assert_string_equal(shape, x->shape);
    const int64_t elems = sl_safetensors_count_elems(entry), rows = elems / columns, height = rows / count;
    assert_int_equal(sl_safetensors_read_float32(entry, got, elems, NULL), SEQLSTM_OK);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            const char block = blocks[r / height];
            const int64_t of = ((block - '0') * height + r % height) * columns + c;
            const float want = block == '.' ? 0 : (float)(1000 * p + of),
                        is = got[transposed ? c * rows + r : r * columns + c];
            if (is != want)
                fail_msg("%s: row %d, column %d: %g, not %g", x->name, (int)r, (int)c, (double)is, (double)want);
        }
}

static void check(const char *layers, bool ids, enum sl_convention convention, const struct expected *expected,
                  const char *told)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_safetensors *file = NULL;
    struct sl_buf notes = {0};
    int32_t count = 0;
    enum sl_convention guess = SL_CONVENTION_PYTORCH;
    open_world(layers, ids);
    char path[200];
    snprintf(path, sizeof path, "%s", scratch_path("x.safetensors"));
    if (sl_names_export(w.graph, convention, (const float *const *)w.places, path, &notes, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    assert_string_equal(sl_buf_text(&notes), told);
    assert_int_equal(sl_safetensors_open(path, &file, &err), SEQLSTM_OK);
    assert_string_equal(sl_safetensors_find_text(file, "format"), convention == SL_CONVENTION_KERAS ? "keras" : "pt");
    for (; expected[count].name; count++)
        check_tensor(file, &expected[count]);
    assert_int_equal(sl_safetensors_get_count(file), count);
    assert_true(sl_names_guess(file, &guess) && guess == convention);
    static float back[PARAMS_MOST][VALUES_MOST];
    float *places[PARAMS_MOST];
    for (int p = 0; p < PARAMS_MOST; p++)
        places[p] = memset(back[p], 0x7f, sizeof back[p]);
    sl_buf_deinit(&notes);
    notes = (struct sl_buf){0};
    if (sl_names_import(w.graph, convention, file, NULL, 0, places, &notes, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    assert_string_equal(sl_buf_text(&notes), "");
    for (int32_t p = 0; p < w.graph->param_count; p++)
        assert_memory_equal(back[p], w.values[p],
                            (size_t)(w.graph->params[p].rows * w.graph->params[p].columns) * sizeof(float));
    sl_safetensors_close(file);
    sl_buf_deinit(&notes);
    close_world();
}

static const char both_ways[] =
    "{type: lstm, name: r, units: 3, layers: 2, direction: bidirectional}, {type: layer_norm, name: n}, "
    "{type: dense, name: d, units: from_target}";
static const char ids[] = "{type: embedding, name: e, dim: 3}, {type: gru, name: r, units: 2, return_sequences: true}, "
                          "{type: output, name: d, use_bias: false, activation: softmax}";

static void layers_of_pytorch(void **state)
{
    (void)state;
    static const struct expected lstm[] = {{"r.weight_ih_l0", "12,2", "r.l0.forward.w_x", "0123"},
                                           {"r.weight_hh_l0", "12,3", "r.l0.forward.w_h", "0123"},
                                           {"r.bias_ih_l0", "12", "r.l0.forward.bias", "0123"},
                                           {"r.bias_hh_l0", "12", "r.l0.forward.bias", "...."},
                                           {"r.weight_ih_l0_reverse", "12,2", "r.l0.backward.w_x", "0123"},
                                           {"r.weight_hh_l0_reverse", "12,3", "r.l0.backward.w_h", "0123"},
                                           {"r.bias_ih_l0_reverse", "12", "r.l0.backward.bias", "0123"},
                                           {"r.bias_hh_l0_reverse", "12", "r.l0.backward.bias", "...."},
                                           {"r.weight_ih_l1", "12,6", "r.l1.forward.w_x", "0123"},
                                           {"r.weight_hh_l1", "12,3", "r.l1.forward.w_h", "0123"},
                                           {"r.bias_ih_l1", "12", "r.l1.forward.bias", "0123"},
                                           {"r.bias_hh_l1", "12", "r.l1.forward.bias", "...."},
                                           {"r.weight_ih_l1_reverse", "12,6", "r.l1.backward.w_x", "0123"},
                                           {"r.weight_hh_l1_reverse", "12,3", "r.l1.backward.w_h", "0123"},
                                           {"r.bias_ih_l1_reverse", "12", "r.l1.backward.bias", "0123"},
                                           {"r.bias_hh_l1_reverse", "12", "r.l1.backward.bias", "...."},
                                           {"n.weight", "6", "n.gain", "0"},
                                           {"n.bias", "6", "n.bias", "0"},
                                           {"d.weight", "1,6", "d.w", "0"},
                                           {"d.bias", "1", "d.bias", "0"},
                                           {NULL, NULL, NULL, NULL}};
    check(both_ways, false, SL_CONVENTION_PYTORCH, lstm, "");
    static const struct expected gru[] = {{"e.weight", "4,3", "e.w", "0"},
                                          {"r.weight_ih_l0", "6,3", "r.l0.forward.w_x", "012"},
                                          {"r.weight_hh_l0", "6,2", "r.l0.forward.w_h", "012"},
                                          {"r.bias_ih_l0", "6", "r.l0.forward.bias", "012"},
                                          {"r.bias_hh_l0", "6", "r.l0.forward.bias", "..3"},
                                          {"d.weight", "4,2", "d.w", "0"},
                                          {NULL, NULL, NULL, NULL}};
    check(ids, true, SL_CONVENTION_PYTORCH, gru, "");
    static const struct expected lean[] = {{"r.weight_ih_l0", "12,2", "r.l0.backward.w_x", "0123"},
                                           {"r.weight_hh_l0", "12,2", "r.l0.backward.w_h", "0123"},
                                           {"r.weight_hr_l0", "2,3", "r.l0.backward.projection", "0"},
                                           {"r.l0.backward.peephole", "9", "r.l0.backward.peephole", "0"},
                                           {"d.weight", "1,2", "d.w", "0"},
                                           {"d.bias", "1", "d.bias", "0"},
                                           {NULL, NULL, NULL, NULL}};
    check("{type: lstm, name: r, units: 3, projection: 2, peephole: true, use_bias: false, direction: backward}, "
          "{type: dense, name: d, units: from_target}",
          false, SL_CONVENTION_PYTORCH, lean, "`r.l0.backward.peephole` has no name there and keeps this one\n");
}

static void layers_of_keras(void **state)
{
    (void)state;
    static const struct expected lstm[] = {
        {"r_l0/forward_lstm/lstm_cell/kernel", "2,12", "r.l0.forward.w_x", "T0123"},
        {"r_l0/forward_lstm/lstm_cell/recurrent_kernel", "3,12", "r.l0.forward.w_h", "T0123"},
        {"r_l0/forward_lstm/lstm_cell/bias", "12", "r.l0.forward.bias", "0123"},
        {"r_l0/backward_lstm/lstm_cell/kernel", "2,12", "r.l0.backward.w_x", "T0123"},
        {"r_l0/backward_lstm/lstm_cell/recurrent_kernel", "3,12", "r.l0.backward.w_h", "T0123"},
        {"r_l0/backward_lstm/lstm_cell/bias", "12", "r.l0.backward.bias", "0123"},
        {"r_l1/forward_lstm/lstm_cell/kernel", "6,12", "r.l1.forward.w_x", "T0123"},
        {"r_l1/forward_lstm/lstm_cell/recurrent_kernel", "3,12", "r.l1.forward.w_h", "T0123"},
        {"r_l1/forward_lstm/lstm_cell/bias", "12", "r.l1.forward.bias", "0123"},
        {"r_l1/backward_lstm/lstm_cell/kernel", "6,12", "r.l1.backward.w_x", "T0123"},
        {"r_l1/backward_lstm/lstm_cell/recurrent_kernel", "3,12", "r.l1.backward.w_h", "T0123"},
        {"r_l1/backward_lstm/lstm_cell/bias", "12", "r.l1.backward.bias", "0123"},
        {"n/gamma", "6", "n.gain", "0"},
        {"n/beta", "6", "n.bias", "0"},
        {"d/kernel", "6,1", "d.w", "T0"},
        {"d/bias", "1", "d.bias", "0"},
        {NULL, NULL, NULL, NULL}};
    check(both_ways, false, SL_CONVENTION_KERAS, lstm, "");
    static const struct expected gru[] = {{"e/embeddings", "4,3", "e.w", "0"},
                                          {"r/gru_cell/kernel", "3,6", "r.l0.forward.w_x", "T102"},
                                          {"r/gru_cell/recurrent_kernel", "2,6", "r.l0.forward.w_h", "T102"},
                                          {"r/gru_cell/bias", "2,6", "r.l0.forward.bias", "102..3"},
                                          {"d/kernel", "2,4", "d.w", "T0"},
                                          {NULL, NULL, NULL, NULL}};
    check(ids, true, SL_CONVENTION_KERAS, gru, "");
    static const struct expected before[] = {{"r/gru_cell/kernel", "2,9", "r.l0.forward.w_x", "T102"},
                                             {"r/gru_cell/recurrent_kernel", "3,9", "r.l0.forward.w_h", "T102"},
                                             {"r/gru_cell/bias", "9", "r.l0.forward.bias", "102"},
                                             {"s/simple_rnn_cell/kernel", "3,2", "s.l0.backward.w_x", "T0"},
                                             {"s/simple_rnn_cell/recurrent_kernel", "2,2", "s.l0.backward.w_h", "T0"},
                                             {"s/simple_rnn_cell/bias", "2", "s.l0.backward.bias", "0"},
                                             {"d/kernel", "2,1", "d.w", "T0"},
                                             {"d/bias", "1", "d.bias", "0"},
                                             {NULL, NULL, NULL, NULL}};
    check("{type: gru, name: r, units: 3, reset_after: false, return_sequences: true}, {type: rnn, name: s, units: 2, "
          "direction: backward}, {type: dense, name: d, units: from_target}",
          false, SL_CONVENTION_KERAS, before, "");
    static const struct expected projected[] = {{"r/lstm_cell/kernel", "2,12", "r.l0.forward.w_x", "T0123"},
                                                {"r/lstm_cell/recurrent_kernel", "2,12", "r.l0.forward.w_h", "T0123"},
                                                {"r/lstm_cell/bias", "12", "r.l0.forward.bias", "0123"},
                                                {"r.l0.forward.projection", "2,3", "r.l0.forward.projection", "0"},
                                                {"d/kernel", "2,1", "d.w", "T0"},
                                                {"d/bias", "1", "d.bias", "0"},
                                                {NULL, NULL, NULL, NULL}};
    check("{type: lstm, name: r, units: 3, projection: 2}, {type: dense, name: d, units: from_target}", false,
          SL_CONVENTION_KERAS, projected, "`r.l0.forward.projection` has no name there and keeps this one\n");
}

static void what_pytorch_does_not_compute(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf notes = {0};
    open_world("{type: gru, name: r, units: 3, reset_after: false}, {type: dense, units: from_target}", false);
    assert_int_equal(sl_names_export(w.graph, SL_CONVENTION_PYTORCH, (const float *const *)w.places, scratch_path("z"),
                                     &notes, &err),
                     SEQLSTM_INVALID_CONFIG);
    assert_string_equal(err.message, "layer `r`: PyTorch's GRU applies the reset gate after the product; `reset_after: "
                                     "false` has no equal there");
    assert_string_equal(err.where, "m.yaml:4:9");
    assert_int_equal(access(scratch_path("z"), F_OK), -1);
    close_world();
    sl_buf_deinit(&notes);
}

/* Without memory for the n-th part: NO_MEMORY, or a note that is missing; else what it is with memory. */
static void names_without_memory(void **state)
{
    (void)state;
    char path[200];
    static float back[PARAMS_MOST][VALUES_MOST];
    float *places[PARAMS_MOST];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_safetensors *file = NULL;
    open_world(both_ways, false);
    snprintf(path, sizeof path, "%s", scratch_path("memory.safetensors"));
    for (int n = 1;; n++) {
        struct sl_buf notes = {0};
        unlink(path);
        oom_fail_at(n);
        const seqlstm_status status =
            sl_names_export(w.graph, SL_CONVENTION_PYTORCH, (const float *const *)w.places, path, &notes, &err);
        const bool fails = oom_disarm();
        if (status != SEQLSTM_OK && !(fails && status == SEQLSTM_NO_MEMORY))
            fail_msg("export, allocation %d: status %d, %s", n, (int)status, err.message);
        assert_int_equal(access(path, F_OK) == 0, status == SEQLSTM_OK);
        sl_buf_deinit(&notes);
        if (!fails)
            break;
    }
    ok(sl_safetensors_open(path, &file, &err), &err);
    for (int p = 0; p < PARAMS_MOST; p++)
        places[p] = back[p];
    for (int n = 1;; n++) {
        struct sl_buf notes = {0};
        memset(back, 0, sizeof back);
        oom_fail_at(n);
        const seqlstm_status status =
            sl_names_import(w.graph, SL_CONVENTION_PYTORCH, file, NULL, 0, places, &notes, &err);
        const bool fails = oom_disarm();
        if (status != SEQLSTM_OK && !(fails && status == SEQLSTM_NO_MEMORY))
            fail_msg("import, allocation %d: status %d, %s", n, (int)status, err.message);
        for (int32_t p = 0; status == SEQLSTM_OK && p < w.graph->param_count; p++)
            assert_memory_equal(back[p], w.values[p],
                                (size_t)(w.graph->params[p].rows * w.graph->params[p].columns) * sizeof(float));
        sl_buf_deinit(&notes);
        if (!fails)
            break;
    }
    sl_safetensors_close(file);
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layers_of_pytorch), cmocka_unit_test(layers_of_keras),
                                       cmocka_unit_test(what_pytorch_does_not_compute),
                                       cmocka_unit_test(names_without_memory)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
