/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of a split: one epoch of a batcher through an executor of phase EVALUATE. */
#ifndef SL_TRAIN_EVALUATE_H
#define SL_TRAIN_EVALUATE_H

#include <seqlstm/status.h>

#include "base/system/interrupt.h"
#include "data/batch/batcher.h"
#include "decode/decoder.h"
#include "exec/exec.h"
#include "train/metrics/metric.h"
#include "parallel/ranks.h"

struct sl_evaluation {
    struct sl_metric_sums sums;
    struct sl_metric_values values;
    int64_t batches;
};

/* `decoder` writes the texts that the rule compares with the targets in the batcher's files; NULL if it compares none.
 * The batcher is set to its beginning first and is at its end afterwards. The states of streams are carried from batch
 * to batch and reset before the first. Errors: CANCELLED once `interrupt` (may be NULL) asks to stop; those of batcher
 * and executor. [one thread at a time per executor and batcher] */
seqlstm_status sl_evaluate(struct sl_exec *exec, struct sl_decoder *decoder, struct sl_batcher *batcher,
                           const struct sl_metric_rule *rule, const struct sl_interrupt *interrupt,
                           struct sl_evaluation *out_evaluation, struct seqlstm_error *err);

/* Is told each batch of a dataset, and what the model gave for it, if the rule reads that. */
typedef void sl_evaluation_batch_fn(void *context, const struct sl_metric_rule *rule, const struct sl_dataset *dataset,
                                    const struct sl_batch *batch, const struct sl_field *output);

/* The same in parts: one batch at a time. */
struct sl_evaluator {
    struct sl_exec *exec;
    struct sl_decoder *decoder;
    struct sl_metric_rule rule;
    sl_evaluation_batch_fn *on_batch; /* NULL: none */
    void *context;
};

void sl_evaluator_init(struct sl_evaluator *out, struct sl_exec *exec, struct sl_decoder *decoder,
                       const struct sl_batcher *batcher, const struct sl_metric_rule *rule);
/* All batches, as sl_evaluate. */
seqlstm_status sl_evaluate_all(const struct sl_evaluator *evaluator, struct sl_batcher *batcher,
                               const struct sl_interrupt *interrupt, struct sl_evaluation *out_evaluation,
                               struct seqlstm_error *err);
/* Adds the sums of a batch of `batcher`. */
seqlstm_status sl_evaluate_batch(const struct sl_evaluator *evaluator, const struct sl_batcher *batcher,
                                 const struct sl_batch *batch, struct sl_evaluation *evaluation,
                                 struct seqlstm_error *err);

struct sl_evaluation_ranks {
    struct sl_exec *exec;
    struct sl_decoder *decoder; /* may be NULL */
    struct sl_batcher *batcher; /* the same on all ranks, as the rule */
    const struct sl_metric_rule *rule;
    bool carries; /* states go from batch to batch */
};

/* All ranks get the evaluation that one rank alone would make, with the same bits. CANCELLED: all ranks have agreed to
 * stop. */
seqlstm_status sl_evaluate_on_ranks(const struct sl_evaluation_ranks *request, struct sl_ranks *ranks,
                                    struct sl_evaluation *out_evaluation, struct seqlstm_error *err);

#endif
