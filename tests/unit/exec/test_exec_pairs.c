/* SPDX-License-Identifier: Apache-2.0 */
/* Encoder and decoder through graph, plan and executor on the reference: every gradient against central differences,
 * whichever way the states go; and the parts of a model against the whole of it. Lengths are mixed, the two sides have
 * orders of their own, and some sequences are empty. */
#include "exec_gradients.h"
#include "exec_pairs.h"
#include "oom.h"

#include "decode/decoder.h"
#include "decode/sample.h"
#include "decode/sampler.h"
#include "dispatch/planner.h"

/* And what earlier runs have left behind changes nothing. */
static void gradients_match_differences(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_data_facts facts = pair_facts(cases[i].one_vocabulary ? V : SOURCE_V);
        struct world w;
        open_world(&w, data_pairs, cases[i].layers, &facts, true);
        assert_int_equal(w.model->train.task, SL_TASK_SEQ2SEQ);
        struct sl_batch *batch = make_pairs(true);
        const double first = run(&w, batch, false);
        check_gradients(&w, batch, cases[i].name);
        if (!(run(&w, batch, false) == first))
            fail_msg("%s: the loss of a later run is not that of the first", cases[i].name);
        sl_batch_destroy(batch);
        close_world(&w);
    }
}

/* Targets of one length say nothing about the lengths of sources. */
static void pairs_are_never_uniform(void **state)
{
    (void)state;
    struct sl_data_facts facts = pair_facts(cases[0].one_vocabulary ? V : SOURCE_V);
    facts.envelope.uniform = true;
    struct world w;
    open_world(&w, data_pairs, cases[0].layers, &facts, true);
    for (int32_t n = 0; n < w.graph->node_count; n++)
        assert_false(w.graph->nodes[n].desc.head.flags & SEQLSTM_BIT_DESC_UNIFORM);
    close_world(&w);
}

/* A chain of states in a plain list: rows of empty sequences pass theirs on, and their gradients back. */
static void check_plain_list(const char *layers)
{
    struct sl_data_facts facts = {.input = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = V},
                                  .target = {.kind = SL_FIELD_VALUES, .features = 4},
                                  .has_steps = true,
                                  .envelope = {.sequences = 3, .steps = 2, .rows = 3}};
    static const int32_t some[] = {2, 1, 0};
    struct world w;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    open_world(&w,
               "seqlstm: 1\ndata: {type: lines, train: {file: a}, tokenizer: whitespace, "
               "label: {column: first, type: value}}\n",
               layers, &facts, true);
    struct sl_batch_shape shape = {.sequences = 3,
                                   .lengths = some,
                                   .input_kind = SL_FIELD_IDS,
                                   .target_kind = SL_FIELD_VALUES,
                                   .input_features = 1,
                                   .target_features = 4,
                                   .input_on_steps = true};
    struct sl_batch *batch = NULL;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    for (int i = 0; i < 12; i++)
        ((float *)batch->target.values)[i] = number((uint64_t)i);
    check_gradients(&w, batch, "plain list");
    sl_batch_destroy(batch);
    close_world(&w);
}

static void states_of_a_plain_list(void **state)
{
    (void)state;
    check_plain_list("model: [{type: embedding, name: w, dim: 3}, {type: lstm, name: a, units: 4},"
                     " {type: lstm, name: b, from: w, units: 4, initial_state: {from: a, bridge: dense}},"
                     " {type: lstm, name: c, from: w, units: 4, initial_state: b}, {type: add, from: [a, b, c]}]\n"
                     "train: {loss: mse, epochs: 1}");
    check_plain_list("model: [{type: embedding, name: w, dim: 3},"
                     " {type: gru, name: a, units: 4, direction: bidirectional, merge: sum, layers: 2},"
                     " {type: gru, name: b, from: w, units: 4, direction: bidirectional, merge: sum, layers: 2,"
                     " initial_state: {from: a, bridge: dense}},"
                     " {type: gru, name: c, from: w, units: 4, direction: bidirectional, merge: sum, layers: 2,"
                     " initial_state: b}, {type: add, from: [a, b, c]}]\n"
                     "train: {loss: mse, epochs: 1}");
}

/* A frozen layer passes on what its steps owe to the states from which it starts. */
static void states_go_through_frozen_layers(void **state)
{
    (void)state;
    check_plain_list("model: [{type: embedding, name: w, dim: 3, trainable: false}, {type: lstm, name: a, units: 4},"
                     " {type: lstm, name: b, from: w, units: 4, initial_state: {from: a, bridge: dense},"
                     " return_sequences: true, trainable: false}, {type: pool, mode: mean}, {type: dense, units: 4}]\n"
                     "train: {loss: mse, epochs: 1}");
    check_plain_list("model: [{type: embedding, name: w, dim: 3}, {type: gru, name: a, units: 4, layers: 2},"
                     " {type: gru, name: b, from: w, units: 4, layers: 2, initial_state: a, return_sequences: true,"
                     " trainable: false}, {type: pool, mode: mean}, {type: dense, units: 4, trainable: false}]\n"
                     "train: {loss: mse, epochs: 1}");
}

/* Pairs of which all sources are empty, so that no layer of the encoder runs; or all targets. */
static struct sl_batch *make_half(bool sources)
{
    static const int32_t none[B] = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_batch_shape shape = {.sequences = B,
                                         .lengths = sources ? none : lengths,
                                         .source_lengths = sources ? source_lengths : none,
                                         .source_kind = SL_FIELD_IDS,
                                         .input_kind = SL_FIELD_IDS,
                                         .target_kind = SL_FIELD_IDS,
                                         .source_features = 1,
                                         .input_features = 1,
                                         .target_features = 1,
                                         .input_on_steps = true,
                                         .target_on_steps = true};
    struct sl_batch *batch = NULL;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    for (int64_t k = 0; k < batch->source.axis.rows; k++)
        ((int32_t *)batch->source.input.ids)[k] = (int32_t)(k % V);
    for (int64_t k = 0; k < batch->axis.rows; k++) {
        ((int32_t *)batch->input.ids)[k] = (int32_t)(k % V);
        ((int32_t *)batch->target.ids)[k] = (int32_t)(k * 2 % V);
    }
    return batch;
}

/* What an earlier batch has left in the gradients of layers that do not run is overwritten, or added to. */
static void gradients_of_layers_that_do_not_run(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_data_facts facts = pair_facts(cases[i].one_vocabulary ? V : SOURCE_V);
        struct world w;
        open_world(&w, data_pairs, cases[i].layers, &facts, true);
        struct sl_batch *pairs = make_pairs(true), *empty = make_half(false);
        const int64_t n = w.params->elems;
        float *grads = w.params->grads, *first = malloc(2 * (size_t)n * sizeof *first), *full = first + n;
        int64_t zeros = 0;
        run(&w, empty, false);
        memcpy(first, grads, (size_t)n * sizeof *first);
        for (int64_t e = 0; e < n; e++)
            zeros += grads[e] == 0;
        assert_in_range(zeros, 1, n - 1);
        run(&w, pairs, false);
        memcpy(full, grads, (size_t)n * sizeof *first);
        run(&w, empty, true);
        for (int64_t e = 0; e < n; e++)
            if (!(fabsf(grads[e] - full[e] - first[e]) <= 1e-5f * (1 + fabsf(full[e]))))
                fail_msg("%s: element %d: %g and %g are not %g", cases[i].name, (int)e, (double)full[e],
                         (double)first[e], (double)grads[e]);
        run(&w, empty, false);
        for (int64_t e = 0; e < n; e++)
            if (grads[e] != first[e])
                fail_msg("%s: element %d: %g is not %g", cases[i].name, (int)e, (double)grads[e], (double)first[e]);
        free(first);
        sl_batch_destroy(pairs);
        sl_batch_destroy(empty);
        close_world(&w);
    }
}

/* Without a target nothing has a gradient, however much of the model runs; what is there stays if it is added to. */
static void pairs_without_targets_have_no_gradients(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_data_facts facts = pair_facts(cases[i].one_vocabulary ? V : SOURCE_V);
        struct world w;
        open_world(&w, data_pairs, cases[i].layers, &facts, true);
        struct sl_batch *pairs = make_pairs(true), *half = make_half(true);
        const size_t bytes = (size_t)w.params->elems * sizeof(float);
        float *full = malloc(bytes);
        const double loss = run(&w, pairs, false);
        memcpy(full, w.params->grads, bytes);
        assert_true(run(&w, half, true) == 0);
        for (int64_t e = 0; e < w.params->elems; e++)
            if (w.params->grads[e] != full[e])
                fail_msg("%s: element %d: %g is not %g", cases[i].name, (int)e, (double)w.params->grads[e],
                         (double)full[e]);
        assert_true(run(&w, half, false) == 0);
        for (int64_t e = 0; e < w.params->elems; e++)
            if (w.params->grads[e] != 0)
                fail_msg("%s: element %d: %g", cases[i].name, (int)e, (double)w.params->grads[e]);
        assert_true(run(&w, pairs, false) == loss);
        assert_memory_equal(w.params->grads, full, bytes);
        free(full);
        sl_batch_destroy(pairs);
        sl_batch_destroy(half);
        close_world(&w);
    }
}

/* ---- the parts ---------------------------------------------------------------------------------------------- */

/* Step `t` of all records: ids in the order of `sources`, the batch that the encoder ran on. */
static struct sl_batch *make_step(const struct sl_batch *sources, int64_t t)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static const int32_t ones[] = {1, 1, 1, 1, 1};
    struct sl_batch_shape shape = {
        .sequences = B, .lengths = ones, .input_kind = SL_FIELD_IDS, .input_features = 1, .input_on_steps = true};
    struct sl_batch *batch = NULL;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    for (int64_t k = 0; k < B; k++)
        ((int32_t *)batch->input.ids)[k] = target_token(sources->sample[k], t);
    batch->carry_state = true;
    batch->source = sources->source; /* borrowed: what attention looks at */
    return batch;
}

/* The encoder once, then the decoder step by step on states handed over, gives what the whole gives. */
static void parts_equal_the_whole(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_data_facts facts = pair_facts(cases[i].one_vocabulary ? V : SOURCE_V);
        struct world w;
        struct part whole, encoder, decoder;
        open_world(&w, data_pairs, cases[i].layers, &facts, true);
        struct sl_envelope envelope = facts.envelope;
        open_part(&whole, &w, SL_PART_WHOLE, &envelope);
        open_part(&encoder, &w, SL_PART_ENCODER, &envelope);
        envelope.steps = 1;
        envelope.rows = B;
        open_part(&decoder, &w, SL_PART_DECODER, &envelope);
        struct sl_batch *pairs = make_pairs(true), *sources = make_pairs(false);
        run_part(&whole, pairs);
        run_part(&encoder, sources);
        float *from, *to;
        int64_t from_elems, to_elems;
        ok(sl_exec_get_state(encoder.exec, &from, &from_elems, &err), &err);
        ok(sl_exec_get_state(decoder.exec, &to, &to_elems, &err), &err);
        assert_int_equal(from_elems, to_elems);
        assert_true(from_elems > 0 || encoder.graph->memory_count > 0);
        memcpy(to, from, (size_t)to_elems * sizeof *to);
        ok(sl_exec_hand_memories(encoder.exec, decoder.exec, &err), &err);
        for (int64_t t = 0; t < 4; t++) {
            struct sl_batch *step = make_step(sources, t);
            run_part(&decoder, step);
            struct sl_field got = sl_exec_get_output(decoder.exec), expected = sl_exec_get_output(whole.exec);
            for (int64_t k = 0; k < B; k++) {
                int64_t record = sources->sample[k];
                for (int64_t v = 0; v < V && t < lengths[record]; v++) {
                    float a = got.values[k * V + v], b = expected.values[sl_batch_row(pairs, record, t) * V + v];
                    if (!(fabsf(a - b) <= 1e-6f))
                        fail_msg("%s: record %d, step %d: %g is not %g", cases[i].name, (int)record, (int)t, (double)a,
                                 (double)b);
                }
            }
            sl_batch_destroy(step);
        }
        sl_batch_destroy(pairs);
        sl_batch_destroy(sources);
        close_part(&decoder);
        close_part(&encoder);
        close_part(&whole);
        close_world(&w);
    }
}

/* Memories are handed to a decoder whose plan has as many rows, and to none with one row less. */
static void memories_must_fit_the_decoder(void **state)
{
    (void)state;
    struct sl_batch *sources = make_pairs(false);
    const int64_t rows = sources->source.axis.rows;
    int tried = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int less = 0; less < 2; less++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_data_facts facts = pair_facts(cases[i].one_vocabulary ? V : SOURCE_V);
            struct world w;
            struct part encoder, decoder;
            char expected[80];
            open_world(&w, data_pairs, cases[i].layers, &facts, true);
            struct sl_envelope envelope = facts.envelope;
            open_part(&encoder, &w, SL_PART_ENCODER, &envelope);
            envelope.source_rows = rows - less;
            open_part(&decoder, &w, SL_PART_DECODER, &envelope);
            run_part(&encoder, sources);
            const seqlstm_status status = sl_exec_hand_memories(encoder.exec, decoder.exec, &err);
            if (less && encoder.graph->memory_count > 0) {
                snprintf(expected, sizeof expected, "a memory of %d rows does not fit the decoder's plan", (int)rows);
                assert_int_equal(status, SEQLSTM_INVALID_ARGUMENT);
                assert_string_equal(err.message, expected);
                tried++;
            } else {
                assert_int_equal(status, SEQLSTM_OK);
            }
            close_part(&decoder);
            close_part(&encoder);
            close_world(&w);
        }
    assert_true(tried > 0);
    sl_batch_destroy(sources);
}

/* Log-probability that the whole model gives a text after a source: one record alone. */
static double weigh_text(struct part *whole, int64_t record, const struct sl_hypothesis *text, int32_t begin,
                         int32_t end)
{
    struct sl_batch *batch = make_text(record, text, begin);
    const int64_t length = batch->axis.rows;
    run_part(whole, batch);
    struct sl_field output = sl_exec_get_output(whole->exec);
    double sum = 0;
    for (int64_t t = 0; t < length; t++)
        sum += log((double)output.values[t * V + (t < text->count ? text->ids[t] : end)]);
    sl_batch_destroy(batch);
    return sum;
}

/* States go with their hypotheses: what the decoder thinks of a text is what the whole model thinks of it. Batches with
 * a target and without write the same. */
static void decoder_weighs_as_the_whole(void **state)
{
    (void)state;
    enum { BEGIN = 0, END = 1, BEAM = 3 };
    static const struct sl_decode_config configs[] = {
        {.beam = 1, .n_best = 1, .max_length = 6, .length_penalty = {SL_LENGTH_PENALTY_AVERAGE, 0}, .top_p = 1},
        {.beam = BEAM, .n_best = BEAM, .max_length = 6, .length_penalty = {SL_LENGTH_PENALTY_GNMT, 0.6}, .top_p = 1},
        {.beam = 1, .n_best = 1, .max_length = 6, .temperature = 2, .top_k = 5, .top_p = 0.9}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_data_facts facts = pair_facts(cases[i].one_vocabulary ? V : SOURCE_V);
        struct world w;
        struct part whole, encoder, step;
        open_world(&w, data_pairs, cases[i].layers, &facts, true);
        struct sl_envelope wide = facts.envelope, small = facts.envelope;
        wide.steps = 7;
        wide.rows = 7 * B;
        small.steps = 1;
        small.sequences = small.rows = BEAM * B;
        open_part(&whole, &w, SL_PART_WHOLE, &wide);
        open_part(&encoder, &w, SL_PART_ENCODER, &facts.envelope);
        open_part(&step, &w, SL_PART_DECODER, &small);
        struct sl_batch *batches[2] = {make_pairs(true), make_pairs(false)};
        for (size_t c = 0; c < sizeof configs / sizeof *configs; c++) {
            struct sl_decoder_request request = {.encoder = encoder.exec,
                                                 .step = step.exec,
                                                 .config = &configs[c],
                                                 .begin = BEGIN,
                                                 .end = END,
                                                 .seed = 3};
            struct sl_decoder *decoder = NULL;
            ok(sl_decoder_create(&request, &decoder, &err), &err);
            double scores[2][B];
            for (int b = 0; b < 2; b++) {
                ok(sl_decoder_run(decoder, batches[b], &err), &err);
                for (int64_t k = 0; k < B; k++) {
                    int64_t record = batches[b]->sample[k];
                    assert_int_equal(sl_decoder_count_results(decoder, k), configs[c].n_best);
                    for (int32_t r = 0; r < configs[c].n_best; r++) {
                        struct sl_hypothesis text = sl_decoder_get_result(decoder, k, r);
                        double expected = weigh_text(&whole, record, &text, BEGIN, END);
                        if (!(fabs(text.log_probability - expected) <= 1e-4))
                            fail_msg("%s: record %d, text %d: %g is not %g", cases[i].name, (int)record, (int)r,
                                     text.log_probability, expected);
                    }
                    scores[b][record] = sl_decoder_get_result(decoder, k, 0).log_probability;
                }
            }
            for (int k = 0; k < B; k++)
                assert_true(fabs(scores[0][k] - scores[1][k]) <= 1e-5);
            assert_int_equal(sl_decoder_get_totals(decoder).sequences, 2 * B);
            sl_decoder_destroy(decoder);
        }
        for (int b = 0; b < 2; b++)
            sl_batch_destroy(batches[b]);
        close_part(&step);
        close_part(&encoder);
        close_part(&whole);
        close_world(&w);
    }
}

/* ---- scheduled sampling ------------------------------------------------------------------------------------- */

/* Would the whole model, given the mixed tokens, have said `token` at this row, by the rule of the sampler? */
static bool says(const float *row, int32_t token, bool argmax, double u)
{
    double below = 0;
    for (int32_t v = 0; v < V; v++)
        if (argmax && row[v] > row[token] + 1e-5f)
            return false;
    if (argmax)
        return true;
    struct sl_sample_rule plain = {1, 0, 1, {{0}, 0}};
    struct sl_sample_candidate scratch[V];
    for (int k = -1; k <= 1; k++) { /* on the edge of two tokens rounding decides */
        below = fmin(fmax(u + 1e-5 * k, 0), 0.9999999);
        if (sl_sample_draw(&plain, row, V, below, scratch) == token)
            return true;
    }
    return false;
}

/* With probability 1 nothing changes; with 0 every token but the first is what the whole model says after the ones
 * before; in between the coins decide, and the rest is the target's. The same epoch gives the same. */
static void sampler_feeds_what_the_model_says(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    enum {
        DRAWS = 3 + 30
    }; /* near 1 often one token alone is the model's own: also the first that can be, or the last */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_data_facts facts = pair_facts(cases[i].one_vocabulary ? V : SOURCE_V);
        struct world w;
        struct part whole, encoder, step;
        open_world(&w, data_pairs, cases[i].layers, &facts, true);
        struct sl_envelope small = facts.envelope;
        small.steps = 1;
        small.rows = B;
        open_part(&whole, &w, SL_PART_WHOLE, &facts.envelope);
        open_part(&encoder, &w, SL_PART_ENCODER, &facts.envelope);
        open_part(&step, &w, SL_PART_DECODER, &small);
        for (int c = 0; c < 2 * DRAWS; c++) {
            const bool argmax = c >= DRAWS;
            const int draw = c % DRAWS;
            const double p = draw == 0 ? 1 : draw == 1 ? 0 : draw == 2 ? 0.5 : 0.85;
            const uint64_t epoch = 2 + (uint64_t)draw;
            struct sl_sampler_request request = {encoder.exec, step.exec, argmax, 11, {{0}, 0}};
            struct sl_sampler *sampler = NULL;
            ok(sl_sampler_create(&request, &sampler, &err), &err);
            struct sl_batch *plain = make_pairs(true), *mixed = make_pairs(true), *again = make_pairs(true);
            int64_t own, counted = 0;
            ok(sl_sampler_mix(sampler, again, p, epoch + 1, &own, &err), &err);
            ok(sl_sampler_mix(sampler, mixed, p, epoch, &own, &err), &err);
            sl_batch_destroy(again);
            again = make_pairs(true);
            ok(sl_sampler_mix(sampler, again, p, epoch, &own, &err), &err);
            assert_memory_equal(mixed->input.ids, again->input.ids, R * sizeof(int32_t));
            run_part(&whole, mixed);
            struct sl_field output = sl_exec_get_output(whole.exec);
            for (int64_t k = 0; k < B; k++)
                for (int64_t t = 0; t < lengths[k]; t++) {
                    int64_t row = sl_batch_row(mixed, k, t), before = t ? sl_batch_row(mixed, k, t - 1) : 0;
                    uint64_t sequence = mixed->axis.sequence_id[k];
                    bool taught = t == 0 || sl_sampler_toss(11, epoch, sequence, (uint32_t)t, p);
                    counted += !taught;
                    if (taught) {
                        assert_int_equal(mixed->input.ids[row], plain->input.ids[row]);
                        continue;
                    }
                    double u = (double)seqlstm_uniform(seqlstm_mix64(11, UINT64_C(0x74656163686572), epoch), 4,
                                                       (uint32_t)t, sequence);
                    if (!says(output.values + before * V, mixed->input.ids[row], argmax, u))
                        fail_msg("%s: sequence %d, step %d: %d is not what the model says", cases[i].name, (int)k,
                                 (int)t, mixed->input.ids[row]);
                }
            assert_int_equal(own, counted);
            assert_int_equal(own, p == 1 ? 0 : p == 0 ? R - B : own);
            assert_memory_equal(mixed->target.ids, plain->target.ids, R * sizeof(int32_t));
            sl_batch_destroy(plain);
            sl_batch_destroy(mixed);
            sl_batch_destroy(again);
            sl_sampler_destroy(sampler);
        }
        close_part(&step);
        close_part(&encoder);
        close_part(&whole);
        close_world(&w);
    }
}

/* Tokens that are never a target are not drawn either; and what is no number is not decoded, but told. */
static void what_the_sampler_never_feeds(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    struct sl_data_facts facts = pair_facts(cases[0].one_vocabulary ? V : SOURCE_V);
    struct world w;
    struct part encoder, step;
    int64_t own;
    open_world(&w, data_pairs, cases[0].layers, &facts, true);
    struct sl_envelope small = facts.envelope;
    small.steps = 1, small.rows = B;
    open_part(&encoder, &w, SL_PART_ENCODER, &facts.envelope);
    open_part(&step, &w, SL_PART_DECODER, &small);
    for (int argmax = 0; argmax < 2; argmax++) {
        struct sl_sampler_request request = {encoder.exec, step.exec, argmax, 11, {{0, 3}, 2}};
        struct sl_sampler *sampler = NULL;
        ok(sl_sampler_create(&request, &sampler, &err), &err);
        for (uint64_t epoch = 0; epoch < 8; epoch++) {
            struct sl_batch *mixed = make_pairs(true);
            ok(sl_sampler_mix(sampler, mixed, 0, epoch, &own, &err), &err);
            assert_true(own > 0);
            for (int64_t r = mixed->axis.row_offsets[1]; r < R; r++) /* all but the first tokens */
                assert_true(mixed->input.ids[r] != 0 && mixed->input.ids[r] != 3);
            sl_batch_destroy(mixed);
        }
        sl_sampler_destroy(sampler);
    }
    memset(w.params->values, 0xff, (size_t)w.params->elems * sizeof(float)); /* NaN */
    sl_params_touch(w.params);
    struct sl_sampler_request request = {.encoder = encoder.exec, .step = step.exec};
    struct sl_batch *mixed = make_pairs(true);
    struct sl_sampler *sampler = NULL;
    ok(sl_sampler_create(&request, &sampler, &err), &err);
    assert_int_equal(sl_sampler_mix(sampler, mixed, 0, 1, &own, &err), SEQLSTM_NUMERIC);
    assert_non_null(strstr(err.message, "probabilities at step 0 are not numbers")); /* the first step is 0 */
    sl_batch_destroy(mixed);
    sl_sampler_destroy(sampler);
    close_part(&step);
    close_part(&encoder);
    close_world(&w);
}

/* What reaches kernels is real steps on both sides. */
static void rows_are_real_steps(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_data_facts facts = pair_facts(SOURCE_V);
    struct world w;
    open_world(&w, data_pairs, cases[0].layers, &facts, false);
    struct sl_batch *batch = make_pairs(true);
    struct sl_exec_step step = {.normaliser = 1};
    struct sl_exec_result result;
    ok(sl_exec_run(w.exec, batch, &step, &result, &err), &err);
    assert_int_equal(result.rows, R + SOURCE_R);
    sl_batch_destroy(batch);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_never_uniform),
        cmocka_unit_test(gradients_match_differences),
        cmocka_unit_test(states_of_a_plain_list),
        cmocka_unit_test(states_go_through_frozen_layers),
        cmocka_unit_test(gradients_of_layers_that_do_not_run),
        cmocka_unit_test(pairs_without_targets_have_no_gradients),
        cmocka_unit_test(parts_equal_the_whole),
        cmocka_unit_test(memories_must_fit_the_decoder),
        cmocka_unit_test(decoder_weighs_as_the_whole),
        cmocka_unit_test(rows_are_real_steps),
        cmocka_unit_test(sampler_feeds_what_the_model_says),
        cmocka_unit_test(what_the_sampler_never_feeds),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
