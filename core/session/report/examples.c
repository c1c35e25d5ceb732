/* SPDX-License-Identifier: Apache-2.0 */
/* See examples.h. */
#include "session/report/examples.h"

#include <math.h>
#include <string.h>

#include "base/value/printable.h"

void sl_examples_init(struct sl_examples *examples, const struct sl_model *model, const struct sl_data_state *state,
                      enum sl_split split)
{
    const struct sl_field_facts *target = &sl_data_state_get_facts(state)->target;
    const struct sl_vocabulary *names = sl_data_state_find_classes(state);
    const int64_t classes = names ? sl_vocabulary_get_size(names) : 0;
    const bool tokens = model->encoder_count > 0 || model->train.task == SL_TASK_LANGUAGE_MODEL;
    const bool binary = model->train.loss.kind == SL_LOSS_BINARY_CROSS_ENTROPY;
    memset(examples, 0, sizeof *examples);
    examples->split = split;
    examples->stride = 1;
    examples->names = names;
    examples->state = state;
    const bool is_part = model->data.splits[split].origin == SL_SOURCE_FROM_TRAIN;
    examples->source = &model->data.splits[is_part ? SL_SPLIT_TRAIN : split];
    examples->has_words = examples->source->type == SL_SOURCE_CONLL &&
                          sl_conll_columns_init(&examples->columns, examples->source, NULL) == SEQLSTM_OK;
    if (tokens)
        return;
    if (names && classes <= SL_EXAMPLE_CLASSES && (target->kind == SL_FIELD_IDS || (binary && target->features == 1))) {
        examples->kind = SL_EXAMPLES_CLASSES;
        examples->classes = (int32_t)classes;
    } else if (target->kind == SL_FIELD_VALUES && !binary)
        examples->kind = SL_EXAMPLES_VALUES;
}

/* Where an example of this error belongs among the worst; -1: nowhere. */
static int find_place(const struct sl_examples *examples, double error)
{
    int place = examples->worst_count;
    while (place > 0 && examples->worst[place - 1].error < error)
        place--;
    return place < SL_EXAMPLE_WORST ? place : -1;
}

/* The word of the step with a few on both sides. */
static void copy_words(const struct sl_examples *examples, const char *text, size_t bytes, struct sl_example *example)
{
    enum { NEIGHBOURS = 6 };
    const char *end = text + bytes;
    struct sl_buf words = {0};
    for (int64_t step = 0; text < end && step <= example->step + NEIGHBOURS;) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        line_end = line_end ? line_end : end;
        const size_t line_bytes = (size_t)(line_end - text);
        const char *word;
        size_t word_bytes;
        const bool has_word =
            !sl_conll_is_comment(examples->source, text, line_bytes) &&
            sl_conll_find_part(&examples->columns, text, line_bytes, examples->columns.text, &word, &word_bytes);
        if (has_word && step >= example->step - NEIGHBOURS) {
            sl_buf_append_text(&words, words.length_bytes > 0 ? " " : "");
            sl_buf_append_text(&words, step == example->step ? "[" : "");
            sl_buf_append(&words, word, word_bytes);
            sl_buf_append_text(&words, step == example->step ? "]" : "");
        }
        step += has_word;
        text = line_end + 1;
    }
    sl_printable_copy(example->text, sizeof example->text, sl_buf_text(&words), sl_buf_text_bytes(&words), "");
    sl_buf_deinit(&words);
}

static void keep_worst(struct sl_examples *examples, const struct sl_dataset *dataset, struct sl_example *example)
{
    const int place = find_place(examples, example->error);
    size_t bytes = 0;
    if (place < 0)
        return;
    const char *text = sl_dataset_find_text(dataset, example->record, &bytes);
    if (text && examples->has_words)
        copy_words(examples, text, bytes, example);
    else
        sl_printable_copy(example->text, sizeof example->text, text ? text : "", bytes, "");
    examples->worst_count += examples->worst_count < SL_EXAMPLE_WORST;
    memmove(&examples->worst[place + 1], &examples->worst[place],
            (size_t)(examples->worst_count - 1 - place) * sizeof *examples->worst);
    examples->worst[place] = *example;
}

/* ---- classes ----------------------------------------------------------------------------------------------- */

/* The probabilities of the classes from a row of the output. */
static void find_probabilities(const struct sl_metric_rule *rule, const struct sl_field *output, const float *row,
                               double p[SL_EXAMPLE_CLASSES])
{
    const int64_t count = output->features;
    double most = row[0], sum = 0;
    if (count == 1) { /* of class 1 of two */
        p[1] = rule->is_logits ? 1 / (1 + exp(-(double)row[0])) : row[0];
        p[0] = 1 - p[1];
        return;
    }
    for (int64_t c = 1; c < count; c++)
        most = fmax(most, row[c]);
    for (int64_t c = 0; c < count; c++)
        sum += p[c] = rule->is_logits ? exp(row[c] - most) : row[c];
    for (int64_t c = 0; c < count && rule->is_logits; c++)
        p[c] /= sum;
}

static int32_t find_target(const struct sl_batch *batch, int64_t row)
{
    return batch->target.kind == SL_FIELD_IDS ? batch->target.ids[row] : batch->target.values[row] > 0.5f;
}

/* Values have a weight of 0 where there is none, and classes an id below 0. */
static bool has_label(const struct sl_batch *batch, int64_t row)
{
    return batch->target.kind == SL_FIELD_IDS || batch->weight.kind != SL_FIELD_VALUES ||
           batch->weight.values[row] != 0;
}

static void add_class(struct sl_examples *examples, const struct sl_metric_rule *rule, const struct sl_dataset *dataset,
                      const struct sl_batch *batch, const struct sl_field *output, int64_t row,
                      struct sl_example *example)
{
    double p[SL_EXAMPLE_CLASSES] = {0};
    const bool fits = output->features == examples->classes || (output->features == 1 && examples->classes == 2);
    const int32_t target = find_target(batch, row);
    const bool unknown = target <= SL_CLASS_UNKNOWN;
    if (!has_label(batch, row) || !fits || (target < 0 && !unknown) || target >= examples->classes)
        return;
    find_probabilities(rule, output, output->values + row * output->features, p);
    int32_t answer = 0;
    for (int32_t c = 1; c < examples->classes; c++)
        if (p[c] > p[answer])
            answer = c;
    examples->rows++;
    examples->counts[unknown ? examples->classes : target][answer]++;
    example->target = unknown ? examples->classes : target;
    example->answer = answer;
    example->predicted = (float)p[answer];
    example->error = unknown ? p[answer] : -log(p[target] < 1e-30 ? 1e-30 : p[target]); /* NaN stays */
    if (answer != target && !isnan(example->error))
        keep_worst(examples, dataset, example);
}

/* ---- values ------------------------------------------------------------------------------------------------ */

/* Every second point goes when there is no room, so that those that stay are spread over the split. */
static void add_point(struct sl_examples *examples, float actual, float predicted)
{
    if (examples->values++ % examples->stride != 0)
        return;
    if (examples->point_count == SL_EXAMPLE_POINTS) {
        for (int k = 0; k < SL_EXAMPLE_POINTS / 2; k++)
            memcpy(examples->points[k], examples->points[2 * k], sizeof examples->points[k]);
        examples->point_count = SL_EXAMPLE_POINTS / 2;
        examples->stride *= 2;
        if ((examples->values - 1) % examples->stride != 0)
            return;
    }
    examples->points[examples->point_count][0] = actual;
    examples->points[examples->point_count++][1] = predicted;
}

static void add_values(struct sl_examples *examples, const struct sl_dataset *dataset, const struct sl_batch *batch,
                       const struct sl_field *output, int64_t row, struct sl_example *example)
{
    const struct sl_scaling *scaling = sl_data_state_find_target_scaling(examples->state);
    const int64_t count = output->features;
    if (!has_label(batch, row))
        return;
    examples->rows++;
    for (int64_t f = 0; f < count; f++) {
        const double factor = scaling ? scaling->factor[f % scaling->columns] : 1;
        const double offset = scaling ? scaling->offset[f % scaling->columns] : 0;
        example->actual = (float)(batch->target.values[row * count + f] * factor + offset);
        example->predicted = (float)(output->values[row * count + f] * factor + offset);
        example->error = fabs((double)example->predicted - example->actual);
        if (isnan(example->error))
            continue;
        add_point(examples, example->actual, example->predicted);
        keep_worst(examples, dataset, example);
    }
}

static void add_row(struct sl_examples *examples, const struct sl_metric_rule *rule, const struct sl_dataset *dataset,
                    const struct sl_batch *batch, const struct sl_field *output, int64_t row,
                    struct sl_example *example)
{
    if (examples->kind == SL_EXAMPLES_CLASSES)
        add_class(examples, rule, dataset, batch, output, row, example);
    else
        add_values(examples, dataset, batch, output, row, example);
}

void sl_examples_add(void *context, const struct sl_metric_rule *rule, const struct sl_dataset *dataset,
                     const struct sl_batch *batch, const struct sl_field *output)
{
    struct sl_examples *examples = context;
    for (int64_t k = 0; k < batch->sequences && examples->kind != SL_EXAMPLES_NONE; k++) {
        const bool on_axis = k < batch->axis.sequences;
        const int64_t steps = !output->on_steps ? 1 : on_axis ? batch->axis.lengths[k] : 0;
        for (int64_t t = 0; t < steps; t++) {
            struct sl_example example = {.record = batch->sample[k], .step = batch->sample_step[k] + t};
            add_row(examples, rule, dataset, batch, output, output->on_steps ? sl_batch_row(batch, k, t) : k, &example);
        }
    }
}
