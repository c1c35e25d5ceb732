/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the target of each source of a batch: runs the encoder once, then the decoder one step at a time.
 *
 * Two executors share the work: one runs SL_PART_ENCODER on the batch and leaves the decoder's first states, the other
 * runs SL_PART_DECODER on a batch of one step whose rows are the live hypotheses. States are carried from step to step
 * and follow their hypotheses; nothing is computed twice, and hypotheses that have ended leave the batch.
 */
#ifndef SL_DECODE_DECODER_H
#define SL_DECODE_DECODER_H

#include "decode/attention_trace.h"
#include "decode/beam.h"
#include "exec/exec.h"

struct sl_decoder;

struct sl_decoder_request {
    struct sl_exec *encoder; /* must outlive the decoder, as must all below */
    struct sl_exec *step;    /* its envelope: as many sequences as the encoder's times the beam, one step */
    const struct sl_decode_config *config;
    int32_t begin, end; /* tokens */
    struct sl_never never;
    uint64_t seed;         /* of drawn tokens */
    bool traces_attention; /* the step's graph reports weights */
};

seqlstm_status sl_decoder_create(const struct sl_decoder_request *request, struct sl_decoder **out_decoder,
                                 struct seqlstm_error *err);
/* Bytes of a decoder without its executors, where `step` is the graph of the second one and sources have at most so
 * many steps; attention weights not included. */
int64_t sl_decoder_count_bytes(const struct sl_graph *step, const struct sl_decode_config *config,
                               int64_t source_steps);
void sl_decoder_destroy(struct sl_decoder *decoder);

/* The largest number of tokens that is written for a source. */
int32_t sl_decoder_get_limit(const struct sl_decode_config *config, int64_t source_steps);
/* The number from 0 to 1 that draws token `step` of a record, where tokens are drawn. */
double sl_decoder_draw(uint64_t seed, int64_t step, int64_t record);

/* Results are valid until the next run. Errors: NO_MEMORY, NUMERIC (the model's output is no number), those of the
 * executors. [one thread at a time] */
seqlstm_status sl_decoder_run(struct sl_decoder *decoder, const struct sl_batch *batch, struct seqlstm_error *err);

/* Results of sequence k of the batch: how many there are, and one of them. See beam.h. */
int32_t sl_decoder_count_results(const struct sl_decoder *decoder, int64_t sequence);
struct sl_hypothesis sl_decoder_get_result(struct sl_decoder *decoder, int64_t sequence, int32_t rank);

/* The attention weights of the present results; NULL: the request did not ask for them. Valid until the next run. */
const struct sl_attention_trace *sl_decoder_find_trace(const struct sl_decoder *decoder);

/* Since creation. */
struct sl_decoder_totals {
    int64_t sequences;
    int64_t tokens; /* of the best results, ends included */
    int64_t rows;   /* that the decoder has run on */
    int64_t ns;
};
struct sl_decoder_totals sl_decoder_get_totals(const struct sl_decoder *decoder);

#endif
