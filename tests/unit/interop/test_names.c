/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of layers under the names of PyTorch and Keras, there and back; other names; each tensor that is refused. */
#include "model_fixture.h"

#include <unistd.h>

#include "graph/graph.h"
#include "interop/names.h"
#include "ok.h"
#include "oom.h"
#include "scratch.h"

enum { PARAMS_MOST = 32, VALUES_MOST = 200, ENTRIES_MOST = 40 };

static struct world {
    struct loaded model;
    struct sl_graph *graph;
    float values[PARAMS_MOST][VALUES_MOST];
    float *places[PARAMS_MOST];
} w;

/* Inputs are 2 values, or ids of 4 classes; the target is 1 value. Value i of parameter p is 1000 p + i. */
static void open_world(const char *layers, bool ids)
{
    char text[1000];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    snprintf(text, sizeof text,
             "seqlstm: 1\nname: m\ndata: {type: generator, name: %s, length: 3, train: {size: 4}, batch_size: 2}\n"
             "model: [%s]\ntrain: {epochs: 1%s}\n",
             ids ? "copy" : "adding_problem", layers, ids ? ", task: tag" : ", loss: mse");
    w.model = load_clean(text);
    const struct sl_data_facts facts = {.input = {.kind = ids ? SL_FIELD_IDS : SL_FIELD_VALUES,
                                                  .features = ids ? 1 : 2,
                                                  .classes = ids ? 4 : 0,
                                                  .on_steps = true},
                                        .target = {.kind = ids ? SL_FIELD_IDS : SL_FIELD_VALUES,
                                                   .features = 1,
                                                   .classes = ids ? 4 : 0,
                                                   .on_steps = ids},
                                        .has_steps = true,
                                        .envelope = {.sequences = 2, .steps = 3, .rows = 6}};
    const struct sl_graph_request request = {.model = w.model.model, .facts = &facts, .phase = SL_PHASE_TRAIN};
    if (sl_graph_create(&request, &w.graph, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    assert_true(w.graph->param_count <= PARAMS_MOST);
    for (int32_t p = 0; p < w.graph->param_count; p++) {
        assert_true(w.graph->params[p].rows * w.graph->params[p].columns <= VALUES_MOST);
        for (int i = 0; i < VALUES_MOST; i++)
            w.values[p][i] = (float)(1000 * p + i);
        w.places[p] = w.values[p];
    }
}

static void close_world(void)
{
    sl_graph_destroy(w.graph);
    unload(&w.model);
}

static int32_t find_param(const char *name)
{
    for (int32_t p = 0; p < w.graph->param_count; p++)
        if (strcmp(w.graph->params[p].name, name) == 0)
            return p;
    fail_msg("there is no parameter %s", name);
    return -1;
}

/* ---- out ---------------------------------------------------------------------------------------------------- */

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

/* ---- in ----------------------------------------------------------------------------------------------------- */

#define LSTM(begin, end)                                                                                               \
    {begin "weight_ih_l0" end, "12,2"}, {begin "weight_hh_l0" end, "12,3"}, {begin "bias_ih_l0" end, "12"},            \
    {                                                                                                                  \
        begin "bias_hh_l0" end, "12"                                                                                   \
    }
#define DENSE(begin)                                                                                                   \
    {begin "weight", "1,3"},                                                                                           \
    {                                                                                                                  \
        begin "bias", "1"                                                                                              \
    }
#define KERAS(begin)                                                                                                   \
    {begin "kernel", "2,12"}, {begin "recurrent_kernel", "3,12"},                                                      \
    {                                                                                                                  \
        begin "bias", "12"                                                                                             \
    }
#define KERAS_DENSE(begin, end)                                                                                        \
    {begin "kernel" end, "3,1"},                                                                                       \
    {                                                                                                                  \
        begin "bias" end, "1"                                                                                          \
    }

/* A file with these tensors, whose value i is 0.5 i. */
static struct sl_safetensors *write_file(const char *const (*tensors)[2])
{
    struct sl_safetensors_entry entries[ENTRIES_MOST] = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_safetensors *file = NULL;
    static float values[VALUES_MOST];
    int32_t count = 0;
    char path[200];
    for (int i = 0; i < VALUES_MOST; i++)
        values[i] = 0.5f * (float)i;
    for (; tensors[count][0]; count++) {
        struct sl_safetensors_entry *entry = &entries[count];
        *entry = (struct sl_safetensors_entry){.name = tensors[count][0], .dtype = SL_SAFETENSORS_F32, .data = values};
        for (const char *at = tensors[count][1]; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
            entry->shape[entry->rank++] = atoi(at);
    }
    snprintf(path, sizeof path, "%s", scratch_path("y.safetensors"));
    ok(sl_safetensors_write(path, &(struct sl_safetensors_content){entries, count, NULL, 0, false}, &err), &err);
    ok(sl_safetensors_open(path, &file, &err), &err);
    return file;
}

/* What an import says: its notes, or its message. */
static void names_of_files(void **state)
{
    (void)state;
    static const struct {
        enum sl_convention convention;
        const char *const tensors[20][2];
        struct sl_rename rename;
        seqlstm_status status;
        const char *said;
    } rows[] = {
        {SL_CONVENTION_PYTORCH, {LSTM("r.", ""), DENSE("d.")}, {0}, SEQLSTM_OK, ""},
        {SL_CONVENTION_PYTORCH,
         {{"r.weight_ih", "12,2"}, {"r.weight_hh", "12,3"}, {"r.bias_ih", "12"}, {"r.bias_hh", "12"}, DENSE("d.")},
         {0},
         SEQLSTM_OK,
         ""},
        {SL_CONVENTION_PYTORCH,
         {LSTM("m.net.r.", ""), DENSE("m.net.d."), {"m.net.steps", "3"}},
         {0},
         SEQLSTM_OK,
         "`m.net.steps` of the file is not used\n"},
        {SL_CONVENTION_PYTORCH, {LSTM("rnn.", ""), DENSE("d.")}, {"rnn", "r"}, SEQLSTM_OK, ""},
        {SL_CONVENTION_PYTORCH,
         {LSTM("r.", ""), DENSE("d.")},
         {"rnn", "q"},
         SEQLSTM_INVALID_ARGUMENT,
         "`--rename rnn=q`: the model has no layer `q`"},
        {SL_CONVENTION_PYTORCH,
         {LSTM("rnn.", ""), DENSE("d.")},
         {0},
         SEQLSTM_CORRUPT_DATA,
         "the file holds no `r.weight_ih_l0` for layer `r`; `--rename THEIRS=r` gives the file's name of the layer; it "
         "has rnn.weight_ih_l0, rnn.weight_hh_l0, rnn.bias_ih_l0, rnn.bias_hh_l0, d.weight, d.bias"},
        {SL_CONVENTION_PYTORCH,
         {{"a", "1"},
          {"b", "1"},
          {"c", "1"},
          {"e", "1"},
          {"f", "1"},
          {"g", "1"},
          {"h", "1"},
          {"i", "1"},
          {"j", "1"},
          {"k", "1"},
          {"l", "1"},
          {"m", "1"}},
         {0},
         SEQLSTM_CORRUPT_DATA,
         "the file holds no `r.weight_ih_l0` for layer `r`; `--rename THEIRS=r` gives the file's name of the layer; it "
         "has a, b, c, e, f, g, h, i, j, k, l, m"},
        {SL_CONVENTION_PYTORCH,
         {{"a", "1"},
          {"b", "1"},
          {"c", "1"},
          {"e", "1"},
          {"f", "1"},
          {"g", "1"},
          {"h", "1"},
          {"i", "1"},
          {"j", "1"},
          {"k", "1"},
          {"l", "1"},
          {"m", "1"},
          {"n", "1"},
          {"o", "1"}},
         {0},
         SEQLSTM_CORRUPT_DATA,
         "the file holds no `r.weight_ih_l0` for layer `r`; `--rename THEIRS=r` gives the file's name of the layer; it "
         "has a, b, c, e, f, g, h, i, j, k, l, m and 2 more"},
        {SL_CONVENTION_PYTORCH,
         {LSTM("r.", ""), {"d.weight", "3,1"}, {"d.bias", "1"}},
         {0},
         SEQLSTM_CORRUPT_DATA,
         "`d.weight` is [3, 1], but the model wants [1, 3]"},
        {SL_CONVENTION_PYTORCH,
         {LSTM("r.", ""), {"d.weight", "3"}, {"d.bias", "1"}},
         {0},
         SEQLSTM_CORRUPT_DATA,
         "`d.weight` is [3], but the model wants [1, 3]"},
        {SL_CONVENTION_PYTORCH,
         {LSTM("r.", ""), {"d.weight", "1,3"}, {"d.bias", "1,1"}},
         {0},
         SEQLSTM_CORRUPT_DATA,
         "`d.bias` is [1, 1], but the model wants [1]"},
        {SL_CONVENTION_PYTORCH,
         {LSTM("r.", ""), DENSE("d."), {"r.weight_ih_l1", "12,3"}},
         {0},
         SEQLSTM_INVALID_CONFIG,
         "`r.weight_ih_l1` of the file belongs to layer `r`, but the model's layer has no such parameter; set its "
         "options as in the file (`layers`, `use_bias`, `direction`)"},
        {SL_CONVENTION_KERAS, {KERAS("r/lstm_cell/"), KERAS_DENSE("d/", "")}, {0}, SEQLSTM_OK, ""},
        {SL_CONVENTION_KERAS,
         {{"seed_generator", "2"},
          KERAS("m/r/lstm_cell_12/"),
          KERAS_DENSE("m/d/d/", ":0"),
          {"m/r/seed_generator", "2"}},
         {0},
         SEQLSTM_OK,
         "`seed_generator` of the file is not used\n`m/r/seed_generator` of the file is not used\n"},
        {SL_CONVENTION_KERAS, {KERAS("net_1/r/"), KERAS_DENSE("net_1/d/dense_3/", "")}, {0}, SEQLSTM_OK, ""},
        {SL_CONVENTION_KERAS,
         {KERAS("r/lstm_cellar/"), KERAS_DENSE("d/", "")},
         {0},
         SEQLSTM_CORRUPT_DATA,
         "the file holds no `r/lstm_cell/kernel` for layer `r`; `--rename THEIRS=r` gives the file's name of the "
         "layer; it has r/lstm_cellar/kernel, r/lstm_cellar/recurrent_kernel, r/lstm_cellar/bias, d/kernel, d/bias"},
        {SL_CONVENTION_KERAS,
         {KERAS("r/lstm_cell_1/"), {"r/lstm_cell_2/kernel", "2,12"}, KERAS_DENSE("d/", "")},
         {0},
         SEQLSTM_CORRUPT_DATA,
         "the file holds no `r/lstm_cell/kernel` for layer `r`; `--rename THEIRS=r` gives the file's name of the "
         "layer; it has r/lstm_cell_1/kernel, r/lstm_cell_1/recurrent_kernel, r/lstm_cell_1/bias, "
         "r/lstm_cell_2/kernel, d/kernel, d/bias"},
        {SL_CONVENTION_KERAS,
         {KERAS("r/lstm_cell/"), {"r_l1/lstm_cell/kernel", "3,12"}, KERAS_DENSE("d/", "")},
         {0},
         SEQLSTM_INVALID_CONFIG,
         "`r_l1/lstm_cell/kernel` of the file belongs to layer `r`, but the model's layer has no such parameter; set "
         "its options as in the file (`layers`, `use_bias`, `direction`)"},
        {SL_CONVENTION_KERAS,
         {KERAS("r/lstm_cell/"), KERAS_DENSE("d/", ""), {"r_l12/lstm_cell/kernel", "3,12"}},
         {0},
         SEQLSTM_INVALID_CONFIG,
         "`r_l12/lstm_cell/kernel` of the file belongs to layer `r`, but the model's layer has no such parameter; set "
         "its options as in the file (`layers`, `use_bias`, `direction`)"},
        {SL_CONVENTION_KERAS,
         {KERAS("r/lstm_cell/"), KERAS_DENSE("d/", ""), {"r_l/lstm_cell/kernel", "3,12"}, {"r_1/kernel", "3,12"}},
         {0},
         SEQLSTM_INVALID_CONFIG,
         "`r_l/lstm_cell/kernel` of the file belongs to layer `r`, but the model's layer has no such parameter; set "
         "its options as in the file (`layers`, `use_bias`, `direction`)"},
        {SL_CONVENTION_PYTORCH,
         {LSTM("rnn.", ""), DENSE("d."), {"rnn.weight_hr_l0", "2,3"}},
         {.ours = "r", .theirs = "rnn"},
         SEQLSTM_INVALID_CONFIG,
         "`rnn.weight_hr_l0` of the file belongs to layer `r`, but the model's layer has no such parameter; set "
         "its options as in the file (`layers`, `use_bias`, `direction`)"},
        {SL_CONVENTION_KERAS,
         {KERAS("r/lstm_cell/"), KERAS_DENSE("d/", ":1")},
         {0},
         SEQLSTM_CORRUPT_DATA,
         "the file holds no `d/kernel` for layer `d`; `--rename THEIRS=d` gives the file's name of the layer; it has "
         "r/lstm_cell/kernel, r/lstm_cell/recurrent_kernel, r/lstm_cell/bias, d/kernel:1, d/bias:1"},
    };
    open_world("{type: lstm, name: r, units: 3}, {type: dense, name: d, units: from_target}", false);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_buf notes = {0};
        struct sl_safetensors *file = write_file(rows[k].tensors);
        const seqlstm_status status = sl_names_import(w.graph, rows[k].convention, file, &rows[k].rename,
                                                      rows[k].rename.ours != NULL, w.places, &notes, &err);
        if (status != rows[k].status)
            fail_msg("row %d: %d, %s", (int)k, (int)status, err.message);
        assert_string_equal(status == SEQLSTM_OK ? sl_buf_text(&notes) : err.message, rows[k].said);
        if (status == SEQLSTM_INVALID_CONFIG)
            assert_string_equal(err.where, "m.yaml:4:9");
        if (status == SEQLSTM_OK) { /* two biases are added */
            const bool adds = rows[k].convention == SL_CONVENTION_PYTORCH;
            assert_true(w.values[find_param("r.l0.forward.bias")][11] == (adds ? 11 : 5.5f));
            assert_true(w.values[find_param("d.w")][2] == 1);
        }
        sl_safetensors_close(file);
        sl_buf_deinit(&notes);
    }
    close_world();
}

/* Keras numbers the cells of a model: each level of each kind has its own. */
static void numbered_cells_of_levels(void **state)
{
    static const char *const cells[] = {"rnn", "gru", "lstm"}, *const names[] = {"simple_rnn", "gru", "lstm"};
    static const int gates[] = {1, 3, 4};
    (void)state;
    for (int c = 0; c < 3; c++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_buf notes = {0};
        char layers[200], name[6][60], shape[6][20];
        const char *tensors[9][2] = {{NULL, NULL}};
        for (int k = 0; k < 6; k++) {
            static const char *const leaves[] = {"kernel", "recurrent_kernel", "bias"};
            snprintf(name[k], sizeof name[k], "r_l%d/%s_cell_%d/%s:0", k / 3, names[c], 7 + k / 3, leaves[k % 3]);
            snprintf(shape[k], sizeof shape[k], k % 3 == 2 ? "%d" : "2,%d", 2 * gates[c]);
            tensors[k][0] = name[k];
            tensors[k][1] = shape[k];
        }
        memcpy(tensors[6], (const char *const[2][2]){{"d/kernel", "2,1"}, {"d/bias", "1"}}, sizeof tensors[0] * 2);
        snprintf(layers, sizeof layers,
                 "{type: %s, name: r, units: 2, layers: 2%s}, {type: dense, name: d, units: from_target}", cells[c],
                 c == 1 ? ", reset_after: false" : "");
        open_world(layers, false);
        struct sl_safetensors *file = write_file((const char *const(*)[2])tensors);
        ok(sl_names_import(w.graph, SL_CONVENTION_KERAS, file, NULL, 0, w.places, &notes, &err), &err);
        assert_string_equal(sl_buf_text(&notes), "");
        sl_safetensors_close(file);
        sl_buf_deinit(&notes);
        close_world();
    }
}

/* Of several names that are given, each layer has its own, and a layer that the model lacks is told by its name. */
static void several_names_are_given(void **state)
{
    (void)state;
    static const char *const tensors[20][2] = {LSTM("one.", ""), DENSE("two.")};
    static const struct sl_rename renames[] = {{"two", "d"}, {"one", "r"}, {"three", "q"}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf notes = {0};
    open_world("{type: lstm, name: r, units: 3}, {type: dense, name: d, units: from_target}", false);
    struct sl_safetensors *file = write_file(tensors);
    assert_int_equal(sl_names_import(w.graph, SL_CONVENTION_PYTORCH, file, renames, 2, w.places, &notes, &err),
                     SEQLSTM_OK);
    assert_int_equal(notes.length_bytes, 0);
    assert_int_equal(sl_names_import(w.graph, SL_CONVENTION_PYTORCH, file, renames, 3, w.places, &notes, &err),
                     SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "`--rename three=q`: the model has no layer `q`");
    sl_safetensors_close(file);
    sl_buf_deinit(&notes);
    close_world();
}

/* Biases of r and z are added, each to its own; those of n stay apart. Element e of each tensor is e / 2. */
static void biases_of_a_gru(void **state)
{
    (void)state;
    static const char *const tensors[20][2] = {{"r.weight_ih_l0", "9,2"},
                                               {"r.weight_hh_l0", "9,3"},
                                               {"r.bias_ih_l0", "9"},
                                               {"r.bias_hh_l0", "9"},
                                               DENSE("d.")};
    static const float expected[12] = {0, 1, 2, 3, 4, 5, 3, 3.5f, 4, 3, 3.5f, 4};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf notes = {0};
    open_world("{type: gru, name: r, units: 3, reset_after: true}, {type: dense, name: d, units: from_target}", false);
    struct sl_safetensors *file = write_file(tensors);
    if (sl_names_import(w.graph, SL_CONVENTION_PYTORCH, file, NULL, 0, w.places, &notes, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    assert_memory_equal(w.values[find_param("r.l0.forward.bias")], expected, sizeof expected);
    sl_safetensors_close(file);
    sl_buf_deinit(&notes);
    close_world();
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(layers_of_pytorch),
                                       cmocka_unit_test(layers_of_keras),
                                       cmocka_unit_test(numbered_cells_of_levels),
                                       cmocka_unit_test(names_of_files),
                                       cmocka_unit_test(several_names_are_given),
                                       cmocka_unit_test(biases_of_a_gru),
                                       cmocka_unit_test(what_pytorch_does_not_compute),
                                       cmocka_unit_test(names_without_memory)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
