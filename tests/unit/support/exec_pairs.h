/* SPDX-License-Identifier: Apache-2.0 */
/* Small models with encoder and decoder, batches for them, and the parts of a model as executors of their own. The two
 * sides have orders of their own, and some sources are empty. Shared by the tests of decoders. */
#ifndef EXEC_PAIRS_H
#define EXEC_PAIRS_H

#include "exec_world.h"

#include "decode/beam.h"

static const char data_pairs[] = "seqlstm: 1\ndata: {type: lines, train: {file: a}, tokenizer: whitespace}\n";

static const int32_t lengths[] = {4, 3, 3, 1, 1};
static const int32_t source_lengths[] = {2, 0, 5, 1, 3};
enum { B = 5, R = 12, SOURCE_R = 11, SOURCE_V = 9, V = 7 };

static inline struct sl_data_facts pair_facts(int64_t source_classes)
{
    return (struct sl_data_facts){
        .input = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = V},
        .target = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = V},
        .source = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = source_classes},
        .has_steps = true,
        .envelope = {.sequences = B, .steps = 4, .rows = R, .source_steps = 5, .source_rows = SOURCE_R}};
}

/* Tokens depend on (record, step) alone, so that batches of another order hold the same. */
static inline int32_t source_token(int64_t record, int64_t step)
{
    return (int32_t)((record * 5 + step * 3 + 1) % V);
}

static inline int32_t target_token(int64_t record, int64_t step)
{
    return (int32_t)((record * 3 + step * 2 + 1) % V);
}

/* `with_target` false: as for prediction, the source alone. */
static inline struct sl_batch *make_pairs(bool with_target)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static const int32_t falling[] = {5, 3, 2, 1, 0};
    struct sl_batch_shape shape = {.sequences = B,
                                   .source_lengths = with_target ? source_lengths : falling,
                                   .source_kind = SL_FIELD_IDS,
                                   .source_features = 1};
    static const int64_t order[] = {2, 4, 0, 3, 1}; /* records of `falling` */
    if (with_target) {
        shape.lengths = lengths;
        shape.input_kind = shape.target_kind = SL_FIELD_IDS;
        shape.input_features = shape.target_features = 1;
        shape.input_on_steps = shape.target_on_steps = true;
    }
    struct sl_batch *batch = NULL;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    for (int64_t k = 0; k < B; k++) {
        int64_t record = with_target ? k : order[k];
        ((int64_t *)batch->sample)[k] = record;
        ((uint64_t *)batch->axis.sequence_id)[k] = 40 + (uint64_t)record;
        ((uint64_t *)batch->source.axis.sequence_id)[batch->source.place[k]] = 40 + (uint64_t)record;
        for (int64_t t = 0; t < source_lengths[record]; t++)
            ((int32_t *)batch->source.input.ids)[sl_batch_source_row(batch, k, t)] = source_token(record, t);
        for (int64_t t = 0; with_target && t < lengths[record]; t++) {
            ((int32_t *)batch->input.ids)[sl_batch_row(batch, k, t)] = target_token(record, t);
            ((int32_t *)batch->target.ids)[sl_batch_row(batch, k, t)] = target_token(record, t + 1);
        }
    }
    return batch;
}

/* A record alone: its source, and what was written for it as the decoder's input. */
static inline struct sl_batch *make_text(int64_t record, const struct sl_hypothesis *text, int32_t begin)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const int32_t length = (int32_t)text->count + text->ended, source = source_lengths[record];
    const struct sl_batch_shape shape = {.sequences = 1,
                                         .lengths = &length,
                                         .source_lengths = &source,
                                         .source_kind = SL_FIELD_IDS,
                                         .source_features = 1,
                                         .input_kind = SL_FIELD_IDS,
                                         .input_features = 1,
                                         .input_on_steps = true};
    struct sl_batch *batch = NULL;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    for (int64_t t = 0; t < source; t++)
        ((int32_t *)batch->source.input.ids)[t] = source_token(record, t);
    for (int64_t t = 0; t < length; t++)
        ((int32_t *)batch->input.ids)[t] = t ? text->ids[t - 1] : begin;
    return batch;
}

#define TRAIN   "\ntrain: {epochs: 1}"
#define ENCODER "model: {encoder: [{type: embedding, name: source_words, dim: 4}, "
#define OUTPUT  " {type: output, activation: softmax}]}" TRAIN

static const struct {
    const char *name, *layers;
    bool one_vocabulary;
} cases[] = {
    {"states copied, two layers",
     ENCODER "{type: lstm, units: 4, layers: 2, dropout: 0.2}], decoder: [{type: embedding, dim: 3},"
             " {type: lstm, units: 4, layers: 2, return_sequences: true}," OUTPUT,
     false},
    {"directions side by side, a chain of layers",
     ENCODER "{type: lstm, units: 3, direction: bidirectional, return_sequences: true}, {type: gru, units: 4}],"
             " decoder: [{type: embedding, dim: 3}, {type: lstm, units: 6, return_sequences: true},"
             " {type: gru, units: 4, return_sequences: true}," OUTPUT,
     false},
    {"directions added, projection",
     ENCODER "{type: lstm, name: e, units: 4, projection: 3, direction: bidirectional}],"
             " decoder: [{type: embedding, dim: 3}, {type: lstm, units: 4, projection: 3, return_sequences: true,"
             " initial_state: {from: e, bridge: sum}}," OUTPUT,
     false},
    {"dense bridge of other widths and cells",
     ENCODER "{type: gru, name: e, units: 3, direction: bidirectional}], decoder: [{type: embedding, dim: 3},"
             " {type: lstm, units: 5, return_sequences: true, initial_state: {from: e, bridge: dense}}," OUTPUT,
     false},
    {"one giver, two takers, and its output repeated",
     ENCODER "{type: lstm, name: e, units: 4}], decoder: [{type: embedding, name: w, dim: 3},"
             " {type: repeat, name: r, from: e}, {type: concat, from: [w, r]},"
             " {type: lstm, units: 4, return_sequences: true, initial_state: e},"
             " {type: lstm, units: 4, return_sequences: true, initial_state: e}," OUTPUT,
     false},
    {"a vector: bridge and repeat",
     ENCODER "{type: lstm, units: 3, direction: bidirectional}, {type: dense, name: v, units: 4, activation: tanh}],"
             " decoder: [{type: repeat}, {type: lstm, units: 5, return_sequences: true,"
             " initial_state: {from: v, bridge: dense}}," OUTPUT,
     false},
    {"attention, dot",
     ENCODER
     "{type: lstm, units: 4, return_sequences: true}], decoder: [{type: embedding, dim: 3},"
     " {type: lstm, units: 4, return_sequences: true}, attention, {type: dense, units: 5, activation: tanh}," OUTPUT,
     false},
    {"attention, general and scaled over one memory",
     ENCODER "{type: lstm, units: 3, direction: bidirectional, return_sequences: true}],"
             " decoder: [{type: embedding, dim: 3},"
             " {type: lstm, name: d, units: 6, return_sequences: true, initial_state: none},"
             " {type: attention, name: a, score: general}, {type: attention, from: d, name: b, score: scaled},"
             " {type: concat, from: [a, b]}," OUTPUT,
     false},
    {"attention, additive, under a recurrent layer",
     ENCODER "{type: gru, units: 4, return_sequences: true}], decoder: [{type: embedding, dim: 3},"
             " {type: attention, score: additive, units: 5}, {type: gru, units: 4, return_sequences: true},"
             " {type: attention, score: additive}," OUTPUT,
     false},
    {"input feeding, the attentional vector",
     ENCODER "{type: lstm, units: 4, return_sequences: true}], decoder: [{type: embedding, dim: 3},"
             " {type: lstm, units: 4, return_sequences: true, dropout: 0.2}, {type: attention, input_feeding: true},"
             " {type: dense, units: 5, activation: tanh}, {type: dropout, rate: 0.2}," OUTPUT,
     false},
    {"input feeding, two cells under additive attention, states from zero",
     ENCODER "{type: gru, units: 4, return_sequences: true}], decoder: [{type: embedding, dim: 3},"
             " {type: gru, units: 17, layers: 2, return_sequences: true, initial_state: none},"
             " {type: lstm, units: 3, return_sequences: true, initial_state: none},"
             " {type: attention, score: additive, units: 2, input_feeding: true}," OUTPUT,
     false},
    {"input feeding past a vector and a second attention",
     ENCODER "{type: lstm, units: 4, return_sequences: true}, {type: pool, name: mean, mode: mean},"
             " {type: lstm, from: lstm_1, units: 4, return_sequences: true}],"
             " decoder: [{type: embedding, name: w, dim: 4, share: source_words}, {type: repeat, name: r, from: mean},"
             " {type: concat, name: wr, from: [w, r]},"
             " {type: lstm, name: d, units: 4, return_sequences: true, initial_state: lstm_1, recurrent_dropout: 0.1},"
             " {type: repeat, name: r2, from: mean}, {type: concat, from: [d, r2]},"
             " {type: attention, name: a, score: general, input_feeding: true},"
             " {type: lstm, units: 4, return_sequences: true, initial_state: none}, {type: attention, name: b},"
             " {type: concat, from: [a, b]}," OUTPUT,
     true},
    {"one matrix for source, target and output",
     ENCODER "{type: lstm, units: 4}], decoder: [{type: embedding, name: words, dim: 4, share: source_words},"
             " {type: lstm, units: 4, return_sequences: true},"
             " {type: output, tie: words, activation: softmax}]}" TRAIN,
     true},
};

/* Whether attention layers of parts that are opened from now on report their weights. */
static bool part_reports_attention;

/* One part of the world's model, for prediction. */
struct part {
    struct sl_graph *graph;
    struct sl_plan *plan;
    struct sl_exec *exec;
};

static inline void open_part(struct part *p, const struct world *w, enum sl_part part,
                             const struct sl_envelope *envelope)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_data_facts facts = w->facts;
    facts.envelope = *envelope;
    struct sl_graph_request graph = {.model = w->model,
                                     .facts = &facts,
                                     .phase = SL_PHASE_PREDICT,
                                     .need_output = true,
                                     .attention_weights = part_reports_attention,
                                     .part = part};
    ok(sl_graph_create(&graph, &p->graph, &err), &err);
    struct sl_plan_request plan = {.graph = p->graph, .registry = w->registry};
    ok(sl_plan_create(&plan, &p->plan, &err), &err);
    struct sl_exec_request exec = {.plan = p->plan, .params = w->params};
    ok(sl_exec_create(&exec, &p->exec, &err), &err);
    assert_int_equal(p->graph->param_count, w->graph->param_count);
    for (int32_t k = 0; k < p->graph->param_count; k++)
        assert_string_equal(p->graph->params[k].name, w->graph->params[k].name);
}

static inline void close_part(struct part *p)
{
    sl_exec_destroy(p->exec);
    sl_plan_destroy(p->plan);
    sl_graph_destroy(p->graph);
}

static inline void run_part(struct part *p, const struct sl_batch *batch)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_exec_step step = {0};
    struct sl_exec_result result;
    ok(sl_exec_run(p->exec, batch, &step, &result, &err), &err);
}

#endif
