/* SPDX-License-Identifier: Apache-2.0 */
/* The values that recurrent layers read and carry, and the range in which int8 represents them. */
#ifndef SL_SESSION_EVALUATE_CALIBRATION_H
#define SL_SESSION_EVALUATE_CALIBRATION_H

#include "base/memory/arena.h"
#include "exec/exec.h"
#include "session/evaluate/value_histogram.h"

/* Of one layer. */
struct sl_layer_values {
    const char *name;             /* of its operation; in the arena */
    struct sl_value_histogram *x; /* its input */
    struct sl_value_histogram *h; /* its hidden state; empty where that is not kept */
    bool is_bounded;              /* h lies in [-1, 1], whatever the weights */
    double forward_ns;            /* time of its calls in the last evaluation; set by the caller */
};

/* Zeroed, with an arena: nothing seen yet. */
struct sl_calibration {
    struct sl_arena *arena;
    struct sl_layer_values *layers; /* in the order in which they were seen */
    int32_t count;
};

/* How a range follows from the values: without the `share` of them that lies farthest out at either end (0: all are
 * inside), then `width` times as wide about its middle. */
struct sl_range_rule {
    double share, width;
};

/* An sl_exec_watch_fn with the calibration as its context. Errors: NO_MEMORY, those of reading tensors. */
seqlstm_status sl_calibration_watch(void *calibration, struct sl_exec *exec, const struct sl_node *node,
                                    struct seqlstm_error *err);
void sl_calibration_deinit(struct sl_calibration *calibration);

/* The range of both x and h, 0 included, because states begin with it. False: h is neither kept nor bounded, so its
 * range is not known. */
bool sl_layer_values_find_range(const struct sl_layer_values *layer, const struct sl_range_rule *rule, double *out_low,
                                double *out_high);

#endif
