/* SPDX-License-Identifier: Apache-2.0 */
/* Names of PyTorch and Keras that an import reads, and each tensor that it refuses. */
#include "names_world.h"

#include "interop/names.h"
#include "ok.h"
#include "scratch.h"

enum { ENTRIES_MOST = 40 };

#define LSTM(begin, end)                                                                                               \
    {begin "weight_ih_l0" end, "12,2"}, {begin "weight_hh_l0" end, "12,3"}, {begin "bias_ih_l0" end, "12"},            \
    {                                                                                                                  \
        begin "bias_hh_l0" end, "12"                                                                                   \
    }
#define TWELVE                                                                                                         \
    {"a", "1"}, {"b", "1"}, {"c", "1"}, {"e", "1"}, {"f", "1"}, {"g", "1"}, {"h", "1"}, {"i", "1"}, {"j", "1"},        \
        {"k", "1"}, {"l", "1"},                                                                                        \
    {                                                                                                                  \
        "m", "1"                                                                                                       \
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

/* A file with these tensors, whose value i is 0.5 (i + `shift` for each tensor before it); those with an `i` before
 * their shape are integers. */
static struct sl_safetensors *write_shifted(const char *const (*tensors)[2], int shift)
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
        *entry = (struct sl_safetensors_entry){.name = tensors[count][0], .data = values + shift * count};
        const bool is_integer = tensors[count][1][0] == 'i';
        entry->dtype = is_integer ? SL_SAFETENSORS_I64 : SL_SAFETENSORS_F32;
        for (const char *at = tensors[count][1] + is_integer; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
            entry->shape[entry->rank++] = atoi(at);
    }
    snprintf(path, sizeof path, "%s", scratch_path("y.safetensors"));
    ok(sl_safetensors_write(path, &(struct sl_safetensors_content){entries, count, NULL, 0, false}, &err), &err);
    ok(sl_safetensors_open(path, &file, &err), &err);
    return file;
}

static struct sl_safetensors *write_file(const char *const (*tensors)[2])
{
    return write_shifted(tensors, 0);
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
         {TWELVE},
         {0},
         SEQLSTM_CORRUPT_DATA,
         "the file holds no `r.weight_ih_l0` for layer `r`; `--rename THEIRS=r` gives the file's name of the layer; it "
         "has a, b, c, e, f, g, h, i, j, k, l, m"},
        {SL_CONVENTION_PYTORCH,
         {TWELVE, {"n", "1"}, {"o", "1"}},
         {0},
         SEQLSTM_CORRUPT_DATA,
         "the file holds no `r.weight_ih_l0` for layer `r`; `--rename THEIRS=r` gives the file's name of the layer; it "
         "has a, b, c, e, f, g, h, i, j, k, l, m and 2 more"},
        {SL_CONVENTION_PYTORCH,
         {LSTM("r.", ""), {"d.weight", "i1,3"}, {"d.bias", "1"}},
         {0},
         SEQLSTM_CORRUPT_DATA,
         "`d.weight` is I64, not a tensor of floats"},
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

/* Each direction of a layer of Keras has its own tensors; those of a wrapper may come in either order. */
static void directions_of_keras(void **state)
{
    (void)state;
#define DIRECTION(begin)                                                                                               \
    {"r/" begin "/kernel", "2,12"}, {"r/" begin "/recurrent_kernel", "3,12"},                                          \
    {                                                                                                                  \
        "r/" begin "/bias", "12"                                                                                       \
    }
    static const struct {
        const char *const tensors[9][2];
        int forward; /* the tensor that is the kernel of this direction; -1: it is refused */
    } rows[] = {
        {{DIRECTION("forward_lstm/lstm_cell"),
          DIRECTION("backward_lstm/lstm_cell_1"),
          {"d/kernel", "6,1"},
          {"d/bias", "1"}},
         0},
        {{DIRECTION("backward_r/lstm_cell"), DIRECTION("forward_r/lstm_cell"), {"d/kernel", "6,1"}, {"d/bias", "1"}},
         3},
        {{DIRECTION("backward_r/lstm_cell"), DIRECTION("lstm_cell"), {"d/kernel", "6,1"}, {"d/bias", "1"}}, -1},
    };
    open_world("{type: lstm, name: r, units: 3, direction: bidirectional}, {type: dense, name: d, units: from_target}",
               false);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_buf notes = {0};
        struct sl_safetensors *file = write_shifted(rows[k].tensors, 10);
        const seqlstm_status status =
            sl_names_import(w.graph, SL_CONVENTION_KERAS, file, NULL, 0, w.places, &notes, &err);
        if (rows[k].forward < 0) {
            assert_int_equal(status, SEQLSTM_CORRUPT_DATA);
            assert_non_null(strstr(err.message, "the file holds no `r/forward_lstm/lstm_cell/kernel` for layer `r`"));
        } else {
            ok(status, &err);
            assert_string_equal(sl_buf_text(&notes), "");
            const int backward = 3 - rows[k].forward;
            assert_true(w.values[find_param("r.l0.forward.w_x")][0] == 5.0f * (float)rows[k].forward);
            assert_true(w.values[find_param("r.l0.backward.w_x")][0] == 5.0f * (float)backward);
            assert_true(w.values[find_param("r.l0.forward.bias")][0] == 5.0f * (float)(rows[k].forward + 2));
            assert_true(w.values[find_param("r.l0.backward.bias")][0] == 5.0f * (float)(backward + 2));
        }
        sl_safetensors_close(file);
        sl_buf_deinit(&notes);
    }
    close_world();
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_files),      cmocka_unit_test(numbered_cells_of_levels),
        cmocka_unit_test(directions_of_keras), cmocka_unit_test(several_names_are_given),
        cmocka_unit_test(biases_of_a_gru),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
