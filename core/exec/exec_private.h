/* SPDX-License-Identifier: Apache-2.0 */
/* What an executor is made of. The functions that work on it are declared in one header for each source file:
 *
 *   place/      buffers in each memory domain, and copies between them
 *   update/     the update of the parameters, and its flat operations
 *   call/       one call, forward or backward, and the calls that run step by step
 *   capture/    steps captured on a device, and how they begin and end
 *   shape/      bindings by shape of batch, and what follows from a batch
 *   run/        an executor's life; one step: check, bind, run all calls, collect; predictions on the host alone
 */
#ifndef SL_EXEC_PRIVATE_H
#define SL_EXEC_PRIVATE_H

#include <seqlstm/ext/draft/frame.h>
#include <seqlstm/ext/rebind.h>

#include "base/operation/op_signature.h"
#include "registry/host.h"
#include "registry/lane.h"
#include "exec/exec.h"
#include "exec/params/params_mirror.h"

enum { SL_EXEC_SHAPES = SL_SHAPES_BOUND };

/* The axes of one side of a batch. They are copies, since bindings point to them. */
struct sl_exec_axes {
    struct seqlstm_axis steps; /* of the sequences that have steps */
    struct seqlstm_axis rows;  /* every sequence as one step: for masks on the sequences axis */
    int64_t id_count;
    int64_t capacity_bytes;
    void *storage; /* the arrays of both */
};

enum { SL_EXEC_TARGET, SL_EXEC_SOURCE, SL_EXEC_SIDES };

static inline int sl_exec_get_side(enum sl_axis axis)
{
    return sl_axis_is_source(axis) ? SL_EXEC_SOURCE : SL_EXEC_TARGET;
}

enum {
    SL_EXEC_FIELDS = SL_TENSOR_ROW_WEIGHT - SL_TENSOR_INPUT + 1,
    SL_EXEC_INDICES = SL_TENSOR_ROW_WEIGHT - SL_TENSOR_SEQUENCE + 1,
    SL_EXEC_ENTRIES = SL_EXEC_FIELDS + 2 * SL_EXEC_SIDES
};

/* A flat operation at one length. */
struct sl_exec_vector_binding {
    int32_t v; /* index in the plan's vectors */
    int64_t elems;
    struct seqlstm_binding *binding;
    int64_t last_run; /* in which it was used */
};

/* Those of one operation, the most recently used first. */
struct sl_exec_vector_bindings {
    struct sl_exec_vector_binding *kept;
    int32_t count;
};

/* What a slot of the ring holds besides order and step block: a tensor, or the ids or positions of a side. */
struct sl_exec_entry {
    int32_t tensor; /* -1: none */
    int32_t side;
    bool is_position;
    int64_t offset, bytes;
};

/* The capture of a step at one shape (capture/capture.c), or what a step needs that is started call by call in a frame.
 * Zeroed: not captured yet. */
struct sl_exec_capture {
    int32_t seen;     /* how often the step ran before it was captured */
    float loss_scale; /* when it was captured */
    bool refused;     /* the device could not capture it */
    void *native;     /* the device's object; NULL: not captured */
    uint32_t circumstances;
    uint8_t *marks; /* valid, grad_valid and param_written as the step leaves them, one after the other */
    struct sl_exec_vector_binding *vectors; /* bindings that only this capture uses */
    int32_t vector_count;
    struct sl_exec_entry entries[SL_EXEC_ENTRIES]; /* of a slot */
    int32_t entry_count;
    int64_t slot_bytes;              /* up to the end of the last entry */
    struct seqlstm_frame begin, end; /* of its frame */
};
enum { SL_EXEC_CAPTURES = 4 };

/* One shape of batch: its axes and the binding of each call. */
struct sl_exec_shape {
    bool used;
    bool ran;     /* leanly */
    int64_t uses; /* runs since it was bound */
    uint64_t hash;
    int64_t last_use;
    int64_t sequences; /* those of length zero included */
    struct sl_exec_axes sides[SL_EXEC_SIDES];
    struct seqlstm_binding **bindings;      /* [call_count]; NULL for a call that only runs step by step */
    struct seqlstm_binding **step_bindings; /* [steps * calls of the loop]: one step of one call */
    int64_t step_binding_count;
    int64_t *piece_bounds;                   /* [pieces + 1] first step of each piece */
    int32_t piece_count;                     /* 0: the graph has no pieces, or the batch no rows */
    struct seqlstm_binding **piece_bindings; /* [piece_count * call_count]; NULL for a call that runs at once */
    struct sl_exec_capture captures[SL_EXEC_CAPTURES]; /* [accumulate + 2 * with the update] */
};

/* The bytes behind a tensor's value or gradient in the activations, which belong to nothing else
 * (dispatch/memory/layout.c). */
struct sl_exec_gap {
    int32_t tensor;
    int64_t offset;
};

/* What belongs to a call for the executor's whole life. */
struct sl_exec_call {
    int32_t place;
    int32_t slot_count;
    enum sl_slot_role *roles; /* [slot_count] */
    void **slots;             /* [slot_count] filled at every run */
    void **grads;
    uint64_t *hashes; /* [slot_count] of what a running call reads (call/fences.h) */
    /* In the host's memory: [0, gap_counts[0]) behind what forward writes, then gap_counts[1] behind the gradients that
     * backward writes. */
    struct sl_exec_gap *gaps;
    int32_t gap_counts[2];
    enum sl_axis axis;       /* the axis of its rows */
    uint64_t packed_version; /* version of the parameters when they were packed, plus 1; 0: never packed */
    bool repacks;            /* its weights are masked anew at every step */
    bool gathers_weights;    /* in a loop: one call over all steps, after the loop, makes the weight gradients */
    const struct seqlstm_rebind *rebind; /* of its backend; NULL: there is none */
};

/* The calls of the plan that run step by step (call/loop.c). */
struct sl_exec_loop {
    int32_t first, end; /* calls [first, end); equal: there are none */
    int64_t step;       /* the running step; -1: calls take all rows at once */
    bool *touched;      /* [tensor_count] on the steps axis, and a slot of the loop */
    uint8_t *outer;     /* [tensor_count] grad_valid when the loop's backward began */
    bool *carried;      /* [tensor_count] the following step has written its gradient */
};

/* The states h and c of a recurrent call at the borders of its pieces, on the host. */
struct sl_exec_piece_states {
    int64_t elems[2]; /* of h and c at one border; 0: it has none */
    float *values;    /* [pieces + 1] borders of h, then c; NULL: the call has no such states */
    float *grads;     /* [2] borders, used alternately */
};

/* The calls of the plan that run piece by piece (call/pieces.c). */
struct sl_exec_pieces {
    int32_t count;                       /* of a batch, at most */
    int32_t running;                     /* the running piece; -1: calls take all rows at once */
    struct sl_exec_piece_states *states; /* [call_count] */
    uint8_t *outer;                      /* [tensor_count] grad_valid when the unit's backward began */
};

/* When a tensor crosses a border of the stage (call/border.h). */
enum sl_exec_when { SL_EXEC_CROSS_EARLY, SL_EXEC_CROSS_PIECE, SL_EXEC_CROSS_LATE };

struct sl_exec_crossing {
    int32_t tensor;
    enum sl_exec_when when;
    bool returns; /* its gradient comes back */
};

struct sl_exec_border {
    bool exists, inside; /* inside: within a unit that runs in pieces */
    int32_t at;          /* the first call after it */
    struct sl_exec_crossing *items;
    int32_t count;
    int32_t *params; /* parameters that calls on both sides use */
    int32_t param_count;
    bool received; /* their gradients have come in the running step */
};

/* Buffers through which the next batch's fields are copied to a device (place/staging.c). */
enum { SL_EXEC_STAGED = SL_TENSOR_SOURCE - SL_TENSOR_INPUT + 1 };

struct sl_exec_staging {
    struct sl_lane lane;             /* closed until a run is given its next batch */
    char *pinned;                    /* on the host: the fields one after the other */
    int64_t offsets[SL_EXEC_STAGED]; /* in pinned; -1: no call here reads the field */
    void *fields[2][SL_EXEC_STAGED]; /* on the device, used alternately */
};

/* What changes from run to run (capture/frame.c). */
struct sl_exec_live {
    char *device; /* NULL: there is none */
    char *pinned;
};

/* Of one step: its data have reached the device, it has begun, it has ended. */
struct sl_exec_marks {
    void *sent, *begun, *ended;
};
enum { SL_EXEC_MARKS = 4 }; /* more than two steps are never looked back at */

/* How captured steps get their data and give their results (capture/frame.c). */
struct sl_exec_ring {
    struct sl_lane lane;
    char *device, *pinned; /* [SL_EXEC_AHEAD] slots; NULL: there is none */
    int64_t slot_bytes;
    struct seqlstm_progress *progress; /* on the device */
    struct seqlstm_outcome *outcomes;  /* [SL_EXEC_AHEAD] pinned */
    int64_t rows[SL_EXEC_AHEAD];       /* of the steps under way */
    int64_t launched, landed;          /* captured steps started, and their results fetched */
    struct sl_exec_marks marks[SL_EXEC_MARKS];
    int64_t marked, counted; /* steps with marks; those whose idle time has been counted */
    int64_t paused;          /* the step with this number did not follow directly */
};

/* Buffers of one memory domain. Offsets into them come from the plan and are the same in every place, so a tensor's
 * copies need no bookkeeping of their own. Place 0 is the host; it reads the fields of a batch from the batch itself.
 */
struct sl_exec_place {
    struct sl_domain *domain; /* NULL: nothing of the plan runs there */
    char *activations;
    char *reserve;
    char *packed;
    char *workspace;
    float *states; /* all carried states */
    float *class_weights;
    float *memories;              /* of SL_PART_DECODER */
    float *zeros;                 /* what a loop reads at its first step */
    double *sums;                 /* [2] */
    double *scalar;               /* [1] result of a reduction */
    void *fields[SL_EXEC_FIELDS]; /* from SL_TENSOR_INPUT on; not on the host */
    void *staged[2];              /* operands of flat operations that are no parameters; not on the host */
    int64_t staged_bytes[2];
    struct sl_exec_staging staging; /* not on the host */
};

struct sl_exec {
    const struct sl_plan *plan;
    const struct sl_graph *graph;
    struct sl_params *params;
    struct sl_memory *memory;
    const struct sl_packed *packed; /* borrowed; NULL: each place has its own */
    struct sl_domain host;
    struct seqlstm_step step;

    struct sl_exec_call *calls;
    struct sl_unit *units; /* [call_count] of each call */
    struct sl_exec_timing *timing;
    struct sl_piece_times *piece_times; /* NULL: not wanted */
    struct sl_exec_shape shapes[SL_EXEC_SHAPES];
    struct sl_exec_vector_bindings *vectors; /* [vector_count] */
    int64_t clock;                           /* counts uses of shapes, for their age */
    int64_t runs;                            /* batches that were bound */

    struct sl_exec_place places[SL_PLACES_MAX];
    int32_t *vector_places; /* [vector_count] */
    struct sl_exec_loop loop;
    struct sl_exec_pieces pieces;
    struct sl_exec_stage stage;
    struct sl_exec_border borders[2]; /* with the stages before and after */
    uint8_t *valid;                   /* [tensor_count] bit p: the copy of the tensor in place p is valid */
    uint8_t *grad_valid; /* [tensor_count] the same for its gradient; 0: it has none yet in the running backward */
    int64_t state_elems;
    int64_t *state_offsets; /* [state_count] in elements */
    bool *param_written;    /* [param_count] its gradient has been written in the running backward */

    bool lean;
    const void *lean_input; /* of the last lean run */
    uint64_t lean_version;  /* of the parameters then, plus 1 */

    int32_t device_place; /* where all calls of a training step run, if it may be captured; else SL_PLACE_HOST */
    bool captures_update; /* captures of a step include the update */
    bool scales_factors;  /* and the update has factors that follow the scale of the loss */
    struct sl_exec_capture *capturing; /* whose frame the running calls are in; NULL: the host waits for them */
    struct sl_exec_capture loose;      /* of steps in a frame whose calls are started, not recorded */
    struct sl_exec_live live;
    struct sl_exec_ring ring;
    struct sl_exec_captures captures;

    sl_exec_watch_fn *watch; /* NULL: none */
    void *watch_context;

    bool is_fenced; /* calls are looked at in this run (call/fences.h): in the first runs of a shape, and in each eighth
                     * later */
    const struct sl_batch *batch;  /* of the last run */
    const struct sl_batch *staged; /* of the next, known by its address and ordinal; NULL: none */
    uint64_t staged_ordinal;
    int staged_set;                    /* the set of device fields that it is copied to */
    int32_t *indices[SL_EXEC_INDICES]; /* made from the batch's axes, from SL_TENSOR_SEQUENCE on; NULL where no call
                                        * reads them. Those of SL_TENSOR_ROW_WEIGHT are floats */
    int64_t *memory_offsets;           /* [memory_count] of what an SL_PART_DECODER was given */
    int64_t memory_elems;
    struct sl_exec_shape *shape;
};

/* Are calls recorded into a capture, and not started? */
static inline bool sl_exec_is_recording(const struct sl_exec *exec)
{
    return exec->capturing != NULL && exec->capturing != &exec->loose;
}

#endif
