/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the next batch's fields to the devices while the present batch is computed.
 *
 *   run n     calls of batch n started │ pinned ← batch n+1, copies started on the lane │ wait for both
 *   run n+1   the fields of batch n+1 are on the device already
 *
 * Copies go to two sets of fields alternately. A run whose batch was staged copies it from its set to where calls read
 * it, which is the same place for all batches, while the next batch goes to the other set. A run ends when both streams
 * have finished, so pinned memory and the earlier set are free when the next staging begins, and a copy that failed is
 * reported by the run that started it.
 */
#include "exec/place/staging.h"

#include <string.h>

#include "base/memory/alignment.h"
#include "exec/place/place.h"

/* The values of a field; NULL: the batch has none. */
static const void *get_field(const struct sl_batch *batch, int f, int64_t *out_bytes)
{
    const struct sl_field *const fields[SL_EXEC_STAGED] = {&batch->input, &batch->target, &batch->weight,
                                                           &batch->source.input};
    const struct sl_field *field = fields[f];
    int64_t steps = f == SL_TENSOR_SOURCE - SL_TENSOR_INPUT ? batch->source.axis.rows : batch->axis.rows;
    bool absent = field->kind == SL_FIELD_NONE || (f == SL_TENSOR_SOURCE - SL_TENSOR_INPUT && !batch->source.present);
    *out_bytes = absent ? 0 : (field->on_steps ? steps : batch->sequences) * field->features * 4;
    return absent ? NULL : field->values;
}

/* Finds out which fields the calls of a place read, and makes room for them. */
static seqlstm_status open_stage(struct sl_exec *exec, int32_t p, struct seqlstm_error *err)
{
    struct sl_exec_place *place = &exec->places[p];
    struct sl_exec_staging *staging = &place->staging;
    int64_t bytes[SL_EXEC_STAGED] = {0}, all = 0;
    for (int32_t c = 0; c < exec->plan->call_count; c++)
        for (int32_t s = 0; exec->calls[c].place == p && s < exec->calls[c].slot_count; s++) {
            int32_t t = exec->plan->calls[c].node->slots[s];
            if (t < 0 || exec->calls[c].roles[s] == SL_SLOT_ABSENT)
                continue;
            const struct sl_tensor *tensor = &exec->graph->tensors[t];
            int f = (int)tensor->role - SL_TENSOR_INPUT;
            if (f >= 0 && f < SL_EXEC_STAGED)
                bytes[f] = sl_graph_get_rows(exec->graph, tensor) * tensor->features * sl_dtype_bytes(tensor->dtype);
        }
    SEQLSTM_TRY(sl_lane_open(&staging->lane, place->domain, err));
    for (int f = 0; f < SL_EXEC_STAGED; f++) {
        staging->offsets[f] = bytes[f] > 0 ? all : -1;
        all += sl_align(bytes[f]);
        for (int set = 0; bytes[f] > 0 && set < 2; set++)
            SEQLSTM_TRY(sl_exec_allocate(exec, place, bytes[f], &staging->fields[set][f], err));
    }
    SEQLSTM_TRY(sl_domain_finish(place->domain, err)); /* they are cleared before copies are written to them */
    void *pinned;
    SEQLSTM_TRY(sl_domain_allocate_pinned(place->domain, all, &pinned, err));
    staging->pinned = pinned;
    return SEQLSTM_OK;
}

seqlstm_status sl_exec_open_staging(struct sl_exec *exec, struct seqlstm_error *err)
{
    for (int32_t p = SL_PLACE_HOST + 1; p < SL_PLACES_MAX; p++)
        if (exec->places[p].domain != NULL && exec->places[p].staging.pinned == NULL)
            SEQLSTM_TRY(open_stage(exec, p, err));
    return SEQLSTM_OK;
}

seqlstm_status sl_exec_stage(struct sl_exec *exec, const struct sl_batch *batch, struct seqlstm_error *err)
{
    for (int32_t p = SL_PLACE_HOST + 1; p < SL_PLACES_MAX; p++) {
        struct sl_exec_staging *staging = &exec->places[p].staging;
        if (exec->places[p].domain == NULL)
            continue;
        for (int f = 0; f < SL_EXEC_STAGED; f++) {
            int64_t bytes;
            const void *values = get_field(batch, f, &bytes);
            if (staging->offsets[f] < 0 || bytes == 0)
                continue;
            memcpy(staging->pinned + staging->offsets[f], values, (size_t)bytes);
            SEQLSTM_TRY(sl_lane_upload(&staging->lane, staging->fields[exec->staged_set][f],
                                       staging->pinned + staging->offsets[f], bytes, err));
        }
    }
    exec->staged = batch;
    exec->staged_ordinal = batch->ordinal;
    return SEQLSTM_OK;
}

seqlstm_status sl_exec_take_staged(struct sl_exec *exec, const struct sl_batch *batch, struct seqlstm_error *err)
{
    bool staged = exec->staged == batch && exec->staged_ordinal == batch->ordinal;
    int set = exec->staged_set;
    exec->staged = NULL;
    exec->staged_set = 1 - set;
    for (int32_t p = SL_PLACE_HOST + 1; staged && p < SL_PLACES_MAX; p++) {
        struct sl_exec_place *place = &exec->places[p];
        for (int f = 0; place->staging.pinned != NULL && f < SL_EXEC_STAGED; f++) {
            int64_t bytes;
            get_field(batch, f, &bytes);
            if (place->staging.offsets[f] < 0)
                continue;
            SEQLSTM_TRY(sl_domain_copy(place->domain, place->fields[f], place->staging.fields[set][f], bytes, err));
            for (int32_t t = 0; t < exec->graph->tensor_count; t++)
                if (exec->graph->tensors[t].role == (enum sl_tensor_role)(SL_TENSOR_INPUT + f))
                    exec->valid[t] |= (uint8_t)(1u << p);
        }
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_exec_finish_staging(struct sl_exec *exec, struct seqlstm_error *err)
{
    for (int32_t p = SL_PLACE_HOST + 1; p < SL_PLACES_MAX; p++)
        SEQLSTM_TRY(sl_lane_finish(&exec->places[p].staging.lane, err));
    return SEQLSTM_OK;
}

void sl_exec_close_staging(struct sl_exec *exec)
{
    for (int32_t p = SL_PLACE_HOST + 1; p < SL_PLACES_MAX; p++) {
        struct sl_exec_staging *staging = &exec->places[p].staging;
        sl_lane_finish(&staging->lane, NULL);
        sl_domain_release_pinned(exec->places[p].domain, staging->pinned);
        for (int f = 0; f < SL_EXEC_STAGED; f++)
            for (int set = 0; set < 2; set++)
                sl_domain_release(exec->places[p].domain, staging->fields[set][f]);
        sl_lane_close(&staging->lane);
    }
}
