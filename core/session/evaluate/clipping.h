/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the values that layers in int8 limit to their range: what is outside was not foreseen when the range was
 * chosen, and results may be wrong. */
#ifndef SL_SESSION_EVALUATE_CLIPPING_H
#define SL_SESSION_EVALUATE_CLIPPING_H

#include "exec/exec.h"
#include "graph/graph.h"
#include "session/run_folder/stored_quantization.h"

struct sl_session;

struct sl_clipped_layer {
    const char *node; /* borrowed */
    double low, high; /* what int8 represents */
    int64_t clipped, values;
    double lowest, highest; /* of the clipped values; 0: none */
};

struct sl_clipping {
    struct sl_clipped_layer *layers;
    int32_t count;
};

/* Of the layers in int8 that the session follows: none if it follows none. Errors: NO_MEMORY. */
seqlstm_status sl_clipping_init(struct sl_clipping *clipping, const struct sl_quantization *quantization,
                                struct seqlstm_error *err);
/* Accepts a zeroed struct. */
void sl_clipping_deinit(struct sl_clipping *clipping);

/* Counts from now on in an executor, in place of what has watched it. Nothing changes if there are no layers. */
void sl_clipping_watch(struct sl_clipping *clipping, struct sl_exec *exec);

struct sl_clipped sl_clipping_sum(const struct sl_clipping *clipping);

/* A warning for each layer whose values were clipped. */
void sl_clipping_warn(const struct sl_clipping *clipping, const struct sl_session *session);

/* Is every step of the layer in its output, element by element? */
bool sl_node_shows_states(const struct sl_node *node);

#endif
