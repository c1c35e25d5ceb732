/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of a world against central differences of the loss.
 *
 * Tolerance: slots are float32, so the loss carries an error of about eps32 per activation; with a step h the
 * difference quotient is off by 1.5 eps32 * |loss| / h (rounding) plus h^4 / 30 times the fifth derivative. With
 * h = 2^-8 and smooth models of a few layers both stay below 3e-4 of the gradient's scale; 2e-3 is the bound.
 */
#ifndef EXEC_GRADIENTS_H
#define EXEC_GRADIENTS_H

#include "exec_world.h"
#include "exec/place/place.h"
#include "exec/rows.h"

/* d loss / d value by central differences of fourth order. */
static double difference(struct world *w, const struct sl_batch *batch, float *value, float kept)
{
    static const double weights[4] = {1.0 / 12, -8.0 / 12, 8.0 / 12, -1.0 / 12};
    static const float places[4] = {-2, -1, 1, 2};
    const float h = 1.0f / 256;
    double sum = 0;
    for (int k = 0; k < 4; k++) {
        *value = kept + places[k] * h;
        sl_params_touch(w->params);
        sum += weights[k] * run(w, batch, false);
    }
    *value = kept;
    sl_params_touch(w->params);
    return sum / (double)h;
}

/* Fills what a step writes with NaN. */
static void spoil(struct world *w)
{
    for (int32_t t = 0; t < w->graph->tensor_count; t++) {
        const struct sl_tensor *tensor = &w->graph->tensors[t];
        const size_t bytes = (size_t)(sl_exec_get_rows(w->exec, tensor->axis) * tensor->features) * sizeof(float);
        const bool written = tensor->role == SL_TENSOR_ACTIVATION && tensor->dtype == SEQLSTM_DTYPE_FLOAT32;
        void *value = written ? sl_exec_at(w->exec, SL_PLACE_HOST, t) : NULL;
        float *grad = sl_exec_grad_at(w->exec, SL_PLACE_HOST, t);
        if (value)
            memset(value, 0xff, bytes);
        if (grad)
            memset(grad, 0xff, bytes);
    }
}

/* A step reads only what it has written itself, also of steps and sequences that pass no gradient on. */
static void check_other_memory(struct world *w, const struct sl_batch *batch, double loss, const float *grads,
                               const char *name)
{
    spoil(w);
    if (run(w, batch, false) != loss || memcmp(grads, w->params->grads, (size_t)w->params->elems * sizeof *grads) != 0)
        fail_msg("%s: another result after other contents of the memory", name);
}

/* Every parameter that is trained: a handful of its elements. */
static void check_gradients(struct world *w, const struct sl_batch *batch, const char *name)
{
    const double loss = run(w, batch, false);
    float *grads = malloc((size_t)w->params->elems * sizeof *grads);
    memcpy(grads, w->params->grads, (size_t)w->params->elems * sizeof *grads);
    check_other_memory(w, batch, loss, grads, name);
    for (int32_t p = 0; p < w->params->view_count; p++) {
        const struct sl_param_view *view = &w->params->views[p];
        if (!view->trainable)
            continue;
        double scale = 0.05;
        for (int64_t e = 0; e < view->elems; e++)
            scale = fmax(scale, fabs((double)grads[view->offset_elems + e]));
        int64_t stride = view->elems > 12 ? view->elems / 12 : 1;
        for (int64_t e = 0; e < view->elems; e += stride) {
            float *value = &w->params->values[view->offset_elems + e], kept = *value;
            double expected = difference(w, batch, value, kept), got = (double)grads[view->offset_elems + e];
            if (!(fabs(expected - got) <= 2e-3 * scale))
                fail_msg("%s: %s[%lld]: gradient %g, difference %g, scale %g", name, view->name, (long long)e, got,
                         expected, scale);
        }
    }
    free(grads);
}

#endif
