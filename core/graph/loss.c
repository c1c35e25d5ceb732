/* SPDX-License-Identifier: Apache-2.0 */
/* The loss after the last layer, and the operation that combines both as an alternative. */
#include <stdio.h>
#include <string.h>

#include "graph/builder.h"

static const uint32_t loss_kinds[] = {
    [SL_LOSS_MSE] = SEQLSTM_KIND_LOSS_MSE,
    [SL_LOSS_MAE] = SEQLSTM_KIND_LOSS_MAE,
    [SL_LOSS_HUBER] = SEQLSTM_KIND_LOSS_HUBER,
    [SL_LOSS_BINARY_CROSS_ENTROPY] = SEQLSTM_KIND_LOSS_BINARY_CROSS_ENTROPY,
    [SL_LOSS_CROSS_ENTROPY] = SEQLSTM_KIND_LOSS_CROSS_ENTROPY,
};

static const char *say_axis(enum sl_axis axis)
{
    return axis == SL_AXIS_STEPS ? "one row per step" : "one row per sequence";
}

/* Checks that output, target and loss fit together. */
static seqlstm_status check_fit(struct sl_builder *b, int32_t output)
{
    const struct sl_layer *last = &b->model->layers[b->model->layer_count - 1];
    const struct sl_field_facts *target = &b->facts->target;
    const struct sl_tensor *y = &b->tensors[output];
    enum sl_loss_kind kind = b->model->train.loss.kind;
    const char *loss = sl_loss_kind_get_name(kind);
    struct sl_place place = sl_model_find_place(b->model, "train.loss");
    if (target->kind == SL_FIELD_NONE)
        return sl_builder_fail(b, b->model->data.place, "the data have no target, but the loss %s needs one", loss);
    enum sl_axis target_axis = target->on_steps ? SL_AXIS_STEPS : SL_AXIS_SEQUENCES;
    if (y->axis != target_axis)
        return sl_builder_fail(b, last->place, "layer `%s` yields %s, but the target has %s; %s", last->name,
                               say_axis(y->axis), say_axis(target_axis),
                               y->axis == SL_AXIS_STEPS
                                   ? "use `return_sequences: false` in the last recurrent layer, or a pool layer"
                                   : "use `return_sequences: true` in the recurrent layers");
    bool classes = kind == SL_LOSS_CROSS_ENTROPY;
    if (classes != (target->kind == SL_FIELD_IDS))
        return sl_builder_fail(b, place, "the loss %s needs %s as target, but the data have %s", loss,
                               classes ? "classes or tokens" : "numbers", classes ? "numbers" : "classes or tokens");
    int64_t width = classes ? target->classes : target->features;
    const char *noun = classes ? (width == 1 ? "class" : "classes") : width == 1 ? "value" : "values";
    if (y->features != width)
        return sl_builder_fail(b, last->place,
                               "layer `%s` yields %lld feature%s, but the target has %lld %s; use `units: from_target`",
                               last->name, (long long)y->features, y->features == 1 ? "" : "s", (long long)width, noun);
    if (classes && !b->output_is_logits) {
        enum sl_activation_kind activation = last->kind == SL_LAYER_ACTIVATION ? last->activation.kind
                                             : last->kind == SL_LAYER_DENSE || last->kind == SL_LAYER_OUTPUT
                                                 ? last->dense.activation.kind
                                                 : SL_ACTIVATION_LINEAR;
        if (activation != SL_ACTIVATION_LINEAR)
            return sl_builder_fail(b, sl_layer_find_option_place(last, "activation"),
                                   "the loss cross_entropy needs softmax (or linear: logits) at the end, not %s",
                                   sl_activation_kind_get_name(activation));
    }
    return SEQLSTM_OK;
}

static int32_t add_input(struct sl_builder *b, const char *name, enum sl_tensor_role role, bool on_steps,
                         uint32_t dtype, int64_t features)
{
    return sl_builder_add_tensor(b, name, role, on_steps ? SL_AXIS_STEPS : SL_AXIS_SEQUENCES, dtype, 0, features);
}

/* From so many classes on, weight gradients of the output layer take longer than a few more calls for each piece. */
enum { MANY_CLASSES = 1024 };

/* Offers the last dense layer and the loss as one operation, if nothing else reads the output. Not where many classes
 * run in pieces: the operation would make the weight gradients of each piece while the stages before wait for those of
 * its inputs, and keep a reserve for each piece; those of the layer alone are made once for all pieces, at the end. */
static void add_compound(struct sl_builder *b, int32_t output, const struct seqlstm_loss_desc *loss,
                         const int32_t *loss_slots)
{
    const struct sl_node *dense = &b->nodes[b->node_count - 2];
    const bool in_pieces = b->training && b->request->pieces > 0 && b->tensors[output].axis == SL_AXIS_STEPS;
    if ((in_pieces && loss->features >= MANY_CLASSES) || b->request->need_output || b->node_count < 2 ||
        dense->desc.head.op != SEQLSTM_OP_DENSE || dense->slots[SEQLSTM_SLOT_DENSE_Y] != output ||
        dense->desc.dense.activation.kind != SEQLSTM_ACT_NONE)
        return;
    union seqlstm_any_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.head = loss->head;
    desc.head.struct_size = sizeof desc.dense_loss;
    desc.head.op = SEQLSTM_OP_DENSE_LOSS;
    desc.head.dtype_compute = dense->desc.head.dtype_compute;
    desc.dense_loss.input = dense->desc.dense.input;
    desc.dense_loss.output = loss->features;
    desc.dense_loss.dense_options = dense->desc.dense.options;
    desc.dense_loss.kind = loss->kind;
    desc.dense_loss.options = loss->options;
    desc.dense_loss.label_smoothing = loss->label_smoothing;
    desc.dense_loss.delta = loss->delta;
    int32_t slots[SEQLSTM_SLOT_DENSE_LOSS_COUNT];
    memcpy(slots, loss_slots, SEQLSTM_SLOT_LOSS_COUNT * sizeof *slots);
    slots[SEQLSTM_SLOT_LOSS_X] = dense->slots[SEQLSTM_SLOT_DENSE_X];
    slots[SEQLSTM_SLOT_DENSE_LOSS_W] = dense->slots[SEQLSTM_SLOT_DENSE_W];
    slots[SEQLSTM_SLOT_DENSE_LOSS_BIAS] = dense->slots[SEQLSTM_SLOT_DENSE_BIAS];
    char name[256];
    snprintf(name, sizeof name, "%s+loss", dense->name);
    sl_builder_add_alternative(b, name, dense->layer, &desc, slots, SEQLSTM_SLOT_DENSE_LOSS_COUNT, b->node_count - 2,
                               2);
}

seqlstm_status sl_graph_add_loss(struct sl_builder *b, int32_t *out_sums)
{
    int32_t output = b->layer_outputs[b->model->layer_count - 1];
    SEQLSTM_TRY(check_fit(b, output));
    const struct sl_tensor y = b->tensors[output];
    const struct sl_train_config *train = &b->model->train;
    const struct sl_field_facts *target = &b->facts->target;
    bool classes = target->kind == SL_FIELD_IDS, on_steps = target->on_steps;
    int32_t slots[SEQLSTM_SLOT_LOSS_COUNT];
    memset(slots, 0xff, sizeof slots);
    slots[SEQLSTM_SLOT_LOSS_X] = output;
    slots[SEQLSTM_SLOT_LOSS_TARGET] =
        add_input(b, "target", SL_TENSOR_TARGET, on_steps, classes ? SEQLSTM_DTYPE_INT32 : SEQLSTM_DTYPE_FLOAT32,
                  classes ? 1 : target->features);
    union seqlstm_any_desc desc = sl_builder_describe(b, SEQLSTM_OP_LOSS, y.axis);
    desc.loss.features = y.features;
    desc.loss.kind = loss_kinds[train->loss.kind];
    /* Evaluation reports the plain loss: perplexity and early stopping are about the data, without smoothing. */
    if (b->training)
        desc.loss.label_smoothing = (float)train->loss.label_smoothing;
    if (train->loss.kind == SL_LOSS_HUBER)
        desc.loss.delta = (float)train->loss.delta;
    const bool weighted = b->training && (train->balanced_classes || train->class_weight_count);
    if (b->facts->has_weight || (weighted && !classes)) {
        /* Where classes are values 0 and 1, the weight of a class becomes a weight of the row. */
        const bool made = weighted && !classes;
        desc.loss.options |= SEQLSTM_BIT_LOSS_ROW_WEIGHT;
        slots[SEQLSTM_SLOT_LOSS_ROW_WEIGHT] =
            add_input(b, made ? "row_weight" : "weight", made ? SL_TENSOR_ROW_WEIGHT : SL_TENSOR_WEIGHT, on_steps,
                      SEQLSTM_DTYPE_FLOAT32, 1);
    }
    if (weighted && classes) {
        desc.loss.options |= SEQLSTM_BIT_LOSS_CLASS_WEIGHT;
        slots[SEQLSTM_SLOT_LOSS_CLASS_WEIGHT] = sl_builder_add_tensor(
            b, "class_weights", SL_TENSOR_CLASS_WEIGHTS, SL_AXIS_FREE, SEQLSTM_DTYPE_FLOAT32, target->classes, 1);
    }
    *out_sums = sl_builder_add_tensor(b, "sums", SL_TENSOR_SUMS, SL_AXIS_FREE, SEQLSTM_DTYPE_FLOAT64, 2, 1);
    slots[SEQLSTM_SLOT_LOSS_SUMS] = *out_sums;
    sl_builder_add_node(b, "loss", -1, &desc, slots, SEQLSTM_SLOT_LOSS_COUNT);
    if (!b->failed)
        add_compound(b, output, &desc.loss, slots);
    return SEQLSTM_OK;
}
