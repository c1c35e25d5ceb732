/* SPDX-License-Identifier: Apache-2.0 */
/* Batches without data, to time steps on. */
#include "session/measure/made_batch.h"

#include "base/batch/batch.h"
#include "graph/graph.h"

seqlstm_status sl_session_make_batch(const struct sl_data_facts *facts, int64_t sequences, const int32_t *lengths,
                                     const int32_t *source_lengths, struct sl_batch **out_batch,
                                     struct seqlstm_error *err)
{
    const struct sl_batch_shape shape = {
        .sequences = sequences,
        .lengths = lengths,
        .input_kind = facts->input.kind,
        .input_features = facts->input.features,
        .input_on_steps = facts->input.on_steps,
        .target_kind = facts->target.kind,
        .target_features = facts->target.features,
        .target_on_steps = facts->target.on_steps,
        .has_weight = facts->has_weight,
        .source_lengths = source_lengths,
        .source_kind = facts->source.kind,
        .source_features = facts->source.features,
    };
    SEQLSTM_TRY(sl_batch_create(&shape, out_batch, err));
    struct sl_batch *batch = *out_batch;
    float *weight = (float *)(uintptr_t)batch->weight.values;
    for (int64_t i = 0; facts->has_weight && i < (facts->target.on_steps ? batch->axis.rows : sequences); i++)
        weight[i] = 1;
    batch->last_segment = true;
    return SEQLSTM_OK;
}
