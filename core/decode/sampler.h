/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduled sampling (Bengio et al. 2015): in training the decoder reads at each step the target's token with
 * probability p, else the token that the model itself predicts after its input so far.
 *
 * The tokens are drawn in a pass of their own, without dropout, by the parts that decode; the training step then runs
 * on the batch as usual. Nothing is differentiated through a drawn token, so the gradient is that of a single pass that
 * draws and learns at once.
 *
 * Whether a token is replaced, and by which one, depends only on seed, epoch, sequence and step: not on the batch, the
 * update or the backend.
 */
#ifndef SL_DECODE_SAMPLER_H
#define SL_DECODE_SAMPLER_H

#include "decode/never.h"
#include "exec/exec.h"

struct sl_sampler;

struct sl_sampler_request {
    struct sl_exec *encoder; /* must outlive the sampler, as must the next */
    struct sl_exec *step;    /* its envelope: as many sequences as in training, one step */
    bool argmax;             /* true: the likeliest token; false: one drawn from the model's distribution */
    uint64_t seed;
    struct sl_never never;
};

seqlstm_status sl_sampler_create(const struct sl_sampler_request *request, struct sl_sampler **out_sampler,
                                 struct seqlstm_error *err);
/* Bytes of a sampler without its executors, where `step` is the graph of the second one. */
int64_t sl_sampler_count_bytes(const struct sl_graph *step);
void sl_sampler_destroy(struct sl_sampler *sampler);

/* Is the token that step `step` reads the target's? */
bool sl_sampler_toss(uint64_t seed, uint64_t epoch, uint64_t sequence, uint32_t step, double probability);

/* Changes the input of the batch, with the present weights of the executors' parameters; first tokens stay. With
 * probability 1 nothing runs. `*out_own`: how many tokens are the model's own. Errors: those of the executors. */
seqlstm_status sl_sampler_mix(struct sl_sampler *sampler, struct sl_batch *batch, double probability, uint64_t epoch,
                              int64_t *out_own, struct seqlstm_error *err);

#endif
