/* SPDX-License-Identifier: Apache-2.0 */
/* See calibration.h. */
#include "session/evaluate/calibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session/evaluate/clipping.h"

static bool within_one(const struct seqlstm_activation *a, bool gate)
{
    return a->kind == SEQLSTM_ACT_SIGMOID || a->kind == SEQLSTM_ACT_HARD_SIGMOID ||
           (!gate && (a->kind == SEQLSTM_ACT_TANH || a->kind == SEQLSTM_ACT_SOFTSIGN));
}

/* Does h lie in [-1, 1], whatever the weights? */
static bool is_bounded(const struct seqlstm_recurrent_desc *d)
{
    const int curve = d->cell == SEQLSTM_CELL_LSTM ? SEQLSTM_PLACE_OUTPUT : SEQLSTM_PLACE_CANDIDATE;
    const int directions = d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    for (int i = 0; i < directions; i++)
        if (!within_one(&d->activations[curve][i], false) ||
            (d->cell != SEQLSTM_CELL_RNN && !within_one(&d->activations[SEQLSTM_PLACE_GATE][i], true)))
            return false;
    return d->projection == 0;
}

static struct sl_layer_values *find(struct sl_calibration *calibration, const char *name)
{
    for (int32_t l = 0; l < calibration->count; l++)
        if (strcmp(calibration->layers[l].name, name) == 0)
            return &calibration->layers[l];
    return NULL;
}

static seqlstm_status add(struct sl_calibration *calibration, const struct sl_node *node,
                          struct sl_layer_values **out_layer, struct seqlstm_error *err)
{
    struct sl_layer_values *more =
        realloc(calibration->layers, ((size_t)calibration->count + 1) * sizeof *calibration->layers);
    if (more)
        calibration->layers = more;
    struct sl_layer_values layer = {.name = sl_arena_strdup(calibration->arena, node->name),
                                    .x = calloc(1, sizeof *layer.x),
                                    .h = calloc(1, sizeof *layer.h),
                                    .is_bounded = is_bounded(&node->desc.recurrent)};
    if (more == NULL || layer.name == NULL || layer.x == NULL || layer.h == NULL) {
        free(layer.x);
        free(layer.h);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the ranges of the layers");
    }
    calibration->layers[calibration->count] = layer;
    *out_layer = &calibration->layers[calibration->count++];
    return SEQLSTM_OK;
}

static seqlstm_status note(struct sl_exec *exec, int32_t tensor, struct sl_value_histogram *histogram,
                           struct seqlstm_error *err)
{
    const float *values;
    int64_t elems;
    SEQLSTM_TRY(sl_exec_read(exec, tensor, &values, &elems, err));
    sl_value_histogram_add(histogram, values, elems);
    return SEQLSTM_OK;
}

seqlstm_status sl_calibration_watch(void *context, struct sl_exec *exec, const struct sl_node *node,
                                    struct seqlstm_error *err)
{
    struct sl_calibration *calibration = context;
    if (node->desc.head.op != SEQLSTM_OP_RECURRENT)
        return SEQLSTM_OK;
    struct sl_layer_values *layer = find(calibration, node->name);
    if (layer == NULL)
        SEQLSTM_TRY(add(calibration, node, &layer, err));
    SEQLSTM_TRY(note(exec, node->slots[SEQLSTM_SLOT_RECURRENT_X], layer->x, err));
    return sl_node_shows_states(node) ? note(exec, node->slots[SEQLSTM_SLOT_RECURRENT_Y], layer->h, err) : SEQLSTM_OK;
}

void sl_calibration_deinit(struct sl_calibration *calibration)
{
    for (int32_t l = 0; l < calibration->count; l++) {
        free(calibration->layers[l].x);
        free(calibration->layers[l].h);
    }
    free(calibration->layers);
    calibration->layers = NULL;
    calibration->count = 0;
}

static void widen(double width, double *low, double *high)
{
    const double middle = (*low + *high) / 2, half = (*high - *low) / 2;
    *low = middle - half * width;
    *high = middle + half * width;
}

bool sl_layer_values_find_range(const struct sl_layer_values *layer, const struct sl_range_rule *rule, double *out_low,
                                double *out_high)
{
    double low = 0, high = 0, h_low = -1, h_high = 1;
    const bool seen = sl_value_histogram_find_range(layer->h, rule->share, &h_low, &h_high);
    if (!seen && !layer->is_bounded)
        return false;
    if (seen)
        widen(rule->width, &h_low, &h_high);
    if (layer->is_bounded) {
        h_low = fmax(h_low, -1);
        h_high = fmin(h_high, 1);
    }
    if (sl_value_histogram_find_range(layer->x, rule->share, &low, &high))
        widen(rule->width, &low, &high);
    *out_low = fmin(fmin(low, h_low), 0);
    *out_high = fmax(fmax(high, h_high), 0);
    return true;
}
