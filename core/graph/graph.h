/* SPDX-License-Identifier: Apache-2.0 */
/* A model as operations on axes: model + data facts -> graph.
 *
 * The graph says *what* is computed: descriptors of the contract, tensors with an axis, parameters with
 * names and initial values. It knows neither backends nor batches. Sizes along the data are symbolic (an
 * axis); the descriptors carry the envelope's bounds.
 *
 * Invariants:
 *  1. A graph is immutable and lives in its own arena; texts and places point into the model, which must
 *     outlive it.
 *  2. nodes are in topological order: a node reads only inputs, parameters, states and what earlier nodes write.
 *  3. Every tensor is written by at most one node. Only tensors of equal axis meet in a row-wise node.
 *  4. Parameters have the same order, names and shapes in every phase of one model.
 *  5. nodes are as fine as they can be (one recurrent layer each, dense apart from its loss); alternatives are
 *     the coarser operations that a backend may take instead.
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

/* Which part of a model of encoder and decoder is run. Parameters are those of the whole in any case. */
enum sl_part {
    SL_PART_WHOLE,
    SL_PART_ENCODER, /* PREDICT: the encoder, and what the decoder begins with: its carried states are written */
    SL_PART_DECODER  /* PREDICT: the decoder, on states that it carries from step to step; reads no source */
};

/* What a tensor's rows are. */
enum sl_axis {
    SL_AXIS_FREE,             /* `rows` of its own */
    SL_AXIS_STEPS,            /* packed steps of the batch */
    SL_AXIS_SEQUENCES,        /* one row a sequence, zero-length ones included */
    SL_AXIS_SOURCE_STEPS,     /* packed steps of the batch's source */
    SL_AXIS_SOURCE_SEQUENCES, /* one row a sequence, in the order of the source */
    SL_AXIS_MEMORY            /* the source's steps again, sequence by sequence: what attention looks at */
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
    SL_TENSOR_PLACE,         /* of each sequence in the order of the source: where to gather its row */
    SL_TENSOR_SEQUENCE,      /* of each step: where to gather its sequence's row */
    SL_TENSOR_MEMORY_ROW,    /* of each row of the memories: where to gather it among the source's steps */
    SL_TENSOR_MEMORY_OFFSET, /* first rows of the memories: OFFSETS of ATTENTION */
    SL_TENSOR_MEMORY_OF,     /* of each step: MEMORY_OF of ATTENTION */
    SL_TENSOR_ROW_WEIGHT,    /* of each row of values 0 and 1: its weight times its class's */
    SL_TENSOR_CLASS_WEIGHTS, /* given to the executor */
    SL_TENSOR_PARAM,
    SL_TENSOR_STATE_IN,   /* carried from the batch before */
    SL_TENSOR_STATE_OUT,  /* carried to the next batch */
    SL_TENSOR_BEFORE,     /* in a loop: what another tensor held at the step before; on the steps axis */
    SL_TENSOR_MEMORY_IN,  /* PART_DECODER: given to the executor */
    SL_TENSOR_MEMORY_OUT, /* PART_ENCODER: what to give it */
    SL_TENSOR_SUMS        /* loss sums */
};

struct sl_tensor {
    const char *name;
    enum sl_tensor_role role;
    enum sl_axis axis;
    uint32_t dtype;   /* SEQLSTM_DTYPE_FLOAT32 … */
    int64_t rows;     /* FREE */
    int64_t features; /* per row */
    bool needs_grad;  /* a trainable parameter lies behind it */
    int32_t owner;    /* PARAM: index into params; STATE_*: into states; BEFORE: into the loop's carries; else -1 */
};

/* One trainable (or frozen) parameter under its canonical name, "lstm_1.l0.forward.w_x". */
struct sl_param {
    const char *name;
    int32_t tensor;
    int32_t layer; /* index in model->layers */
    int64_t rows;
    int64_t columns; /* 1 for vectors */
    bool trainable;
    struct sl_initializer initializer;
    int64_t fan_in; /* for the fan rules */
    int64_t fan_out;
    int64_t fan_units; /* FAN_UNIFORM */
    int64_t gates;     /* row blocks that ORTHOGONAL draws apart; >= 1 */
    int64_t one_begin; /* rows [one_begin, one_end) get 1 added (forget bias, gains start there) */
    int64_t one_end;
    struct sl_regularizer regularizer;
};

/* A recurrent state carried between batches (unit: stream, BPTT segments). On the sequences axis. */
struct sl_state {
    const char *name;
    int32_t tensor_in;
    int32_t tensor_out;
    int64_t features;
};

/* Rows that attention looks at: PART_ENCODER writes them, PART_DECODER reads them. In both in one order. */
struct sl_memory_pair {
    int32_t tensor_in;  /* -1: PART_ENCODER */
    int32_t tensor_out; /* -1: PART_DECODER */
};

/* One operation. */
struct sl_node {
    const char *name; /* the layer's, with a suffix where a layer needs several: "lstm_1", "output.loss" */
    int32_t layer;    /* index in model->layers; -1: the loss of the model. What leads from the encoder to a layer
                       * of the decoder is that layer's */
    union seqlstm_any_desc desc;
    int32_t slot_count;
    const int32_t *slots; /* tensor of each slot; -1: absent */
    bool needs_backward;  /* some input or parameter of it needs a gradient */
};

/* `node` may stand for nodes [first, first + count). */
struct sl_alternative {
    struct sl_node node;
    int32_t first;
    int32_t count;
};

/* What a loop carries: `before` at step t is `value` at step t-1, of the sequences that have a step t. */
struct sl_carry {
    int32_t value; /* written by the body; on the steps axis */
    int32_t before;
    int32_t initial; /* at the first step, one row a sequence; -1: zeros */
};

/* Nodes [first, first + count) run step by step over the steps axis, active rows alone, since a step reads what the one
 * before it wrote; backward through the steps in reverse. All their outputs are on that axis. */
struct sl_loop {
    int32_t first, count; /* count 0: there is none */
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
    struct sl_loop loop; /* of PART_WHOLE; alternatives lie within it or outside */

    enum sl_part part;
    int32_t output;        /* tensor of the model's output: logits where output_is_logits; -1: PART_ENCODER */
    int32_t output_layer;  /* index of the layer that makes it */
    bool output_is_logits; /* the activation before a cross-entropy is left to the loss */
    bool output_needed;    /* nobody may fuse the output away */
    bool reads_input;      /* some node does; the batch must have it */
    bool reads_source;
    int32_t sums; /* tensor of the loss sums; -1 without a loss */

    /* Operations over flat vectors that training needs besides the nodes; descriptors with max_rows = all
     * parameters. Only in SL_PHASE_TRAIN. */
    const union seqlstm_any_desc *vector_ops;
    int32_t vector_op_count;
    double clip_value; /* largest magnitude of an element of the gradient; 0: no limit */
};

/* A recurrent layer that runs in int8: what `data_scale` and `data_shift` of ops.h are for it. */
struct sl_quantized_layer {
    const char *node; /* name of its node */
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
    bool need_output; /* metrics want the output; PREDICT always has it */
    bool carry_state; /* states go on from batch to batch even if the data are independent sequences */
    /* Not TRAIN. Those layers in int8, and no recurrent layers joined to stacks, so that each has inputs to look at;
     * NULL: as the model says. */
    const struct sl_quantization *quantization;
    const struct sl_layer *output_layer; /* PREDICT: end with this layer's output; NULL: with the last one's */
    enum sl_part part;
    bool attention_weights; /* nodes of ATTENTION write their weights too */
};

/* Builds the graph. Errors that come from the model and the data together (a dense layer narrower than the
 * targets …) are INVALID_CONFIG with the layer's place in `where` and a message that names the fix.
 * `*out_graph` is owned by the caller. [any thread] */
seqlstm_status sl_graph_create(const struct sl_graph_request *request, struct sl_graph **out_graph,
                               struct seqlstm_error *err);
void sl_graph_destroy(struct sl_graph *graph);

/* The YAML key that stands behind an option a backend named, and the place where it was said. */
struct sl_option_place {
    const char *key;       /* "recurrent_dropout" */
    struct sl_place place; /* of the key, or of the layer where it is a default; line 0 for the loss */
};
struct sl_option_place sl_graph_find_option(const struct sl_graph *graph, const struct sl_node *node, uint32_t option);

/* The axis on which the rows of an operation are: that of what it reads, or (gather) writes. */
enum sl_axis sl_graph_get_axis(const struct sl_graph *graph, const struct sl_node *node);

/* Most rows that a tensor has in any batch of the envelope. */
int64_t sl_graph_get_rows(const struct sl_graph *graph, const struct sl_tensor *tensor);

/* Sum of the elements of all parameters. */
int64_t sl_graph_param_elems(const struct sl_graph *graph);

#endif
