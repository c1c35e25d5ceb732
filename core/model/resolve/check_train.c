/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that `train:`, the data and the layers fit together. */
#include <string.h>

#include "model/read/sections.h"

struct check {
    struct sl_reader *reader;
    struct sl_node *train;
    const struct sl_model *model;
};

static bool is_class_loss(enum sl_loss_kind loss)
{
    return loss == SL_LOSS_CROSS_ENTROPY || loss == SL_LOSS_BINARY_CROSS_ENTROPY;
}

static struct sl_place get_value_place(const struct sl_node *map, const char *key)
{
    const struct sl_node *node = sl_node_find(map, key);
    return node != NULL && node->place.line > 0 ? node->place : map->place;
}

/* The loss against the task, and against the activation of the output. */
static void check_loss(const struct check *c)
{
    const struct sl_train_config *train = &c->model->train;
    const struct sl_layer *last = &c->model->layers[c->model->layer_count - 1];
    enum sl_activation_kind activation = sl_model_get_output_activation(c->model)->kind;
    const char *loss = sl_loss_kind_get_name(train->loss.kind);
    bool classes = is_class_loss(train->loss.kind);
    if (sl_reader_was_refused(c->train, "loss"))
        return;
    if (classes == (train->task == SL_TASK_REGRESS)) {
        sl_reader_report(c->reader, "E0309", get_value_place(c->train, "loss"), NULL,
                         classes ? "regression takes mse, mae or huber"
                                 : "classes take cross_entropy or binary_cross_entropy",
                         "the loss `%s` does not fit the task `%s`", loss, sl_task_get_name(train->task));
        return;
    }
    enum sl_activation_kind wanted =
        train->loss.kind == SL_LOSS_CROSS_ENTROPY ? SL_ACTIVATION_SOFTMAX : SL_ACTIVATION_SIGMOID;
    if ((int)last->kind < 0 || last->name == NULL)
        return;
    if (classes && activation != wanted)
        sl_reader_report(
            c->reader, "E0308", sl_layer_find_option_place(last, "activation"),
            sl_reader_printf(c->reader, "add `activation: %s` to %s", sl_activation_kind_get_name(wanted), last->name),
            NULL, "the loss `%s` needs a %s at the output, but %s has %s", loss, sl_activation_kind_get_name(wanted),
            last->name, sl_activation_kind_get_name(activation));
    if (!classes && activation == SL_ACTIVATION_SOFTMAX)
        sl_reader_report(c->reader, "E0308", sl_layer_find_option_place(last, "activation"), NULL, NULL,
                         "the loss `%s` predicts values, but %s ends in a softmax", loss, last->name);
}

/* Checks that the output of the model fits the task: one per step, or one per sequence. */
static void check_output_shape(const struct check *c)
{
    const struct sl_layer *last = &c->model->layers[c->model->layer_count - 1];
    enum sl_task task = c->model->train.task;
    const struct sl_source *source = &c->model->data.splits[SL_SPLIT_TRAIN];
    bool per_step = task == SL_TASK_LANGUAGE_MODEL || task == SL_TASK_TAG || task == SL_TASK_SEQ2SEQ;
    bool per_sequence = task == SL_TASK_CLASSIFY ||
                        (task == SL_TASK_REGRESS && (source->type == SL_SOURCE_GENERATOR || source->window.length > 0 ||
                                                     source->label.column != NULL));
    if ((int)last->kind < 0)
        return;
    if (per_step && last->output_shape == SL_SHAPE_VECTOR)
        sl_reader_report(c->reader, "E0313", last->place, "set `return_sequences: true` in the recurrent layers", NULL,
                         "the task `%s` needs an output for each step, but %s gives one per sequence",
                         sl_task_get_name(task), last->name);
    if (per_sequence && last->output_shape == SL_SHAPE_SEQUENCE)
        sl_reader_report(c->reader, "E0313", last->place,
                         "remove `return_sequences` from the last recurrent layer, or add a `pool`", NULL,
                         "the task `%s` needs one output per sequence, but %s gives one for each step",
                         sl_task_get_name(task), last->name);
}

/* Refuses layers that look ahead if they would see what they must predict, or if there is no end. */
static void check_directions(const struct check *c)
{
    bool stream = c->model->data.batching.unit == SL_UNIT_STREAM;
    enum sl_task task = c->model->train.task;
    bool next_token = task == SL_TASK_LANGUAGE_MODEL || task == SL_TASK_SEQ2SEQ;
    for (size_t i = c->model->encoder_count; i < c->model->layer_count && (stream || next_token); i++) {
        const struct sl_layer *layer = &c->model->layers[i];
        if (!sl_layer_is_recurrent(layer))
            continue;
        int giver = layer->recurrent.initial_state.layer;
        if (next_token && giver >= (int)c->model->encoder_count)
            sl_reader_report(c->reader, "E0310", sl_layer_find_option_place(layer, "initial_state"), NULL, NULL,
                             "%s would start from states that have already seen what it must predict", layer->name);
        if (layer->recurrent.direction == SL_DIRECTION_FORWARD)
            continue;
        struct sl_place place = sl_layer_find_option_place(layer, "direction");
        if (stream)
            sl_reader_report(c->reader, "E0310", place, "use `unit: sequence`, or `direction: forward`", NULL,
                             "%s reads backwards, but a stream has no end", layer->name);
        else
            sl_reader_report(c->reader, "E0310", place, "use `direction: forward`", NULL,
                             "%s would see the token that it has to predict", layer->name);
    }
}

/* Encoder and decoder need whole pairs. */
static void check_sides(const struct check *c)
{
    bool sides = c->model->encoder_count > 0, pairs = c->model->train.task == SL_TASK_SEQ2SEQ;
    const struct sl_batching *batching = &c->model->data.batching;
    if (sides != pairs)
        sl_reader_report(c->reader, "E0309", get_value_place(c->train, "task"),
                         sides ? "remove `task`" : "write `model: {encoder: […], decoder: […]}`", NULL,
                         sides ? "a model of encoder and decoder has the task `seq2seq`, not `%s`"
                               : "the task `%s` needs a model of encoder and decoder",
                         sl_task_get_name(c->model->train.task));
    if (sides && (batching->unit == SL_UNIT_STREAM || batching->bptt > 0))
        sl_reader_report(c->reader, "E0310", c->model->data.place, "use `unit: sequence` without `bptt`", NULL,
                         "a decoder reads its target as a whole, not in segments");
}

static bool is_measured(const struct sl_metric_list *list, enum sl_metric metric)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == metric)
            return true;
    return metric == SL_METRIC_LOSS;
}

/* `valid.accuracy`: is there such a split, is the metric measured on it? Sets the mode where it was not
 * said. */
static void check_monitor(const struct check *c, struct sl_node *map, const char *monitor, enum sl_monitor_mode *mode)
{
    struct sl_place place = sl_node_find(map, "monitor") ? get_value_place(map, "monitor") : map->place;
    const char *dot = monitor ? strchr(monitor, '.') : NULL;
    if (dot == NULL)
        return;
    if (place.line == 0)
        place = c->train->place;
    const struct sl_word *word = sl_word_find(sl_words_metric, dot + 1);
    bool valid = strncmp(monitor, "valid.", 6) == 0, train = strncmp(monitor, "train.", 6) == 0;
    if (!valid && !train) {
        sl_reader_report(c->reader, "E0312", place, NULL, NULL, "`%.60s` is a metric of neither `train` nor `valid`",
                         monitor);
        return;
    }
    if (valid && c->model->data.splits[SL_SPLIT_VALID].origin == SL_SOURCE_NONE)
        sl_reader_report(c->reader, "E0312", place, "add `valid: {split: 0.1}` to the data", NULL,
                         "`%.60s` is monitored, but there is no `valid` split", monitor);
    const struct sl_metric_list *list = valid ? &c->model->train.validate.metrics : &c->model->train.metrics;
    bool of_texts = word != NULL && !word->later && sl_metric_is_of_texts((enum sl_metric)word->value);
    if (train && of_texts) {
        sl_reader_report(c->reader, "E0312", place, NULL, NULL, "`%.60s` is measured only on `valid` and `test`",
                         monitor);
        return;
    }
    if (word == NULL || word->later || !is_measured(list, (enum sl_metric)word->value)) {
        sl_reader_report(c->reader, "E0312", place,
                         word && !word->later ? sl_reader_printf(c->reader, "add `metrics: [%s]` to train", dot + 1)
                                              : NULL,
                         NULL, "`%.60s` is monitored, but `%.60s` is not measured", monitor, dot + 1);
        return;
    }
    if (mode != NULL && sl_node_find(map, "mode") == NULL) {
        *mode = sl_metric_get_mode((enum sl_metric)word->value);
        sl_reader_set_default(c->reader, map, "mode", *mode == SL_MODE_MAX ? "max" : "min");
    }
}

/* Metrics that only one task has. */
static void check_special_metrics(const struct check *c, const struct sl_node *node, const struct sl_metric_list *list)
{
    const enum sl_task task = c->model->train.task;
    for (size_t i = 0; node != NULL && i < list->count && i < node->count; i++) {
        const enum sl_metric m = list->items[i];
        const bool spans = m == SL_METRIC_F1_SPAN || m == SL_METRIC_F1_SPAN_STRICT;
        if (m == SL_METRIC_MASE && task != SL_TASK_REGRESS)
            sl_reader_report(c->reader, "E0311", node->items[i]->place, NULL, NULL,
                             "the metric `%s` is for forecasts: the task `regress`, not `%s`", sl_metric_get_name(m),
                             sl_task_get_name(task));
        if (spans && (task != SL_TASK_TAG || c->model->data.batching.bptt > 0))
            sl_reader_report(c->reader, "E0311", node->items[i]->place, NULL, NULL,
                             "the metric `%s` is for the tags of whole sequences: the task `tag` without `bptt`",
                             sl_metric_get_name(m));
    }
}

static void check_metrics(const struct check *c, const struct sl_node *map, const struct sl_metric_list *list)
{
    const struct sl_node *node = sl_node_find(map, "metrics");
    bool regress = c->model->train.task == SL_TASK_REGRESS;
    const char *fitting = regress ? "regression takes mse, mae and rmse"
                                  : "classes take accuracy, f1_macro, f1_micro, perplexity and bits_per_token";
    check_special_metrics(c, node, list);
    for (size_t i = 0; node != NULL && i < list->count && i < node->count; i++) {
        enum sl_metric m = list->items[i];
        bool classes = m == SL_METRIC_ACCURACY || m == SL_METRIC_PERPLEXITY || m == SL_METRIC_BITS_PER_TOKEN ||
                       m == SL_METRIC_F1_MACRO || m == SL_METRIC_F1_MICRO;
        bool values = m == SL_METRIC_MSE || m == SL_METRIC_MAE || m == SL_METRIC_RMSE;
        if (sl_metric_is_of_texts(m) && c->model->train.task != SL_TASK_SEQ2SEQ)
            sl_reader_report(c->reader, "E0311", node->items[i]->place, NULL, fitting,
                             "the metric `%s` compares texts that a decoder writes, but the task is `%s`",
                             sl_metric_get_name(m), sl_task_get_name(c->model->train.task));
        else if ((regress && classes) || (!regress && values))
            sl_reader_report(c->reader, "E0311", node->items[i]->place, NULL, fitting,
                             "the metric `%s` does not fit the task `%s`", sl_metric_get_name(m),
                             sl_task_get_name(c->model->train.task));
    }
}

static void check_schedule(const struct check *c, struct sl_train_config *train)
{
    struct sl_node *node = sl_node_find(c->train, "schedule");
    struct sl_schedule *s = &train->schedule;
    if (node == NULL || node->kind != SL_NODE_MAP)
        return;
    bool by_factor = s->kind == SL_SCHEDULE_STEP || s->kind == SL_SCHEDULE_EXPONENTIAL;
    bool factor = sl_node_find(node, "factor") != NULL;
    bool divisor = sl_node_find(node, "divide_by") != NULL;
    if (by_factor && factor == divisor)
        sl_reader_report(c->reader, factor ? "E0207" : "E0204", node->place, NULL, NULL,
                         factor ? "the schedule has both `factor` and `divide_by`"
                                : "the schedule needs `factor` or `divide_by`");
    if (by_factor && s->start.unit != SL_PERIOD_NONE && s->every.unit != SL_PERIOD_NONE &&
        s->start.unit != s->every.unit)
        sl_reader_report(c->reader, "E0207", get_value_place(node, "start"), NULL, NULL,
                         "`start` and `every` of a schedule must have the same unit");
    if (s->kind == SL_SCHEDULE_STEP && s->start.unit == SL_PERIOD_NONE)
        s->start = s->every;
    bool whole_run =
        (s->kind == SL_SCHEDULE_COSINE || s->kind == SL_SCHEDULE_ONE_CYCLE) && s->over.unit == SL_PERIOD_NONE;
    if (whole_run && train->epochs == 0 && train->updates == 0)
        sl_reader_report(c->reader, "E0204", node->place, NULL, NULL,
                         "the schedule needs `over`, because `train` has neither `epochs` nor `updates`");
    if (s->kind == SL_SCHEDULE_PLATEAU)
        check_monitor(c, node, s->monitor, NULL);
}

static void check_watching(const struct check *c, struct sl_train_config *train)
{
    struct sl_node *stopping = sl_node_find(c->train, "early_stopping");
    struct sl_node *checkpoint = sl_node_find(c->train, "checkpoint");
    if (stopping != NULL && stopping->kind == SL_NODE_MAP)
        check_monitor(c, stopping, train->early_stopping.monitor, &train->early_stopping.mode);
    if (checkpoint == NULL || checkpoint->kind != SL_NODE_MAP)
        return;
    sl_reader_drop_idle(c->reader, checkpoint, "monitor", train->checkpoint.keep_best > 0, "`keep_best`");
    sl_reader_drop_idle(c->reader, checkpoint, "mode", train->checkpoint.keep_best > 0, "`keep_best`");
    if (train->checkpoint.keep_best > 0)
        check_monitor(c, checkpoint, train->checkpoint.monitor, &train->checkpoint.mode);
    else
        train->checkpoint.monitor = NULL;
}

/* Without a `valid` split, validation has no effect. */
static void check_validate(const struct check *c)
{
    sl_reader_drop_idle(c->reader, c->train, "validate", c->model->data.splits[SL_SPLIT_VALID].origin != SL_SOURCE_NONE,
                        "a `valid` split in the data");
    const struct sl_node *validate = sl_node_find(c->train, "validate");
    if (validate != NULL)
        check_metrics(c, validate, &c->model->train.validate.metrics);
}

/* With one target for each sequence every step counts in full, and the sum over steps has one member: only weights of
 * rows make `sequence_mean` another number than `mean`. */
static void check_reduction(const struct check *c)
{
    const struct sl_train_config *train = &c->model->train;
    const struct sl_layer *last = &c->model->layers[c->model->layer_count - 1];
    const bool weighted = train->balanced_classes || train->class_weight_count > 0 || train->loss.ignore != NULL;
    struct sl_node *loss = sl_node_find(c->train, "loss");
    if (loss == NULL || loss->kind != SL_NODE_MAP || (int)last->kind < 0 || last->output_shape != SL_SHAPE_VECTOR)
        return;
    sl_reader_drop_idle(c->reader, loss, "reduction",
                        train->loss.reduction == SL_REDUCTION_MEAN ||
                            (train->loss.reduction == SL_REDUCTION_SEQUENCE_MEAN && weighted),
                        "a target for each step: here each sequence has one");
}

static void check_class_weight(const struct check *c)
{
    const struct sl_train_config *train = &c->model->train;
    bool weighted = train->balanced_classes || train->class_weight_count > 0;
    if (weighted && train->task != SL_TASK_CLASSIFY && train->task != SL_TASK_TAG)
        sl_reader_report(c->reader, "E0309", sl_reader_get_place(c->train, "class_weight"), NULL, NULL,
                         "`class_weight` does not fit the task `%s`", sl_task_get_name(train->task));
}

void sl_model_check_train(struct sl_reader *reader, struct sl_node *root, struct sl_model *model)
{
    struct sl_node *node = sl_node_find(root, "train");
    const struct check c = {reader, node, model};
    struct sl_train_config *train = &model->train;
    if (node == NULL || node->kind != SL_NODE_MAP)
        return;
    static const char *const ends[] = {"epochs", "updates", "max_time"};
    bool ended = false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        ended = ended || sl_node_find(node, ends[i]) || sl_reader_is_misspelt(&sl_section_train, node, ends[i]);
    if (!ended)
        sl_reader_report(reader, "E0319", node->place, "add `epochs: 10`", NULL,
                         "the training has no end: it needs `epochs`, `updates` or `max_time`");
    check_schedule(&c, train);
    if (model->layer_count > 0)
        sl_model_check_teacher(reader, node, model);
    check_watching(&c, train);
    bool known = model->layer_count > 0 && sl_node_find(node, "task") != NULL &&
                 model->data.splits[SL_SPLIT_TRAIN].origin == SL_SOURCE_FILES;
    if (!known)
        return;
    check_metrics(&c, node, &train->metrics);
    check_validate(&c);
    check_loss(&c);
    check_sides(&c);
    check_output_shape(&c);
    check_directions(&c);
    check_class_weight(&c);
    check_reduction(&c);
}
