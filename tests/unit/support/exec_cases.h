/* SPDX-License-Identifier: Apache-2.0 */
/* Small models and batches for the tests of the executor: five sequences of 4, 3, 3, 1 and 0 steps. */
#ifndef SL_TESTS_EXEC_CASES_H
#define SL_TESTS_EXEC_CASES_H

#include "exec_world.h"

static const char data_tokens[] =
    "seqlstm: 1\ndata: {type: lines, train: {file: a}, tokenizer: whitespace, label: {column: first}}\n";
static const char data_values[] = "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\n";

static const int32_t lengths[] = {4, 3, 3, 1, 0};
enum { B = 5, R = 11 };

static inline struct sl_batch *make_batch(const struct sl_data_facts *facts)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_batch_shape shape = {.sequences = B,
                                   .lengths = lengths,
                                   .input_kind = facts->input.kind,
                                   .target_kind = facts->target.kind,
                                   .has_weight = facts->has_weight,
                                   .input_features = facts->input.features,
                                   .target_features = facts->target.features,
                                   .input_on_steps = true,
                                   .target_on_steps = facts->target.on_steps};
    struct sl_batch *batch = NULL;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    int64_t target_rows = facts->target.on_steps ? R : B;
    for (int64_t i = 0; i < R * facts->input.features; i++) {
        if (facts->input.kind == SL_FIELD_IDS)
            ((int32_t *)batch->input.ids)[i] = (int32_t)(i * 3 % facts->input.classes);
        else
            ((float *)batch->input.values)[i] = number((uint64_t)i);
    }
    for (int64_t i = 0; i < target_rows * facts->target.features; i++) {
        if (facts->target.kind == SL_FIELD_IDS)
            ((int32_t *)batch->target.ids)[i] = i == 2 ? -1 : (int32_t)(i * 5 % facts->target.classes);
        else
            ((float *)batch->target.values)[i] = number((uint64_t)i + 1000);
    }
    for (int64_t k = 0; k < B; k++)
        ((uint64_t *)batch->axis.sequence_id)[k] = (uint64_t)(40 + k);
    return batch;
}

static inline struct sl_data_facts values_facts(int64_t features, bool target_on_steps, int64_t targets)
{
    return (struct sl_data_facts){.input = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = features},
                                  .target = {.kind = SL_FIELD_VALUES, .on_steps = target_on_steps, .features = targets},
                                  .has_steps = true,
                                  .envelope = {.sequences = B, .steps = 4, .rows = R}};
}

static inline struct sl_data_facts token_facts(bool target_on_steps, int64_t classes)
{
    return (struct sl_data_facts){
        .input = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = 7},
        .target = {.kind = SL_FIELD_IDS, .on_steps = target_on_steps, .features = 1, .classes = classes},
        .has_steps = true,
        .envelope = {.sequences = B, .steps = 4, .rows = R}};
}

struct gradient_case {
    const char *name;
    bool tokens, on_steps, need_output;
    const char *layers;
};

static const struct gradient_case cases[] = {
    {"last state, dense", false, false, true,
     "model: [{type: lstm, units: 5}, {type: dense, units: 3, activation: tanh}]\ntrain: {loss: mse, epochs: 1}"},
    {"bidirectional stack, every option that is smooth", false, true, true,
     "model: [{type: lstm, units: 4, layers: 2, direction: bidirectional, merge: sum, peephole: true, projection: 3,"
     " layer_norm: true, dropout: 0.2, recurrent_dropout: 0.2, zoneout: {cell: 0.1, hidden: 0.1},"
     " return_sequences: true}, {type: dense, units: 3}]\ntrain: {loss: mse, epochs: 1}"},
    {"bidirectional last states", false, false, true,
     "model: [{type: gru, units: 4, direction: bidirectional}, {type: dense, units: 3}]\n"
     "train: {loss: mse, epochs: 1}"},
    {"several readers: concat and add", false, true, true,
     "model: [{type: lstm, name: a, units: 4, return_sequences: true},"
     " {type: rnn, name: b, units: 4, return_sequences: true},"
     " {type: add, name: c, from: [a, b]}, {type: concat, name: d, from: [a, c, b]},"
     " {type: layer_norm}, {type: dropout, rate: 0.3}, {type: dense, units: 3}]\ntrain: {loss: mse, epochs: 1}"},
    {"pool and activation", false, false, true,
     "model: [{type: lstm, units: 4, return_sequences: true}, {type: pool, mode: mean},"
     " {type: activation, activation: softplus}, {type: dense, units: 3}]\ntrain: {loss: mse, epochs: 1}"},
    {"tied output", true, true, true,
     "model: [{type: embedding, name: emb, dim: 4}, {type: lstm, units: 4, return_sequences: true},"
     " {type: output, tie: emb, activation: softmax}]\ntrain: {loss: cross_entropy, task: tag, epochs: 1}"},
    {"tied to the layer before", true, true, true,
     "model: [{type: embedding, name: emb, dim: 4}, {type: output, tie: emb, activation: softmax}]\n"
     "train: {loss: cross_entropy, task: tag, epochs: 1}"},
    {"fused output and loss", true, true, false,
     "model: [{type: embedding, dim: 4}, {type: lstm, units: 5, return_sequences: true},"
     " {type: output, activation: softmax}]\n"
     "train: {loss: {type: cross_entropy, label_smoothing: 0.1}, task: tag, epochs: 1}"},
    {"classifier", true, false, true,
     "model: [{type: embedding, dim: 4}, {type: lstm, units: 5}, {type: dropout, rate: 0.4},"
     " {type: dense, units: from_target, activation: softmax}]\ntrain: {loss: cross_entropy, epochs: 1}"},
};

static inline struct sl_data_facts facts_of(const struct gradient_case *c)
{
    return c->tokens ? token_facts(c->on_steps, 7) : values_facts(3, c->on_steps, 3);
}

/* One step of each gives the same loss and gradients. */
static inline void assert_equal_and_close(struct world *one, struct world *other, const struct sl_data_facts *facts)
{
    struct sl_batch *batch = make_batch(facts);
    double a = run(one, batch, false), b = run(other, batch, false);
    assert_true(fabs(a - b) <= 1e-5 * fabs(b));
    for (int64_t e = 0; e < one->params->elems; e++)
        assert_true(fabsf(one->params->grads[e] - other->params->grads[e]) <= 1e-5f);
    sl_batch_destroy(batch);
    close_world(one);
    close_world(other);
}

/* Random inputs of the given lengths; the targets are zero. */
static inline struct sl_batch *make_values(const int32_t *of_lengths, int64_t sequences, int64_t features,
                                           int64_t targets, bool targets_on_steps)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_batch *batch = NULL;
    const struct sl_batch_shape shape = {.sequences = sequences,
                                         .lengths = of_lengths,
                                         .input_kind = SL_FIELD_VALUES,
                                         .target_kind = SL_FIELD_VALUES,
                                         .input_features = features,
                                         .target_features = targets,
                                         .input_on_steps = true,
                                         .target_on_steps = targets_on_steps};
    ok(sl_batch_create(&shape, &batch, &err), &err);
    for (int64_t i = 0; i < batch->axis.rows * features; i++)
        ((float *)batch->input.values)[i] = number((uint64_t)i + 77);
    return batch;
}

#endif
