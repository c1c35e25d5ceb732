/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent stacks on the host side: where everything lies, and the way of a call.
 *
 *   bind.c      layout, binding, packed weights, layers filled for the device
 *   forward.c   layers from below: products of all steps, the time loop, merged outputs
 *   backward.c  the reverse, then the gradients of weights as products over all rows
 *
 * Directions of a layer run side by side where a variant can, and all layers of a `wavefront`: what their loops work on
 * lies in a part of the workspace for each. The time loop of a layer is started kernel by kernel the first time a
 * binding runs, captured into a graph the second time, and from then on launched as one. Kernels find pointers and keys
 * through the layer's struct in device memory, which each call renews, so a graph outlives them. Where the host
 * captures the call, the loop becomes a part of its graph.
 */
#ifndef CG_RECURRENT_H
#define CG_RECURRENT_H

#include "cuda-generic/recurrent/kernels/layer.h"
#include "cuda-generic/plugin.h"

/* Sizes that follow from a descriptor. */
struct cg_stack {
    const struct seqlstm_recurrent_desc *desc;
    bool training, lstm, late, reset_after, normed;
    bool lone;        /* units meet through W_h alone */
    bool waves;       /* all layers run at once */
    bool stepwise;    /* dW in a call of its own: what it is made from lies in the reserve */
    uint32_t compute; /* of products: as in struct cg_gemm */
    int64_t layers, directions, gates, hidden, out, gh, merged, widest; /* widest input of any layer */
    int64_t parts; /* loops that run at the same time: a layer's directions, or with `waves` the layers */
    int64_t slots; /* loops whose records are kept: all in training, otherwise `parts` */
};

/* Offsets in floats. Records count from the slot of their (layer, direction). The gradients that dW is made from lie in
 * the workspace, or with `stepwise` behind the records of their slot. */
struct cg_layout {
    int64_t z, n, c_raw, c, h, u, v, record; /* record: floats of one slot */
    int64_t dh_new, out_rows, reset_rows, pre_u, pre_v, du, dv, gain_u, gain_v, gain_c, bias_c, peep;
    int64_t merged, merged_floats;                        /* behind all records: merged outputs of two directions */
    int64_t reserve;                                      /* floats in all */
    int64_t mask_x, x_masked, exchange, inference;        /* workspace */
    int64_t h_rows, below0, below1, dx_masked, dw_masked; /* workspace, backward */
    int64_t own, own_floats;                              /* each loop's own part, in which there are: */
    int64_t mask_h, tile_weights, tile_exchange, hm0, hm1, product, raw, projected, reset; /* forward */
    int64_t direct, back, dc, dout, dreset; /* backward, and the gradients above */
    int64_t workspace;
};

struct cg_recurrent_binding {
    int64_t count;           /* layers times directions */
    struct cg_layer *host;   /* [count] filled before a call */
    struct cg_layer *device; /* [2 count] forward's, then backward's */
    void **graphs;           /* [2 count] NULL: not captured yet */
    int32_t *runs;           /* [2 count] times that the loop was started by hand */
    int32_t *batch_sizes;    /* [T] the host's */
};

struct cg_stack cg_stack_make(const struct seqlstm_op *op);
struct cg_layout cg_layout_make(const struct cg_stack *stack);

/* Where in a call something lies; offset -1 gives NULL. Rows of a record have `width` elements; with `stepwise` they
 * are those of the whole axis, and a segment gets its first. */
float *cg_workspace(const struct cg_call *call, int64_t offset);
float *cg_own(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layout *layout, int64_t n,
              int64_t offset);
float *cg_record(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layout *layout, int64_t n,
                 int64_t offset, int64_t width);
/* What layer `layer` reads: X, or the merged output below it. */
const float *cg_layer_input(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layout *layout,
                            int64_t layer);
int64_t cg_layer_width(const struct cg_stack *stack, int64_t layer);
float *cg_merged(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layout *layout,
                 int64_t layer);
void *cg_param(const struct cg_call *call, const struct cg_stack *stack, int64_t n, int32_t which);

/* The parts of a layer that forward and backward share. */
struct cg_layer cg_layer_make(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layout *layout,
                              int64_t layer, int64_t direction);
/* Brings the binding's layers to `device`. */
seqlstm_status cg_store_layers(const struct cg_call *call, struct cg_layer *device, struct seqlstm_error *err);
/* Draw the masks of a sequence into the workspace, where there are any: that of h into the loop's own part; that
 * of the input, with the masked input. */
seqlstm_status cg_draw_mask_h(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layout *layout,
                              int64_t layer, int64_t direction, struct seqlstm_error *err);
seqlstm_status cg_draw_mask_x(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layout *layout,
                              int64_t layer, int64_t direction, struct seqlstm_error *err);

/* Runs a time loop: by hand, or as the graph that it was captured into. `loop` starts all its kernels, of all
 * directions of the layer whose first is `index`. */
typedef seqlstm_status cg_loop_fn(const struct cg_call *call, const struct cg_stack *stack,
                                  const struct cg_layer *device, const struct cg_layer *host,
                                  struct seqlstm_error *err);
seqlstm_status cg_run_loop(const struct cg_call *call, const struct cg_stack *stack, int64_t index, cg_loop_fn *loop,
                           struct seqlstm_error *err);

/* The variant grid: all steps in one launch, on a cleared exchange. */
seqlstm_status cg_run_grid(const struct cg_call *call, const struct cg_layout *layout, const struct cg_layer *device,
                           bool back, struct seqlstm_error *err);
/* The variant wavefront: all steps of all layers, likewise. */
seqlstm_status cg_run_wave(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layout *layout,
                           bool back, struct seqlstm_error *err);

seqlstm_status cg_recurrent_forward(const struct cg_call *call, struct seqlstm_error *err);
seqlstm_status cg_recurrent_backward(const struct cg_call *call, struct seqlstm_error *err);

#endif
