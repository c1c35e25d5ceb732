/* SPDX-License-Identifier: Apache-2.0 */
/* See decoder.h. */
#include "decode/decoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "base/system/clock.h"
#include "decode/parts.h"
#include "decode/sample.h"

#define DRAW_STREAM UINT64_C(0x6465636f6465) /* "decode" */

struct sl_decoder {
    struct sl_decoder_request request;
    struct sl_parts parts;
    const struct sl_graph *graph; /* of the step */
    struct sl_beam *beam;         /* of the last run */
    float *spare;                 /* as large as the states of a step */
    int32_t *tokens;              /* [rows of the step's envelope], as the next; empty where none is drawn */
    double *log_probabilities;
    struct sl_sample_candidate *candidates; /* [classes]; empty as well */
    struct sl_attention_trace *trace;       /* NULL: not asked for */
    struct sl_decoder_totals totals;
};

static seqlstm_status no_memory(struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to decode");
}

seqlstm_status sl_decoder_create(const struct sl_decoder_request *request, struct sl_decoder **out_decoder,
                                 struct seqlstm_error *err)
{
    struct sl_decoder *decoder = calloc(1, sizeof *decoder);
    if (decoder == NULL)
        return no_memory(err);
    decoder->request = *request;
    decoder->graph = sl_exec_get_graph(request->step);
    const bool draws = request->config->temperature > 0;
    const size_t rows = draws ? (size_t)decoder->graph->facts.envelope.sequences : 0;
    const size_t classes = draws ? (size_t)decoder->graph->facts.target.classes : 0;
    float *states;
    int64_t elems = 0;
    seqlstm_status status = sl_exec_get_state(request->step, &states, &elems, err);
    if (status == SEQLSTM_OK)
        status = sl_parts_init(&decoder->parts, request->encoder, request->step, err);
    decoder->spare = calloc((size_t)elems + 1, sizeof *decoder->spare);
    decoder->tokens = calloc(rows + 1, sizeof *decoder->tokens);
    decoder->log_probabilities = calloc(rows + 1, sizeof *decoder->log_probabilities);
    decoder->candidates = calloc(classes + 1, sizeof *decoder->candidates);
    if (status == SEQLSTM_OK &&
        (!decoder->spare || !decoder->tokens || !decoder->log_probabilities || !decoder->candidates))
        status = no_memory(err);
    if (status == SEQLSTM_OK && request->traces_attention)
        status = sl_attention_trace_create(request->step, &decoder->trace, err);
    if (status == SEQLSTM_OK)
        *out_decoder = decoder;
    else
        sl_decoder_destroy(decoder);
    return status;
}

int32_t sl_decoder_get_limit(const struct sl_decode_config *config, int64_t source_steps)
{
    const int64_t limit = config->max_length ? config->max_length : 2 * source_steps + 10;
    return limit < INT32_MAX ? (int32_t)limit : INT32_MAX;
}

double sl_decoder_draw(uint64_t seed, int64_t step, int64_t record)
{
    return (double)seqlstm_uniform(seqlstm_mix64(seed, DRAW_STREAM, 0), 0, (uint32_t)step, (uint64_t)record);
}

static struct sl_beam_rule get_rule(const struct sl_decode_config *config)
{
    return (struct sl_beam_rule){
        .beam = (int32_t)config->beam, .n_best = (int32_t)config->n_best, .penalty = config->length_penalty};
}

int64_t sl_decoder_count_bytes(const struct sl_graph *step, const struct sl_decode_config *config, int64_t source_steps)
{
    const int64_t rows = step->facts.envelope.sequences;
    const struct sl_beam_rule rule = get_rule(config);
    int64_t features = 0;
    for (int32_t s = 0; s < step->state_count; s++)
        features += step->states[s].features;
    int64_t bytes = sl_parts_count_bytes(step) + rows * features * (int64_t)sizeof(float) +
                    sl_beam_count_bytes(&rule, rows / config->beam, sl_decoder_get_limit(config, source_steps));
    if (config->temperature > 0)
        bytes += rows * (int64_t)(sizeof(int32_t) + sizeof(double)) +
                 step->facts.target.classes * (int64_t)sizeof(struct sl_sample_candidate);
    return bytes;
}

void sl_decoder_destroy(struct sl_decoder *decoder)
{
    if (decoder == NULL)
        return;
    sl_beam_destroy(decoder->beam);
    sl_parts_deinit(&decoder->parts);
    free(decoder->spare);
    free(decoder->tokens);
    free(decoder->log_probabilities);
    free(decoder->candidates);
    sl_attention_trace_destroy(decoder->trace);
    free(decoder);
}

static seqlstm_status run_step(struct sl_decoder *decoder, const struct sl_beam_row *rows, int32_t count, int64_t step,
                               const float **out_probabilities, struct seqlstm_error *err)
{
    for (int32_t r = 0; r < count; r++) {
        decoder->parts.tokens[r] = rows[r].token;
        decoder->parts.sentences[r] = rows[r].sentence;
    }
    SEQLSTM_TRY(sl_parts_step(&decoder->parts, count, step, out_probabilities, err));
    decoder->totals.rows += count;
    return SEQLSTM_OK;
}

/* One token for each row; a drawn token depends only on record and step. */
static void draw(struct sl_decoder *decoder, const struct sl_batch *batch, const struct sl_beam_row *rows,
                 int32_t count, int64_t step, const float *probabilities)
{
    const struct sl_decode_config *config = decoder->request.config;
    struct sl_sample_rule rule = {config->temperature, config->top_k, config->top_p, decoder->request.never};
    int64_t classes = decoder->graph->facts.target.classes;
    for (int32_t r = 0; r < count; r++) {
        const float *row = probabilities + r * classes;
        const double u = sl_decoder_draw(decoder->request.seed, step, batch->sample[rows[r].sentence]);
        decoder->tokens[r] = sl_sample_draw(&rule, row, classes, u, decoder->candidates);
        decoder->log_probabilities[r] = log((double)row[decoder->tokens[r]]);
    }
}

static seqlstm_status begin(struct sl_decoder *decoder, const struct sl_batch *batch, struct seqlstm_error *err)
{
    const struct sl_decode_config *config = decoder->request.config;
    struct sl_beam_rule rule = get_rule(config);
    rule.begin = decoder->request.begin;
    rule.end = decoder->request.end;
    rule.never = decoder->request.never;
    int32_t sentences = (int32_t)batch->sequences;
    int32_t *limits = calloc((size_t)sentences + 1, sizeof *limits);
    if (limits == NULL)
        return no_memory(err);
    for (int32_t k = 0; k < sentences; k++) {
        int32_t place = batch->source.place[k];
        int64_t length = place < batch->source.axis.sequences ? batch->source.axis.lengths[place] : 0;
        limits[k] = sl_decoder_get_limit(config, length);
    }
    sl_beam_destroy(decoder->beam);
    decoder->beam = NULL;
    seqlstm_status status = sl_beam_create(&rule, sentences, limits, &decoder->beam, err);
    free(limits);
    SEQLSTM_TRY(status);
    SEQLSTM_TRY(sl_parts_begin(&decoder->parts, batch, err));
    if (decoder->trace)
        sl_attention_trace_begin(decoder->trace, batch->source.axis.steps);
    return SEQLSTM_OK;
}

static seqlstm_status search(struct sl_decoder *decoder, const struct sl_batch *batch, struct seqlstm_error *err)
{
    bool draws = decoder->request.config->temperature > 0;
    SEQLSTM_TRY(begin(decoder, batch, err));
    for (int64_t step = 0;; step++) {
        int32_t count;
        const struct sl_beam_row *rows = sl_beam_get_rows(decoder->beam, &count);
        const float *probabilities;
        const int32_t *sources;
        if (count == 0)
            return SEQLSTM_OK;
        SEQLSTM_TRY(run_step(decoder, rows, count, step, &probabilities, err));
        if (draws) {
            draw(decoder, batch, rows, count, step, probabilities);
            SEQLSTM_TRY(sl_beam_follow(decoder->beam, decoder->tokens, decoder->log_probabilities, &sources, err));
        } else {
            SEQLSTM_TRY(
                sl_beam_advance(decoder->beam, probabilities, decoder->graph->facts.target.classes, &sources, err));
        }
        sl_beam_get_rows(decoder->beam, &count);
        SEQLSTM_TRY(sl_parts_follow(&decoder->parts, decoder->spare, sources, count, err));
    }
}

seqlstm_status sl_decoder_run(struct sl_decoder *decoder, const struct sl_batch *batch, struct seqlstm_error *err)
{
    int64_t start = sl_clock_ns();
    SEQLSTM_TRY(search(decoder, batch, err));
    decoder->totals.ns += sl_clock_ns() - start;
    decoder->totals.sequences += batch->sequences;
    for (int64_t k = 0; k < batch->sequences; k++) {
        struct sl_hypothesis best = sl_decoder_get_result(decoder, k, 0);
        decoder->totals.tokens += best.count + best.ended;
    }
    return SEQLSTM_OK;
}

int32_t sl_decoder_count_results(const struct sl_decoder *decoder, int64_t sequence)
{
    return sl_beam_count_results(decoder->beam, (int32_t)sequence);
}

struct sl_hypothesis sl_decoder_get_result(struct sl_decoder *decoder, int64_t sequence, int32_t rank)
{
    return sl_beam_get_result(decoder->beam, (int32_t)sequence, rank);
}

const struct sl_attention_trace *sl_decoder_find_trace(const struct sl_decoder *decoder)
{
    return decoder->trace;
}

struct sl_decoder_totals sl_decoder_get_totals(const struct sl_decoder *decoder)
{
    return decoder->totals;
}
