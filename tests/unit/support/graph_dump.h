/* SPDX-License-Identifier: Apache-2.0 */
/* All that a graph holds, as text. Members that are zero are left out; kinds are numbers. */
#ifndef SL_TESTS_GRAPH_DUMP_H
#define SL_TESTS_GRAPH_DUMP_H

#include "base/operation/op_signature.h"
#include "graph/graph.h"
#include "model_dump.h"

static inline void dump_act(struct sl_buf *out, const char *name, const struct seqlstm_activation *a)
{
    if (a->kind || a->alpha != 0 || a->beta != 0)
        sl_buf_printf(out, " %s=%u(%.9g, %.9g)", name, a->kind, (double)a->alpha, (double)a->beta);
}

static inline void dump_head(struct sl_buf *out, const struct seqlstm_desc *head)
{
    DUMP_INT(head, mode);
    DUMP_INT(head, flags);
    DUMP_INT(head, dtype_activation);
    DUMP_INT(head, dtype_activation_grad);
    DUMP_INT(head, dtype_state);
    DUMP_INT(head, dtype_compute);
    DUMP_INT(head, dtype_weight);
    DUMP_INT(head, dtype_weight_grad);
    sl_buf_printf(out, " bytes=%u most=%lld,%lld,%lld", head->struct_size, (long long)head->max_rows,
                  (long long)head->max_sequences, (long long)head->max_steps);
}

static inline void dump_recurrent_desc(struct sl_buf *out, const struct seqlstm_recurrent_desc *d)
{
    DUMP_INT(d, cell);
    DUMP_INT(d, direction);
    DUMP_INT(d, merge);
    DUMP_INT(d, options);
    DUMP_INT(d, layers);
    DUMP_INT(d, input);
    DUMP_INT(d, hidden);
    DUMP_INT(d, projection);
    DUMP_INT(d, stream_base);
    for (int k = 0; k < 2; k++) {
        dump_act(out, "gate", &d->activations[SEQLSTM_PLACE_GATE][k]);
        dump_act(out, "candidate", &d->activations[SEQLSTM_PLACE_CANDIDATE][k]);
        dump_act(out, "output", &d->activations[SEQLSTM_PLACE_OUTPUT][k]);
    }
    DUMP_NUMBER(d, dropout);
    DUMP_NUMBER(d, recurrent_dropout);
    DUMP_NUMBER(d, zoneout_cell);
    DUMP_NUMBER(d, zoneout_hidden);
    DUMP_NUMBER(d, weight_drop);
    DUMP_NUMBER(d, cell_clip);
    DUMP_NUMBER(d, gate_clip);
    DUMP_NUMBER(d, layer_norm_epsilon);
    DUMP_NUMBER(d, data_scale);
    DUMP_NUMBER(d, data_shift);
}

static inline void dump_optimizer_desc(struct sl_buf *out, const struct seqlstm_optimizer_desc *d)
{
    DUMP_INT(d, kind);
    DUMP_NUMBER(d, beta_1);
    DUMP_NUMBER(d, beta_2);
    DUMP_NUMBER(d, rho);
    DUMP_NUMBER(d, momentum);
    DUMP_NUMBER(d, epsilon);
    DUMP_NUMBER(d, weight_decay);
    DUMP_INT(d, options);
    DUMP_NUMBER(d, clip_norm);
}

static inline void dump_dense_loss_desc(struct sl_buf *out, const struct seqlstm_dense_loss_desc *d)
{
    DUMP_INT(d, input);
    DUMP_INT(d, output);
    DUMP_INT(d, dense_options);
    DUMP_INT(d, kind);
    DUMP_INT(d, options);
    DUMP_NUMBER(d, label_smoothing);
    DUMP_NUMBER(d, delta);
}

static inline void dump_desc(struct sl_buf *out, const union seqlstm_any_desc *d)
{
    sl_buf_printf(out, " %s", sl_op_name(d->head.op));
    switch (d->head.op) {
    case SEQLSTM_OP_RECURRENT:
        dump_recurrent_desc(out, &d->recurrent);
        break;
    case SEQLSTM_OP_EMBEDDING:
        sl_buf_printf(out, " %lld x %lld", (long long)d->embedding.vocabulary, (long long)d->embedding.features);
        break;
    case SEQLSTM_OP_DENSE:
        sl_buf_printf(out, " %lld to %lld", (long long)d->dense.input, (long long)d->dense.output);
        DUMP_INT(&d->dense, options);
        dump_act(out, "activation", &d->dense.activation);
        break;
    case SEQLSTM_OP_ACTIVATION:
        DUMP_INT(&d->activation, features);
        dump_act(out, "activation", &d->activation.activation);
        break;
    case SEQLSTM_OP_DROPOUT:
        DUMP_INT(&d->dropout, features);
        DUMP_INT(&d->dropout, stream);
        DUMP_NUMBER(&d->dropout, rate);
        DUMP_INT(&d->dropout, mask);
        break;
    case SEQLSTM_OP_LAYER_NORM:
        DUMP_INT(&d->layer_norm, features);
        DUMP_NUMBER(&d->layer_norm, epsilon);
        DUMP_INT(&d->layer_norm, options);
        break;
    case SEQLSTM_OP_POOL:
        DUMP_INT(&d->pool, features);
        DUMP_INT(&d->pool, kind);
        break;
    case SEQLSTM_OP_MERGE:
        DUMP_INT(&d->merge, kind);
        for (uint32_t k = 0; k < d->merge.inputs; k++)
            DUMP_INT(&d->merge, widths[k]);
        break;
    case SEQLSTM_OP_GATHER:
        DUMP_INT(&d->gather, features);
        break;
    case SEQLSTM_OP_LOSS:
        DUMP_INT(&d->loss, features);
        DUMP_INT(&d->loss, kind);
        DUMP_INT(&d->loss, options);
        DUMP_NUMBER(&d->loss, label_smoothing);
        DUMP_NUMBER(&d->loss, delta);
        break;
    case SEQLSTM_OP_DENSE_LOSS:
        dump_dense_loss_desc(out, &d->dense_loss);
        break;
    case SEQLSTM_OP_ATTENTION:
        DUMP_INT(&d->attention, key);
        DUMP_INT(&d->attention, value);
        DUMP_INT(&d->attention, kind);
        DUMP_INT(&d->attention, options);
        DUMP_NUMBER(&d->attention, scale);
        break;
    case SEQLSTM_OP_OPTIMIZER:
        dump_optimizer_desc(out, &d->optimizer);
        break;
    case SEQLSTM_OP_VECTOR:
        DUMP_INT(&d->vector, kind);
        break;
    default:
        break;
    }
    dump_head(out, &d->head);
}

static inline void dump_node(struct sl_buf *out, const struct sl_graph *graph, const struct sl_node *node)
{
    sl_buf_printf(out, "%s layer=%d slots", node->name, node->layer);
    for (int32_t s = 0; s < node->slot_count; s++)
        if (node->slots[s] >= 0)
            sl_buf_printf(out, " %d:%s", s, graph->tensors[node->slots[s]].name);
    DUMP_INT(node, needs_backward);
    DUMP_INT(node, is_quantized);
    if (graph->pieces > 0 || sl_graph_find_barrier(graph, node) != SL_BARRIER_STEPS)
        sl_buf_printf(out, " barrier=%d", (int)sl_graph_find_barrier(graph, node));
    sl_buf_append_text(out, ";");
    dump_desc(out, &node->desc);
    sl_buf_append_char(out, '\n');
}

static inline void dump_param(struct sl_buf *out, const struct sl_graph *graph, const struct sl_param *p)
{
    sl_buf_printf(out, "param %s %lld x %lld layer=%d tensor=%s", p->name, (long long)p->rows, (long long)p->columns,
                  p->layer, graph->tensors[p->tensor].name);
    DUMP_INT(p, is_vector);
    DUMP_INT(p, trainable);
    DUMP_INT(p, fan_in);
    DUMP_INT(p, fan_out);
    DUMP_INT(p, fan_units);
    DUMP_INT(p, gates);
    DUMP_INT(p, one_begin);
    DUMP_INT(p, one_end);
    dump_initializer(out, "initial", &p->initializer);
    dump_regularizer(out, "regularizer", &p->regularizer);
    sl_buf_append_char(out, '\n');
}

static inline const char *name_tensor(const struct sl_graph *graph, int32_t tensor)
{
    return tensor < 0 ? "none" : graph->tensors[tensor].name;
}

static inline void dump_edges(struct sl_buf *out, const struct sl_graph *g)
{
    for (int32_t s = 0; s < g->state_count; s++)
        sl_buf_printf(out, "state %s %s to %s, %lld\n", g->states[s].name, name_tensor(g, g->states[s].tensor_in),
                      name_tensor(g, g->states[s].tensor_out), (long long)g->states[s].features);
    for (int32_t m = 0; m < g->memory_count; m++)
        sl_buf_printf(out, "memory %s to %s\n", name_tensor(g, g->memories[m].tensor_in),
                      name_tensor(g, g->memories[m].tensor_out));
    if (g->loop.count > 0)
        sl_buf_printf(out, "loop %s to %s\n", g->nodes[g->loop.first].name,
                      g->nodes[g->loop.first + g->loop.count - 1].name);
    for (int32_t c = 0; c < g->loop.carry_count; c++)
        sl_buf_printf(out, "carry %s as %s from %s\n", name_tensor(g, g->loop.carries[c].value),
                      name_tensor(g, g->loop.carries[c].before), name_tensor(g, g->loop.carries[c].initial));
}

/* The tensor that stands where `owner` says. */
static inline int32_t find_owned(const struct sl_graph *g, const struct sl_tensor *tensor)
{
    switch (tensor->role) {
    case SL_TENSOR_PARAM:
        return g->params[tensor->owner].tensor;
    case SL_TENSOR_STATE_IN:
        return g->states[tensor->owner].tensor_in;
    case SL_TENSOR_STATE_OUT:
        return g->states[tensor->owner].tensor_out;
    case SL_TENSOR_MEMORY_IN:
        return g->memories[tensor->owner].tensor_in;
    case SL_TENSOR_MEMORY_OUT:
        return g->memories[tensor->owner].tensor_out;
    case SL_TENSOR_BEFORE:
        return g->loop.carries[tensor->owner].before;
    default:
        assert_int_equal(tensor->owner, -1);
        return (int32_t)(tensor - g->tensors);
    }
}

static inline void dump_graph(struct sl_buf *out, const struct sl_graph *g, bool with_params)
{
    for (int32_t t = 0; t < g->tensor_count; t++)
        assert_int_equal(find_owned(g, &g->tensors[t]), t);
    sl_buf_printf(out, "graph output=%s sums=%s", name_tensor(g, g->output), name_tensor(g, g->sums));
    DUMP_INT(g, output_layer);
    DUMP_INT(g, output_is_logits);
    DUMP_INT(g, output_needed);
    DUMP_INT(g, reads_input);
    DUMP_INT(g, reads_source);
    DUMP_NUMBER(g, clip_value);
    sl_buf_printf(out, " elements=%lld\n", (long long)sl_graph_param_elems(g));
    for (int32_t t = 0; t < g->tensor_count; t++) {
        const struct sl_tensor *tensor = &g->tensors[t];
        if (tensor->role == SL_TENSOR_PARAM)
            continue;
        sl_buf_printf(out, "tensor %s %lld x %lld", tensor->name, (long long)sl_graph_get_rows(g, tensor),
                      (long long)tensor->features);
        DUMP_INT(tensor, role);
        DUMP_INT(tensor, axis);
        DUMP_INT(tensor, dtype);
        DUMP_INT(tensor, needs_grad);
        sl_buf_append_char(out, '\n');
    }
    for (int32_t p = 0; p < g->param_count && with_params; p++)
        dump_param(out, g, &g->params[p]);
    dump_edges(out, g);
    for (int32_t n = 0; n < g->node_count; n++) {
        sl_buf_append_text(out, "node ");
        dump_node(out, g, &g->nodes[n]);
    }
    for (int32_t a = 0; a < g->alternative_count; a++) {
        sl_buf_printf(out, "in place of %s and %d more: ", g->nodes[g->alternatives[a].first].name,
                      g->alternatives[a].count - 1);
        dump_node(out, g, &g->alternatives[a].node);
    }
    for (int32_t v = 0; v < g->vector_op_count; v++) {
        sl_buf_append_text(out, "vector");
        dump_desc(out, &g->vector_ops[v]);
        sl_buf_append_char(out, '\n');
    }
}

#endif
