/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the memories that attention reads from the executor of an encoder to that of its decoder, through the host. */
#include <string.h>

#include "exec/place.h"
#include "exec/rows.h"

seqlstm_status sl_exec_hand_memories(struct sl_exec *encoder, struct sl_exec *decoder, struct seqlstm_error *err)
{
    for (int32_t m = 0; m < encoder->graph->memory_count; m++) {
        int32_t from = encoder->graph->memories[m].tensor_out, to = decoder->graph->memories[m].tensor_in;
        const struct sl_tensor *tensor = &encoder->graph->tensors[from];
        int64_t rows = encoder->shape ? sl_exec_get_rows(encoder, tensor->axis) : 0;
        void *read;
        if (rows > sl_graph_get_rows(decoder->graph, &decoder->graph->tensors[to]))
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a memory of %lld rows does not fit the decoder's plan",
                         (long long)rows);
        SEQLSTM_TRY(sl_exec_provide(encoder, SL_PLACE_HOST, from, &read, err));
        memcpy(sl_exec_at(decoder, SL_PLACE_HOST, to), read, (size_t)(rows * tensor->features) * sizeof(float));
        sl_exec_note_written(decoder, SL_PLACE_HOST, to);
    }
    return SEQLSTM_OK;
}
