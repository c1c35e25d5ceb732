/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of `train:`: task, loss, when it ends, what is watched. Optimizers and schedules stand in
 * section_optimizer.c. */
#include <string.h>

#include "model/read/sections.h"

#define AT(member) offsetof(struct sl_train_config, member)
/* clang-format off */
#define NONE {NULL}
/* clang-format on */

const struct sl_word sl_words_task[] = {
    {"language_model", SL_TASK_LANGUAGE_MODEL, "the next token", false},
    {"classify", SL_TASK_CLASSIFY, "a class for each sequence", false},
    {"tag", SL_TASK_TAG, "a class for each step", false},
    {"regress", SL_TASK_REGRESS, "values", false},
    {"seq2seq", SL_TASK_SEQ2SEQ, "another sequence, with an encoder and a decoder", false},
    {NULL, 0, NULL, false}};

const struct sl_word sl_words_metric[] = {
    {"loss", SL_METRIC_LOSS, "the loss itself", false},
    {"accuracy", SL_METRIC_ACCURACY, "fraction of correct classes", false},
    {"perplexity", SL_METRIC_PERPLEXITY, "exp of the mean cross-entropy", false},
    {"bits_per_token", SL_METRIC_BITS_PER_TOKEN, "mean cross-entropy in bits", false},
    {"mse", SL_METRIC_MSE, "mean squared error", false},
    {"mae", SL_METRIC_MAE, "mean absolute error", false},
    {"rmse", SL_METRIC_RMSE, "square root of the mean squared error", false},
    {"f1_span", SL_METRIC_F1_SPAN, "F1 of the spans that BIO tags mark, as conlleval counts them", false},
    {"f1_span_strict", SL_METRIC_F1_SPAN_STRICT, "the same, but a span begins only at a B- tag", false},
    {"mase", SL_METRIC_MASE, "mean absolute error, divided by that of repeating the previous value in `train`", false},
    {"f1_macro", SL_METRIC_F1_MACRO, "mean of the F1 scores of the classes; at most 256 classes", false},
    {"f1_micro", SL_METRIC_F1_MICRO, "F1 over all classes together; at most 256 classes", false},
    {"exact_match", SL_METRIC_EXACT_MATCH,
     "fraction of the generated texts that equal the target; not measured on `train`", false},
    {"bleu", SL_METRIC_BLEU, "BLEU of the generated texts, 0 to 100; not measured on `train`", false},
    {"chrf", SL_METRIC_CHRF, "chrF2 of the generated texts, 0 to 100; not measured on `train`", false},
    {"token_accuracy", -1, "", true},
    {NULL, 0, NULL, false}};

static const struct sl_word loss_words[] = {
    {"mse", SL_LOSS_MSE, "mean squared error", false},
    {"mae", SL_LOSS_MAE, "mean absolute error", false},
    {"huber", SL_LOSS_HUBER, "squared error below `delta`, absolute error above", false},
    {"binary_cross_entropy", SL_LOSS_BINARY_CROSS_ENTROPY, "cross-entropy of a sigmoid output", false},
    {"cross_entropy", SL_LOSS_CROSS_ENTROPY, "cross-entropy of a softmax output, with integer targets", false},
    {NULL, 0, NULL, false}};

static const struct sl_word reduction_words[] = {
    {"mean", SL_REDUCTION_MEAN, "mean over all steps of the update", false},
    {"step_mean", SL_REDUCTION_STEP_MEAN,
     "sum over the steps, divided by the average number of steps in a batch: every step has the same weight in every "
     "batch",
     false},
    {"sequence_mean", SL_REDUCTION_SEQUENCE_MEAN, "sum over the steps, mean over the sequences (Zaremba et al. 2014)",
     false},
    {NULL, 0, NULL, false}};

static const struct sl_word mode_words[] = {{"min", SL_MODE_MIN, "smaller is better", false},
                                            {"max", SL_MODE_MAX, "larger is better", false},
                                            {NULL, 0, NULL, false}};

static const struct sl_word divergence_words[] = {{"stop", SL_DIVERGENCE_STOP, "end with exit status 5", false},
                                                  {"skip", SL_DIVERGENCE_SKIP, "skip the update", false},
                                                  {"fallback_float32", -1, "", true},
                                                  {NULL, 0, NULL, false}};

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
    for (size_t i = 0; items != NULL && i < node->count; i++)
        sl_reader_read_value(reader, &word, node->items[i], &items[i]);
    *list = (struct sl_metric_list){items, items ? node->count : 0};
}

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
            .key = node->pairs[i].key, .kind = SL_VALUE_FLOAT, .min = 0, .max = SL_NO_LIMIT};
        weights[i].label = node->pairs[i].key;
        sl_reader_read_value(reader, &number, node->pairs[i].value, &weights[i].weight);
    }
    train->class_weights = weights;
    train->class_weight_count = weights ? node->count : 0;
}

/* A run's name, or with a slash its folder. */
static void read_run(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    const struct sl_option value = {.key = option->key,
                                    .kind = node->kind == SL_NODE_SCALAR && strchr(node->text, '/') ? SL_VALUE_PATH
                                                                                                    : SL_VALUE_TEXT};
    sl_reader_read_value(reader, &value, node, field);
}

/* `valid.loss`: the split and the metric are checked once all is known (check_train.c). */
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
    "{\"type\": \"number\", \"minimum\": 0}}]}"};
static const struct sl_custom run_custom = {read_run, "name of a run, or its folder", "{\"type\": \"string\"}"};
const struct sl_custom sl_custom_monitor = {read_monitor, "`SPLIT.METRIC`",
                                            "{\"type\": \"string\", \"pattern\": \"^(train|valid|test)[.][a-z_]+$\"}"};

static const struct sl_option train_options[] = {
    {"task",
     SL_VALUE_WORD,
     AT(task),
     0,
     0,
     NULL,
     0,
     0,
     {.words = sl_words_task},
     "what is predicted; the default depends on the data and the loss"},
    {"loss",
     SL_VALUE_SECTION,
     AT(loss),
     0,
     0,
     NULL,
     0,
     0,
     {.section = &sl_section_loss},
     "the loss function; the default depends on the task"},
    {"optimizer",
     SL_VALUE_SECTION,
     AT(optimizer),
     0,
     0,
     "adam",
     0,
     0,
     {.section = &sl_section_optimizer},
     "how parameters are updated"},
    {"schedule",
     SL_VALUE_SECTION,
     AT(schedule),
     0,
     0,
     "constant",
     0,
     0,
     {.section = &sl_section_schedule},
     "how the learning rate changes"},
    {"clip_norm", SL_VALUE_FLOAT, AT(clip_norm), 0, SL_OPTION_ABOVE, NULL, 0, SL_NO_LIMIT, NONE,
     "maximum norm of the gradient of all parameters together; larger gradients are scaled down"},
    {"clip_value", SL_VALUE_FLOAT, AT(clip_value), 0, SL_OPTION_ABOVE, NULL, 0, SL_NO_LIMIT, NONE,
     "maximum magnitude of each element of the gradient; larger elements are clipped"},
    {"epochs", SL_VALUE_INT, AT(epochs), 0, 0, NULL, 1, INT32_MAX, NONE,
     "ends the training after this number of passes over the data"},
    {"updates", SL_VALUE_INT, AT(updates), 0, 0, NULL, 1, 9007199254740991.0, NONE,
     "ends the training after this number of updates"},
    {"max_time",
     SL_VALUE_PERIOD,
     AT(max_time),
     0,
     0,
     NULL,
     0,
     0,
     {.period_units = "s"},
     "ends the training after this time, with exit status 75"},
    {"accumulate", SL_VALUE_INT, AT(accumulate), 0, 0, "1", 1, 1000000, NONE,
     "number of batches whose gradients are accumulated for one update"},
    {"metrics",
     SL_VALUE_CUSTOM,
     AT(metrics),
     0,
     0,
     NULL,
     0,
     0,
     {.custom = &metrics_custom},
     "what is measured besides the loss"},
    {"validate",
     SL_VALUE_SECTION,
     AT(validate),
     0,
     0,
     "{}",
     0,
     0,
     {.section = &sl_section_validate},
     "evaluation on `valid`"},
    {"checkpoint",
     SL_VALUE_SECTION,
     AT(checkpoint),
     0,
     0,
     "{}",
     0,
     0,
     {.section = &sl_section_checkpoint},
     "saving during training"},
    {"early_stopping",
     SL_VALUE_SECTION,
     AT(early_stopping),
     0,
     0,
     NULL,
     0,
     0,
     {.section = &sl_section_early_stopping},
     "ends the training when the monitored metric stops improving"},
    {"ema",
     SL_VALUE_SECTION,
     AT(ema),
     0,
     0,
     NULL,
     0,
     0,
     {.section = &sl_section_ema},
     "running averages of the parameters, used for evaluation and for the saved weights"},
    {"init_from",
     SL_VALUE_CUSTOM,
     AT(init_from),
     0,
     0,
     NULL,
     0,
     0,
     {.custom = &run_custom},
     "a run whose parameters are used as initial values"},
    {"on_divergence",
     SL_VALUE_WORD,
     AT(on_divergence),
     0,
     0,
     "stop",
     0,
     0,
     {.words = divergence_words},
     "what happens when the loss or the gradient is not finite"},
    {"class_weight",
     SL_VALUE_CUSTOM,
     AT(class_weights),
     0,
     0,
     NULL,
     0,
     0,
     {.custom = &class_weight_custom},
     "weight of each class in the loss"},
    {"teacher_forcing",
     SL_VALUE_SECTION,
     AT(teacher_forcing),
     0,
     0,
     "always",
     0,
     0,
     {.section = &sl_section_teacher_forcing},
     "what a decoder reads during training: the true tokens, or its own"},
    {0}};

const struct sl_section sl_section_train = {"train", "the training", NULL,          0,
                                            NULL,    NULL,           train_options, "how the model is trained"};

#define CE (1u << SL_LOSS_CROSS_ENTROPY)

static const struct sl_option loss_options[] = {
    {"reduction",
     SL_VALUE_WORD,
     offsetof(struct sl_loss, reduction),
     0,
     0,
     NULL,
     0,
     0,
     {.words = reduction_words},
     "what the gradient is divided by; default: `step_mean` if batches are grouped by length, otherwise `mean`"},
    {"delta", SL_VALUE_FLOAT, offsetof(struct sl_loss, delta), 1u << SL_LOSS_HUBER, SL_OPTION_ABOVE, "1", 0,
     SL_NO_LIMIT, NONE, "the error beyond which the loss is linear"},
    {"label_smoothing", SL_VALUE_FLOAT, offsetof(struct sl_loss, label_smoothing), CE, SL_OPTION_BELOW, "0", 0, 1, NONE,
     "fraction of the target's probability that is spread over all classes"},
    {"ignore", SL_VALUE_TEXT, offsetof(struct sl_loss, ignore), CE, 0, NULL, 0, 0, NONE,
     "a label or token that is not counted as a target"},
    {0}};

const struct sl_section sl_section_loss = {"train.loss", "the loss", loss_words,   offsetof(struct sl_loss, kind),
                                           NULL,         NULL,       loss_options, "the loss function"};

static const struct sl_option validate_options[] = {
    {"every", SL_VALUE_PERIOD, offsetof(struct sl_validate, every), 0, 0, "1e", 0, 0, NONE, "how often to evaluate"},
    {"metrics",
     SL_VALUE_CUSTOM,
     offsetof(struct sl_validate, metrics),
     0,
     0,
     NULL,
     0,
     0,
     {.custom = &metrics_custom},
     "what is measured; default: the metrics of `train`"},
    {0}};

const struct sl_section sl_section_validate = {"train.validate", "the validation",       NULL, 0, NULL, "every",
                                               validate_options, "evaluation on `valid`"};

static const struct sl_option checkpoint_options[] = {
    {"every", SL_VALUE_PERIOD, offsetof(struct sl_checkpoint, every), 0, 0, "1e", 0, 0, NONE, "how often to save"},
    {"keep_last", SL_VALUE_INT, offsetof(struct sl_checkpoint, keep_last), 0, 0, "2", 1, 1000000, NONE,
     "number of newest checkpoints to keep"},
    {"keep_best", SL_VALUE_INT, offsetof(struct sl_checkpoint, keep_best), 0, 0, NULL, 0, 16, NONE,
     "number of best checkpoints to keep; default: 1 with a `valid` split, otherwise 0"},
    {"monitor",
     SL_VALUE_CUSTOM,
     offsetof(struct sl_checkpoint, monitor),
     0,
     0,
     "valid.loss",
     0,
     0,
     {.custom = &sl_custom_monitor},
     "the metric that decides which is best"},
    {"mode",
     SL_VALUE_WORD,
     offsetof(struct sl_checkpoint, mode),
     0,
     0,
     NULL,
     0,
     0,
     {.words = mode_words},
     "whether smaller or larger values are better; the default depends on the metric"},
    {0}};

const struct sl_section sl_section_checkpoint = {"train.checkpoint", "the checkpoint",        NULL, 0, NULL, NULL,
                                                 checkpoint_options, "saving during training"};

static const struct sl_option early_stopping_options[] = {
    {"monitor",
     SL_VALUE_CUSTOM,
     offsetof(struct sl_early_stopping, monitor),
     0,
     0,
     "valid.loss",
     0,
     0,
     {.custom = &sl_custom_monitor},
     "the metric that must improve"},
    {"mode",
     SL_VALUE_WORD,
     offsetof(struct sl_early_stopping, mode),
     0,
     0,
     NULL,
     0,
     0,
     {.words = mode_words},
     "whether smaller or larger values are better; the default depends on the metric"},
    {"patience", SL_VALUE_INT, offsetof(struct sl_early_stopping, patience), 0, 0, "0", 0, 1000000, NONE,
     "number of validations in a row without improvement after which the training ends, as in Keras; 0 means 1"},
    {"min_delta", SL_VALUE_FLOAT, offsetof(struct sl_early_stopping, min_delta), 0, 0, "0", 0, SL_NO_LIMIT, NONE,
     "an improvement must be larger than this"},
    {"restore_best", SL_VALUE_BOOL, offsetof(struct sl_early_stopping, restore_best), 0, 0, "false", 0, 0, NONE,
     "whether the run ends with the parameters of the best validation"},
    {"start", SL_VALUE_PERIOD, offsetof(struct sl_early_stopping, start), 0, 0, NULL, 0, 0, NONE,
     "validations before this do not count"},
    {0}};

const struct sl_section sl_section_early_stopping = {"train.early_stopping",
                                                     "the early stopping",
                                                     NULL,
                                                     0,
                                                     NULL,
                                                     NULL,
                                                     early_stopping_options,
                                                     "ends the training when the monitored metric stops improving"};

static const struct sl_option ema_options[] = {{"decay", SL_VALUE_FLOAT, offsetof(struct sl_ema, decay), 0,
                                                SL_OPTION_ABOVE | SL_OPTION_BELOW, "0.999", 0, 1, NONE,
                                                "weight of the old average at each update"},
                                               {"start", SL_VALUE_PERIOD, offsetof(struct sl_ema, start), 0, 0, NULL, 0,
                                                0, NONE, "before this, the average equals the parameter"},
                                               {0}};

const struct sl_section sl_section_ema = {
    "train.ema", "the moving average",
    NULL,        0,
    NULL,        "decay",
    ema_options, "running averages of the parameters; a bare number is the decay"};

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
