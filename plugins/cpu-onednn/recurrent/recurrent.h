/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the recurrent operation: the operation, its primitives, and how a batch is cut. Start here.
 *
 * The library knows only rectangles: steps times sequences, all of one length. So a packed batch is cut
 *   into slices      slice m of M has the sequences m, m + M, m + 2 M, ...; each slice runs on a thread of its own
 *   into rectangles  of equal batch size n; a run of steps that is not the whole segment is cut into powers of two,
 *                    so that there are few shapes
 * and the state is carried from rectangle to rectangle. All rows that the library gets are real time steps, never
 * padding. Within a slice, rows are packed as in the batch: the n rows of a step, then those of the next.
 *
 *   lengths 4 2 1, one slice:   n = 3 | 2 | 1 1      rectangles 1 x 3, 1 x 2, 2 x 1
 *
 * Each layer and direction is a primitive of its own. The states between rectangles lie in one vector of rows, in order
 * of execution: the `h_out` of a rectangle is the `h_in` of the next. Sequences which begin there (running backward)
 * are filled in behind it; those which have ended (running forward) are not read again.
 *
 * A call passes from op.c, which distributes slices over threads, to forward.c or backward.c, which run the calls of a
 * slice rectangle by rectangle. */
#ifndef ODN_RECURRENT_H
#define ODN_RECURRENT_H

#include <pthread.h>

#include "cpu-onednn/plugin.h"

enum { ODN_WEIGHT_X, ODN_WEIGHT_H, ODN_WEIGHT_P, ODN_WEIGHTS };
enum { ODN_FORWARD, ODN_BACKWARD, ODN_PASSES };
enum { ODN_KINDS = 2, ODN_WAYS = 2 };

/* The type of x, h and y inside a slice: float32, bfloat16, or unsigned 8-bit integers q = round(scale v + shift). */
struct odn_elem {
    dnnl_data_type_t type;
    uint32_t bytes;
    float scale, shift; /* for 8-bit integers */
};
extern const struct odn_elem odn_float32;

/* Bytes of one rectangle's workspace: bilinear in n and steps, apart from rounding its parts to pages. */
struct odn_ws_model {
    double per_row, per_sequence, per_step, rest;
};
enum { ODN_PAGE_SLACK = 16 * 4096 }; /* more than this rounding adds */

/* How our matrix becomes a primitive's layout: the library reorders it; its rows become columns; its rows are copied;
 * or the layout is the same, and the primitive reads the caller's matrix. */
enum odn_how { ODN_REORDERED, ODN_TURNED, ODN_COPIED, ODN_SAME };
struct odn_fill {
    enum odn_how how;
    int64_t input, gate, output; /* strides, unless reordered */
};

/* Layers with the same input width: layer 0, and all layers above it. */
struct odn_kind {
    int64_t input;
    struct odn_ws_model ws; /* training only */
    int64_t dims[ODN_WEIGHTS][5];
    int n_dims[ODN_WEIGHTS];
    struct odn_layout weights[ODN_PASSES][ODN_WEIGHTS]; /* as the primitives require them */
    struct odn_layout grads[ODN_WEIGHTS];
    int64_t grad_strides[ODN_WEIGHTS][DNNL_MAX_NDIMS];
    struct odn_fill fill[ODN_PASSES][ODN_WEIGHTS];
    dnnl_primitive_desc_t reorder_pd[ODN_PASSES][ODN_WEIGHTS]; /* for ODN_REORDERED */
    dnnl_primitive_t reorder[ODN_PASSES][ODN_WEIGHTS];
    /* the part of one layer and direction in `packed` */
    uint64_t packed[ODN_PASSES][ODN_WEIGHTS], bias, permuted[ODN_WEIGHTS], packed_bytes;
    uint64_t scales; /* int8: a version (uint64_t), then the scales of the rows (quantized.c) */
    /* offsets in the workspace of backward */
    uint64_t grad_place[ODN_WEIGHTS], grad_bias, grad_peephole, grad_bytes;
};

/* The primitives of one shape, shared by all bindings of the operation. */
struct odn_entry {
    struct odn_entry *next;
    int32_t references;
    int32_t kind, way, threads;
    int64_t n, steps;
    uint64_t version; /* int8: of the scales; 0: no scales yet, and no primitive */
    uint64_t used;    /* when last released */
    dnnl_primitive_t primitive[ODN_PASSES];
    dnnl_primitive_desc_t described[ODN_PASSES]; /* if there is no primitive */
    const_dnnl_primitive_desc_t pd[ODN_PASSES];  /* described[] or the primitive's own; 30 KB, so not both */
    uint64_t ws_bytes, scratch_bytes;
    struct odn_calls *idle; /* that no binding has now */
};

/* The calls of an entry that one binding has: the arguments have their shape, as the primitives do. */
struct odn_calls {
    struct odn_entry *entry;
    struct odn_calls *next; /* among the idle ones of the entry */
    struct odn_call pass[ODN_PASSES];
};

struct odn_recurrent {
    const struct seqlstm_op *op;
    const struct seqlstm_recurrent_desc *desc;
    enum odn_cell cell;
    dnnl_alg_kind_t activation;
    float alpha;
    int32_t layers, directions, gates, bias_gates, kinds;
    int32_t gate_map[4]; /* the library's gate k is gate gate_map[k] of ours */
    int64_t hidden, output;
    bool lstm, peephole, projection, concat, training;
    struct odn_elem elem;
    dnnl_data_type_t weight_type;
    bool quantized;             /* int8 */
    dnnl_primitive_attr_t attr; /* that of the instance; int8: its own, with scales of 1 */
    int32_t slices_max;
    struct odn_kind kind[ODN_KINDS];
    pthread_mutex_t lock; /* of the cache */
    struct odn_entry *entries;
    uint64_t clock;
};

struct odn_rectangle {
    int64_t steps, n, row;
    int64_t in_row[ODN_WAYS], out_row[ODN_WAYS]; /* rows of the states */
    uint64_t ws[ODN_KINDS];
    int32_t shape;
};

struct odn_shape {
    int64_t n, steps;
    struct odn_calls *calls[ODN_KINDS][ODN_WAYS];
};

struct odn_slice {
    int64_t sequences, rows, state_rows;
    uint64_t scratch_bytes;                     /* for its primitives */
    int32_t rectangle_count, shape_count, room; /* room: of both arrays */
    struct odn_rectangle *rectangles;           /* in order of time */
    struct odn_shape *shapes;
    uint64_t ws_bytes[ODN_KINDS];
    /* in the reserve (inference: in the workspace); strides from layer to layer, or from layer and direction to the
     * next */
    uint64_t x, y, y_stride, merged, merged_stride, h, h_stride, c, c_stride, ws;
    /* in the workspace */
    uint64_t scratch, dy[2], dx, states, grads;
};

struct odn_recurrent_binding {
    struct odn_recurrent *r;
    int32_t slices_count, slices_room; /* those of this shape, and of any */
    int32_t threads;                   /* of the library */
    bool in_place;                     /* one slice in float32: x and y need no copies */
    const struct seqlstm_axis *axis;
    int64_t t0, t1, rows;
    struct odn_slice *slices;
};

/* The data of one forward or backward. */
struct odn_run {
    struct odn_recurrent_binding *b;
    struct seqlstm_queue *queue;
    void *const *slots;
    void *const *grads;
    uint32_t parts;
    void *workspace, *reserve; /* reserve: in inference, the workspace */
    const void *packed;
    _Atomic int32_t failed; /* the first status of the library that is not success */
};

static inline bool odn_has_weight(const struct odn_recurrent *r, int w)
{
    return w != ODN_WEIGHT_P || r->projection;
}

static inline int32_t odn_kind_of(const struct odn_recurrent *r, int32_t layer)
{
    return layer > 0 && r->kinds > 1;
}

/* 1: the direction runs from the last step to the first. */
static inline int32_t odn_way_of(const struct odn_recurrent *r, int32_t direction)
{
    return r->desc->direction == SEQLSTM_DIRECTION_BACKWARD || direction == 1;
}

/* The number of passes: forward, and in training backward. */
static inline int32_t odn_passes(const struct odn_recurrent *r)
{
    return r->training ? ODN_PASSES : 1;
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

/* The offset in `packed` of the part of a layer and direction. */
static inline uint64_t odn_packed_of(const struct odn_recurrent *r, int32_t l, int32_t d)
{
    const uint64_t first = r->kind[0].packed_bytes * (uint64_t)r->directions;
    if (l == 0)
        return r->kind[0].packed_bytes * (uint64_t)d;
    return first + r->kind[odn_kind_of(r, l)].packed_bytes * (uint64_t)((l - 1) * r->directions + d);
}

/* ---- supports.c ------------------------------------------------------------------------ */
bool odn_recurrent_supports(const union seqlstm_any_desc *desc, struct seqlstm_answer *answer);

/* ---- kinds.c --------------------------------------------------------------------------- */

/* Fills in what follows from the descriptor alone. */
void odn_recurrent_read_desc(struct odn_recurrent *r);
/* A plain layout: with `outer` ours (outputs by inputs, gate by gate), otherwise inputs first. */
bool odn_plain_layout(struct odn_layout *layout, const struct odn_kind *kind, int w, dnnl_data_type_t type, bool outer);

/* ---- attributes.c ---------------------------------------------------------------------- */

/* The attributes of int8 for these scales of rows, [gates * hidden] in the library's order; NULL: all 1. `scratch`: the
 * scratchpad is the user's (for primitives); otherwise the library's (for reorders). */
dnnl_status_t odn_quantized_attr(const struct odn_recurrent *r, const float *scales, dnnl_scratchpad_mode_t scratch,
                                 dnnl_primitive_attr_t *out_attr);

/* ---- primitive.c ----------------------------------------------------------------------- */

/* Describes one pass of a rectangle with `attr`. `fixed`: with the layouts of weights that the kind holds; otherwise
 * with those that the library prefers. `forward`: the description of the forward pass, to describe backward. */
dnnl_status_t odn_primitive_describe(const struct odn_recurrent *r, int32_t kind, int32_t way, int64_t n, int64_t steps,
                                     int32_t pass, bool fixed, const_dnnl_primitive_desc_t forward,
                                     const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out_pd);

/* The key of an entry; `scales` writes the scales if `version` is not 0. */
struct odn_entry_key {
    int32_t kind, way, threads;
    int64_t n, steps;
    uint64_t version;
    const float *scales;
};

/* Finds the primitives of a shape in the cache, with calls that no binding has, or creates them. `only_idle`: creates
 * nothing, and answers UNSUPPORTED if there are none. [any thread] */
seqlstm_status odn_calls_acquire(struct odn_recurrent *r, const struct odn_entry_key *key, bool only_idle,
                                 struct odn_calls **out_calls, struct seqlstm_error *err);
/* May be NULL. Keeps the entry with these calls for later while few are idle. [any thread] */
void odn_calls_release(struct odn_recurrent *r, struct odn_calls *calls);
void odn_entries_destroy(struct odn_recurrent *r);
/* The largest number of idle entries: of an operation, and of all of inference, of which each may have a few. */
enum { ODN_ENTRIES_IDLE = 128, ODN_ENTRIES_INFERENCE = 512, ODN_ENTRIES_LEAST = 16 };

/* ---- layouts.c ------------------------------------------------------------------------- */

/* Those of weights and gradients of a kind. UNSUPPORTED: the library refuses the layer. */
seqlstm_status odn_layouts_make(struct odn_recurrent *r, int32_t k, struct seqlstm_error *err);

/* ---- sizes.c ----------------------------------------------------------------------------- */

/* Upper bounds over all batches of the descriptor. */
seqlstm_status odn_recurrent_measure(struct odn_recurrent *r, struct seqlstm_sizes *sizes, struct seqlstm_error *err);
/* A rectangle, and what the library needs for it. */
struct odn_need {
    int32_t kind, way;
    int64_t n, steps;
    uint64_t ws_bytes, scratch_bytes;
    uint64_t scratch[ODN_PASSES]; /* bytes, by pass; scratch_bytes is the largest */
    int32_t arguments;            /* the number of arguments of all passes */
};
/* Queries the library and fills the rest of `need`. */
seqlstm_status odn_need_find(const struct odn_recurrent *r, struct odn_need *need, struct seqlstm_error *err);
/* Lays out the buffers of slices whose ws_bytes and scratch_bytes are known; writes the bytes that they need in
 * total. */
void odn_slices_lay_out(struct odn_recurrent_binding *b, uint64_t *out_reserve, uint64_t *out_workspace);
/* Finds both from the primitives of a binding whose slices are cut, and lays out the buffers. */
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

/* Allocates the slices, with room for the shape of the binding and for others that are cut into not many more
 * rectangles; the slices own all memory. */
seqlstm_status odn_slices_make(struct odn_recurrent_binding *b, struct seqlstm_error *err);
/* Cuts [t0, t1) into slices of rectangles, and finds their shapes. UNSUPPORTED: the slices have too little room. */
seqlstm_status odn_slices_cut(struct odn_recurrent_binding *b, struct seqlstm_error *err);
void odn_slices_release(struct odn_recurrent_binding *b);
/* Makes a binding of a whole batch with as many slices as possible, at most `slices_most`, which is cut and inspected
 * but never runs. odn_slices_release ends it; after an error there is nothing to release. */
seqlstm_status odn_binding_suppose(struct odn_recurrent_binding *b, struct odn_recurrent *r,
                                   const struct seqlstm_axis *axis, int32_t slices_most, struct seqlstm_error *err);

/* ---- rows.c ------------------------------------------------------------------------------ */

/* Copy rows between a batch and slice m of it: `width` elements each, of type `elem` in the slice, float32 in the
 * batch. */
void odn_rows_in(const struct odn_recurrent_binding *b, int32_t m, int64_t width, const float *rows,
                 const struct odn_elem *elem, void *out_slice);
void odn_rows_out(const struct odn_recurrent_binding *b, int32_t m, int64_t width, const struct odn_elem *elem,
                  const void *slice, float *out_rows);
void odn_convert_in(const struct odn_elem *elem, int64_t count, const float *from, void *out);
void odn_convert_out(const struct odn_elem *elem, int64_t count, const void *from, float *out);
/* out = scale * (a + b), in float32 or bfloat16 */
void odn_add(dnnl_data_type_t type, int64_t count, float scale, const void *a, const void *b, void *out);

/* ---- binding.c ------------------------------------------------------------------------- */

seqlstm_status odn_recurrent_bind(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                  struct seqlstm_error *err);
/* As in struct seqlstm_rebind. UNSUPPORTED: no idle calls have the shape, or the binding has too little room. */
seqlstm_status odn_recurrent_rebind(struct seqlstm_binding *binding, struct seqlstm_error *err);
void odn_recurrent_unbind(struct seqlstm_binding *binding);
/* Gives one kind and way of a shape calls of the primitives for these scales (int8). */
seqlstm_status odn_shape_bind(struct odn_recurrent_binding *b, struct odn_shape *shape, int32_t kind, int32_t way,
                              uint64_t version, const float *scales, struct seqlstm_error *err);

/* ---- quantized.c --------------------------------------------------------------------------- */

/* Packs weights and scales of one layer and direction. Creates what the library needs for it. */
dnnl_status_t odn_quantized_pack(const struct odn_recurrent *r, void *const *slots, int32_t d, void *packed);
/* Updates the primitives if the binding has others than those of the scales in `packed`. */
seqlstm_status odn_quantized_refresh(struct odn_recurrent_binding *b, const void *packed, struct seqlstm_error *err);

/* ---- pack.c -------------------------------------------------------------------------------- */

/* Prepares the packing of a kind whose layouts are chosen: what it needs, and offsets in `packed`. */
seqlstm_status odn_packing_make(struct odn_recurrent *r, int32_t kind, struct seqlstm_error *err);
void odn_packing_release(struct odn_kind *kind);
/* Where a primitive reads a matrix. */
void *odn_weights(const struct odn_run *run, int32_t layer, int32_t direction, int32_t pass, int w);
seqlstm_status odn_recurrent_pack(const struct seqlstm_op *op, struct seqlstm_queue *queue, void *const *slots,
                                  void *packed, struct seqlstm_error *err);

/* ---- forward.c, backward.c, grads.c ---------------------------------------- */
void odn_forward_slice(struct odn_run *run, int32_t m);
void odn_backward_layer(struct odn_run *run, int32_t m, int32_t layer, int32_t direction);
/* Work on gradients of weights is divided into ranges [begin, end) of ODN_SHARES. */
enum { ODN_SHARES = 1000 };
/* Zeroes slice m's gradients of one layer and direction, before the library adds to them. */
void odn_zero_grads(struct odn_run *run, int32_t m, int32_t layer, int64_t begin, int64_t end);
/* Adds the gradients of all slices into the canonical ones. */
void odn_reduce_grads(struct odn_run *run, int32_t layer, int32_t direction, int64_t begin, int64_t end);

/* Addresses within slice m. */
void *odn_layer_input(const struct odn_run *run, int32_t m, int32_t layer);
void *odn_layer_output(const struct odn_run *run, int32_t m, int32_t layer, int32_t direction);
uint64_t odn_ws_place(const struct odn_recurrent *r, const struct odn_slice *s, int32_t l, int32_t d);

#endif
