/* SPDX-License-Identifier: Apache-2.0 */
/* Whole encoder-decoders against PyTorch: outputs, loss and the gradient of every parameter, packed sequences of mixed
 * lengths in differing orders, states copied, joined and bridged, attention with and without input feeding, an
 * autoencoder whose one matrix is shared and tied (tests/fixtures/make_pairs.py).
 */
#include "exec_parity.h"

static const int32_t lengths[] = {4, 3, 3, 1, 1};
static const int32_t source_lengths[] = {2, 5, 1, 3, 4};
enum { B = 5, R = 12, T = 4, SOURCE_R = 15, SOURCE_T = 5, SOURCE_V = 9, V = 7 };

static const char data[] = "seqlstm: 1\ndata: {type: lines, train: {file: a}, tokenizer: whitespace}\n";

static const struct {
    const char *name, *layers;
} cases[] = {
    {"copy", "model: {encoder: [{type: embedding, name: source_words, dim: 4}, {type: gru, name: reader, units: 4,"
             " layers: 2}], decoder: [{type: embedding, name: words, dim: 3}, {type: gru, name: writer, units: 4,"
             " layers: 2, return_sequences: true}, {type: output, name: output, activation: softmax}]}\n"
             "train: {epochs: 1}"},
    {"joined", "model: {encoder: [{type: embedding, name: source_words, dim: 4}, {type: lstm, name: reader, units: 3,"
               " direction: bidirectional}], decoder: [{type: embedding, name: words, dim: 3}, {type: lstm,"
               " name: writer, units: 6, return_sequences: true}, {type: output, name: output, activation: softmax}]}\n"
               "train: {epochs: 1}"},
    {"dense", "model: {encoder: [{type: embedding, name: source_words, dim: 4}, {type: lstm, name: reader, units: 3,"
              " direction: bidirectional}], decoder: [{type: embedding, name: words, dim: 3}, {type: lstm,"
              " name: writer, units: 5, return_sequences: true, initial_state: {from: reader, bridge: dense}},"
              " {type: output, name: output, activation: softmax}]}\ntrain: {epochs: 1}"},
#define LOOKING(feeding)                                                                                               \
    "model: {encoder: [{type: embedding, name: source_words, dim: 4}, {type: lstm, name: reader, units: 3,"            \
    " direction: bidirectional, return_sequences: true}], decoder: [{type: embedding, name: words, dim: 3},"           \
    " {type: lstm, name: writer, units: 6, return_sequences: true}, {type: attention, name: look, score: "             \
    "general" feeding "}, {type: dense, name: vector, units: 5, activation: tanh},"                                    \
    " {type: output, name: output, activation: softmax}]}\ntrain: {epochs: 1}"
    {"attention", LOOKING("")},
    {"feeding", LOOKING(", input_feeding: true")},
    {"autoencoder",
     "model: {encoder: [{type: embedding, name: words, dim: 3}, {type: lstm, name: reader, units: 3,"
     " direction: bidirectional}, {type: dense, name: vector, units: 5}], decoder: [{type: embedding, name: written,"
     " dim: 3, share: words}, {type: repeat, name: context}, {type: concat, from: [written, context]}, {type: lstm,"
     " name: writer, units: 4, return_sequences: true, initial_state: {from: vector, bridge: dense}}, {type: dense,"
     " name: narrow, units: 3}, {type: output, name: output, activation: softmax, tie: written}]}\n"
     "train: {epochs: 1}"},
};

static struct sl_batch *make_batch(const struct fixture *f)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_batch_shape shape = {.sequences = B,
                                   .lengths = lengths,
                                   .source_lengths = source_lengths,
                                   .input_kind = SL_FIELD_IDS,
                                   .target_kind = SL_FIELD_IDS,
                                   .source_kind = SL_FIELD_IDS,
                                   .input_features = 1,
                                   .target_features = 1,
                                   .source_features = 1,
                                   .input_on_steps = true,
                                   .target_on_steps = true};
    struct sl_batch *batch = NULL;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    const double *source = fixture_get(f, "source", B * SOURCE_T);
    const double *input = fixture_get(f, "input", B * T), *target = fixture_get(f, "target", B * T);
    for (int64_t k = 0; k < B; k++) {
        for (int64_t t = 0; t < source_lengths[k]; t++)
            ((int32_t *)batch->source.input.ids)[sl_batch_source_row(batch, k, t)] = (int32_t)source[k * SOURCE_T + t];
        for (int64_t t = 0; t < lengths[k]; t++) {
            ((int32_t *)batch->input.ids)[sl_batch_row(batch, k, t)] = (int32_t)input[k * T + t];
            ((int32_t *)batch->target.ids)[sl_batch_row(batch, k, t)] = (int32_t)target[k * T + t];
        }
    }
    return batch;
}

static void agrees_with_pytorch(void **state)
{
    (void)state;
    struct sl_data_facts facts = {
        .input = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = V},
        .target = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = V},
        .source = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = SOURCE_V},
        .has_steps = true,
        .envelope = {.sequences = B, .steps = T, .rows = R, .source_steps = SOURCE_T, .source_rows = SOURCE_R}};
    struct fixture f;
    size_t seen = 0;
    fixture_open(&f, "pairs");
    for (; fixture_next(&f); seen++) {
        struct world w;
        assert_true(seen < sizeof cases / sizeof *cases);
        assert_string_equal(f.name, cases[seen].name);
        facts.source.classes = strcmp(f.name, "autoencoder") == 0 ? V : SOURCE_V; /* one vocabulary */
        open_world(&w, data, cases[seen].layers, &facts, true);
        struct sl_batch *batch = make_batch(&f);
        compare_step(&w, &f, batch, lengths, B, true, V);
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
