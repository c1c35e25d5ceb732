/* SPDX-License-Identifier: Apache-2.0 */
/* See clipping.h. */
#include "session/evaluate/clipping.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/log.h"
#include "session/record/session_record.h"

seqlstm_status sl_clipping_init(struct sl_clipping *clipping, const struct sl_quantization *quantization,
                                struct seqlstm_error *err)
{
    *clipping = (struct sl_clipping){.layers = NULL};
    if (quantization == NULL || quantization->count == 0)
        return SEQLSTM_OK;
    clipping->layers = calloc((size_t)quantization->count, sizeof *clipping->layers);
    if (clipping->layers == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to count values in int8");
    for (int32_t l = 0; l < quantization->count; l++) {
        const struct sl_quantized_layer *layer = &quantization->layers[l];
        if (layer->dtype != SEQLSTM_DTYPE_INT8)
            continue;
        const double scale = (double)layer->scale, shift = (double)layer->shift; /* of zero: a low of 0 and not -0 */
        clipping->layers[clipping->count++] =
            (struct sl_clipped_layer){.node = layer->node, .low = (0 - shift) / scale, .high = (255 - shift) / scale};
    }
    return SEQLSTM_OK;
}

void sl_clipping_deinit(struct sl_clipping *clipping)
{
    free(clipping->layers);
    *clipping = (struct sl_clipping){.layers = NULL};
}

bool sl_node_shows_states(const struct sl_node *node)
{
    const struct seqlstm_recurrent_desc *d = &node->desc.recurrent;
    return node->slots[SEQLSTM_SLOT_RECURRENT_Y] >= 0 &&
           (d->direction != SEQLSTM_DIRECTION_BIDIRECTIONAL || d->merge == SEQLSTM_KIND_MERGE_CONCAT);
}

static seqlstm_status count(struct sl_clipped_layer *layer, struct sl_exec *exec, int32_t tensor,
                            struct seqlstm_error *err)
{
    const float *values;
    int64_t elems;
    SEQLSTM_TRY(sl_exec_read(exec, tensor, &values, &elems, err));
    const double half = (layer->high - layer->low) / 510; /* what rounds to the ends is not clipped */
    const float low = (float)(layer->low - half), high = (float)(layer->high + half);
    for (int64_t i = 0; i < elems; i++) {
        if (!(values[i] < low || values[i] > high))
            continue;
        layer->clipped++;
        layer->lowest = fmin(layer->lowest, (double)values[i]);
        layer->highest = fmax(layer->highest, (double)values[i]);
    }
    layer->values += elems;
    return SEQLSTM_OK;
}

static seqlstm_status watch(void *context, struct sl_exec *exec, const struct sl_node *node, struct seqlstm_error *err)
{
    struct sl_clipping *clipping = context;
    if (node->desc.head.op != SEQLSTM_OP_RECURRENT)
        return SEQLSTM_OK;
    for (int32_t l = 0; l < clipping->count; l++) {
        struct sl_clipped_layer *layer = &clipping->layers[l];
        if (strcmp(layer->node, node->name) != 0)
            continue;
        SEQLSTM_TRY(count(layer, exec, node->slots[SEQLSTM_SLOT_RECURRENT_X], err));
        if (sl_node_shows_states(node))
            SEQLSTM_TRY(count(layer, exec, node->slots[SEQLSTM_SLOT_RECURRENT_Y], err));
    }
    return SEQLSTM_OK;
}

void sl_clipping_watch(struct sl_clipping *clipping, struct sl_exec *exec)
{
    if (clipping->count > 0)
        sl_exec_watch(exec, watch, clipping);
}

struct sl_clipped sl_clipping_sum(const struct sl_clipping *clipping)
{
    struct sl_clipped sum = {0, 0};
    for (int32_t l = 0; l < clipping->count; l++) {
        sum.clipped += clipping->layers[l].clipped;
        sum.values += clipping->layers[l].values;
    }
    return sum;
}

void sl_clipping_warn(const struct sl_clipping *clipping, const struct sl_session *session)
{
    for (int32_t l = 0; l < clipping->count; l++) {
        const struct sl_clipped_layer *layer = &clipping->layers[l];
        if (layer->clipped > 0)
            sl_log_printf(
                session->options.log, SL_LOG_WARN,
                "int8 clipped %lld of %lld values of `%s`: they reach from %.4g to %.4g, its range is %.4g to "
                "%.4g, so results may be wrong; without %s/quantization.json the run computes in float32",
                (long long)layer->clipped, (long long)layer->values, layer->node, layer->lowest, layer->highest,
                layer->low, layer->high, session->folder);
    }
}
