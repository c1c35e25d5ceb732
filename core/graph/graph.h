/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of a model: model + data facts -> operations, tensors and parameters.
 *
 * The graph says *what* is computed: operations (descriptors of the contract), the tensors between them, parameters
 * with names and initial values. It knows neither backends nor batches. How many rows a tensor has depends on the
 * batch, so it only names an axis; the descriptors contain the envelope's bounds. core/dispatch assigns the operations
 * to backends.
 *
 * The files: create makes a graph; builder has the growing tables and helpers; recurrent, rowwise, attention and loss
 * add the operations of one kind of layer; starts, the initial states of recurrent layers; loop, input feeding; option,
 * the key in the model file behind an option.
 *
 * Invariants:
 *  1. A graph is immutable and lives in its own arena; texts and places point into the model, which
 *     must outlive it.
 *  2. nodes are in topological order: a node reads only inputs, parameters, states and what earlier nodes write.
 *  3. Every tensor is written by at most one node. Only tensors of equal axis meet in a row-wise node.
 *  4. Parameters have the same order, names and shapes in every phase of one model.
 *  5. nodes are as small as possible (one recurrent layer each, a dense layer and its loss separate). An alternative is
 * a larger operation that a backend may run instead of several nodes.
 */
#ifndef SL_GRAPH_GRAPH_H
#define SL_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/any_desc.h>
#include <seqlstm/status.h>

#include "base/batch/data_facts.h"
#include "model/model.h"

enum sl_phase {
    SL_PHASE_TRAIN,    /* forward, loss, backward, update */
    SL_PHASE_EVALUATE, /* forward, loss */
    SL_PHASE_PREDICT   /* forward; the output has its activation applied */
};

/* Which part of an encoder-decoder model is run. The parameters are always those of the whole model. */
enum sl_part {
    SL_PART_WHOLE,
    SL_PART_ENCODER, /* PREDICT: the encoder, and the initial states of the decoder, which it writes as carried states
                      */
    SL_PART_DECODER  /* PREDICT: the decoder, with states carried from step to step; does not read the source */
};

/* The meaning of a tensor's rows. */
enum sl_axis {
    SL_AXIS_FREE,             /* `rows` of its own */
    SL_AXIS_STEPS,            /* packed steps of the batch */
    SL_AXIS_SEQUENCES,        /* one row per sequence, including those of length 0 */
    SL_AXIS_SOURCE_STEPS,     /* packed steps of the batch's source */
    SL_AXIS_SOURCE_SEQUENCES, /* one row per sequence, in the order of the source */
    SL_AXIS_MEMORY            /* the steps of the source, sequence by sequence: read by attention */
};

static inline bool sl_axis_is_steps(enum sl_axis axis)
{
    return axis == SL_AXIS_STEPS || axis == SL_AXIS_SOURCE_STEPS || axis == SL_AXIS_MEMORY;
}

static inline bool sl_axis_is_source(enum sl_axis axis)
{
    return axis == SL_AXIS_SOURCE_STEPS || axis == SL_AXIS_SOURCE_SEQUENCES || axis == SL_AXIS_MEMORY;
}

enum sl_tensor_role {
    SL_TENSOR_ACTIVATION,
    SL_TENSOR_INPUT,         /* field of the batch */
    SL_TENSOR_TARGET,        /* field of the batch */
    SL_TENSOR_WEIGHT,        /* field of the batch */
    SL_TENSOR_SOURCE,        /* field of the batch */
    SL_TENSOR_PLACE,         /* for each sequence: its row in the order of the source, for gather */
    SL_TENSOR_SEQUENCE,      /* for each step: the row of its sequence, for gather */
    SL_TENSOR_MEMORY_ROW,    /* for each row of the memories: its row among the source's steps, for gather */
    SL_TENSOR_MEMORY_OFFSET, /* first rows of the memories: OFFSETS of ATTENTION */
    SL_TENSOR_MEMORY_OF,     /* for each step: MEMORY_OF of ATTENTION */
    SL_TENSOR_ROW_WEIGHT,    /* for each row with targets 0 and 1: its weight times the weight of its class */
    SL_TENSOR_CLASS_WEIGHTS, /* given to the executor */
    SL_TENSOR_PARAM,
    SL_TENSOR_STATE_IN,   /* carried over from the previous batch */
    SL_TENSOR_STATE_OUT,  /* carried over to the next batch */
    SL_TENSOR_BEFORE,     /* in a loop: the value of another tensor at the previous step; on the steps axis */
    SL_TENSOR_MEMORY_IN,  /* PART_DECODER: given to the executor */
    SL_TENSOR_MEMORY_OUT, /* PART_ENCODER: the value to give it */
    SL_TENSOR_SUMS        /* loss sums */
};

/* INPUT … ROW_WEIGHT: a field of the batch, or made from its axes before each step. */
static inline bool sl_tensor_role_is_field(enum sl_tensor_role role)
{
    return role >= SL_TENSOR_INPUT && role <= SL_TENSOR_ROW_WEIGHT;
}

struct sl_tensor {
    const char *name;
    enum sl_tensor_role role;
    enum sl_axis axis;
    uint32_t dtype;   /* SEQLSTM_DTYPE_FLOAT32 … */
    int64_t rows;     /* FREE */
    int64_t features; /* per row */
    bool needs_grad;  /* it depends on a trainable parameter */
    int32_t owner;    /* index of PARAM, STATE_*, MEMORY_IN and OUT, and BEFORE (the carries of the loop); else -1 */
};

/* One trainable (or frozen) parameter under its canonical name, "lstm_1.l0.forward.w_x". */
struct sl_param {
    const char *name;
    int32_t tensor;
    int32_t layer; /* index in model->layers */
    int64_t rows;
    int64_t columns; /* 1 for vectors */
    bool is_vector;  /* by its role: a matrix may have one column, too */
    bool trainable;
    struct sl_initializer initializer;
    int64_t fan_in; /* for initializers that depend on the fan */
    int64_t fan_out;
    int64_t fan_units; /* FAN_UNIFORM */
    int64_t gates;     /* blocks of rows that ORTHOGONAL draws separately; >= 1 */
    int64_t one_begin; /* 1 is added to rows [one_begin, one_end): forget bias, gains */
    int64_t one_end;
    struct sl_regularizer regularizer;
};

/* A recurrent state carried from batch to batch (unit: stream, truncated BPTT). On the sequences axis. */
struct sl_state {
    const char *name;
    int32_t tensor_in;
    int32_t tensor_out;
    int64_t features;
};

/* Rows that attention reads, in the same order in both parts: PART_ENCODER writes them, PART_DECODER reads them. */
struct sl_memory_pair {
    int32_t tensor_in;  /* -1: PART_ENCODER */
    int32_t tensor_out; /* -1: PART_DECODER */
};

/* One operation. */
struct sl_node {
    const char *name; /* the layer's, with a suffix where a layer needs several: "lstm_1", "output.loss" */
    int32_t layer;    /* index in model->layers; -1: the loss of the model. Nodes that lead from the encoder to a
                       * layer of the decoder belong to that layer */
    union seqlstm_any_desc desc;
    int32_t slot_count;
    const int32_t *slots; /* tensor of each slot; -1: absent */
    bool needs_backward;  /* an input or a parameter needs a gradient */
    bool is_quantized;    /* computes in the precision of sl_quantization, not of the model */
};

/* Is the tensor one of its slots? */
static inline bool sl_node_uses(const struct sl_node *node, int32_t tensor)
{
    for (int32_t s = 0; s < node->slot_count; s++)
        if (node->slots[s] == tensor)
            return true;
    return false;
}

/* `node` may replace nodes [first, first + count). */
struct sl_alternative {
    struct sl_node node;
    int32_t first;
    int32_t count;
};

/* A value that a loop carries: `before` at step t is `value` at step t-1, for the sequences that have a step t. */
struct sl_carry {
    int32_t value; /* written by the body; on the steps axis */
    int32_t before;
    int32_t initial; /* the value before the first step, one row per sequence; -1: zeros */
};

/* Nodes [first, first + count) run step by step over the steps axis, because a step reads what the previous one wrote.
 * Only the active rows are computed. Backward runs through the steps in reverse. All outputs of the nodes are on that
 * axis. */
struct sl_loop {
    int32_t first, count; /* count 0: there is no loop */
    const struct sl_carry *carries;
    int32_t carry_count;
};

struct sl_graph {
    struct sl_arena *arena;
    const struct sl_model *model;
    struct sl_data_facts facts;
    enum sl_phase phase;

    const struct sl_tensor *tensors;
    int32_t tensor_count;
    const struct sl_param *params;
    int32_t param_count;
    const struct sl_state *states;
    int32_t state_count;
    const struct sl_memory_pair *memories; /* none in PART_WHOLE */
    int32_t memory_count;
    const struct sl_node *nodes;
    int32_t node_count;
    const struct sl_alternative *alternatives;
    int32_t alternative_count;
    struct sl_loop loop; /* only in PART_WHOLE; an alternative lies inside or outside of it */

    enum sl_part part;
    int32_t output;        /* tensor of the model's output: logits where output_is_logits; -1: PART_ENCODER */
    int32_t output_layer;  /* index of the layer that makes it */
    bool output_is_logits; /* the loss computes the activation before a cross-entropy */
    bool output_needed;    /* the output must be computed, not fused away */
    bool reads_input;      /* a node reads it, so the batch must have it */
    bool reads_source;
    int32_t pieces; /* of the request; then the recurrent layers that run in pieces are STEPWISE, without stacks */
    int32_t sums;   /* tensor of the loss sums; -1 without a loss */

    /* Operations on flat vectors that training needs besides the nodes; their max_rows is the number of all parameters.
     * Only in SL_PHASE_TRAIN. */
    const union seqlstm_any_desc *vector_ops;
    int32_t vector_op_count;
    double clip_value; /* largest magnitude of an element of the gradient; 0: no limit */
};

/* A recurrent layer that runs in another precision than the model's: int8 with its `data_scale` and `data_shift`
 * (ops.h), or bfloat16 or tf32, where these are 0. */
struct sl_quantized_layer {
    const char *node; /* name of its node */
    uint32_t dtype;   /* SEQLSTM_DTYPE_… */
    float scale;
    float shift;
};

struct sl_quantization {
    const struct sl_quantized_layer *layers;
    int32_t count;
};

struct sl_graph_request {
    const struct sl_model *model;
    const struct sl_data_facts *facts;
    enum sl_phase phase;
    bool need_output; /* for metrics; PREDICT always has the output */
    bool carry_state; /* carry states from batch to batch even if the data are independent sequences */
    /* Not in TRAIN. Runs these layers in their precision, and offers no stacks, so that the inputs of every recurrent
     * layer can be observed; NULL: as in the model. */
    const struct sl_quantization *quantization;
    const struct sl_layer *output_layer; /* PREDICT: the layer whose output is wanted; NULL: the last one */
    int32_t pieces; /* TRAIN: the steps of a batch run in so many pieces (base/batch/pieces.h); 0: all at once */
    enum sl_part part;
    bool attention_weights; /* nodes of ATTENTION also write their weights */
};

/* Makes the graph. If model and data do not fit (for example a dense layer narrower than the targets), the error is
 * INVALID_CONFIG with the layer's place in `where` and a message that names the fix. The caller owns `*out_graph`. [any
 * thread] */
seqlstm_status sl_graph_create(const struct sl_graph_request *request, struct sl_graph **out_graph,
                               struct seqlstm_error *err);
void sl_graph_destroy(struct sl_graph *graph);

/* The key in the model file for an option that a backend named, and its place. */
struct sl_option_place {
    const char *key;       /* "recurrent_dropout" */
    struct sl_place place; /* of the key, or of the layer if it is a default; line 0 for the loss */
    const char *value;     /* as the model file writes it: "relu"; NULL: it has none, or one for each direction */
};
struct sl_option_place sl_graph_find_option(const struct sl_graph *graph, const struct sl_node *node, uint32_t option);

enum { SL_OPTION_VALUE_BYTES = 48 };

/* The value that a message about the option names: that of the model file, otherwise what the backend said about it in
 * `said`, as the file would write it (an activation by name, "0.25" for "0.2500"). */
void sl_option_place_name_value(const struct sl_option_place *place, uint32_t option, const char *said,
                                char out[SL_OPTION_VALUE_BYTES]);

/* Why a node runs on all steps at once, although the graph has pieces. */
enum sl_barrier {
    SL_BARRIER_NONE,      /* it does not: it runs piece by piece */
    SL_BARRIER_DIRECTION, /* it begins at the last step, or has two directions */
    SL_BARRIER_STEPS,     /* it reads or writes something that belongs to whole sequences: pool, repeat, attention */
    SL_BARRIER_SOURCE,    /* it belongs to the encoder, whose steps are not cut */
    SL_BARRIER_LOOP       /* it runs step by step, in the loop of input feeding */
};
enum sl_barrier sl_graph_find_barrier(const struct sl_graph *graph, const struct sl_node *node);

/* The axis of an operation: that of its input, or for gather that of its output. */
enum sl_axis sl_graph_get_axis(const struct sl_graph *graph, const struct sl_node *node);

/* The most rows that a tensor has in any batch of the envelope. */
int64_t sl_graph_get_rows(const struct sl_graph *graph, const struct sl_tensor *tensor);

/* Do embeddings read parameter p, and nothing else? Then its gradient has no rows but those that are looked up. */
bool sl_graph_is_only_looked_up(const struct sl_graph *graph, int32_t p);

/* Sum of the elements of all parameters. */
int64_t sl_graph_param_elems(const struct sl_graph *graph);

#endif
