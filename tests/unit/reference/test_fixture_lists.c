/* SPDX-License-Identifier: Apache-2.0 */
/* Whole models of one list of layers against PyTorch: outputs, loss and the gradient of every parameter of a classifier
 * with pools, a tagger and a tied language model, on packed sequences of mixed lengths (tests/fixtures/make_lists.py).
 */
#include "exec_parity.h"

static const int32_t lengths[] = {5, 4, 2, 2, 1};
enum { B = 5, R = 14, T = 5, V = 9, CLASSES = 4 };

static const struct {
    const char *name, *data, *layers;
    bool on_steps;
    int64_t classes;
} cases[] = {
    {"classifier", "seqlstm: 1\ndata: {type: lines, train: {file: a}, tokenizer: whitespace, label: first}\n",
     "model: [{type: embedding, name: words, dim: 3}, {type: lstm, name: reader, units: 4, direction: bidirectional,"
     " return_sequences: true}, {type: pool, mode: max, name: largest, from: reader}, {type: pool, mode: mean,"
     " name: mean, from: reader}, {type: pool, mode: last, name: last, from: reader}, {type: concat,"
     " from: [largest, mean, last]}, {type: dense, name: output, units: from_target, activation: softmax}]\n"
     "train: {loss: cross_entropy, epochs: 1}",
     false, CLASSES},
    {"tagger", "seqlstm: 1\ndata: {type: conll, train: {file: a}, tokenizer: whitespace, label: 2}\n",
     "model: [{type: embedding, name: words, dim: 3}, {type: gru, name: reader, units: 3, layers: 2,"
     " direction: bidirectional, return_sequences: true}, {type: dense, name: between, units: 5, activation: tanh},"
     " {type: dense, name: output, units: from_target, activation: softmax}]\n"
     "train: {loss: cross_entropy, epochs: 1}",
     true, CLASSES},
    {"language", "seqlstm: 1\ndata: {type: text, train: {file: a}, tokenizer: whitespace}\n",
     "model: [{type: embedding, name: words, dim: 3}, {type: lstm, name: reader, units: 3, layers: 2,"
     " return_sequences: true}, {type: output, name: output, activation: softmax, tie: words}]\n"
     "train: {task: language_model, epochs: 1}",
     true, V},
};

static struct sl_batch *make_batch(const struct fixture *f, bool on_steps)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_batch_shape shape = {.sequences = B,
                                   .lengths = lengths,
                                   .input_kind = SL_FIELD_IDS,
                                   .target_kind = SL_FIELD_IDS,
                                   .input_features = 1,
                                   .target_features = 1,
                                   .input_on_steps = true,
                                   .target_on_steps = on_steps};
    struct sl_batch *batch = NULL;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    const double *input = fixture_get(f, "input", B * T), *target = fixture_get(f, "target", on_steps ? R : B);
    for (int64_t k = 0; k < B; k++) {
        for (int64_t t = 0; t < lengths[k]; t++) {
            ((int32_t *)batch->input.ids)[sl_batch_row(batch, k, t)] = (int32_t)input[k * T + t];
            if (on_steps)
                ((int32_t *)batch->target.ids)[sl_batch_row(batch, k, t)] = (int32_t)*target++;
        }
        if (!on_steps)
            ((int32_t *)batch->target.ids)[k] = (int32_t)target[k];
    }
    return batch;
}

static void agrees_with_pytorch(void **state)
{
    (void)state;
    struct fixture f;
    size_t seen = 0;
    fixture_open(&f, "lists");
    for (; fixture_next(&f); seen++) {
        assert_true(seen < sizeof cases / sizeof *cases);
        assert_string_equal(f.name, cases[seen].name);
        struct sl_data_facts facts = {.input = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = V},
                                      .target = {.kind = SL_FIELD_IDS,
                                                 .on_steps = cases[seen].on_steps,
                                                 .features = 1,
                                                 .classes = cases[seen].classes},
                                      .has_steps = true,
                                      .envelope = {.sequences = B, .steps = T, .rows = R}};
        struct world w;
        open_world(&w, cases[seen].data, cases[seen].layers, &facts, true);
        struct sl_batch *batch = make_batch(&f, cases[seen].on_steps);
        compare_step(&w, &f, batch, lengths, B, cases[seen].on_steps, cases[seen].classes);
        sl_batch_destroy(batch);
        close_world(&w);
    }
    fixture_close(&f);
    assert_int_equal(seen, sizeof cases / sizeof *cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_pytorch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
