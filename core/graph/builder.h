/* SPDX-License-Identifier: Apache-2.0 */
/* A graph under construction: growing tables, and helpers that add to them. Private to core/graph.
 *
 * Running out of memory is sticky (`failed`) and checked once at the end, so that the code for layers need not check
 * it.
 */
#ifndef SL_GRAPH_BUILDER_H
#define SL_GRAPH_BUILDER_H

#include "base/memory/arena.h"
#include "graph/graph.h"

/* The properties of a new parameter other than its name and shape. */
struct sl_param_spec {
    struct sl_initializer initializer;
    struct sl_regularizer regularizer;
    int64_t fan_in, fan_out, fan_units;
    int64_t gates; /* 0 counts as 1 */
    int64_t one_begin, one_end;
    bool is_vector;
};

/* Tensors of the states of one (sub-layer, direction), -1 where absent, in the order of the slots. */
struct sl_cell_states {
    int32_t slots[4]; /* SEQLSTM_STATE_… */
};

/* The axes of an encoder or of a decoder (or plain model), and the input of its first layers. */
struct sl_builder_side {
    enum sl_axis steps, sequences;
    int32_t input;
};

struct sl_builder {
    struct sl_arena *arena;
    const struct sl_graph_request *request;
    const struct sl_model *model;
    const struct sl_data_facts *facts;
    struct seqlstm_error *err;
    bool failed; /* memory ran out */

    struct sl_tensor *tensors;
    int32_t tensor_count, tensor_capacity;
    struct sl_param *params;
    int32_t param_count, param_capacity;
    struct sl_state *states;
    int32_t state_count, state_capacity;
    struct sl_node *nodes;
    int32_t node_count, node_capacity;
    struct sl_alternative *alternatives;
    int32_t alternative_count, alternative_capacity;

    struct sl_builder_side sides[2];      /* by enum sl_side */
    int32_t *layer_outputs;               /* [layer_count] output of each layer; -1: none */
    struct sl_cell_states **layer_states; /* [layer_count] its initial and final states, [layers * directions];
                                           * made by sl_graph_add_starts before the layer is added */
    int32_t *repeated; /* [layer_count] of the encoder: its vector in the decoder's order, if a layer repeats it */
    int32_t place, sequence; /* index tensors; -1 until they are needed */
    int32_t memory;          /* the encoder's output, sequence by sequence; -1 without attention */
    int32_t memory_row, memory_offset, memory_of;
    int32_t *keys;                   /* [layer_count] keys of an attention layer: `memory`, or its own */
    struct sl_memory_pair *memories; /* [layer_count] */
    int32_t memory_count;
    int32_t decoder_node; /* the first node after the encoder and the nodes that lead out of it */
    int32_t decoder_alternative;
    struct sl_loop loop; /* input feeding; its carries are these: */
    struct sl_carry *carries;
    int32_t carry_count;
    int32_t fed_input;             /* the input of the layer that is fed; -1: there is none */
    int32_t fed_before, fed_state; /* the value that is fed: in a loop; as a state carried by the parts */
    bool training;
    bool carries_state; /* states are carried from batch to batch */
    bool output_is_logits;
};

/* Fails with the layer's (or an option's) place in `where`. */
seqlstm_status sl_builder_fail(struct sl_builder *b, struct sl_place place, const char *format, ...)
    SEQLSTM_PRINTF(3, 4);

/* Adds a tensor and returns its index. */
int32_t sl_builder_add_tensor(struct sl_builder *b, const char *name, enum sl_tensor_role role, enum sl_axis axis,
                              uint32_t dtype, int64_t rows, int64_t features);
/* Adds an activation, which in training has a gradient if `needs_grad`. */
int32_t sl_builder_add_activation(struct sl_builder *b, const char *name, enum sl_axis axis, int64_t features,
                                  bool needs_grad);
/* Adds a parameter "<layer>.<suffix>" and returns its tensor. */
int32_t sl_builder_add_param(struct sl_builder *b, const struct sl_layer *layer, const char *suffix, int64_t rows,
                             int64_t columns, const struct sl_param_spec *spec);
/* Adds an operation; `slots` is copied. needs_backward is derived from the slots' tensors. */
void sl_builder_add_node(struct sl_builder *b, const char *name, int32_t layer, const union seqlstm_any_desc *desc,
                         const int32_t *slots, int32_t slot_count);
/* Adds an alternative to the nodes [first, first + count). */
void sl_builder_add_alternative(struct sl_builder *b, const char *name, int32_t layer,
                                const union seqlstm_any_desc *desc, const int32_t *slots, int32_t slot_count,
                                int32_t first, int32_t count);
/* Adds a carried state of `features` per sequence; returns its index. */
int32_t sl_builder_add_state(struct sl_builder *b, const char *name, int64_t features);

/* A zeroed descriptor whose head is filled for tensors on `axis`. */
union seqlstm_any_desc sl_builder_describe(const struct sl_builder *b, uint32_t op, enum sl_axis axis);

/* The contract's form of an activation. */
struct seqlstm_activation sl_builder_get_activation(const struct sl_activation *activation);

static inline const struct sl_builder_side *sl_builder_get_side(const struct sl_builder *b,
                                                                const struct sl_layer *layer)
{
    return &b->sides[layer->side];
}

/* Adds y[i] = x[index[i]], or x[index] of each step. `y` -1: a new activation. Returns y. */
int32_t sl_builder_add_gather(struct sl_builder *b, const char *name, int32_t layer, int32_t x, int32_t index,
                              int32_t y);
/* Adds y = act(x W' + b) with new parameters "<layer>.<suffix>.w" and ".bias", which use the initializers of the layer.
 * Returns y. */
int32_t sl_builder_add_linear(struct sl_builder *b, const struct sl_layer *layer, const char *suffix, int32_t x,
                              int64_t units, enum sl_activation_kind activation);
/* Merges `count` (1 to SEQLSTM_MAX_MERGE_INPUTS) tensors of one axis; only for a concatenation their widths may differ.
 * Returns the merged tensor. */
int32_t sl_builder_add_merge(struct sl_builder *b, const char *name, int32_t layer, const int32_t *x, size_t count,
                             uint32_t kind);

/* The tensor that is input number `which` of a layer. */
int32_t sl_builder_get_input(const struct sl_builder *b, const struct sl_layer *layer, size_t which);

/* The first mask stream of a layer, or of sub-layer `sub_layer` of a stack. A sub-layer has SEQLSTM_STREAMS_PER_LAYER
 * streams. No two layers or sub-layers of a model share one. */
uint64_t sl_builder_get_stream(const struct sl_layer *layer, int64_t sub_layer);

/* Makes layer_states of a recurrent layer: carried states, or states from another layer. */
seqlstm_status sl_graph_add_starts(struct sl_builder *b, const struct sl_layer *layer);
/* After the encoder: adds everything that the decoder reads from it, in the decoder's order. */
seqlstm_status sl_graph_cross(struct sl_builder *b);

/* Each adds the nodes of one layer and sets layer_outputs[layer->index]. */
seqlstm_status sl_graph_add_recurrent(struct sl_builder *b, const struct sl_layer *layer);
seqlstm_status sl_graph_add_rowwise(struct sl_builder *b, const struct sl_layer *layer);
seqlstm_status sl_graph_add_attention(struct sl_builder *b, const struct sl_layer *layer);
/* After the encoder: adds the memory of all attention layers, and the keys of one. */
seqlstm_status sl_graph_cross_memory(struct sl_builder *b, const struct sl_layer *layer);
/* The begin of a loop, before the layer that is fed; its end, after the layer whose output is fed. */
seqlstm_status sl_graph_enter_loop(struct sl_builder *b);
seqlstm_status sl_graph_leave_loop(struct sl_builder *b);
/* Adds the loss after the last layer. */
seqlstm_status sl_graph_add_loss(struct sl_builder *b, int32_t *out_sums);

#endif
