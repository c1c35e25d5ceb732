/* SPDX-License-Identifier: Apache-2.0 */
/* Flat parameter buffers. See params.h. */
#include "exec/params/params.h"

#include <stdlib.h>
#include <string.h>

#include "exec/params/params_mirror.h"
#include "exec/params/used_rows.h"

enum { ALIGN_ELEMS = 16 };

static void lay_out(struct sl_params *params, const struct sl_graph *graph)
{
    for (int pass = 0; pass < 2; pass++) { /* trainable ones first */
        for (int32_t p = 0; p < graph->param_count; p++) {
            struct sl_param_view *view = &params->views[p];
            if (view->trainable != (pass == 0))
                continue;
            view->offset_elems = params->elems;
            params->elems += (view->elems + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS;
            params->param_elems += view->elems;
        }
        if (pass == 0)
            params->trainable_elems = params->elems;
    }
}

seqlstm_status sl_params_create(const struct sl_graph *graph, bool training, int32_t optimizer_states,
                                struct sl_memory *memory, struct sl_params **out_params, struct seqlstm_error *err)
{
    struct sl_params *params = calloc(1, sizeof *params);
    if (params == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the parameters");
    params->memory = memory;
    params->view_count = graph->param_count;
    params->views = calloc((size_t)graph->param_count + 1, sizeof *params->views);
    if (params->views == NULL)
        goto out_of_memory;
    for (int32_t p = 0; p < graph->param_count; p++) {
        const struct sl_param *param = &graph->params[p];
        params->views[p] = (struct sl_param_view){.name = strdup(param->name),
                                                  .rows = param->rows,
                                                  .columns = param->columns,
                                                  .elems = param->rows * param->columns,
                                                  .layer = param->layer,
                                                  .trainable = param->trainable,
                                                  .regularizer = param->regularizer};
        if (params->views[p].name == NULL)
            goto out_of_memory;
    }
    lay_out(params, graph);
    size_t bytes = (size_t)(params->elems ? params->elems : ALIGN_ELEMS) * sizeof(float);
    params->values = sl_memory_alloc_zeroed(memory, bytes);
    if (params->values == NULL)
        goto out_of_memory;
    if (training && (params->grads = sl_memory_alloc_zeroed(memory, bytes)) == NULL)
        goto out_of_memory;
    for (int32_t s = 0; training && s < optimizer_states; s++)
        if ((params->states[s] = sl_memory_alloc_zeroed(memory, bytes)) == NULL)
            goto out_of_memory;
    if (training && sl_used_rows_create(params, graph, NULL) != SEQLSTM_OK)
        goto out_of_memory;
    *out_params = params;
    return SEQLSTM_OK;

out_of_memory:
    sl_params_destroy(params);
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the parameters of the model");
}

void sl_params_lend_grads(struct sl_params *params, float *grads)
{
    if (!params->lent_grads)
        sl_memory_free(params->memory, params->grads);
    params->grads = grads;
    params->lent_grads = true;
    sl_used_rows_forget(params);
}

seqlstm_status sl_params_share(const struct sl_params *from, struct sl_params **out_params, struct seqlstm_error *err)
{
    struct sl_params *params = malloc(sizeof *params);
    if (params == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the parameters");
    *params = *from;
    params->mirrors = NULL;
    params->shares = true;
    *out_params = params;
    return SEQLSTM_OK;
}

void sl_params_destroy(struct sl_params *params)
{
    if (params == NULL)
        return;
    if (params->shares) {
        sl_mirrors_destroy(params->mirrors);
        free(params);
        return;
    }
    for (int32_t p = 0; params->views && p < params->view_count; p++)
        free((char *)params->views[p].name);
    free(params->views);
    sl_used_rows_destroy(params);
    sl_mirrors_destroy(params->mirrors);
    sl_memory_free(params->memory, params->values);
    if (!params->lent_grads)
        sl_memory_free(params->memory, params->grads);
    for (int s = 0; s < 3; s++)
        sl_memory_free(params->memory, params->states[s]);
    free(params);
}

const struct sl_param_view *sl_params_find(const struct sl_params *params, const char *name)
{
    for (int32_t p = 0; p < params->view_count; p++)
        if (strcmp(params->views[p].name, name) == 0)
            return &params->views[p];
    return NULL;
}
