/* SPDX-License-Identifier: Apache-2.0 */
/* Learns the state from the training split: inputs, the form of the targets, names; scaling and vocabularies have files
 * of their own. */
#include "data/dataset/fit.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/text.h"
#include "data/dataset/fit_scaling.h"
#include "data/dataset/fit_vocabulary.h"
#include "data/dataset/state_private.h"

static seqlstm_status copy_names(char **names, int64_t count, char ***out, struct seqlstm_error *err)
{
    if (!names)
        return SEQLSTM_OK;
    char **copy = calloc((size_t)count + 1, sizeof *copy);
    bool ok = copy != NULL;
    for (int64_t i = 0; ok && i < count; i++)
        ok = (copy[i] = strdup(names[i])) != NULL;
    *out = copy;
    return ok ? SEQLSTM_OK : SL_DATA_NO_MEMORY(err);
}

/* Which target goes with which step or record. */
static seqlstm_status find_form(const struct sl_model *model, const struct sl_raw *raw, enum sl_target_form *out,
                                struct seqlstm_error *err)
{
    const char *name = raw->name ? raw->name : "data";
    bool step = raw->has_steps && sl_model_wants_step_targets(model);
    bool stream = model->data.batching.unit == SL_UNIT_STREAM;
    if (model->data.pairs || model->train.task == SL_TASK_LANGUAGE_MODEL) {
        if (raw->input_kind != SL_FIELD_IDS)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "%s: a language model needs tokens, but the data holds values",
                         name);
        *out = SL_TARGET_NEXT;
        return SEQLSTM_OK;
    }
    if (raw->target_kind == SL_FIELD_NONE)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "%s: nothing to learn: the task %s needs a label, and `type: %s` has none", name,
                     sl_task_get_name(model->train.task), sl_source_type_get_name(raw->source->type));
    if (step && !raw->target_per_row)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "%s: the data has one target per sequence, but the model has one output per step "
                     "(`return_sequences: false` in the last recurrent layer)",
                     name);
    if (stream && (!step || raw->ahead > 0))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "%s: `unit: stream` needs a target for every step", name);
    if (model->data.batching.on_overflow == SL_OVERFLOW_SPLIT && (!step || raw->ahead > 0))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "%s: `on_overflow: split` needs a target for every step: that of a whole sequence is of none of "
                     "its parts (`truncate` and `drop` leave one sequence one)",
                     name);
    if (raw->ahead > 0)
        *out = SL_TARGET_AHEAD;
    else if (raw->target_per_row)
        *out = step ? SL_TARGET_STEP : SL_TARGET_LAST;
    else
        *out = SL_TARGET_RECORD;
    return SEQLSTM_OK;
}

static seqlstm_status check_loss(const struct sl_model *model, const struct sl_data_state *state, const char *name,
                                 struct seqlstm_error *err)
{
    enum sl_loss_kind loss = model->train.loss.kind;
    const struct sl_field_facts *target = &state->facts.target;
    if (loss == SL_LOSS_CROSS_ENTROPY && target->kind == SL_FIELD_VALUES)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "%s: the loss cross_entropy needs classes, but the targets are values "
                     "(`label: {type: class}`)",
                     name);
    if (loss != SL_LOSS_CROSS_ENTROPY && target->kind == SL_FIELD_IDS)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "%s: the loss %s needs values, but the targets are classes "
                     "(`label: {type: value}`, or the loss cross_entropy)",
                     name, sl_loss_kind_get_name(loss));
    if (target->classes == 0 && target->kind == SL_FIELD_IDS)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: the training split has no label", name);
    return SEQLSTM_OK;
}

/* The target that does not count: a token, a number, or a label, which is then no class. */
static seqlstm_status fit_ignore(struct sl_data_state *state, const struct sl_raw *raw, const char *ignore,
                                 const char *name, struct seqlstm_error *err)
{
    const struct sl_vocabulary *known = state->classes_are_tokens ? state->tokens : state->classes;
    int64_t id = -1;
    if (!(state->ignore_label = strdup(ignore)))
        return SL_DATA_NO_MEMORY(err);
    if (known)
        id = sl_vocabulary_find(known, ignore, strlen(ignore));
    else if (!sl_text_parse_int64(ignore, strlen(ignore), &id) || id >= state->facts.target.classes)
        id = -1;
    state->ignore_id = (int32_t)id;
    if (id < 0 && sl_intern_find(&raw->labels, ignore, strlen(ignore)) < 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "%s: `ignore: %.60s`: no target of the training split is `%.60s`",
                     name, ignore, ignore);
    return SEQLSTM_OK;
}

/* Different ids in the rows of the series, two at most: those of a raw's targets, or the tokens as the next ones. */
static int count_different(const struct sl_raw *raw, const int32_t *ids, bool per_row, int32_t ignored,
                           int32_t *out_one)
{
    int32_t one = -1;
    for (int64_t s = 0; s < raw->series; s++) {
        int64_t begin = per_row ? raw->start[s] : raw->first_target + s;
        int64_t end = per_row ? begin + raw->length[s] : begin + 1;
        for (int64_t i = begin; i < end; i++) {
            if (ids[i] < 0 || ids[i] == ignored)
                continue;
            if (one >= 0 && ids[i] != one)
                return 2;
            one = ids[i];
        }
    }
    *out_one = one;
    return one >= 0;
}

/* With one class every answer is right, and the loss is 0 without learning anything. */
static seqlstm_status check_classes(const struct sl_model *model, const struct sl_raw *raw, const char *name,
                                    struct seqlstm_error *err)
{
    char number[32];
    int32_t one = -1;
    const char *ignore = model->train.loss.ignore;
    int32_t ignored = ignore && raw->known_classes == 0 ? sl_intern_find(&raw->labels, ignore, strlen(ignore)) : -1;
    if (count_different(raw, raw->target_ids, raw->target_per_row, ignored, &one) != 1)
        return SEQLSTM_OK;
    snprintf(number, sizeof number, "%d", (int)one);
    SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                 "%s: every label of the training split is \"%.80s\": there must be two classes at least, or every "
                 "answer is right (is `label` the right column?)",
                 name, raw->known_classes == 0 ? sl_intern_get(&raw->labels, one, NULL) : number);
}

/* The same of a language model. Texts in the token cache are too large to be of one token. */
static seqlstm_status check_tokens(const struct sl_raw *raw, const char *name, struct seqlstm_error *err)
{
    int32_t one = -1;
    const char *bos = sl_special_get_token(SL_SPECIAL_BOS); /* is never a target */
    int32_t ignored = raw->known_ids > 0 ? -1 : sl_intern_find(&raw->tokens, bos, strlen(bos));
    if (raw->token_file || count_different(raw, raw->ids, true, ignored, &one) != 1)
        return SEQLSTM_OK;
    if (raw->known_ids > 0)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s: every token of the training split is %d: there is nothing to predict", name, (int)one);
    SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                 "%s: every token of the training split is \"%.80s\": there is nothing to predict", name,
                 sl_intern_get(&raw->tokens, one, NULL));
}

static seqlstm_status fit_target(struct sl_data_state *state, const struct sl_model *model, const struct sl_raw *raw,
                                 struct seqlstm_error *err)
{
    struct sl_field_facts *target = &state->facts.target;
    const char *name = raw->name ? raw->name : "data";
    SEQLSTM_TRY(find_form(model, raw, &state->form, err));
    state->ahead = raw->ahead;
    target->on_steps = state->form == SL_TARGET_NEXT || state->form == SL_TARGET_STEP;
    if (state->form == SL_TARGET_NEXT) {
        SEQLSTM_TRY(check_tokens(raw, name, err));
        *target = state->facts.input;
        state->classes_are_tokens = state->tokens != NULL;
    } else if (raw->target_kind == SL_FIELD_IDS) {
        if (raw->known_classes > 0)
            SEQLSTM_TRY(sl_fit_numbers(raw->known_classes, &state->classes, err));
        else
            SEQLSTM_TRY(sl_fit_classes(raw, model->train.loss.ignore, &state->classes, err));
        target->kind = SL_FIELD_IDS;
        target->features = 1;
        target->classes = sl_vocabulary_get_size(state->classes);
    } else {
        target->kind = SL_FIELD_VALUES;
        target->features = raw->target_features * (raw->ahead > 0 ? raw->ahead : 1);
    }
    state->target_columns = raw->target_features > 0 ? raw->target_features : 1;
    if (target->kind == SL_FIELD_IDS && state->form != SL_TARGET_NEXT &&
        model->train.loss.kind == SL_LOSS_BINARY_CROSS_ENTROPY) {
        if (target->classes != 2)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                         "%s: the loss binary_cross_entropy needs two classes, but the label has %lld", name,
                         (long long)target->classes);
        state->binary_values = true;
        target->kind = SL_FIELD_VALUES;
    }
    if (model->train.loss.ignore && target->kind == SL_FIELD_IDS)
        SEQLSTM_TRY(fit_ignore(state, raw, model->train.loss.ignore, name, err));
    SEQLSTM_TRY(check_loss(model, state, name, err));
    return raw->target_ids && state->form != SL_TARGET_NEXT ? check_classes(model, raw, name, err) : SEQLSTM_OK;
}

static seqlstm_status fit_input(struct sl_data_state *state, const struct sl_model *model, const struct sl_raw *raw,
                                struct seqlstm_error *err)
{
    struct sl_field_facts *input = &state->facts.input;
    const struct sl_tokenizer *tokenizer = &model->data.tokenizer;
    input->kind = raw->input_kind;
    input->on_steps = raw->has_steps;
    input->features = raw->input_features;
    if (raw->input_kind == SL_FIELD_IDS && raw->known_ids > 0) {
        input->classes = raw->known_ids;
    } else if (raw->input_kind == SL_FIELD_IDS) {
        SEQLSTM_TRY(sl_fit_tokens(tokenizer, raw, tokenizer->shared ? raw->pair : NULL, &state->tokens, err));
        input->classes = sl_vocabulary_get_size(state->tokens);
    }
    return SEQLSTM_OK;
}

/* What the encoder reads. */
static seqlstm_status fit_source(struct sl_data_state *state, const struct sl_model *model, const struct sl_raw *raw,
                                 struct seqlstm_error *err)
{
    const struct sl_tokenizer *tokenizer = &model->data.source_tokenizer;
    struct sl_field_facts *source = &state->facts.source;
    if (!raw->pair)
        return SEQLSTM_OK;
    state->source_tokenizer = tokenizer->type;
    state->source_lowercase = tokenizer->lowercase;
    if (!model->data.tokenizer.shared)
        SEQLSTM_TRY(sl_fit_tokens(tokenizer, raw->pair, NULL, &state->source_tokens, err));
    *source = (struct sl_field_facts){.kind = SL_FIELD_IDS, .on_steps = true, .features = 1};
    source->classes = sl_vocabulary_get_size(sl_data_state_find_source_vocabulary(state));
    return SEQLSTM_OK;
}

bool sl_data_state_needs_weight(const struct sl_data_state *state, const struct sl_model *model)
{
    const struct sl_field_facts *target = &state->facts.target;
    const bool segments = model->data.batching.unit == SL_UNIT_SEQUENCE && model->data.batching.bptt > 0;
    const bool padded = model->data.batching.padding != SL_PADDING_NONE;
    const bool ignored = sl_model_ignores_missing_targets(model);
    return target->kind == SL_FIELD_VALUES && (ignored || (target->on_steps ? padded : segments));
}

seqlstm_status sl_data_state_fit(const struct sl_model *model, const struct sl_raw *raw,
                                 const struct sl_raw *const *others, int other_count, struct sl_data_state **out_state,
                                 struct seqlstm_error *err)
{
    struct sl_data_state *state = calloc(1, sizeof *state);
    if (!state)
        return SL_DATA_NO_MEMORY(err);
    state->ignore_id = -1;
    state->source = raw->source->type;
    state->tokenizer = model->data.tokenizer.type;
    state->lowercase = model->data.tokenizer.lowercase;
    state->scale = raw->source->scale.type;
    state->input_columns = raw->input_features;
    state->target_columns = raw->target_features;
    state->facts.has_steps = raw->has_steps;
    seqlstm_status status = fit_input(state, model, raw, err);
    if (status == SEQLSTM_OK)
        status = fit_source(state, model, raw, err);
    if (status == SEQLSTM_OK)
        status = fit_target(state, model, raw, err);
    if (status == SEQLSTM_OK)
        status = sl_fit_naive(state, raw, err);
    if (status == SEQLSTM_OK)
        status = sl_fit_scaling(state, raw, others, other_count, err);
    if (status == SEQLSTM_OK)
        status = copy_names(raw->input_names, raw->input_features, &state->input_names, err);
    if (status == SEQLSTM_OK)
        status = copy_names(raw->target_names, raw->target_features, &state->target_names, err);
    if (status != SEQLSTM_OK) {
        sl_data_state_destroy(state);
        return status;
    }
    state->facts.has_weight = sl_data_state_needs_weight(state, model);
    sl_data_state_set_views(state);
    *out_state = state;
    return SEQLSTM_OK;
}
