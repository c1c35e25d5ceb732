/* SPDX-License-Identifier: Apache-2.0 */
/* See exchanged.h. */
#include "train/exchanged.h"

#include <string.h>

#include "exec/params/params_mirror.h"
#include "exec/params/used_rows.h"
#include "parallel/low_rank.h"

enum { DEVICE_PLACE = 1 }; /* of the only device */

/* Rows are exact and need no products: they may be so many times the elements of the factors. */
enum { ROWS_WORTH = 4 };

bool sl_exchanged_is_compressed(const struct sl_graph *graph, int32_t p, const struct sl_exchanged_request *request)
{
    const int64_t rows = graph->params[p].rows, columns = graph->params[p].columns, rank = request->compress_rank;
    if (!graph->params[p].trainable || rank < 1 || !sl_low_rank_pays(rows, columns, rank))
        return false;
    return !sl_graph_is_only_looked_up(graph, p) || request->lookups * columns > ROWS_WORTH * rank * (rows + columns);
}

int64_t sl_exchanged_count_lookups(const struct sl_envelope *batch, int32_t batches)
{
    return (batch->rows + batch->source_rows) * (batches > 1 ? batches : 1);
}

int32_t sl_exchanged_find_matrices(const struct sl_graph *graph, const struct sl_params *params,
                                   const struct sl_exchanged_request *request, struct sl_bundle_matrix *out)
{
    int32_t count = 0;
    for (int32_t p = 0; p < graph->param_count; p++) {
        const struct sl_param_view *view = &params->views[p];
        const bool compressed = sl_exchanged_is_compressed(graph, p, request);
        if (view->trainable && (compressed || sl_graph_is_only_looked_up(graph, p)))
            out[count++] = (struct sl_bundle_matrix){view->offset_elems, view->rows, view->columns, compressed};
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

bool sl_exchanged_stays_on_device(const struct sl_params *params, const struct sl_ranks *ranks)
{
    const struct sl_mirrors *mirrors = params->mirrors;
    const char *domain = sl_connection_get_transport(ranks->connection)->domain;
    return mirrors && mirrors->count == 1 && strncmp(mirrors->mirrors[0].domain.name, domain, strlen(domain)) == 0 &&
           ranks->reduce->how != SL_REDUCE_CENTRAL && ranks->reduce->dtype != SL_REDUCE_BFLOAT16 &&
           ranks->compress_rank == 0;
}

seqlstm_status sl_exchanged_add_on_device(struct sl_params *params, const struct sl_rank_group *group,
                                          struct seqlstm_error *err)
{
    struct sl_domain *domain = sl_params_get_domain(params, DEVICE_PLACE);
    const int64_t elems = params->trainable_elems;
    float *grads;
    SEQLSTM_TRY(sl_params_provide(params, DEVICE_PLACE, SL_PART_GRADS, 0, elems, &grads, err));
    const struct seqlstm_exchange sum = {.kind = SEQLSTM_COLLECTIVE_ALL_REDUCE,
                                         .dtype = SEQLSTM_DTYPE_FLOAT32,
                                         .elems = elems,
                                         .from = grads,
                                         .to = grads};
    SEQLSTM_TRY(sl_connection_run_on(group->connection, group->number, &domain->queue.queue, sum, err));
    const seqlstm_status status = sl_domain_finish(domain, err);
    SEQLSTM_TRY(sl_connection_poll(group->connection, err)); /* why it has ended, if it was not by itself */
    sl_params_note_written(params, DEVICE_PLACE, SL_PART_GRADS, 0, elems);
    return status;
}

seqlstm_status sl_exchanged_finish(struct sl_params *params, struct sl_reducer *reducer, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_params_pull_grads(params, err));
    SEQLSTM_TRY(sl_reducer_finish(reducer, err));
    sl_params_note_written(params, SL_PLACE_HOST, SL_PART_GRADS, 0, params->elems);
    for (int32_t k = 0; k < params->used_count; k++)
        sl_used_rows_add(params, params->used[k].offset, sl_reducer_get_used(reducer, params->used[k].offset));
    return SEQLSTM_OK;
}
