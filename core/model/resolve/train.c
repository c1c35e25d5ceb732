/* SPDX-License-Identifier: Apache-2.0 */
/* Reads `train:`: the task and the loss that follow from data and layers, and defaults that depend on other options. */
#include <string.h>

#include "model/read/sections.h"

static bool yields_vector(const struct sl_model *model)
{
    return model->layer_count > 0 && model->layers[model->layer_count - 1].output_shape == SL_SHAPE_VECTOR;
}

/* The activation of the model's output; linear if the last layer has none. */
const struct sl_activation *sl_model_get_output_activation(const struct sl_model *model)
{
    static const struct sl_activation linear = {SL_ACTIVATION_LINEAR, 0, 0};
    if (model->layer_count == 0)
        return &linear;
    const struct sl_layer *last = &model->layers[model->layer_count - 1];
    if (last->kind == SL_LAYER_DENSE || last->kind == SL_LAYER_OUTPUT)
        return &last->dense.activation;
    return last->kind == SL_LAYER_ACTIVATION ? &last->activation : &linear;
}

static const char *infer_npy_task(const struct sl_node *train, const struct sl_model *model)
{
    const struct sl_node *loss = sl_node_find(train, "loss");
    const struct sl_node *type = loss != NULL && loss->kind == SL_NODE_MAP ? sl_node_find(loss, "type") : loss;
    const char *word = type != NULL && type->kind == SL_NODE_SCALAR ? type->text : "";
    bool classes = strcmp(word, "cross_entropy") == 0 || strcmp(word, "binary_cross_entropy") == 0;
    enum sl_activation_kind last = sl_model_get_output_activation(model)->kind;
    if (word[0] == 0 && last == SL_ACTIVATION_SOFTMAX)
        classes = true;
    return !classes ? "regress" : yields_vector(model) ? "classify" : "tag";
}

static const char *infer_task(const struct sl_node *train, const struct sl_model *model)
{
    const struct sl_source *source = &model->data.splits[SL_SPLIT_TRAIN];
    if (model->data.pairs)
        return "seq2seq";
    switch (source->type) {
    case SL_SOURCE_TEXT:
    case SL_SOURCE_TOKENS:
        return "language_model";
    case SL_SOURCE_CONLL:
        return "tag";
    case SL_SOURCE_NPY:
        return infer_npy_task(train, model);
    case SL_SOURCE_GENERATOR:
        return source->generator == SL_GENERATOR_COPY || source->generator == SL_GENERATOR_REVERSE ? "tag" : "regress";
    default:
        if (source->label.column == NULL)
            return source->targets.count > 0 || source->inputs.count > 0 ? "regress" : "language_model";
        if (source->label.type == SL_LABEL_VALUE)
            return "regress";
        return source->group != NULL && !yields_vector(model) ? "tag" : "classify";
    }
}

static const char *infer_loss(const char *task, const struct sl_model *model)
{
    if (strcmp(task, "regress") == 0)
        return "mse";
    return sl_model_get_output_activation(model)->kind == SL_ACTIVATION_SIGMOID ? "binary_cross_entropy"
                                                                                : "cross_entropy";
}

/* In batches of like lengths a mean over each batch would give a step of a short sentence the weight of several of a
 * long one, and train another model than shuffled batches do. */
static const char *infer_reduction(const struct sl_model *model)
{
    const struct sl_batching *batching = &model->data.batching;
    return batching->unit == SL_UNIT_SEQUENCE && batching->bucketing.kind != SL_BUCKETING_OFF ? "step_mean" : "mean";
}

static void set_default_metrics(struct sl_reader *reader, struct sl_node *train)
{
    static const struct sl_place nowhere;
    const struct sl_node *metrics = sl_node_find(train, "metrics");
    struct sl_node *validate = sl_node_find(train, "validate");
    if (metrics == NULL) {
        struct sl_node *empty = sl_node_create(reader->arena, SL_NODE_LIST, nowhere, NULL);
        if (empty == NULL)
            reader->no_memory = true;
        else
            metrics = sl_reader_set_default_copy(reader, train, "metrics", empty);
    }
    if (validate == NULL)
        validate = sl_reader_set_default(reader, train, "validate", "{}");
    else
        sl_reader_expand(reader, validate, "every");
    if (metrics != NULL && validate != NULL && validate->kind == SL_NODE_MAP)
        sl_reader_set_default_copy(reader, validate, "metrics", metrics);
}

void sl_model_read_train(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    struct sl_train_config *train = field;
    const struct sl_model *model = (const struct sl_model *)((const char *)field - offsetof(struct sl_model, train));
    (void)option;
    train->place = node->place;
    if (node->kind == SL_NODE_MAP) {
        bool data_known = model->data.splits[SL_SPLIT_TRAIN].origin == SL_SOURCE_FILES;
        const struct sl_node *task = sl_node_find(node, "task");
        if (task == NULL && data_known)
            task = sl_reader_set_default(reader, node, "task", infer_task(node, model));
        if (task != NULL && task->kind == SL_NODE_SCALAR)
            sl_reader_set_default(reader, node, "loss", infer_loss(task->text, model));
        struct sl_node *loss = sl_node_find(node, "loss");
        if (loss != NULL && !sl_node_is_null(loss))
            sl_reader_expand(reader, loss, "type");
        if (loss != NULL && loss->kind == SL_NODE_MAP)
            sl_reader_set_default(reader, loss, "reduction", infer_reduction(model));
        set_default_metrics(reader, node);
        struct sl_node *checkpoint = sl_reader_set_default(reader, node, "checkpoint", "{}");
        bool measured = model->data.splits[SL_SPLIT_VALID].origin != SL_SOURCE_NONE;
        if (checkpoint != NULL && checkpoint->kind == SL_NODE_MAP)
            sl_reader_set_default(reader, checkpoint, "keep_best", measured ? "1" : "0");
    }
    sl_reader_read_section(reader, &sl_section_train, node, train);
    train->early_stopping.enabled = sl_node_find(node, "early_stopping") != NULL;
    train->ema.enabled = sl_node_find(node, "ema") != NULL;
}
