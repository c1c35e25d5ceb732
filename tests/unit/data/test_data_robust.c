/* SPDX-License-Identifier: Apache-2.0 */
/* Files with bytes changed, cut out and doubled, of every format: opening gives a status and a message, or a
 * dataset whose batches can be made. Wild reads and leaks are for the sanitizers. */
#include "data_fixture.h"
#include "npy_fixture.h"

/* Numbers that are the same in every run. */
static uint32_t draw(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33);
}

static size_t mutate(const char *good, size_t bytes, char *out, uint64_t *seed)
{
    static const char specials[] = "\0\n\r\t \",;'-.0179eE(){}:<>\xFF\xC3\x80";
    memcpy(out, good, bytes);
    for (uint32_t edits = 1 + draw(seed) % 3; edits > 0 && bytes > 1; edits--) {
        size_t at = draw(seed) % bytes, length = 1 + draw(seed) % 4;
        switch (draw(seed) % 5) {
        case 0:
            out[at] = (char)draw(seed);
            break;
        case 1:
            out[at] = specials[draw(seed) % sizeof specials];
            break;
        case 2: /* cut the tail */
            bytes = at + 1;
            break;
        case 3: /* cut out */
            length = length < bytes - at ? length : bytes - at;
            memmove(out + at, out + at + length, bytes - at - length);
            bytes -= length;
            break;
        default: /* double */
            length = length < bytes - at ? length : bytes - at;
            memmove(out + at + length, out + at, bytes - at);
            bytes += length;
            break;
        }
    }
    return bytes;
}

/* Opens train and walks through an epoch. */
static bool try_all(const struct sl_model *model)
{
    struct sl_dataset *train = NULL;
    struct sl_data_state *state = NULL;
    struct sl_batcher *batcher = NULL;
    struct sl_batcher_request request = {.phase = SL_BATCHING_TRAIN, .seed = 1};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_dataset_open_train(model, &train, &state, &err);
    if (status == SEQLSTM_OK)
        status = sl_batcher_open(train, &request, &batcher, &err);
    bool opened = status == SEQLSTM_OK;
    for (struct sl_batch *batch = NULL; opened; sl_batch_destroy(batch)) {
        assert_int_equal(sl_batcher_next(batcher, &batch, &err), SEQLSTM_OK);
        if (!batch)
            break;
        for (int64_t r = 0; batch->target.kind == SL_FIELD_IDS && r < (batch->target.on_steps ? batch->axis.rows : 0);
             r++)
            assert_in_range(batch->target.ids[r] + 1, 0, sl_dataset_get_facts(train)->target.classes);
        for (int64_t r = 0; batch->input.kind == SL_FIELD_IDS && r < batch->axis.rows; r++)
            assert_in_range(batch->input.ids[r], 0, sl_dataset_get_facts(train)->input.classes - 1);
    }
    if (!opened) {
        assert_true(status == SEQLSTM_CORRUPT_DATA || status == SEQLSTM_INVALID_CONFIG);
        assert_true(err.message[0] != '\0');
    }
    sl_batcher_close(batcher);
    sl_dataset_close(train);
    sl_data_state_destroy(state);
    return opened;
}

static void check(const char *file, const char *good, size_t bytes, const char *data, const char *layers,
                  const char *train)
{
    struct sl_model *model = data_model(data, layers, train);
    char changed[1024];
    uint64_t seed = 11;
    int opened = 0, refused = 0;
    data_write_bytes(file, good, bytes);
    assert_true(try_all(model));
    for (int i = 0; i < 200; i++) {
        data_write_bytes(file, changed, mutate(good, bytes, changed, &seed));
        if (try_all(model))
            opened++;
        else
            refused++;
    }
    assert_true(opened > 0 && refused > 0);
    sl_model_destroy(model);
}

#define CHECK_TEXT(file, text, ...) check(file, text, sizeof text - 1, __VA_ARGS__)

static void test_text(void **state)
{
    (void)state;
    CHECK_TEXT("train.txt", "a b \xC3\xA9\nc d\n\nb a\n",
               "type: text, train: {file: train.txt}, batch_size: 2, "
               "tokenizer: {type: word, specials: [unk, eos], lowercase: true}, batching: {unit: stream, bptt: 2}",
               MODEL_LM, "task: language_model");
    CHECK_TEXT("train.txt", "0 a b\n1 c d\n0 e\n",
               "type: lines, train: {file: train.txt}, label: {column: first, type: value}, "
               "batch_size: 2, tokenizer: {type: char}",
               "[{type: embedding, dim: 2}, {type: lstm, units: 3}, {type: output}]", "loss: mse");
    CHECK_TEXT("train.txt", "the\tDET\ncat\tNOUN\n\nruns\tVERB\n",
               "type: conll, train: {file: train.txt}, label: 2, "
               "batch_size: 2, tokenizer: {type: whitespace}",
               MODEL_TAG, "task: tag");
    CHECK_TEXT("train.txt", "1 2 3 40\n5 6\n", "type: tokens, train: {file: train.txt}, batch_size: 2", MODEL_LM,
               "task: language_model");
}

static void test_tables(void **state)
{
    (void)state;
    static const char table[] =
        "t,g,a,b\r\n2020-01-01,1,\"1.5\",2\r\n2020-01-02,1,3,\"4\"\r\n2020-01-03,2,,6\r\n2020-01-04,2,7,8\r\n";
    CHECK_TEXT("train.csv", table,
               "type: csv, train: {file: train.csv}, time: t, group: g, inputs: [a], targets: [b], "
               "window: {length: 1}, scale: {type: standard}, missing: mean, batch_size: 2",
               MODEL_REGRESS, "loss: mse");
    CHECK_TEXT("train.csv", table,
               "type: csv, train: {file: train.csv}, inputs: [a, b], label: g, missing: drop, "
               "batch_size: 2",
               "[{type: dense, units: 3}, {type: output, activation: softmax}]", "loss: cross_entropy");
}

static void test_arrays(void **state)
{
    (void)state;
    char x[NPY_HEADER + 32], y[NPY_HEADER + 8];
    npy_write_header(x, "<f4", "(2, 2, 2)");
    npy_write_header(y, "<i4", "(2,)");
    memset(x + NPY_HEADER, 0, 32);
    memset(y + NPY_HEADER, 0, 8);
    y[NPY_HEADER + 4] = 1; /* two classes */
    data_write_bytes("y.npy", y, sizeof y);
    check("x.npy", x, sizeof x, "type: npy, train: {x: x.npy, y: y.npy}, batch_size: 2", MODEL_CLASSIFY_VALUES,
          "task: classify");
    data_write_bytes("x.npy", x, sizeof x);
    check("y.npy", y, sizeof y, "type: npy, train: {x: x.npy, y: y.npy}, batch_size: 2", MODEL_CLASSIFY_VALUES,
          "task: classify");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_arrays),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}
