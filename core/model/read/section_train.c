/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of `train:`: task, loss, end, monitoring. Optimizers and schedules are in section_optimizer.c. */
#include <string.h>

#include "base/value/text.h"
#include "model/read/sections.h"

#define AT(member) offsetof(struct sl_train_config, member)

const struct sl_word sl_words_task[] = {
    WORD("language_model", SL_TASK_LANGUAGE_MODEL, "the next token"),
    WORD("classify", SL_TASK_CLASSIFY, "a class for each sequence"),
    WORD("tag", SL_TASK_TAG, "a class for each step"),
    WORD("regress", SL_TASK_REGRESS, "values"),
    WORD("seq2seq", SL_TASK_SEQ2SEQ, "another sequence, with an encoder and a decoder"),
    WORD_END,
};

const struct sl_word sl_words_metric[] = {
    WORD("loss", SL_METRIC_LOSS, "the loss itself"),
    WORD("accuracy", SL_METRIC_ACCURACY, "fraction of correct classes"),
    WORD("perplexity", SL_METRIC_PERPLEXITY, "exp of the mean cross-entropy"),
    WORD("bits_per_token", SL_METRIC_BITS_PER_TOKEN, "mean cross-entropy in bits"),
    WORD("mse", SL_METRIC_MSE, "mean squared error"),
    WORD("mae", SL_METRIC_MAE, "mean absolute error"),
    WORD("rmse", SL_METRIC_RMSE, "square root of the mean squared error"),
    WORD("f1_span", SL_METRIC_F1_SPAN, "F1 of the spans that BIO tags mark, as conlleval counts them"),
    WORD("f1_span_strict", SL_METRIC_F1_SPAN_STRICT, "the same, but a span begins only at a B- tag"),
    WORD("mase", SL_METRIC_MASE, "mean absolute error, divided by that of repeating the previous value in `train`"),
    WORD("f1_macro", SL_METRIC_F1_MACRO,
         "mean of the F1 scores of the classes; at most " SL_TEXT_OF(SL_METRIC_CLASSES) " classes"),
    WORD("f1_micro", SL_METRIC_F1_MICRO,
         "F1 over all classes together; at most " SL_TEXT_OF(SL_METRIC_CLASSES) " classes"),
    WORD("exact_match", SL_METRIC_EXACT_MATCH,
         "fraction of the generated texts that equal the target; not measured on `train`"),
    WORD("bleu", SL_METRIC_BLEU, "BLEU of the generated texts, 0 to 100; not measured on `train`"),
    WORD("chrf", SL_METRIC_CHRF, "chrF2 of the generated texts, 0 to 100; not measured on `train`"),
    WORD_LATER("token_accuracy"),
    WORD_END,
};

static const struct sl_word loss_words[] = {
    WORD("mse", SL_LOSS_MSE, "mean squared error"),
    WORD("mae", SL_LOSS_MAE, "mean absolute error"),
    WORD("huber", SL_LOSS_HUBER, "squared error below `delta`, absolute error above"),
    WORD("binary_cross_entropy", SL_LOSS_BINARY_CROSS_ENTROPY, "cross-entropy of a sigmoid output"),
    WORD("cross_entropy", SL_LOSS_CROSS_ENTROPY, "cross-entropy of a softmax output, with integer targets"),
    WORD_END,
};

static const struct sl_word reduction_words[] = {
    WORD("mean", SL_REDUCTION_MEAN, "mean over all steps of the update"),
    WORD("step_mean", SL_REDUCTION_STEP_MEAN,
         "sum over the steps, divided by the average number of steps in a batch: every step has the same weight in "
         "every "
         "batch"),
    WORD("sequence_mean", SL_REDUCTION_SEQUENCE_MEAN,
         "sum over the steps, mean over the sequences (Zaremba et al. 2014)"),
    WORD_END,
};

static const struct sl_word mode_words[] = {
    WORD("min", SL_MODE_MIN, "smaller is better"),
    WORD("max", SL_MODE_MAX, "larger is better"),
    WORD_END,
};

static const struct sl_word divergence_words[] = {
    WORD("stop", SL_DIVERGENCE_STOP, "end with exit status 5"),
    WORD("skip", SL_DIVERGENCE_SKIP, "skip the update"),
    WORD_LATER("fallback_float32"),
    WORD_END,
};

/* A list of metrics. */
static void read_metrics(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    static const struct sl_option word = {.key = "metrics", .kind = SL_VALUE_WORD, .words = sl_words_metric};
    struct sl_metric_list *list = field;
    if (node->kind != SL_NODE_LIST) {
        sl_reader_report_type(reader, option, node, "a list of metrics");
        return;
    }
    enum sl_metric *items = sl_reader_alloc(reader, node->count + 1, sizeof *items);
    for (size_t i = 0; items != NULL && i < node->count; i++) {
        const size_t errors = reader->errors;
        sl_reader_read_value(reader, &word, node->items[i], &items[i]);
        for (size_t j = 0; j < i && reader->errors == errors; j++)
            if (node->items[j]->kind == SL_NODE_SCALAR && strcmp(node->items[j]->text, node->items[i]->text) == 0)
                sl_reader_report(reader, "E0207", node->items[i]->place, NULL, NULL, "`metrics` lists `%s` twice",
                                 node->items[i]->text);
    }
    *list = (struct sl_metric_list){items, items ? node->count : 0};
}

/* More is no weight for a loss in float32. */
#define SL_CLASS_WEIGHT_MOST 1e9

/* `{label: weight}`, or `balanced`. */
static void read_class_weight(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node,
                              void *field)
{
    struct sl_train_config *train = (struct sl_train_config *)((char *)field - AT(class_weights));
    if (node->kind == SL_NODE_SCALAR && strcmp(node->text, "balanced") == 0) {
        train->balanced_classes = true;
        return;
    }
    if (node->kind != SL_NODE_MAP) {
        sl_reader_report_type(reader, option, node, "`balanced`, or a map from labels to weights");
        return;
    }
    struct sl_class_weight *weights = sl_reader_alloc(reader, node->count + 1, sizeof *weights);
    for (size_t i = 0; weights != NULL && i < node->count; i++) {
        const struct sl_option number = {
            .key = node->pairs[i].key, .kind = SL_VALUE_FLOAT, .min = 0, .max = SL_CLASS_WEIGHT_MOST};
        weights[i].label = node->pairs[i].key;
        sl_reader_read_value(reader, &number, node->pairs[i].value, &weights[i].weight);
    }
    train->class_weights = weights;
    train->class_weight_count = weights ? node->count : 0;
}

/* The name of a run, or its folder if there is a slash. */
static void read_run(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    const struct sl_option value = {.key = option->key,
                                    .kind = node->kind == SL_NODE_SCALAR && strchr(node->text, '/') ? SL_VALUE_PATH
                                                                                                    : SL_VALUE_TEXT};
    sl_reader_read_value(reader, &value, node, field);
}

/* `valid.loss`: the split and the metric are checked later (check_train.c). */
static void read_monitor(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    const char *dot = node->kind == SL_NODE_SCALAR ? strchr(node->text, '.') : NULL;
    if (dot == NULL || dot == node->text || dot[1] == 0) {
        sl_reader_report_type(reader, option, node, "a split and a metric, as in `valid.loss`");
        return;
    }
    *(const char **)field = node->text;
}

static const struct sl_custom metrics_custom = {
    read_metrics, "list of metrics",
    "{\"type\": \"array\", \"items\": {\"enum\": [\"loss\", \"accuracy\", \"perplexity\", "
    "\"bits_per_token\", \"mse\", \"mae\", \"rmse\", \"f1_span\", \"f1_span_strict\", \"mase\", \"f1_macro\", "
    "\"f1_micro\", \"exact_match\", \"bleu\", \"chrf\"]}}"};
static const struct sl_custom class_weight_custom = {
    read_class_weight, "`balanced`, or map from label to weight",
    "{\"anyOf\": [{\"const\": \"balanced\"}, {\"type\": \"object\", \"additionalProperties\": "
    "{\"type\": \"number\", \"minimum\": 0, \"maximum\": 1e9}}]}"};
static const struct sl_custom run_custom = {read_run, "name of a run, or its folder", "{\"type\": \"string\"}"};
const struct sl_custom sl_custom_monitor = {read_monitor, "`SPLIT.METRIC`",
                                            "{\"type\": \"string\", \"pattern\": \"^(train|valid|test)[.][a-z_]+$\"}"};

static const struct sl_option train_options[] = {
    OPTION(WORD, "task", AT(task), .words = sl_words_task,
           .doc = "what is predicted; the default depends on the data and the loss"),
    OPTION(SECTION, "loss", AT(loss), .section = &sl_section_loss,
           .doc = "the loss function; the default depends on the task"),
    OPTION(SECTION, "optimizer", AT(optimizer), .default_text = "adam", .section = &sl_section_optimizer,
           .doc = "how parameters are updated"),
    OPTION(SECTION, "schedule", AT(schedule), .default_text = "constant", .section = &sl_section_schedule,
           .doc = "how the learning rate changes"),
    OPTION(FLOAT, "clip_norm", AT(clip_norm), .flags = SL_OPTION_ABOVE, .min = 0, .max = SL_NO_LIMIT,
           .doc = "maximum norm of the gradient of all parameters together; larger gradients are scaled down"),
    OPTION(FLOAT, "clip_value", AT(clip_value), .flags = SL_OPTION_ABOVE, .min = 0, .max = SL_NO_LIMIT,
           .doc = "maximum magnitude of each element of the gradient; larger elements are clipped"),
    OPTION(INT, "epochs", AT(epochs), .min = 1, .max = INT32_MAX,
           .doc = "ends the training after this number of passes over the data"),
    OPTION(INT, "updates", AT(updates), .min = 1, .max = 9007199254740991.0,
           .doc = "ends the training after this number of updates"),
    OPTION(PERIOD, "max_time", AT(max_time), .period_units = "s",
           .doc = "ends the training after this time, with exit status 75"),
    OPTION(INT, "accumulate", AT(accumulate), .default_text = "1", .min = 1, .max = 1000000,
           .doc = "number of batches whose gradients are accumulated for one update"),
    OPTION(CUSTOM, "metrics", AT(metrics), .custom = &metrics_custom, .doc = "what is measured besides the loss"),
    OPTION(SECTION, "validate", AT(validate), .default_text = "{}", .section = &sl_section_validate,
           .doc = "evaluation on `valid`"),
    OPTION(SECTION, "checkpoint", AT(checkpoint), .default_text = "{}", .section = &sl_section_checkpoint,
           .doc = "saving during training"),
    OPTION(SECTION, "early_stopping", AT(early_stopping), .section = &sl_section_early_stopping,
           .doc = "ends the training when the monitored metric stops improving"),
    OPTION(SECTION, "ema", AT(ema), .section = &sl_section_ema,
           .doc = "running averages of the parameters, used for evaluation and for the saved weights"),
    OPTION(CUSTOM, "init_from", AT(init_from), .custom = &run_custom,
           .doc = "a run whose parameters are used as initial values"),
    OPTION(WORD, "on_divergence", AT(on_divergence), .default_text = "stop", .words = divergence_words,
           .doc = "what happens when the loss or the gradient is not finite"),
    OPTION(CUSTOM, "class_weight", AT(class_weights), .custom = &class_weight_custom,
           .doc = "weight of each class in the loss"),
    OPTION(SECTION, "teacher_forcing", AT(teacher_forcing), .default_text = "always",
           .section = &sl_section_teacher_forcing,
           .doc = "what a decoder reads during training: the true tokens, or its own"),
    OPTION_END,
};

const struct sl_section sl_section_train = {
    .path = "train",
    .noun = "the training",
    .options = train_options,
    .doc = "how the model is trained",
};

#define CE (1u << SL_LOSS_CROSS_ENTROPY)

static const struct sl_option loss_options[] = {
    OPTION(
        WORD, "reduction", offsetof(struct sl_loss, reduction), .words = reduction_words,
        .doc =
            "what the gradient is divided by; default: `step_mean` if batches are grouped by length, otherwise `mean`"),
    OPTION(FLOAT, "delta", offsetof(struct sl_loss, delta), .variants = 1u << SL_LOSS_HUBER, .flags = SL_OPTION_ABOVE,
           .default_text = "1", .min = 0, .max = SL_NO_LIMIT, .doc = "the error beyond which the loss is linear"),
    OPTION(FLOAT, "label_smoothing", offsetof(struct sl_loss, label_smoothing), .variants = CE,
           .flags = SL_OPTION_BELOW, .default_text = "0", .min = 0, .max = 1,
           .doc = "fraction of the target's probability that is spread over all classes"),
    OPTION(TEXT, "ignore", offsetof(struct sl_loss, ignore), .variants = CE,
           .doc = "a label or token that is not counted as a target"),
    OPTION_END,
};

const struct sl_section sl_section_loss = {
    .path = "train.loss",
    .noun = "the loss",
    .variants = loss_words,
    .variant_offset = offsetof(struct sl_loss, kind),
    .options = loss_options,
    .doc = "the loss function",
};

static const struct sl_option validate_options[] = {
    OPTION(PERIOD, "every", offsetof(struct sl_validate, every), .default_text = "1e", .doc = "how often to evaluate"),
    OPTION(CUSTOM, "metrics", offsetof(struct sl_validate, metrics), .custom = &metrics_custom,
           .doc = "what is measured; default: the metrics of `train`"),
    OPTION_END,
};

const struct sl_section sl_section_validate = {
    .path = "train.validate",
    .noun = "the validation",
    .bare_key = "every",
    .options = validate_options,
    .doc = "evaluation on `valid`",
};

static const struct sl_option checkpoint_options[] = {
    OPTION(PERIOD, "every", offsetof(struct sl_checkpoint, every), .default_text = "1e", .doc = "how often to save"),
    OPTION(INT, "keep_last", offsetof(struct sl_checkpoint, keep_last), .default_text = "2", .min = 1, .max = 1000000,
           .doc = "number of newest checkpoints to keep"),
    OPTION(INT, "keep_best", offsetof(struct sl_checkpoint, keep_best), .min = 0, .max = SL_KEEP_BEST_MOST,
           .doc = "number of best checkpoints to keep; default: 1 with a `valid` split, otherwise 0"),
    OPTION(CUSTOM, "monitor", offsetof(struct sl_checkpoint, monitor), .default_text = "valid.loss",
           .custom = &sl_custom_monitor, .doc = "the metric that decides which is best"),
    OPTION(WORD, "mode", offsetof(struct sl_checkpoint, mode), .words = mode_words,
           .doc = "whether smaller or larger values are better; the default depends on the metric"),
    OPTION_END,
};

const struct sl_section sl_section_checkpoint = {
    .path = "train.checkpoint",
    .noun = "the checkpoint",
    .options = checkpoint_options,
    .doc = "saving during training",
};

static const struct sl_option early_stopping_options[] = {
    OPTION(CUSTOM, "monitor", offsetof(struct sl_early_stopping, monitor), .default_text = "valid.loss",
           .custom = &sl_custom_monitor, .doc = "the metric that must improve"),
    OPTION(WORD, "mode", offsetof(struct sl_early_stopping, mode), .words = mode_words,
           .doc = "whether smaller or larger values are better; the default depends on the metric"),
    OPTION(
        INT, "patience", offsetof(struct sl_early_stopping, patience), .default_text = "0", .min = 0, .max = 1000000,
        .doc =
            "number of validations in a row without improvement after which the training ends, as in Keras; 0 means 1"),
    OPTION(FLOAT, "min_delta", offsetof(struct sl_early_stopping, min_delta), .default_text = "0", .min = 0,
           .max = SL_NO_LIMIT, .doc = "an improvement must be larger than this"),
    OPTION(BOOL, "restore_best", offsetof(struct sl_early_stopping, restore_best), .default_text = "false",
           .doc = "whether the run ends with the parameters of the best validation"),
    OPTION(PERIOD, "start", offsetof(struct sl_early_stopping, start), .doc = "validations before this do not count"),
    OPTION_END,
};

const struct sl_section sl_section_early_stopping = {
    .path = "train.early_stopping",
    .noun = "the early stopping",
    .options = early_stopping_options,
    .doc = "ends the training when the monitored metric stops improving",
};

static const struct sl_option ema_options[] = {
    OPTION(FLOAT, "decay", offsetof(struct sl_ema, decay), .flags = SL_OPTION_ABOVE | SL_OPTION_BELOW,
           .default_text = "0.999", .min = 0, .max = 1, .doc = "weight of the old average at each update"),
    OPTION(PERIOD, "start", offsetof(struct sl_ema, start), .doc = "before this, the average equals the parameter"),
    OPTION_END,
};

const struct sl_section sl_section_ema = {
    .path = "train.ema",
    .noun = "the moving average",
    .bare_key = "decay",
    .options = ema_options,
    .doc = "running averages of the parameters; a bare number is the decay",
};

const char *sl_task_get_name(enum sl_task task)
{
    return sl_word_get_name(sl_words_task, (int)task);
}

const char *sl_loss_kind_get_name(enum sl_loss_kind kind)
{
    return sl_word_get_name(loss_words, (int)kind);
}

const char *sl_metric_get_name(enum sl_metric metric)
{
    return sl_word_get_name(sl_words_metric, (int)metric);
}

enum sl_monitor_mode sl_metric_get_mode(enum sl_metric metric)
{
    switch (metric) {
    case SL_METRIC_ACCURACY:
    case SL_METRIC_F1_SPAN:
    case SL_METRIC_F1_SPAN_STRICT:
    case SL_METRIC_F1_MACRO:
    case SL_METRIC_F1_MICRO:
    case SL_METRIC_EXACT_MATCH:
    case SL_METRIC_BLEU:
    case SL_METRIC_CHRF:
        return SL_MODE_MAX;
    default:
        return SL_MODE_MIN;
    }
}

bool sl_metric_is_of_texts(enum sl_metric metric)
{
    return metric == SL_METRIC_EXACT_MATCH || metric == SL_METRIC_BLEU || metric == SL_METRIC_CHRF;
}
