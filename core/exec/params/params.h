/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of a model: one flat float32 buffer each for values, gradients and up to three optimizer states, all
 * with the same table of views.
 *
 *   values  | view 0 | pad | view 1 | pad | …        every view begins on a 64-byte boundary
 *   grads   | same layout                            padding is zero and stays zero
 *
 * Trainable views come first, so that one call updates [0, trainable_elems).
 *
 * When operations run in another memory domain, the newest copy of a view may be there (params_mirror.h): call
 * sl_params_pull before reading the host's buffers, and sl_params_touch after writing to them.
 */
#ifndef SL_EXEC_PARAMS_H
#define SL_EXEC_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/memory.h"
#include "base/system/pool.h"
#include "graph/graph.h"

struct sl_param_view {
    const char *name; /* canonical; owned by the params */
    int64_t rows, columns;
    int64_t offset_elems;
    int64_t elems; /* rows * columns */
    int32_t layer; /* index in model->layers */
    bool trainable;
    struct sl_regularizer regularizer;
};

struct sl_params {
    struct sl_param_view *views; /* in the graph's parameter order */
    int32_t view_count;
    int64_t elems; /* of each buffer, padding included */
    int64_t trainable_elems;
    int64_t param_elems; /* without padding: what the user calls "parameters" */
    float *values;
    float *grads;               /* NULL unless made for training */
    float *states[3];           /* optimizer states, NULL where unused */
    uint64_t version;           /* counts changes of the values; executors repack when it moved */
    struct sl_mirrors *mirrors; /* copies in other domains; NULL: there are none */
    struct sl_memory *memory;
    struct sl_used_rows *used; /* by offset: embeddings of which gradients use few rows (used_rows.h) */
    int32_t used_count;
    bool shares;     /* views and buffers belong to another */
    bool lent_grads; /* so does `grads` */
};

/* `optimizer_states` 0 .. 3; `training` false: no gradients. All zero. */
seqlstm_status sl_params_create(const struct sl_graph *graph, bool training, int32_t optimizer_states,
                                struct sl_memory *memory, struct sl_params **out_params, struct seqlstm_error *err);
void sl_params_destroy(struct sl_params *params);

/* From now on gradients lie in `grads`, which has room for `elems` floats, all zero; what they were is lost. NULL:
 * there are none any more. Nothing of them may lie in other domains. */
void sl_params_lend_grads(struct sl_params *params, float *grads);

/* The same values for reading on another thread: with copies of its own on devices, once they are needed. What is on
 * the host must be the newest, and must not change while this lives. `from` must outlive it. NO_MEMORY. */
seqlstm_status sl_params_share(const struct sl_params *from, struct sl_params **out_params, struct seqlstm_error *err);

/* Draws initial values as the graph's initializers say, on the threads of `pool` (NULL: only on this one): a pure
 * function of (seed, name of the parameter, shape), so that adding a layer changes no other layer's values. Errors:
 * NO_MEMORY. */
seqlstm_status sl_params_init(struct sl_params *params, const struct sl_graph *graph, uint64_t seed,
                              struct sl_pool *pool, struct seqlstm_error *err);

/* NULL when there is none of that name. */
const struct sl_param_view *sl_params_find(const struct sl_params *params, const char *name);

/* Copies the newest values (gradients, optimizer states) to the host, where they may then be read. Errors: DEVICE. */
seqlstm_status sl_params_pull(struct sl_params *params, struct seqlstm_error *err);
seqlstm_status sl_params_pull_grads(struct sl_params *params, struct seqlstm_error *err);
seqlstm_status sl_params_pull_states(struct sl_params *params, struct seqlstm_error *err);

/* Call after writing to `values` (to `grads`, `states`) on the host: from then on they count as the newest. */
void sl_params_touch(struct sl_params *params);
void sl_params_touch_grads(struct sl_params *params);
void sl_params_touch_states(struct sl_params *params);

#endif
