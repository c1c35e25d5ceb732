/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the recurrent operation: the operation, its primitives, and how a batch is cut.
 *
 * The library knows rectangles alone: steps times sequences, all of one length. So a packed batch is cut
 *   into slices      slice m of M has the sequences m, m + M, m + 2 M, ...: they run on a thread of their own
 *   into rectangles  of equal batch size n; a run of steps that is not the whole range is cut into powers of two,
 *                    so that few shapes exist
 * and the state is carried from rectangle to rectangle. Rows given to the library are real time steps; none is
 * padding. Within a slice rows are packed like the batch: n rows of a step, then those of the next.
 *
 *   lengths 4 2 1, one slice:   n = 3 | 2 | 1 1      rectangles 1 x 3, 1 x 2, 2 x 1
 *
 * Each layer and direction is a primitive of its own. States between rectangles lie in one vector of rows, in order
 * of execution: the rectangle's `h_out` is the next one's `h_in`, where sequences that begin (running backward)
 * are filled in behind, and those that have ended (running forward) are not read on.
 */
#ifndef ODN_RECURRENT_H
#define ODN_RECURRENT_H

#include <pthread.h>

#include "cpu-onednn/plugin.h"

enum { ODN_WEIGHT_X, ODN_WEIGHT_H, ODN_WEIGHT_P, ODN_WEIGHTS };
enum { ODN_FORWARD, ODN_BACKWARD, ODN_PASSES };
enum { ODN_KINDS = 2, ODN_WAYS = 2 };

/* What x, h and y are inside a slice: float32, bfloat16, or unsigned bytes q = round(scale v + shift). */
struct odn_elem {
    dnnl_data_type_t type;
    uint32_t bytes;
    float scale, shift; /* of bytes */
};
extern const struct odn_elem odn_float32;

/* Bytes of one rectangle's workspace: bilinear in n and steps, but for the rounding of its parts to pages. */
struct odn_ws_model {
    double per_row, per_sequence, per_step, rest;
};
enum { ODN_PAGE_SLACK = 16 * 4096 }; /* more than the rounding adds */

/* Makes a primitive's layout of a matrix of ours: the library does; or its rows become columns, or are copied; or it is
 * the same, and the primitive reads the caller's. */
enum odn_how { ODN_REORDERED, ODN_TURNED, ODN_COPIED, ODN_SAME };
struct odn_fill {
    enum odn_how how;
    int64_t input, gate, output; /* strides, unless reordered */
};

/* Layers that read one width: layer 0, and those above it. */
struct odn_kind {
    int64_t input;
    struct odn_ws_model ws; /* training */
    int64_t dims[ODN_WEIGHTS][5];
    int n_dims[ODN_WEIGHTS];
    struct odn_layout weights[ODN_PASSES][ODN_WEIGHTS]; /* as the primitives want them */
    struct odn_layout grads[ODN_WEIGHTS];
    int64_t grad_strides[ODN_WEIGHTS][DNNL_MAX_NDIMS];
    struct odn_fill fill[ODN_PASSES][ODN_WEIGHTS];
    dnnl_primitive_desc_t reorder_pd[ODN_PASSES][ODN_WEIGHTS]; /* where the library does */
    dnnl_primitive_t reorder[ODN_PASSES][ODN_WEIGHTS];
    /* the part of one layer and direction in `packed` */
    uint64_t packed[ODN_PASSES][ODN_WEIGHTS], bias, permuted[ODN_WEIGHTS], packed_bytes;
    uint64_t scales; /* int8: a version (uint64_t), then the scales of the rows (quantized.c) */
    /* and in the workspace of backward */
    uint64_t grad_place[ODN_WEIGHTS], grad_bias, grad_peephole, grad_bytes;
};

/* One shape's primitives, shared by all bindings of the operation. */
struct odn_entry {
    struct odn_entry *next;
    int32_t references;
    int32_t kind, way, threads;
    int64_t n, steps;
    uint64_t version; /* int8: of the scales; 0: none yet, and no primitive */
    uint64_t used;    /* when last released */
    dnnl_primitive_t primitive[ODN_PASSES];
    dnnl_primitive_desc_t described[ODN_PASSES]; /* where there is no primitive */
    const_dnnl_primitive_desc_t pd[ODN_PASSES];  /* that, or the primitive's own: of 30 KB, so one has to do */
    uint64_t ws_bytes, scratch_bytes;
};

struct odn_recurrent {
    const struct seqlstm_op *op;
    const struct seqlstm_recurrent_desc *desc;
    enum odn_cell cell;
    dnnl_alg_kind_t activation;
    float alpha;
    int32_t layers, directions, gates, bias_gates, kinds;
    int32_t gate_map[4]; /* the library's gate k is our gate gate_map[k] */
    int64_t hidden, output;
    bool lstm, peephole, projection, concat, training;
    struct odn_elem elem;
    dnnl_data_type_t weight_type;
    bool quantized;             /* int8 */
    dnnl_primitive_attr_t attr; /* the instance's; int8: its own, with scales of 1 */
    int32_t slices_max;
    struct odn_kind kind[ODN_KINDS];
    pthread_mutex_t lock; /* of the cache */
    struct odn_entry *entries;
    uint64_t clock;
};

struct odn_rectangle {
    int64_t steps, n, row;
    int64_t in_row[ODN_WAYS], out_row[ODN_WAYS]; /* of the states */
    uint64_t ws[ODN_KINDS];
    int32_t shape;
};

struct odn_shape {
    int64_t n, steps;
    struct odn_entry *entries[ODN_KINDS][ODN_WAYS];
    struct odn_call *calls; /* odn_shape_call */
};

struct odn_slice {
    int64_t sequences, rows, state_rows;
    uint64_t scratch_bytes; /* that its primitives need */
    int32_t rectangle_count, shape_count;
    struct odn_rectangle *rectangles; /* in order of time */
    struct odn_shape *shapes;
    struct odn_call *calls; /* of all shapes */
    uint64_t ws_bytes[ODN_KINDS];
    /* in the reserve (inference: in the workspace); strides by layer, or by layer and direction */
    uint64_t x, y, y_stride, merged, merged_stride, h, h_stride, c, c_stride, ws;
    /* in the workspace */
    uint64_t scratch, dy[2], dx, states, grads;
};

struct odn_recurrent_binding {
    struct odn_recurrent *r;
    int32_t slices_count, threads; /* threads: of the library */
    bool in_place;                 /* one slice in float32: x and y need no copies */
    const struct seqlstm_axis *axis;
    int64_t t0, t1, rows;
    struct odn_slice *slices;
};

/* What a call of forward or backward works on. */
struct odn_run {
    struct odn_recurrent_binding *b;
    struct seqlstm_queue *queue;
    void *const *slots;
    void *const *grads;
    uint32_t parts;
    void *workspace, *reserve; /* reserve: the workspace in inference */
    const void *packed;
    _Atomic int32_t failed; /* the library's first status that is not success */
};

static inline bool odn_has_weight(const struct odn_recurrent *r, int w)
{
    return w != ODN_WEIGHT_P || r->projection;
}

static inline int32_t odn_kind_of(const struct odn_recurrent *r, int32_t layer)
{
    return layer > 0 && r->kinds > 1;
}

/* 1: from the last step to the first. */
static inline int32_t odn_way_of(const struct odn_recurrent *r, int32_t direction)
{
    return r->desc->direction == SEQLSTM_DIRECTION_BACKWARD || direction == 1;
}

/* Forward, and in training backward. */
static inline int32_t odn_passes(const struct odn_recurrent *r)
{
    return r->training ? ODN_PASSES : 1;
}

/* Calls of one shape. */
static inline int32_t odn_calls_count(const struct odn_recurrent *r)
{
    return r->kinds * r->directions * odn_passes(r);
}

static inline struct odn_call *odn_shape_call(const struct odn_recurrent *r, const struct odn_shape *shape,
                                              int32_t kind, int32_t way, int32_t pass)
{
    const int32_t passes = odn_passes(r), direction = r->directions == 2 ? way : 0;
    return &shape->calls[(kind * r->directions + direction) * passes + pass];
}

static inline int64_t odn_y_width(const struct odn_recurrent *r)
{
    return r->concat ? r->directions * r->output : r->output;
}

static inline int odn_state_slot(const struct odn_recurrent *r, int32_t l, int32_t d, int which)
{
    return SEQLSTM_SLOT_RECURRENT_STATE(l * r->directions + d, which);
}

static inline int odn_param_slot(const struct odn_recurrent *r, int32_t l, int32_t d, int which)
{
    return SEQLSTM_SLOT_RECURRENT_PARAM(r->layers * r->directions, l * r->directions + d, which);
}

static inline void *odn_param(const struct odn_recurrent *r, void *const *pointers, int32_t l, int32_t d, int which)
{
    return pointers[odn_param_slot(r, l, d, which)];
}

/* Offset in `packed` of what belongs to a layer and direction. */
static inline uint64_t odn_packed_of(const struct odn_recurrent *r, int32_t l, int32_t d)
{
    const uint64_t first = r->kind[0].packed_bytes * (uint64_t)r->directions;
    if (l == 0)
        return r->kind[0].packed_bytes * (uint64_t)d;
    return first + r->kind[odn_kind_of(r, l)].packed_bytes * (uint64_t)((l - 1) * r->directions + d);
}

/* ---- supports.c ------------------------------------------------------------------------ */
bool odn_recurrent_supports(const union seqlstm_any_desc *desc, struct seqlstm_answer *answer);

/* ---- primitive.c ----------------------------------------------------------------------- */

/* Describes the pass of one rectangle with `attr`. `fixed`: with the weights' layouts that the kind holds, else with
 * those that the library likes best. `forward`: the forward pass's, for backward. */
dnnl_status_t odn_primitive_describe(const struct odn_recurrent *r, int32_t kind, int32_t way, int64_t n, int64_t steps,
                                     int32_t pass, bool fixed, const_dnnl_primitive_desc_t forward,
                                     const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out_pd);

/* What an entry is looked for by; `scales` makes it where `version` says that there are some. */
struct odn_entry_key {
    int32_t kind, way, threads;
    int64_t n, steps;
    uint64_t version;
    const float *scales;
};

/* The shape's primitives, out of the cache or made now. [any thread] */
seqlstm_status odn_entry_acquire(struct odn_recurrent *r, const struct odn_entry_key *key, struct odn_entry **out_entry,
                                 struct seqlstm_error *err);
/* NULL is fine. Keeps the entry for later as long as few are idle. [any thread] */
void odn_entry_release(struct odn_recurrent *r, struct odn_entry *entry);
void odn_entries_destroy(struct odn_recurrent *r);
enum { ODN_ENTRIES_IDLE = 128 }; /* that are kept */

/* ---- sizes.c ----------------------------------------------------------------------------- */

/* Upper bounds over all batches of the descriptor. */
seqlstm_status odn_recurrent_measure(struct odn_recurrent *r, struct seqlstm_sizes *sizes, struct seqlstm_error *err);
/* A rectangle, and what the library says that it needs for it. */
struct odn_need {
    int32_t kind, way;
    int64_t n, steps;
    uint64_t ws_bytes, scratch_bytes;
    uint64_t scratch[ODN_PASSES]; /* bytes, by pass; the most is scratch_bytes */
    int32_t arguments;            /* of all passes */
};
/* Fills what the library says. */
seqlstm_status odn_need_find(const struct odn_recurrent *r, struct odn_need *need, struct seqlstm_error *err);
/* Lays out the buffers of slices of which ws_bytes and scratch_bytes are known; out: what they need in all. */
void odn_slices_lay_out(struct odn_recurrent_binding *b, uint64_t *out_reserve, uint64_t *out_workspace);
/* Finds both by the primitives of a binding whose slices are cut, and lays them out. */
void odn_recurrent_place(struct odn_recurrent_binding *b, uint64_t *out_reserve, uint64_t *out_workspace);

/* ---- idle.c ------------------------------------------------------------------------------ */

/* See odn_operation. */
seqlstm_status odn_recurrent_find_idle(const struct seqlstm_op *op, const struct seqlstm_sizes *sizes,
                                       const struct seqlstm_axis *axis, struct seqlstm_idle *idle,
                                       struct seqlstm_error *err);

/* ---- own.c ------------------------------------------------------------------------------- */

/* See odn_operation. */
seqlstm_status odn_recurrent_find_own(const struct seqlstm_op *op, const struct seqlstm_axis *const *batches,
                                      uint32_t batch_count, uint32_t bound_count, uint64_t *out_bytes,
                                      struct seqlstm_error *err);

/* ---- cut.c ------------------------------------------------------------------------------- */

/* Cuts [t0, t1) into slices of rectangles, and finds their shapes; all memory is the slices'. */
seqlstm_status odn_slices_cut(struct odn_recurrent_binding *b, struct seqlstm_error *err);
/* Room for the calls of all shapes, zeroed. */
seqlstm_status odn_slices_make_calls(struct odn_recurrent_binding *b, struct seqlstm_error *err);
void odn_slices_release(struct odn_recurrent_binding *b);
/* A binding of a whole batch on as many slices as may be, to be cut and looked at; forgotten after errors, too. */
seqlstm_status odn_binding_suppose(struct odn_recurrent_binding *b, struct odn_recurrent *r,
                                   const struct seqlstm_axis *axis, struct seqlstm_error *err);
void odn_binding_forget(struct odn_recurrent_binding *b);

/* ---- rows.c ------------------------------------------------------------------------------ */

/* Rows between a batch and slice m of it; `width` elements each, `elem` inside the slice, float32 in the batch. */
void odn_rows_in(const struct odn_recurrent_binding *b, int32_t m, int64_t width, const float *rows,
                 const struct odn_elem *elem, void *out_slice);
void odn_rows_out(const struct odn_recurrent_binding *b, int32_t m, int64_t width, const struct odn_elem *elem,
                  const void *slice, float *out_rows);
void odn_convert_in(const struct odn_elem *elem, int64_t count, const float *from, void *out);
void odn_convert_out(const struct odn_elem *elem, int64_t count, const void *from, float *out);
/* out = scale * (a + b), in float32 or bfloat16 */
void odn_add(dnnl_data_type_t type, int64_t count, float scale, const void *a, const void *b, void *out);

/* ---- quantized.c --------------------------------------------------------------------------- */

/* The attributes of int8 for these scales of rows, [gates * hidden] in the library's order; NULL: all 1. `scratch`: of
 * a primitive the user's, of a reorder the library's. */
dnnl_status_t odn_quantized_attr(const struct odn_recurrent *r, const float *scales, dnnl_scratchpad_mode_t scratch,
                                 dnnl_primitive_attr_t *out_attr);
/* Weights and scales of one layer and direction. Makes what the library needs for it. */
dnnl_status_t odn_quantized_pack(const struct odn_recurrent *r, void *const *slots, int32_t d, void *packed);
/* The primitives of the scales in `packed`, where the binding has others. */
seqlstm_status odn_quantized_refresh(struct odn_recurrent_binding *b, const void *packed, struct seqlstm_error *err);

/* ---- op.c ---- */
/* The calls of one kind and way of a shape, with primitives for the scales (int8). */
seqlstm_status odn_shape_bind(struct odn_recurrent_binding *b, struct odn_shape *shape, int32_t kind, int32_t way,
                              uint64_t version, const float *scales, struct seqlstm_error *err);
/* Ours: outputs by inputs, gate by gate (`outer`), or inputs first. */
bool odn_plain_layout(struct odn_layout *layout, const struct odn_kind *kind, int w, dnnl_data_type_t type, bool outer);

/* ---- pack.c -------------------------------------------------------------------------------- */

/* What packing needs of the kind, whose layouts are chosen, and places in `packed`. */
seqlstm_status odn_packing_make(struct odn_recurrent *r, int32_t kind, struct seqlstm_error *err);
void odn_packing_release(struct odn_kind *kind);
/* Where a primitive reads a matrix. */
void *odn_weights(const struct odn_run *run, int32_t layer, int32_t direction, int32_t pass, int w);
seqlstm_status odn_recurrent_pack(const struct seqlstm_op *op, struct seqlstm_queue *queue, void *const *slots,
                                  void *packed, struct seqlstm_error *err);

/* ---- forward.c, backward.c, grads.c ---------------------------------------- */
void odn_forward_slice(struct odn_run *run, int32_t m);
void odn_backward_layer(struct odn_run *run, int32_t m, int32_t layer, int32_t direction);
/* Work on gradients of weights is shared out in parts [begin, end) of ODN_SHARES. */
enum { ODN_SHARES = 1000 };
/* Slice m's gradients of one layer and direction, before they are added to. */
void odn_zero_grads(struct odn_run *run, int32_t m, int32_t layer, int64_t begin, int64_t end);
/* The gradients of all slices into the canonical ones. */
void odn_reduce_grads(struct odn_run *run, int32_t layer, int32_t direction, int64_t begin, int64_t end);

/* Addresses within slice m. */
void *odn_layer_input(const struct odn_run *run, int32_t m, int32_t layer);
void *odn_layer_output(const struct odn_run *run, int32_t m, int32_t layer, int32_t direction);
uint64_t odn_ws_place(const struct odn_recurrent *r, const struct odn_slice *s, int32_t l, int32_t d);

#endif
