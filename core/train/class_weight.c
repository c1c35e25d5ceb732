/* SPDX-License-Identifier: Apache-2.0 */
/* Class weights by label, or from the frequencies of the classes. */
#include "train/class_weight.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/text.h"

bool sl_class_weights_are_on(const struct sl_model *model)
{
    return model->train.balanced_classes || model->train.class_weight_count > 0;
}

/* `weights` may be NULL: only checks. */
static seqlstm_status set_given(const struct sl_train_config *config, const struct sl_vocabulary *classes,
                                float *weights, struct seqlstm_error *err)
{
    int64_t zeros = 0; /* classes that are not given have the weight 1 */
    for (size_t i = 0; i < config->class_weight_count; i++) {
        const char *label = config->class_weights[i].label;
        int32_t id = sl_vocabulary_find(classes, label, strlen(label));
        if (id < 0) {
            int64_t size = sl_vocabulary_get_size(classes);
            const char *nearest = NULL;
            const char **names = malloc((size_t)size * sizeof *names);
            if (names) {
                for (int64_t k = 0; k < size; k++)
                    names[k] = sl_vocabulary_get_text(classes, (int32_t)k, NULL);
                nearest = sl_text_closest(label, names, (size_t)size);
            }
            free(names);
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "class_weight: no target in the data is `%s`%s%s%s", label,
                         nearest ? "; did you mean `" : "", nearest ? nearest : "", nearest ? "`?" : "");
        }
        if (weights)
            weights[id] = (float)config->class_weights[i].weight;
        zeros += !((float)config->class_weights[i].weight > 0);
    }
    if (config->balanced_classes || zeros < sl_vocabulary_get_size(classes))
        return SEQLSTM_OK;
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "class_weight gives every class the weight 0: nothing would be learned");
}

/* -1 where a label is missing: the id of a class, or of values the weight 0. */
static int32_t find_class(const struct sl_batch *batch, int64_t row)
{
    if (batch->target.kind == SL_FIELD_IDS)
        return batch->target.ids[row];
    if (batch->weight.kind == SL_FIELD_VALUES && batch->weight.values[row] == 0)
        return -1;
    return batch->target.values[row] > 0.5f;
}

static seqlstm_status count_targets(struct sl_batcher *batcher, int64_t *counts, int64_t classes,
                                    struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_batcher_seek(batcher, 0, 0, err));
    for (;;) {
        struct sl_batch *batch = NULL;
        SEQLSTM_TRY(sl_batcher_next(batcher, &batch, err));
        if (!batch)
            return SEQLSTM_OK;
        int64_t rows = batch->target.on_steps ? batch->axis.rows : batch->sequences;
        for (int64_t r = 0; r < rows; r++) {
            const int32_t id = find_class(batch, r);
            if (id >= 0 && id < classes)
                counts[id]++;
        }
        sl_batch_destroy(batch);
    }
}

static seqlstm_status set_balanced(struct sl_batcher *counting, float *weights, int64_t classes,
                                   struct seqlstm_error *err)
{
    int64_t *counts = calloc((size_t)classes, sizeof *counts);
    if (!counts)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to count %lld classes", (long long)classes);
    seqlstm_status status = count_targets(counting, counts, classes, err);
    int64_t total = 0;
    for (int64_t i = 0; i < classes; i++)
        total += counts[i];
    if (status == SEQLSTM_OK)
        for (int64_t i = 0; i < classes; i++)
            weights[i] = counts[i] ? (float)((double)total / ((double)classes * (double)counts[i])) : 1;
    free(counts);
    return status;
}

seqlstm_status sl_class_weights_check(const struct sl_model *model, const struct sl_data_state *state,
                                      struct seqlstm_error *err)
{
    if (!sl_class_weights_are_on(model))
        return SEQLSTM_OK;
    const struct sl_vocabulary *names = sl_data_state_find_classes(state);
    if (sl_data_state_get_facts(state)->target.classes < 1 || (!names && model->train.class_weight_count > 0))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "class_weight needs a target that is a class");
    return set_given(&model->train, names, NULL, err);
}

seqlstm_status sl_class_weights_create(const struct sl_model *model, const struct sl_data_state *state,
                                       struct sl_batcher *counting, float **out_weights, int64_t *out_count,
                                       struct seqlstm_error *err)
{
    if (!sl_class_weights_are_on(model)) {
        *out_weights = NULL;
        *out_count = 0;
        return SEQLSTM_OK;
    }
    const struct sl_field_facts *target = &sl_data_state_get_facts(state)->target;
    const struct sl_vocabulary *names = sl_data_state_find_classes(state);
    SEQLSTM_TRY(sl_class_weights_check(model, state, err));
    float *weights = malloc((size_t)target->classes * sizeof *weights);
    if (!weights)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %lld class weights", (long long)target->classes);
    for (int64_t i = 0; i < target->classes; i++)
        weights[i] = 1;
    seqlstm_status status = model->train.balanced_classes ? set_balanced(counting, weights, target->classes, err)
                                                          : set_given(&model->train, names, weights, err);
    if (status != SEQLSTM_OK) {
        free(weights);
        return status;
    }
    *out_weights = weights;
    *out_count = target->classes;
    return SEQLSTM_OK;
}
