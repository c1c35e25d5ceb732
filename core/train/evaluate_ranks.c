/* SPDX-License-Identifier: Apache-2.0 */
/* An evaluation that is divided among ranks: whole batches in turn, whose sums are added in the order of the batches,
 * as one rank adds them. Where states are carried from batch to batch, rank 0 evaluates alone. */
#include <stdlib.h>
#include <string.h>

#include "train/evaluate.h"

struct round {
    struct sl_ranks *ranks;
    struct sl_batcher *batcher;
    struct sl_evaluation *evaluation;
    struct sl_evaluation own, *all; /* of this round: [ranks] */
};

/* Takes the next batches, one for each rank; evaluates this rank's. */
static seqlstm_status evaluate_round(const struct sl_evaluator *evaluator, struct round *round, bool *out_ended,
                                     struct seqlstm_error *err)
{
    memset(&round->own, 0, sizeof round->own);
    for (int32_t r = 0; r < round->ranks->ranks && !*out_ended; r++) {
        struct sl_batch *batch = NULL;
        SEQLSTM_TRY(sl_batcher_next(round->batcher, &batch, err));
        *out_ended = batch == NULL;
        seqlstm_status status = SEQLSTM_OK;
        if (batch && r == round->ranks->rank)
            status = sl_evaluate_batch(evaluator, round->batcher, batch, &round->own, err);
        sl_batch_destroy(batch);
        SEQLSTM_TRY(status);
    }
    return SEQLSTM_OK;
}

static seqlstm_status share_round(struct round *round, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_ranks_gather(round->ranks, &round->own, (int64_t)sizeof round->own, round->all, err));
    for (int32_t r = 0; r < round->ranks->ranks; r++) {
        if (round->all[r].batches == 0)
            continue;
        sl_metric_sums_add(&round->evaluation->sums, &round->all[r].sums);
        round->evaluation->batches += round->all[r].batches;
    }
    SEQLSTM_TRY(sl_ranks_agree(round->ranks, err));
    if (sl_interrupt_get_stop(&round->ranks->agreed))
        SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "the evaluation was interrupted");
    return SEQLSTM_OK;
}

/* Rank 0 alone; the others wait for its sums. */
static seqlstm_status evaluate_at_rank_0(const struct sl_evaluator *evaluator, struct sl_ranks *ranks,
                                         struct sl_batcher *batcher, const struct sl_metric_rule *rule,
                                         struct sl_evaluation *out_evaluation, struct seqlstm_error *err)
{
    seqlstm_status status = SEQLSTM_OK;
    memset(out_evaluation, 0, sizeof *out_evaluation);
    if (ranks->rank == 0)
        status = sl_evaluate(evaluator->exec, evaluator->decoder, batcher, rule, ranks->own, out_evaluation, err);
    if (status != SEQLSTM_OK && status != SEQLSTM_CANCELLED)
        return status;
    out_evaluation->batches = status == SEQLSTM_CANCELLED ? -1 : out_evaluation->batches;
    SEQLSTM_TRY(sl_ranks_broadcast(ranks, 0, &out_evaluation->sums, (int64_t)sizeof out_evaluation->sums, err));
    SEQLSTM_TRY(sl_ranks_broadcast(ranks, 0, &out_evaluation->batches, (int64_t)sizeof out_evaluation->batches, err));
    SEQLSTM_TRY(sl_ranks_agree(ranks, err));
    if (out_evaluation->batches < 0)
        SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "the evaluation was interrupted");
    return SEQLSTM_OK;
}

seqlstm_status sl_evaluate_on_ranks(const struct sl_evaluation_ranks *request, struct sl_ranks *ranks,
                                    struct sl_evaluation *out_evaluation, struct seqlstm_error *err)
{
    struct sl_evaluator evaluator;
    struct sl_evaluation evaluation = {0};
    struct round round = {.ranks = ranks, .batcher = request->batcher, .evaluation = &evaluation};
    bool ended = false;
    seqlstm_status status = SEQLSTM_OK;
    sl_evaluator_init(&evaluator, request->exec, request->decoder, request->batcher, request->rule);
    if (request->carries || !ranks->connection) {
        SEQLSTM_TRY(evaluate_at_rank_0(&evaluator, ranks, request->batcher, request->rule, &evaluation, err));
    } else {
        round.all = malloc((size_t)ranks->ranks * sizeof *round.all);
        if (!round.all)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the sums of %d ranks", ranks->ranks);
        status = sl_batcher_seek(request->batcher, 0, 0, err);
        sl_exec_reset_state(request->exec);
        while (status == SEQLSTM_OK && !ended) {
            status = evaluate_round(&evaluator, &round, &ended, err);
            if (status == SEQLSTM_OK)
                status = share_round(&round, err);
        }
        free(round.all);
        SEQLSTM_TRY(status);
    }
    sl_metric_finish(&evaluator.rule, &evaluation.sums, &evaluation.values);
    *out_evaluation = evaluation;
    return SEQLSTM_OK;
}
