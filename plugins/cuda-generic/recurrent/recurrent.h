/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent stacks on the host side: where everything lies, and how a call runs.
 *
 *   bind.c      layout, binding, packed weights, structs of the layers for the device
 *   forward.c   layers from the lowest: input products of all steps, the time loop, merged outputs
 *   small.c     the variant small; clusters.c those with clusters
 *   fold.c      projections in variants that run all steps in one launch
 *   products.c  the products of all rows at once
 *   backward.c  the reverse, then the gradients of weights as products over all rows
 *
 * The directions of a layer run at the same time where a variant can do so. Each of these loops works in its own part
 * of the workspace. The time loop of a layer is launched kernel by kernel in the first run of a binding, recorded as a
 * capture in the second, and launched as one capture from then on. Kernels read pointers and keys from the layer's
 * struct in device memory, which each call renews, so a capture stays valid when they change. If the host is capturing
 * the call, the loop becomes a part of the host's capture. */
#ifndef CG_RECURRENT_H
#define CG_RECURRENT_H

#include "cuda-generic/recurrent/kernels/layer.h"
#include "cuda-generic/rows/rows.h"
#include "cuda-generic/plugin.h"

/* Sizes that follow from a descriptor. */
struct cg_stack {
    const struct seqlstm_recurrent_desc *desc;
    bool training, lstm, late, reset_after, normed;
    bool lone;        /* units depend on each other through W_h only */
    bool masks_dy;    /* dy is read together with the mask of the layer above (dy_mask): kernels of all steps do not */
    bool folded;      /* W_h and the projection are one matrix: fold.h */
    bool stepwise;    /* dW has a call of its own: what it is computed from lies in the reserve */
    uint32_t compute; /* of products: as in struct cg_gemm */
    int64_t layers, directions, gates, hidden, out, gh, merged, widest; /* widest input of any layer */
    int64_t parts;             /* loops that run at the same time: the directions of a layer */
    int64_t slots;             /* loops whose records are kept: all in training, otherwise `parts` */
    bool narrow[CG_LT_LAYERS]; /* products of all rows whose operands cuBLASLt gets in 16 bits (products.h) */
    int64_t exchange;          /* words that the blocks of the variant resident exchange */
};

/* Offsets in floats. Offsets of records start at the slot of their (layer, direction). The gradients from which dW is
 * computed lie in the workspace, or with `stepwise` behind the records of their slot. */
struct cg_layout {
    int64_t z, n, c_raw, c, h, u, v, moments, record; /* record: floats of one slot */
    int64_t x16, w16;                                 /* the layer's input and W_x in 16 bits */
    int64_t fold, raw_rows; /* folded: W_h W_p; [rows, H] the outputs of cells before the projection */
    int64_t dh_new, out_rows, reset_rows, pre_u, pre_v, du, dv, gain_u, gain_v, gain_c, bias_c, peep;
    int64_t merged, merged_floats;                    /* behind all records: the merged outputs of two directions */
    int64_t reserve;                                  /* total floats */
    int64_t exchange, inference;                      /* workspace */
    int64_t x_masked, x_masked_floats;                /* for each direction of a layer */
    int64_t mask_h, mask_h_floats;                    /* a table for each layer and direction */
    int64_t dy_mask, dy_mask_floats;                  /* for each layer but the last, where it is read there */
    int64_t h_rows, below0, below1, dw_masked, parts; /* workspace, backward */
    int64_t du16, dv16, h16;                          /* likewise: gradients of gates and h_rows in 16 bits */
    int64_t own, own_floats;                          /* the part of each loop, which contains: */
    int64_t tile_weights, tile_exchange, hm0, hm1, product, raw, projected, reset; /* forward */
    int64_t direct, back, dc, dout, dreset; /* backward, also dh_new … peep above */
    int64_t dr; /* backward, folded: [rows, H] gradients of raw_rows without the steps' own */
    int64_t workspace;
};

struct cg_recurrent_binding {
    int64_t count;           /* layers times directions */
    struct cg_layer *host;   /* [count], filled before a call */
    struct cg_layer *device; /* [2 count] forward's, then backward's */
    /* Likewise the layers that kernels of all steps run: with a folded projection behind those, otherwise the same. */
    struct cg_layer *run, *device_run;
    void **captures;      /* [2 count] NULL: not captured yet */
    int32_t *runs;        /* [2 count] how often the loop was launched kernel by kernel */
    int32_t *batch_sizes; /* [T] host copy */
};

struct cg_stack cg_stack_make(const struct seqlstm_op *op);
struct cg_layout cg_layout_make(const struct cg_stack *stack);

/* The address of an offset in a call; NULL for offset -1. Rows of a record have `width` elements. With `stepwise` a
 * record holds the rows of the whole axis, and a segment gets its first row. */
float *cg_workspace(const struct cg_call *call, int64_t offset);
float *cg_own(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layout *layout, int64_t n,
              int64_t offset);
float *cg_record(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layout *layout, int64_t n,
                 int64_t offset, int64_t width);
/* The input of layer `layer`: X, or the merged output of the layer below. */
const float *cg_layer_input(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layout *layout,
                            int64_t layer);
int64_t cg_layer_width(const struct cg_stack *stack, int64_t layer);
float *cg_merged(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layout *layout,
                 int64_t layer);
void *cg_param(const struct cg_call *call, const struct cg_stack *stack, int64_t n, int32_t which);

/* Fills what forward and backward have in common. */
struct cg_layer cg_layer_make(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layout *layout,
                              int64_t layer, int64_t direction);
/* Copies the binding's layers to the device. In the same launch: the masks that recurrent steps read, and forward also
 * the masked inputs of the first layer. */
seqlstm_status cg_store_layers(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layout *layout,
                               bool back, struct seqlstm_error *err);
/* The masked input of a layer, in the workspace; no rows without a mask. Those of the layers above the first are made
 * with what finishes the layer below. */
struct cg_drop cg_drop_input(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layout *layout,
                             int64_t layer, int64_t direction);
/* dx = dx times the mask of the layer's input, with `other` the sum over both directions, each with its mask. */
struct cg_drop cg_drop_gradient(const struct cg_call *call, const struct cg_stack *stack, int64_t layer, float *dx,
                                const float *other);
seqlstm_status cg_mask_rows(const struct cg_call *call, const struct cg_drop *drop, struct seqlstm_error *err);

/* Runs a time loop, kernel by kernel or as its capture. `loop` launches all its kernels, for all directions of the
 * layer whose first has number `index`. */
typedef seqlstm_status cg_loop_fn(const struct cg_call *call, const struct cg_stack *stack,
                                  const struct cg_layer *device, const struct cg_layer *host,
                                  struct seqlstm_error *err);
seqlstm_status cg_run_loop(const struct cg_call *call, const struct cg_stack *stack, int64_t index, cg_loop_fn *loop,
                           struct seqlstm_error *err);

/* The variant resident: all steps of the directions of a layer, with cleared counters. */
seqlstm_status cg_run_resident(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layout *layout,
                               const struct cg_layer *device, bool back, struct seqlstm_error *err);
/* The variants with clusters: all steps of the directions of a layer. */
seqlstm_status cg_run_clusters(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layer *device,
                               bool back, struct seqlstm_error *err);
/* The variant small: all steps of the directions of a layer. */
seqlstm_status cg_small_run(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layer *device,
                            bool back, struct seqlstm_error *err);
seqlstm_status cg_recurrent_forward(const struct cg_call *call, struct seqlstm_error *err);
seqlstm_status cg_recurrent_backward(const struct cg_call *call, struct seqlstm_error *err);

#endif
