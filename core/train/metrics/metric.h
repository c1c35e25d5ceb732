/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics from the executor's output and the batch's targets, in float64.
 *
 * Sums are added over batches and become numbers at the end; they are plain and saved with checkpoints. Rows count with
 * their weight (batch->weight; the class target -1 has weight 0); class weights count only in the loss. A target below
 * -1 is a label that the training split lacks (data/dataset/dataset.h): it has no loss and no perplexity, and every
 * answer is wrong. In F1 such a label is a class of its own.
 *
 *   loss             sum of the loss over the sum of weights, as the loss operation computed them
 *   accuracy         classes: the largest output is the target (first of equals); values: both on the same side of one
 *                    half, element by element (logits: on the same side of 0)
 *   perplexity       exp of the mean of -log softmax(x)[target], without label smoothing or class weights
 *   bits_per_token   the same mean over log 2
 *   f1_span          spans that BIO tags mark, as conlleval counts them; f1_span_strict: as seqeval's strict mode
 *                    (span.h). Steps without a target are left out
 *   f1_macro         F1 = 2 hits / (2 hits + missed + false alarms) of each class among targets or answers,
 *                    then the mean; of values (binary cross-entropy) the classes are the features above one half
 *   f1_micro         F1 of the sums over classes (with one label per target it equals the accuracy)
 *   exact_match, bleu, chrf   of the best text of each sequence against the target in the file
 *                    (text_score.h; BLEU with the tokenizer 13a)
 *   mse, mae, rmse   over rows and features; for a binary cross-entropy on the probabilities
 *   mase             mean absolute error in the units of the file, each column's over that of the naive forecast in the
 *                    training split, which predicts the value of the step before (Hyndman & Koehler 2006)
 *
 * If targets were scaled, mse, mae and rmse are also given in the units of the file, under the names "mse_original",
 * "mae_original", "rmse_original".
 */
#ifndef SL_TRAIN_METRICS_METRIC_H
#define SL_TRAIN_METRICS_METRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/batch/batch.h"
#include "data/dataset/dataset.h"
#include "data/dataset/state.h"
#include "exec/exec.h"
#include "model/train_config.h"
#include "train/metrics/span.h"
#include "train/metrics/text_score.h"

/* How to read a model's output. Filled by sl_metric_rule_init. */
struct sl_metric_rule {
    bool wanted[SL_METRIC_COUNT];
    enum sl_loss_kind loss;
    bool from_loss;                        /* cross-entropy equals the loss: no smoothing and no weights of classes */
    bool is_logits;                        /* the output is the input of the loss, its activation not applied */
    const struct sl_scaling *scaling;      /* of the targets; NULL: none */
    const double *naive;                   /* mase: error of the naive forecast, per column; NULL: unknown */
    int64_t columns;                       /* of naive */
    struct sl_span_tag tags[SL_SPAN_TAGS]; /* f1_span: of each class, then of labels that are none */
};

/* `list` as in the model (loss is always included). `weighted_classes`: the executor was given class weights. `state`
 * may be NULL. Borrowed: model and state must outlive the rule. */
void sl_metric_rule_init(struct sl_metric_rule *rule, const struct sl_train_config *config,
                         const struct sl_metric_list *list, bool is_logits, bool weighted_classes,
                         const struct sl_data_state *state);

/* Must the graph keep the output (sl_graph_request.need_output)? [any thread] */
bool sl_metric_needs_output(const struct sl_train_config *config, const struct sl_metric_list *list,
                            bool weighted_classes);

/* f1_span: gives the labels that the dataset has and the training split lacks their tags. Call before sl_metric_add. */
void sl_metric_rule_add_labels(struct sl_metric_rule *rule, const struct sl_dataset *dataset);

/* INVALID_CONFIG when the data do not allow a metric of the list: too many classes to count separately, classes that
 * are no BIO tags, targets without a series for a naive forecast. */
seqlstm_status sl_metric_check(const struct sl_metric_list *list, const struct sl_data_state *state,
                               struct seqlstm_error *err);

/* True when sl_metric_add reads the output. */
bool sl_metric_rule_reads_output(const struct sl_metric_rule *rule);

/* True when texts are to be added to the sums. */
bool sl_metric_rule_reads_texts(const struct sl_metric_rule *rule);
/* Does a metric of the list compare texts? */
bool sl_metric_needs_texts(const struct sl_metric_list *list);
/* Leaves out metrics that compare texts: nothing is written while a model is trained. */
void sl_metric_rule_drop_texts(struct sl_metric_rule *rule);

/* All float64 and linear: sums of two sets of batches are added member by member. */
struct sl_metric_sums {
    double loss, loss_weight;
    double correct, correct_weight;
    double entropy, entropy_weight;
    double scaled; /* absolute errors over those of the naive forecast */
    struct sl_span_sums spans[SL_SPAN_RULES];
    double squared, absolute, elements;
    double squared_original, absolute_original;
    struct sl_text_sums text;                                                             /* of what a decoder wrote */
    double rows;                                                                          /* real steps, or sequences */
    double hits[SL_METRIC_CLASSES], missed[SL_METRIC_CLASSES], alarms[SL_METRIC_CLASSES]; /* only for f1 */
};

enum { SL_METRIC_SUMS_DOUBLES = sizeof(struct sl_metric_sums) / sizeof(double) };

/* Adds one batch after its step. `output` may be NULL if the rule does not read it. */
void sl_metric_add(const struct sl_metric_rule *rule, struct sl_metric_sums *sums, const struct sl_batch *batch,
                   const struct sl_field *output, const struct sl_exec_result *result);
void sl_metric_sums_add(struct sl_metric_sums *sums, const struct sl_metric_sums *other);

/* One number with its name, "loss", "mae_original"; static text. */
struct sl_metric_value {
    const char *name;
    double value;
    const char *signature; /* sacreBLEU's, for its metrics; NULL for all others */
};

enum { SL_METRIC_VALUES = SL_METRIC_COUNT + 3 };

struct sl_metric_values {
    int32_t count;
    struct sl_metric_value items[SL_METRIC_VALUES]; /* loss first, then in the order of enum sl_metric */
};

/* The wanted metrics; NaN where no weight was seen. */
void sl_metric_finish(const struct sl_metric_rule *rule, const struct sl_metric_sums *sums,
                      struct sl_metric_values *out_values);

/* The first value that no sound model has: a loss that is not finite, or another metric that is infinite. (A metric
 * such as f1 is NaN where there is nothing to count.) NULL: there is none. */
const struct sl_metric_value *sl_metric_values_find_unsound(const struct sl_metric_values *values);

/* NaN when it is not among them. */
double sl_metric_values_get(const struct sl_metric_values *values, enum sl_metric metric);

#endif
