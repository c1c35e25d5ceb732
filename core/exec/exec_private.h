/* SPDX-License-Identifier: Apache-2.0 */
/* The executor's inside, shared by the files of core/exec. */
#ifndef SL_EXEC_PRIVATE_H
#define SL_EXEC_PRIVATE_H

#include "base/operation/op_signature.h"
#include "registry/host.h"
#include "registry/lane.h"
#include "exec/exec.h"
#include "exec/params/params_mirror.h"

enum { SL_EXEC_SHAPES = SL_SHAPES_BOUND, SL_EXEC_VECTOR_BINDINGS = 8 };

/* The axes of one side of a batch: its own copy, since bindings point to it. */
struct sl_exec_axes {
    struct seqlstm_axis steps; /* of the sequences that have steps */
    struct seqlstm_axis rows;  /* every sequence as one step: for masks on the sequences axis */
    int64_t id_count;
    int64_t capacity_bytes;
    void *storage; /* arrays of both */
};

enum { SL_EXEC_TARGET, SL_EXEC_SOURCE, SL_EXEC_SIDES };

/* A flat operation at one length. */
struct sl_exec_vector_binding {
    int32_t v; /* of the plan's */
    int64_t elems;
    struct seqlstm_binding *binding;
};

/* A step that was captured at one shape, or may be; see capture.c. */
struct sl_exec_graph {
    int32_t seen;     /* runs before it was captured */
    float loss_scale; /* of its capture */
    bool refused;     /* the device would not */
    void *native;     /* NULL: not captured */
    uint32_t circumstances;
    uint8_t *marks; /* valid, grad_valid and param_written as the step leaves them, one behind the other */
    struct sl_exec_vector_binding *vectors; /* that it uses, its own */
    int32_t vector_count;
};
enum { SL_EXEC_GRAPHS = 4 };

/* One shape: the axes and one binding per call. */
struct sl_exec_shape {
    bool used;
    uint64_t hash;
    int64_t last_use;
    int64_t sequences; /* with zero-length ones */
    struct sl_exec_axes sides[SL_EXEC_SIDES];
    struct seqlstm_binding **bindings; /* [call_count]; of a loop's calls NULL where no call takes all steps at once */
    struct seqlstm_binding **pieces;   /* [steps * calls of the loop] each a step of a call of the loop */
    int64_t piece_count;
    struct sl_exec_graph graphs[SL_EXEC_GRAPHS]; /* [accumulate, + 2 with the update] */
};

static inline int sl_exec_get_side(enum sl_axis axis)
{
    return sl_axis_is_source(axis) ? SL_EXEC_SOURCE : SL_EXEC_TARGET;
}

/* What never changes about a call. */
struct sl_exec_call {
    int32_t place;
    int32_t slot_count;
    enum sl_slot_role *roles; /* [slot_count] */
    void **slots;             /* [slot_count] filled at every run */
    void **grads;
    enum sl_axis axis;       /* where its rows are */
    uint64_t packed_version; /* of the parameters; 0: never packed */
    bool repacks;            /* weight masks change with every step */
    bool gathers_weights;    /* in a loop: weight gradients come from one call over all steps, behind the loop */
};

/* The calls of the plan that run step by step; see loop.c. */
struct sl_exec_loop {
    int32_t first, end; /* calls [first, end); equal: there are none */
    int64_t step;       /* the one that runs; -1: calls take all rows at once */
    bool *touched;      /* [tensor_count] on the steps axis, and a slot of the loop */
    uint8_t *outer;     /* [tensor_count] grad_valid when the loop's backward began */
    bool *carried;      /* [tensor_count] the step behind has written its gradient */
};

enum {
    SL_EXEC_FIELDS = SL_TENSOR_ROW_WEIGHT - SL_TENSOR_INPUT + 1,
    SL_EXEC_INDICES = SL_TENSOR_ROW_WEIGHT - SL_TENSOR_SEQUENCE + 1
};

static inline bool sl_exec_is_field(enum sl_tensor_role role)
{
    return role >= SL_TENSOR_INPUT && role <= SL_TENSOR_ROW_WEIGHT;
}

/* Where the next batch's fields are copied to; see stage.c. */
enum { SL_EXEC_STAGED = SL_TENSOR_SOURCE - SL_TENSOR_INPUT + 1 };

struct sl_exec_stage {
    struct sl_lane lane;             /* closed until a run is told its next batch */
    char *pinned;                    /* of the host: the fields one behind the other */
    int64_t offsets[SL_EXEC_STAGED]; /* in pinned; -1: no call here reads it */
    void *fields[2][SL_EXEC_STAGED]; /* on the device, by turns */
};

/* What changes from run to run; see live.c. */
struct sl_exec_live {
    char *device; /* NULL: there is none */
    char *pinned;
};

/* Buffers of one memory domain. Offsets into them are the plan's, the same in every place, so that a tensor's copies
 * need no bookkeeping of their own. Place 0 is the host; there the batch's fields are read where they are. */
struct sl_exec_place {
    struct sl_domain *domain; /* NULL: nothing of the plan runs there */
    char *activations;
    char *reserve;
    char *packed;
    char *workspace;
    float *states; /* all carried states */
    float *class_weights;
    float *memories;              /* of PART_DECODER */
    float *zeros;                 /* what a loop reads at its first step */
    double *sums;                 /* [2] */
    double *scalar;               /* [1] result of a reduction */
    void *fields[SL_EXEC_FIELDS]; /* from SL_TENSOR_INPUT on; not on the host */
    void *staged[2];              /* operands of flat operations that are no parameters; not on the host */
    int64_t staged_bytes[2];
    struct sl_exec_stage stage; /* not on the host */
};

struct sl_exec {
    const struct sl_plan *plan;
    const struct sl_graph *graph;
    struct sl_params *params;
    struct sl_memory *memory;
    struct sl_domain host;
    struct seqlstm_step step;

    struct sl_exec_call *calls;
    struct sl_exec_timing *timing;
    struct sl_exec_shape shapes[SL_EXEC_SHAPES];
    struct sl_exec_vector_binding (*vectors)[SL_EXEC_VECTOR_BINDINGS]; /* [vector_count] */
    int64_t clock;                                                     /* counts runs, for the shapes' age */

    struct sl_exec_place places[SL_PLACES_MAX];
    int32_t *vector_places; /* [vector_count] */
    struct sl_exec_loop loop;
    uint8_t *valid;      /* [tensor_count] bit p: the tensor's value stands in place p */
    uint8_t *grad_valid; /* [tensor_count] likewise its gradient; 0: none in the running backward */
    int64_t state_elems;
    int64_t *state_offsets; /* [state_count] in elements */
    bool *param_written;    /* [param_count] likewise */

    int32_t device_place; /* where all calls of a training step run, if it may be captured; else SL_PLACE_HOST */
    bool captures_update; /* graphs of a step have the update in them */
    bool scales_factors;  /* which has factors that follow the scale of the loss */
    struct sl_exec_graph *capturing; /* NULL: calls run */
    struct sl_exec_live live;
    struct sl_exec_graphs graphs;

    sl_exec_watch_fn *watch; /* NULL: none */
    void *watch_context;

    const struct sl_batch *batch;  /* of the last run */
    const struct sl_batch *staged; /* of the next, by its address and ordinal; NULL: none */
    uint64_t staged_ordinal;
    int staged_set;                    /* where it lands */
    int32_t *indices[SL_EXEC_INDICES]; /* made from the batch's axes, from SL_TENSOR_SEQUENCE on; NULL where no call
                                        * reads them. Of SL_TENSOR_ROW_WEIGHT: floats */
    int64_t *memory_offsets;           /* [memory_count] of what PART_DECODER was given */
    int64_t memory_elems;
    struct sl_exec_shape *shape;
};

/* indices.c: room for the index tensors of the graph, and their values for a batch. */
seqlstm_status sl_exec_open_indices(struct sl_exec *exec, struct seqlstm_error *err);
void sl_exec_close_indices(struct sl_exec *exec);
void sl_exec_fill_indices(struct sl_exec *exec, const struct sl_batch *batch);

/* What a row of the target weighs in the loss. */
double sl_exec_weigh_row(const struct sl_exec *exec, const struct sl_batch *batch, int64_t row);

/* Finds or makes the bindings of the batch's shape and copies its ids and positions. */
seqlstm_status sl_exec_bind(struct sl_exec *exec, const struct sl_batch *batch, struct seqlstm_error *err);
void sl_exec_unbind_all(struct sl_exec *exec);

/* Rows of a call's binding at the running shape, and of what it reads where those are others. */
const struct seqlstm_axis *sl_exec_get_axis(const struct sl_exec_shape *shape, enum sl_axis axis);
int64_t sl_exec_get_rows_in(const struct sl_exec *exec, const struct sl_exec_shape *shape, int32_t c, int64_t rows);

/* In a loop those of the running step. */
int64_t sl_exec_get_rows(const struct sl_exec *exec, enum sl_axis axis);

/* ---- places (place.c) ---- */

/* Finds the place of every call and makes the buffers. */
seqlstm_status sl_exec_open_places(struct sl_exec *exec, const float *class_weights, struct seqlstm_error *err);
void sl_exec_close_places(struct sl_exec *exec);

/* At the start of a run: what the batch brings stands on the host, everything computed nowhere. */
void sl_exec_begin_values(struct sl_exec *exec);

/* Where tensor t (its gradient) stands in a place, valid or not; NULL when it has no room. */
void *sl_exec_at(struct sl_exec *exec, int32_t place, int32_t t);
float *sl_exec_grad_at(struct sl_exec *exec, int32_t place, int32_t t);

/* The same, made valid there by a copy if need be. NULL when the batch has no such field. */
seqlstm_status sl_exec_provide(struct sl_exec *exec, int32_t place, int32_t t, void **out_tensor,
                               struct seqlstm_error *err);
seqlstm_status sl_exec_provide_grad(struct sl_exec *exec, int32_t place, int32_t t, float **out_grad,
                                    struct seqlstm_error *err);

/* Room for the next batch's fields, if there is none yet; waits for the devices. */
seqlstm_status sl_exec_open_staging(struct sl_exec *exec, struct seqlstm_error *err);
/* Starts copying the fields of the next batch, which fits; at the start of a run takes them, if it is that batch. */
seqlstm_status sl_exec_stage(struct sl_exec *exec, const struct sl_batch *batch, struct seqlstm_error *err);
seqlstm_status sl_exec_take_staged(struct sl_exec *exec, const struct sl_batch *batch, struct seqlstm_error *err);
seqlstm_status sl_exec_finish_staging(struct sl_exec *exec, struct seqlstm_error *err);
void sl_exec_close_staging(struct sl_exec *exec);

/* live.c: the block of what changes, in device_place. attach: axes of a new shape, before it is bound. */
seqlstm_status sl_exec_open_live(struct sl_exec *exec, struct seqlstm_error *err);
void sl_exec_close_live(struct sl_exec *exec);
void sl_exec_attach_live(struct sl_exec *exec, struct sl_exec_shape *shape);
seqlstm_status sl_exec_renew_live(struct sl_exec *exec, struct seqlstm_error *err);

/* capture.c: the calls of a run, one by one or as a graph. */
seqlstm_status sl_exec_open_capture(struct sl_exec *exec, struct seqlstm_error *err);
seqlstm_status sl_exec_run_calls(struct sl_exec *exec, const struct sl_exec_step *step, struct seqlstm_error *err);
void sl_exec_drop_graphs(struct sl_exec *exec, struct sl_exec_shape *shape);

/* Notes that t has been written in a place: its other copies are stale. */
void sl_exec_note_written(struct sl_exec *exec, int32_t place, int32_t t);

/* Bytes between two places of this executor, through the host's buffer at the same offset. */
seqlstm_status sl_exec_move_bytes(struct sl_exec *exec, int32_t from, int32_t to, char *base_from, char *base_host,
                                  char *base_to, int64_t bytes, struct seqlstm_error *err);

/* y += x in the place of the plan's flat operations. */
seqlstm_status sl_exec_add(struct sl_exec *exec, float *y, const float *x, int64_t elems, struct seqlstm_error *err);
int32_t sl_exec_get_vector_place(const struct sl_exec *exec, uint32_t op, uint32_t kind);

/* Is there something to do for a call at the running shape? */
bool sl_exec_has_rows(const struct sl_exec *exec, int32_t c);
seqlstm_status sl_exec_forward(struct sl_exec *exec, struct seqlstm_error *err);
seqlstm_status sl_exec_backward(struct sl_exec *exec, bool accumulate, struct seqlstm_error *err);
/* Final states become the initial ones of the next run. */
seqlstm_status sl_exec_carry_states(struct sl_exec *exec, struct seqlstm_error *err);

/* vectors.c. release: the bindings that a graph has. find: the plan's call for a flat operation. run: on slots that
 * stand in its place. */
seqlstm_status sl_exec_find_vector(const struct sl_exec *exec, uint32_t op, uint32_t kind, int32_t *out_v,
                                   struct seqlstm_error *err);
void sl_exec_release_vectors(struct sl_exec *exec, struct sl_exec_graph *graph);
seqlstm_status sl_exec_run_vector(struct sl_exec *exec, int32_t v, void *const *slots, uint32_t slot_count,
                                  int64_t elems, struct seqlstm_error *err);

/* update.c. begin: what the step block has of it. bring: what it reads to where graphs run. note: what it has written,
 * for one that a graph has made. finish: waits. */
void sl_exec_open_update(struct sl_exec *exec);
void sl_exec_begin_update(struct sl_exec *exec, const struct sl_exec_update *update);
seqlstm_status sl_exec_bring_update(struct sl_exec *exec, struct seqlstm_error *err);
seqlstm_status sl_exec_make_update(struct sl_exec *exec, struct seqlstm_error *err);
void sl_exec_note_update(struct sl_exec *exec);
seqlstm_status sl_exec_finish_update(struct sl_exec *exec, double *out_squares, struct seqlstm_error *err);

/* One call of a forward pass, on the running step of the loop or on all rows. */
seqlstm_status sl_exec_forward_call(struct sl_exec *exec, int32_t c, struct seqlstm_error *err);
/* The slots of a call where it runs, what it reads made valid there. */
seqlstm_status sl_exec_place_slots(struct sl_exec *exec, int32_t c, struct seqlstm_error *err);
/* The arguments that forward and backward share: binding, queue and the buffers of the call. */
struct seqlstm_binding *sl_exec_get_binding(const struct sl_exec *exec, int32_t c);
struct seqlstm_backward sl_exec_get_backward(struct sl_exec *exec, int32_t c, uint32_t parts);
seqlstm_status sl_exec_backward_call(struct sl_exec *exec, int32_t c, const struct seqlstm_backward *args,
                                     struct seqlstm_error *err);
/* Does slot s hold an initial state of a recurrent call? */
bool sl_exec_is_initial_state(const struct sl_node *node, int32_t s);

/* ---- gradients of parameters (param_grads.c); own->grads of the call are set ---- */

/* Parameters nobody has written yet start at zero when the call is going to add, or is not made at all. */
seqlstm_status sl_exec_clear_unwritten(struct sl_exec *exec, int32_t c, struct seqlstm_error *err);
/* Before a call that makes them: what it adds to stands where it runs. *out_add: it is to add. */
seqlstm_status sl_exec_begin_params(struct sl_exec *exec, int32_t c, bool accumulate, bool *out_add,
                                    struct seqlstm_error *err);
void sl_exec_note_params(struct sl_exec *exec, int32_t c);
/* Where the gradient of the parameter at slot s stands for the call. */
seqlstm_status sl_exec_locate_param(struct sl_exec *exec, int32_t c, int32_t s, float **out_grad,
                                    struct seqlstm_error *err);

/* ---- the loop (loop.c) ---- */

seqlstm_status sl_exec_open_loop(struct sl_exec *exec, struct seqlstm_error *err);
void sl_exec_close_loop(struct sl_exec *exec);
seqlstm_status sl_exec_loop_forward(struct sl_exec *exec, struct seqlstm_error *err);
seqlstm_status sl_exec_loop_backward(struct sl_exec *exec, bool accumulate, struct seqlstm_error *err);
/* Bindings of its calls for every step of a shape. */
seqlstm_status sl_exec_bind_loop(struct sl_exec *exec, struct sl_exec_shape *shape, struct seqlstm_error *err);
void sl_exec_release_loop(struct sl_exec *exec, struct sl_exec_shape *shape);
/* Bytes from where a tensor begins to its rows of the running step. */
int64_t sl_exec_get_shift(const struct sl_exec *exec, const struct sl_tensor *tensor);

/* Puts "lstm_1 on cpu-blas: " before the message. */
seqlstm_status sl_exec_blame(const struct sl_call *call, seqlstm_status status, struct seqlstm_error *err);

#endif
