/* SPDX-License-Identifier: Apache-2.0 */
/* A world of exec_world.h with the parameters of a fixture, and its gradients held against the fixture's.
 *
 * PyTorch computes in float64; here every slot between operations is float32, so a number that passed through n of them
 * is off by about n eps32 of its scale. Less than 100 lie between a parameter and the loss: 1e-5 of the scale, which
 * is at least 1. */
#ifndef EXEC_PARITY_H
#define EXEC_PARITY_H

#include "exec_world.h"

#include "fixture.h"

static const double tolerance = 1e-5;

static void take_parameters(struct world *w, const struct fixture *f)
{
    for (int32_t p = 0; p < w->params->view_count; p++) {
        const struct sl_param_view *view = &w->params->views[p];
        const double *values = fixture_get(f, view->name, view->elems);
        for (int64_t e = 0; e < view->elems; e++)
            w->params->values[view->offset_elems + e] = (float)values[e];
    }
    sl_params_touch(w->params);
}

static void compare_gradients(const struct world *w, const struct fixture *f)
{
    for (int32_t p = 0; p < w->params->view_count; p++) {
        const struct sl_param_view *view = &w->params->views[p];
        char name[128];
        snprintf(name, sizeof name, "d_%s", view->name);
        double *grads = malloc((size_t)view->elems * sizeof *grads);
        for (int64_t e = 0; e < view->elems; e++)
            grads[e] = (double)w->params->grads[view->offset_elems + e];
        fixture_compare(f, name, grads, fixture_get(f, name, view->elems), view->elems, tolerance);
        free(grads);
    }
}

/* A training step of a batch of `sequences` of these lengths: loss, outputs (`classes` for each step, or for each
 * sequence) and gradients. */
static void compare_step(struct world *w, const struct fixture *f, struct sl_batch *batch, const int32_t *lengths,
                         int64_t sequences, bool on_steps, int64_t classes)
{
    take_parameters(w, f);
    double loss = run(w, batch, false);
    fixture_compare(f, "loss", &loss, fixture_get(f, "loss", 1), 1, tolerance);
    struct sl_field output = sl_exec_get_output(w->exec);
    double *values = malloc((size_t)((on_steps ? batch->axis.rows : sequences) * classes) * sizeof *values);
    int64_t at = 0;
    for (int64_t k = 0; k < sequences; k++)
        for (int64_t t = 0; t < (on_steps ? lengths[k] : 1); t++)
            for (int64_t c = 0; c < classes; c++)
                values[at++] = (double)output.values[(on_steps ? sl_batch_row(batch, k, t) : k) * classes + c];
    fixture_compare(f, "output", values, fixture_get(f, "output", at), at, tolerance);
    free(values);
    compare_gradients(w, f);
}

#endif
