/* SPDX-License-Identifier: Apache-2.0 */
/* See exchanged.h. */
#include "train/exchanged.h"

#include "parallel/low_rank.h"

static bool is_looked_up(const struct sl_graph *graph, int32_t p)
{
    for (int32_t n = 0; n < graph->node_count; n++)
        if (graph->nodes[n].desc.head.op == SEQLSTM_OP_EMBEDDING &&
            graph->nodes[n].slots[SEQLSTM_SLOT_EMBEDDING_W] == graph->params[p].tensor)
            return true;
    return false;
}

int32_t sl_exchanged_find_matrices(const struct sl_graph *graph, const struct sl_params *params, int64_t compress_rank,
                                   struct sl_reducer_matrix *out)
{
    int32_t count = 0;
    for (int32_t p = 0; p < graph->param_count; p++) {
        const struct sl_param_view *view = &params->views[p];
        const bool compressed = compress_rank > 0 && sl_low_rank_pays(view->rows, view->columns, compress_rank);
        if (view->trainable && (compressed || is_looked_up(graph, p)))
            out[count++] = (struct sl_reducer_matrix){view->offset_elems, view->rows, view->columns, compressed};
    }
    return count;
}

seqlstm_status sl_exchanged_place_grads(struct sl_params *params, struct sl_connection *connection, bool *out_lends,
                                        struct seqlstm_error *err)
{
    void *memory;
    *out_lends = false;
    if (params->mirrors)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_connection_allocate(connection, (params->elems + 1) * (int64_t)sizeof *params->grads, &memory, err));
    *out_lends = memory != NULL;
    if (memory)
        sl_params_lend_grads(params, memory);
    return SEQLSTM_OK;
}
