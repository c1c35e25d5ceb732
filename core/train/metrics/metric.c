/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of metrics over rows, and the numbers that they become. */
#include "train/metrics/metric.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/value/text.h"

_Static_assert((int)SL_SPAN_TAGS >= (int)SL_METRIC_CLASSES, "tags are looked up by class");

static const double LN_2 = 0.69314718055994530942;

/* Without smoothing and class weights the loss operation has computed the cross-entropy already. */
static bool entropy_is_loss(const struct sl_train_config *config, bool weighted_classes)
{
    return config->loss.kind == SL_LOSS_CROSS_ENTROPY && config->loss.label_smoothing == 0 && !weighted_classes;
}

/* Number of the first class that is no BIO tag; -1: all are. */
static int64_t parse_tags(const struct sl_data_state *state, struct sl_span_tag tags[SL_METRIC_CLASSES])
{
    const char *names[SL_METRIC_CLASSES];
    const struct sl_vocabulary *classes = state ? sl_data_state_find_classes(state) : NULL;
    const int64_t size = classes ? sl_vocabulary_get_size(classes) : 0;
    for (int32_t i = 0; i < size && i < SL_METRIC_CLASSES; i++) {
        names[i] = sl_vocabulary_get_text(classes, i, NULL);
        if (!sl_span_tag_parse(names, i, &tags[i]))
            return i;
    }
    return -1;
}

void sl_metric_rule_init(struct sl_metric_rule *rule, const struct sl_train_config *config,
                         const struct sl_metric_list *list, bool is_logits, bool weighted_classes,
                         const struct sl_data_state *state)
{
    memset(rule, 0, sizeof *rule);
    rule->wanted[SL_METRIC_LOSS] = true;
    for (size_t i = 0; i < list->count; i++)
        rule->wanted[list->items[i]] = true;
    rule->loss = config->loss.kind;
    rule->from_loss = entropy_is_loss(config, weighted_classes);
    rule->is_logits = is_logits;
    if (rule->wanted[SL_METRIC_F1_SPAN] || rule->wanted[SL_METRIC_F1_SPAN_STRICT])
        parse_tags(state, rule->tags);
    if (state && rule->wanted[SL_METRIC_MASE])
        rule->naive = sl_data_state_find_naive_error(state, &rule->columns);
    rule->scaling = state ? sl_data_state_find_target_scaling(state) : NULL;
}

void sl_metric_rule_add_labels(struct sl_metric_rule *rule, const struct sl_dataset *dataset)
{
    const char *names[SL_METRIC_CLASSES];
    const struct sl_vocabulary *classes = sl_data_state_find_classes(sl_dataset_get_state(dataset));
    int32_t count = classes ? sl_vocabulary_get_size(classes) : 0;
    for (int32_t i = 0; i < count && i < SL_METRIC_CLASSES; i++)
        names[i] = sl_vocabulary_get_text(classes, i, NULL);
    for (int32_t k = 0; k < sl_dataset_count_unknown_labels(dataset) && count + k < SL_METRIC_CLASSES; k++) {
        names[count + k] = sl_dataset_get_unknown_label(dataset, k);
        if (!sl_span_tag_parse(names, count + k, &rule->tags[count + k]))
            rule->tags[count + k] = (struct sl_span_tag){SL_SPAN_BEGIN, (int16_t)(count + k)}; /* no span is like it */
    }
}

bool sl_metric_needs_output(const struct sl_train_config *config, const struct sl_metric_list *list,
                            bool weighted_classes)
{
    for (size_t i = 0; i < list->count; i++) {
        enum sl_metric metric = list->items[i];
        bool entropy = metric == SL_METRIC_PERPLEXITY || metric == SL_METRIC_BITS_PER_TOKEN;
        bool reads = metric != SL_METRIC_LOSS && !sl_metric_is_of_texts(metric);
        if (reads && !(entropy && entropy_is_loss(config, weighted_classes)))
            return true;
    }
    return false;
}

static seqlstm_status check_tags(const struct sl_data_state *state, enum sl_metric metric, struct seqlstm_error *err)
{
    struct sl_span_tag tags[SL_METRIC_CLASSES];
    const int64_t wrong = parse_tags(state, tags);
    if (wrong >= 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "%s needs BIO tags (O, B-type, I-type), but `%.80s` is a class of the data",
                     sl_metric_get_name(metric),
                     sl_vocabulary_get_text(sl_data_state_find_classes(state), (int32_t)wrong, NULL));
    return SEQLSTM_OK;
}

static seqlstm_status check_naive(const struct sl_data_state *state, struct seqlstm_error *err)
{
    int64_t columns = 0;
    const double *naive = sl_data_state_find_naive_error(state, &columns);
    if (!naive)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "mase needs targets that are a series: rows of a table with steps, or a `window`");
    for (int64_t c = 0; c < columns; c++)
        if (!(naive[c] > 0))
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                         "mase divides by how much a target changes from step to step: column %lld never does",
                         (long long)c + 1);
    return SEQLSTM_OK;
}

seqlstm_status sl_metric_check(const struct sl_metric_list *list, const struct sl_data_state *state,
                               struct seqlstm_error *err)
{
    const struct sl_field_facts *target = &sl_data_state_get_facts(state)->target;
    const int64_t classes = target->kind == SL_FIELD_IDS ? target->classes : target->features;
    for (size_t i = 0; i < list->count; i++) {
        const enum sl_metric metric = list->items[i];
        if (metric >= SL_METRIC_F1_SPAN && metric <= SL_METRIC_F1_MICRO && classes > SL_METRIC_CLASSES)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "%s counts at most %d classes separately, the data have %lld",
                         sl_metric_get_name(metric), SL_METRIC_CLASSES, (long long)classes);
        if (metric == SL_METRIC_F1_SPAN || metric == SL_METRIC_F1_SPAN_STRICT)
            SEQLSTM_TRY(check_tags(state, metric, err));
        if (metric == SL_METRIC_MASE)
            SEQLSTM_TRY(check_naive(state, err));
    }
    return SEQLSTM_OK;
}

static bool wants_f1(const struct sl_metric_rule *rule)
{
    return rule->wanted[SL_METRIC_F1_MACRO] || rule->wanted[SL_METRIC_F1_MICRO];
}

static int64_t find_largest(const float *row, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (row[i] > row[best])
            best = i;
    return best;
}

/* -log softmax(row)[target] */
static double cross_entropy(const float *row, int64_t count, int64_t target)
{
    double most = row[0];
    for (int64_t i = 1; i < count; i++)
        most = fmax(most, row[i]);
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += exp((double)row[i] - most);
    return most + log(sum) - (double)row[target];
}

/* Where a class counts: labels that the training split lacks come after the classes, as far as there is room. */
static int64_t find_place(int32_t target, int64_t classes)
{
    int64_t place = target >= 0 ? target : classes + SL_CLASS_UNKNOWN - target;
    return place < SL_METRIC_CLASSES ? place : SL_METRIC_CLASSES - 1;
}

static void add_classes(const struct sl_metric_rule *rule, struct sl_metric_sums *sums, const float *row, int64_t count,
                        int32_t target, double weight)
{
    const bool unknown = target <= SL_CLASS_UNKNOWN;
    if ((target < 0 && !unknown) || target >= count)
        return;
    if (rule->wanted[SL_METRIC_ACCURACY]) {
        sums->correct += find_largest(row, count) == target ? weight : 0;
        sums->correct_weight += weight;
    }
    if (wants_f1(rule) && count <= SL_METRIC_CLASSES) {
        int64_t answer = find_largest(row, count), place = find_place(target, count);
        sums->hits[place] += answer == target ? weight : 0;
        sums->missed[place] += answer == target ? 0 : weight;
        sums->alarms[answer] += answer == target ? 0 : weight;
    }
    bool entropy = rule->wanted[SL_METRIC_PERPLEXITY] || rule->wanted[SL_METRIC_BITS_PER_TOKEN];
    if (entropy && !rule->from_loss && !unknown) {
        sums->entropy += weight * cross_entropy(row, count, target);
        sums->entropy_weight += weight;
    }
}

static void add_values(const struct sl_metric_rule *rule, struct sl_metric_sums *sums, const float *row, int64_t count,
                       const float *target, double weight)
{
    bool logits = rule->is_logits && rule->loss == SL_LOSS_BINARY_CROSS_ENTROPY;
    double correct = 0, squared = 0, absolute = 0, squared_original = 0, absolute_original = 0, scaled = 0;
    const struct sl_scaling *scaling = rule->scaling;
    for (int64_t i = 0; i < count; i++) {
        double y = row[i], want = target[i];
        bool said = logits ? y > 0 : y > 0.5, is = want > 0.5;
        correct += said == is;
        if (wants_f1(rule) && count <= SL_METRIC_CLASSES) {
            sums->hits[i] += said && is ? weight : 0;
            sums->missed[i] += is && !said ? weight : 0;
            sums->alarms[i] += said && !is ? weight : 0;
        }
        if (logits)
            y = 1 / (1 + exp(-y));
        double error = y - want;
        squared += error * error;
        absolute += fabs(error);
        if (scaling) {
            error *= scaling->factor[i % scaling->columns];
            squared_original += error * error;
            absolute_original += fabs(error);
        }
        if (rule->naive)
            scaled += fabs(error) / rule->naive[i % rule->columns];
    }
    sums->scaled += weight * scaled;
    sums->correct += weight * correct;
    sums->correct_weight += weight * (double)count;
    sums->squared += weight * squared;
    sums->absolute += weight * absolute;
    sums->squared_original += weight * squared_original;
    sums->absolute_original += weight * absolute_original;
    sums->elements += weight * (double)count;
}

/* Tags of whole sequences. */
static void add_spans(const struct sl_metric_rule *rule, struct sl_metric_sums *sums, const struct sl_batch *batch,
                      const struct sl_field *output)
{
    const int64_t classes = output->features;
    for (int64_t k = 0; classes <= SL_METRIC_CLASSES && k < batch->axis.sequences; k++) {
        struct sl_span_walk walk[SL_SPAN_RULES] = {{.step = 0}};
        for (int64_t t = 0; t < batch->axis.lengths[k]; t++) {
            const int64_t row = sl_batch_row(batch, k, t);
            const int32_t target = batch->target.ids[row];
            if ((target < 0 && target > SL_CLASS_UNKNOWN) || target >= classes)
                continue;
            const int64_t place = find_place(target, classes);
            const int64_t answer = find_largest(output->values + row * classes, classes);
            for (int r = 0; r < SL_SPAN_RULES; r++)
                sl_span_walk_step(&walk[r], (enum sl_span_rule)r, rule->tags[answer], rule->tags[place],
                                  &sums->spans[r]);
        }
        for (int r = 0; r < SL_SPAN_RULES; r++)
            sl_span_walk_end(&walk[r], (enum sl_span_rule)r, &sums->spans[r]);
    }
}

bool sl_metric_rule_reads_output(const struct sl_metric_rule *rule)
{
    for (int metric = 0; metric < SL_METRIC_COUNT; metric++) {
        bool entropy = metric == SL_METRIC_PERPLEXITY || metric == SL_METRIC_BITS_PER_TOKEN;
        bool reads = metric != SL_METRIC_LOSS && !sl_metric_is_of_texts((enum sl_metric)metric);
        if (rule->wanted[metric] && reads && !(entropy && rule->from_loss))
            return true;
    }
    return false;
}

bool sl_metric_rule_reads_texts(const struct sl_metric_rule *rule)
{
    for (int metric = 0; metric < SL_METRIC_COUNT; metric++)
        if (rule->wanted[metric] && sl_metric_is_of_texts((enum sl_metric)metric))
            return true;
    return false;
}

bool sl_metric_needs_texts(const struct sl_metric_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (sl_metric_is_of_texts(list->items[i]))
            return true;
    return false;
}

void sl_metric_rule_drop_texts(struct sl_metric_rule *rule)
{
    for (int metric = 0; metric < SL_METRIC_COUNT; metric++)
        rule->wanted[metric] = rule->wanted[metric] && !sl_metric_is_of_texts((enum sl_metric)metric);
}

void sl_metric_add(const struct sl_metric_rule *rule, struct sl_metric_sums *sums, const struct sl_batch *batch,
                   const struct sl_field *output, const struct sl_exec_result *result)
{
    sums->loss += result->loss_sum;
    sums->loss_weight += result->weight_sum;
    sums->rows += (double)(result->rows - batch->padded_rows);
    if (rule->from_loss) {
        sums->entropy += result->loss_sum;
        sums->entropy_weight += result->weight_sum;
    }
    if (!sl_metric_rule_reads_output(rule) || batch->target.kind == SL_FIELD_NONE)
        return;
    if (!output || output->kind != SL_FIELD_VALUES)
        return;
    assert(output->on_steps == batch->target.on_steps);
    if ((rule->wanted[SL_METRIC_F1_SPAN] || rule->wanted[SL_METRIC_F1_SPAN_STRICT]) &&
        batch->target.kind == SL_FIELD_IDS && output->on_steps)
        add_spans(rule, sums, batch, output);
    int64_t rows = output->on_steps ? batch->axis.rows : batch->sequences;
    int64_t features = output->features;
    for (int64_t r = 0; r < rows; r++) {
        double weight = batch->weight.kind == SL_FIELD_VALUES ? (double)batch->weight.values[r] : 1;
        if (weight == 0)
            continue;
        const float *row = output->values + r * features;
        if (batch->target.kind == SL_FIELD_IDS)
            add_classes(rule, sums, row, features, batch->target.ids[r], weight);
        else
            add_values(rule, sums, row, features, batch->target.values + r * features, weight);
    }
}

void sl_metric_sums_add(struct sl_metric_sums *sums, const struct sl_metric_sums *other)
{
    sums->loss += other->loss;
    sums->loss_weight += other->loss_weight;
    sums->scaled += other->scaled;
    for (int r = 0; r < SL_SPAN_RULES; r++) {
        sums->spans[r].found += other->spans[r].found;
        sums->spans[r].said += other->spans[r].said;
        sums->spans[r].meant += other->spans[r].meant;
    }
    sums->correct += other->correct;
    sums->correct_weight += other->correct_weight;
    sums->entropy += other->entropy;
    sums->entropy_weight += other->entropy_weight;
    sums->squared += other->squared;
    sums->absolute += other->absolute;
    sums->elements += other->elements;
    sums->squared_original += other->squared_original;
    sums->absolute_original += other->absolute_original;
    sl_text_sums_merge(&sums->text, &other->text);
    sums->rows += other->rows;
    for (int k = 0; k < SL_METRIC_CLASSES; k++) {
        sums->hits[k] += other->hits[k];
        sums->missed[k] += other->missed[k];
        sums->alarms[k] += other->alarms[k];
    }
}

static void put(struct sl_metric_values *values, const char *name, double value, const char *signature)
{
    assert(values->count < SL_METRIC_VALUES);
    values->items[values->count++] = (struct sl_metric_value){name, sl_text_unsign_nan(value), signature};
}

static const char *find_signature(enum sl_metric metric)
{
    return metric == SL_METRIC_BLEU   ? sl_bleu_get_signature(SL_BLEU_13A)
           : metric == SL_METRIC_CHRF ? sl_chrf_get_signature()
                                      : NULL;
}

static double mean(double sum, double weight)
{
    return weight > 0 ? sum / weight : NAN;
}

/* NaN where no class occurs. */
static double compute_f1(const struct sl_metric_sums *sums, bool macro)
{
    double sum = 0, classes = 0, hits = 0, wrong = 0;
    for (int k = 0; k < SL_METRIC_CLASSES; k++) {
        double hit = sums->hits[k], other = sums->missed[k] + sums->alarms[k];
        if (hit + other == 0)
            continue;
        sum += 2 * hit / (2 * hit + other);
        classes++;
        hits += hit;
        wrong += other;
    }
    return macro ? mean(sum, classes) : mean(2 * hits, 2 * hits + wrong);
}

static double compute(const struct sl_metric_sums *sums, enum sl_metric metric)
{
    double entropy = mean(sums->entropy, sums->entropy_weight);
    switch (metric) {
    case SL_METRIC_LOSS:
        return mean(sums->loss, sums->loss_weight);
    case SL_METRIC_ACCURACY:
        return mean(sums->correct, sums->correct_weight);
    case SL_METRIC_PERPLEXITY:
        return exp(entropy);
    case SL_METRIC_BITS_PER_TOKEN:
        return entropy / LN_2;
    case SL_METRIC_MSE:
        return mean(sums->squared, sums->elements);
    case SL_METRIC_MAE:
        return mean(sums->absolute, sums->elements);
    case SL_METRIC_F1_SPAN:
        return sl_span_compute_f1(&sums->spans[SL_SPAN_CONLLEVAL]);
    case SL_METRIC_F1_SPAN_STRICT:
        return sl_span_compute_f1(&sums->spans[SL_SPAN_STRICT]);
    case SL_METRIC_MASE:
        return mean(sums->scaled, sums->elements);
    case SL_METRIC_RMSE:
        return sqrt(mean(sums->squared, sums->elements));
    case SL_METRIC_F1_MACRO:
        return compute_f1(sums, true);
    case SL_METRIC_F1_MICRO:
        return compute_f1(sums, false);
    case SL_METRIC_EXACT_MATCH:
        return sl_text_sums_get_exact_match(&sums->text);
    case SL_METRIC_BLEU:
        return sums->text.segments > 0 ? sl_bleu_compute(&sums->text.bleu) : NAN;
    case SL_METRIC_CHRF:
        return sums->text.segments > 0 ? sl_chrf_compute(&sums->text.chrf) : NAN;
    case SL_METRIC_COUNT:
        break;
    }
    return NAN;
}

void sl_metric_finish(const struct sl_metric_rule *rule, const struct sl_metric_sums *sums,
                      struct sl_metric_values *out_values)
{
    memset(out_values, 0, sizeof *out_values);
    for (int metric = 0; metric < SL_METRIC_COUNT; metric++)
        if (rule->wanted[metric])
            put(out_values, sl_metric_get_name((enum sl_metric)metric), compute(sums, (enum sl_metric)metric),
                find_signature((enum sl_metric)metric));
    if (!rule->scaling)
        return;
    double squared = mean(sums->squared_original, sums->elements);
    if (rule->wanted[SL_METRIC_MSE])
        put(out_values, "mse_original", squared, NULL);
    if (rule->wanted[SL_METRIC_MAE])
        put(out_values, "mae_original", mean(sums->absolute_original, sums->elements), NULL);
    if (rule->wanted[SL_METRIC_RMSE])
        put(out_values, "rmse_original", sqrt(squared), NULL);
}

const struct sl_metric_value *sl_metric_values_find_unsound(const struct sl_metric_values *values)
{
    const char *loss = sl_metric_get_name(SL_METRIC_LOSS);
    for (int32_t i = 0; i < values->count; i++) {
        const struct sl_metric_value *value = &values->items[i];
        if (isinf(value->value) || (isnan(value->value) && strcmp(value->name, loss) == 0))
            return value;
    }
    return NULL;
}

double sl_metric_values_get(const struct sl_metric_values *values, enum sl_metric metric)
{
    const char *name = sl_metric_get_name(metric);
    for (int32_t i = 0; i < values->count; i++)
        if (strcmp(values->items[i].name, name) == 0)
            return values->items[i].value;
    return NAN;
}
