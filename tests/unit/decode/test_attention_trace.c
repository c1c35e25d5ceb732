/* SPDX-License-Identifier: Apache-2.0 */
/* The attention weights of each text of a beam, beside those that the whole model has when it reads that text alone;
 * also in a second search of the same decoder. */
#include "exec_pairs.h"
#include "oom.h"

#include <seqlstm/ext/draft/attention.h>

#include "decode/decoder.h"

enum { BEGIN = 0, END = 1, BEAM = 3, STEPS = 7, LAYERS = 2, SOURCES = 5, ALONE_STEPS = 8 };

/* What the whole model reports while it runs, in the order of layers, steps and steps of the source. */
struct seen {
    int32_t nodes[LAYERS];
    int32_t layers;
    int64_t steps[LAYERS], sources;
    float weights[LAYERS][ALONE_STEPS][SOURCES];
};

static seqlstm_status watch(void *context, struct sl_exec *exec, const struct sl_node *node, struct seqlstm_error *err)
{
    struct seen *seen = context;
    const float *weights;
    int64_t elems;
    int32_t k = 0;
    if (node->desc.head.op != SEQLSTM_OP_ATTENTION)
        return SEQLSTM_OK;
    while (k < seen->layers && seen->nodes[k] != node->layer)
        k++;
    if (k == seen->layers)
        seen->nodes[seen->layers++] = node->layer;
    assert_true(k < LAYERS);
    SEQLSTM_TRY(sl_exec_read(exec, node->slots[SEQLSTM_SLOT_ATTENTION_WEIGHTS], &weights, &elems, err));
    for (int64_t r = 0; r < elems / node->desc.head.max_steps; r++) {
        assert_true(seen->steps[k] < ALONE_STEPS);
        memcpy(seen->weights[k][seen->steps[k]++], weights + r * node->desc.head.max_steps,
               (size_t)seen->sources * sizeof *weights);
    }
    return SEQLSTM_OK;
}

/* The whole model reads a text after its source. */
static void read_text(struct part *whole, int32_t record, const struct sl_hypothesis *text, struct seen *seen)
{
    struct sl_batch *batch = make_text(record, text, BEGIN);
    *seen = (struct seen){.sources = source_lengths[record]};
    sl_exec_watch(whole->exec, watch, seen);
    run_part(whole, batch);
    sl_exec_watch(whole->exec, NULL, NULL);
    sl_batch_destroy(batch);
}

/* `sources`: of the longest source that was read beside it. */
static void check_text(const char *name, const struct sl_attention_trace *trace, const struct sl_hypothesis *text,
                       const struct seen *seen, int64_t sources)
{
    const int32_t *indices;
    const int32_t layers = sl_attention_trace_get_layers(trace, &indices);
    assert_int_equal(layers, seen->layers);
    for (int32_t k = 0; k < layers; k++) {
        assert_int_equal(indices[k], seen->nodes[k]);
        assert_int_equal(seen->steps[k], text->count + text->ended);
        for (int64_t t = 0; t < seen->steps[k]; t++) {
            const float *weights = sl_attention_trace_get(trace, k, t, text->rows[t]);
            double sum = 0;
            for (int64_t s = 0; s < seen->sources; s++) {
                sum += (double)weights[s];
                if (!(fabsf(weights[s] - seen->weights[k][t][s]) <= 1e-5f))
                    fail_msg("%s, layer %d, step %d, source step %d: %g is not %g", name, k, (int)t, (int)s,
                             (double)weights[s], (double)seen->weights[k][t][s]);
            }
            for (int64_t s = seen->sources; s < sources; s++) /* beyond a shorter source */
                assert_true(weights[s] == 0);
            assert_true(seen->sources == 0 || fabs(sum - 1) <= 1e-5);
        }
    }
}

/* Of a smaller batch than the one before nothing else is left. */
static void check_smaller(const char *name, struct part *whole, struct sl_decoder *decoder,
                          const struct sl_batch *before)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int64_t k = 0;
    while (source_lengths[before->sample[k]] != 3)
        k++;
    const int32_t record = (int32_t)before->sample[k];
    struct sl_batch *alone = make_text(record, &(struct sl_hypothesis){.count = 0}, BEGIN);
    struct seen seen;
    ok(sl_decoder_run(decoder, alone, &err), &err);
    for (int32_t r = 0; r < sl_decoder_count_results(decoder, 0); r++) {
        const struct sl_hypothesis text = sl_decoder_get_result(decoder, 0, r);
        read_text(whole, record, &text, &seen);
        check_text(name, sl_decoder_find_trace(decoder), &text, &seen, 3);
    }
    sl_batch_destroy(alone);
}

static void weights_are_those_of_the_whole_model(void **state)
{
    (void)state;
    static const struct sl_decode_config config = {
        .beam = BEAM, .n_best = BEAM, .max_length = STEPS, .length_penalty = {SL_LENGTH_PENALTY_GNMT, 0.6}, .top_p = 1};
    int checked = 0, several = 0;
    part_reports_attention = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strstr(cases[i].layers, "attention") == NULL)
            continue;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_data_facts facts = pair_facts(cases[i].one_vocabulary ? V : SOURCE_V);
        struct world w;
        struct part whole, encoder, step;
        struct sl_decoder *decoder = NULL;
        open_world(&w, data_pairs, cases[i].layers, &facts, true);
        struct sl_envelope wide = facts.envelope, small = facts.envelope;
        wide.steps = ALONE_STEPS;
        wide.rows = ALONE_STEPS * B;
        small.steps = 1;
        small.sequences = small.rows = BEAM * B;
        open_part(&whole, &w, SL_PART_WHOLE, &wide);
        open_part(&encoder, &w, SL_PART_ENCODER, &facts.envelope);
        open_part(&step, &w, SL_PART_DECODER, &small);
        const struct sl_decoder_request request = {.encoder = encoder.exec,
                                                   .step = step.exec,
                                                   .config = &config,
                                                   .begin = BEGIN,
                                                   .end = END,
                                                   .traces_attention = true};
        ok(sl_decoder_create(&request, &decoder, &err), &err);
        struct sl_batch *batch = make_pairs(false);
        for (int again = 0; again < 2; again++) {
            ok(sl_decoder_run(decoder, batch, &err), &err);
            const struct sl_attention_trace *trace = sl_decoder_find_trace(decoder);
            assert_non_null(trace);
            for (int64_t k = 0; k < B; k++)
                for (int32_t r = 0; r < sl_decoder_count_results(decoder, k); r++) {
                    const struct sl_hypothesis text = sl_decoder_get_result(decoder, k, r);
                    struct seen seen;
                    read_text(&whole, (int32_t)batch->sample[k], &text, &seen);
                    check_text(cases[i].name, trace, &text, &seen, SOURCES);
                    checked += seen.sources > 1;
                    several += seen.layers > 1;
                }
            check_smaller(cases[i].name, &whole, decoder, batch);
        }
        sl_batch_destroy(batch);
        sl_decoder_destroy(decoder);
        close_part(&step);
        close_part(&encoder);
        close_part(&whole);
        close_world(&w);
    }
    assert_true(checked > 50 && several > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_those_of_the_whole_model),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
