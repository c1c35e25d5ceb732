/* SPDX-License-Identifier: Apache-2.0 */
/* Holds a state out of a file to what sl_data_state_fit makes for the model: the file may be damaged, or come from
 * another person. What later readers index with is checked here, once. */
#include "data/dataset/state_private.h"

#include <string.h>

#include "data/dataset/fit.h"
#include "data/read/raw_builder.h"

/* A key of the file, and the key of the model file that it does not fit; `model` NULL: it does not fit the file. */
struct misfit {
    const char *key, *model;
};

static const struct misfit fine = {NULL, NULL};

static bool is_tokens(const struct sl_model *model)
{
    return model->data.pairs || model->train.task == SL_TASK_LANGUAGE_MODEL;
}

/* Specials stand where the configuration wants them, no text is empty, no count negative. */
static bool is_vocabulary_of(const struct sl_vocabulary *v, const struct sl_tokenizer *config)
{
    for (int s = 0; s < SL_SPECIAL_COUNT; s++) {
        const int32_t id = sl_vocabulary_get_special(v, (enum sl_special)s);
        const char *token = sl_special_get_token((enum sl_special)s);
        if ((id >= 0) != sl_tokenizer_has(config, (enum sl_special)s) ||
            (id >= 0 && strcmp(sl_vocabulary_get_text(v, id, NULL), token) != 0))
            return false;
    }
    for (int32_t id = 0; id < sl_vocabulary_get_size(v); id++)
        if (sl_vocabulary_get_text(v, id, NULL)[0] == '\0' || sl_vocabulary_get_count(v, id) < 0)
            return false;
    return sl_vocabulary_get_size(v) > 0;
}

static struct misfit check_input(const struct sl_data_state *s, const struct sl_model *model)
{
    const struct sl_field_facts *f = &s->facts.input;
    const struct sl_tokenizer *tokenizer = &model->data.tokenizer;
    const bool ids = f->kind == SL_FIELD_IDS, words = ids && tokenizer->type != SL_TOKENIZER_NONE;
    if (s->source != model->data.splits[SL_SPLIT_TRAIN].type)
        return (struct misfit){"source", "data.train.type"};
    if (s->tokenizer != tokenizer->type)
        return (struct misfit){"tokenizer", "data.tokenizer.type"};
    if (s->lowercase != tokenizer->lowercase)
        return (struct misfit){"lowercase", "data.tokenizer.lowercase"};
    if (!ids && f->kind != SL_FIELD_VALUES)
        return (struct misfit){"kind", NULL};
    if (tokenizer->type != SL_TOKENIZER_NONE && !ids)
        return (struct misfit){"kind", "data.tokenizer"};
    if (f->on_steps != s->facts.has_steps)
        return (struct misfit){"on_steps", NULL};
    if (f->features < 1 || f->features != s->input_columns || (ids && f->features != 1))
        return (struct misfit){"input_columns", NULL};
    if (ids ? f->classes < 1 : f->classes != 0)
        return (struct misfit){"classes", NULL};
    if ((s->tokens != NULL) != words ||
        (words && (sl_vocabulary_get_size(s->tokens) != f->classes || !is_vocabulary_of(s->tokens, tokenizer))))
        return (struct misfit){"tokens", "data.tokenizer"};
    return fine;
}

/* What the encoder reads. */
static struct misfit check_source(const struct sl_data_state *s, const struct sl_model *model)
{
    const struct sl_field_facts *f = &s->facts.source;
    const struct sl_tokenizer *tokenizer = &model->data.source_tokenizer;
    if ((f->kind == SL_FIELD_IDS) != model->data.pairs || f->kind == SL_FIELD_VALUES)
        return (struct misfit){"source", "model"};
    if (!model->data.pairs)
        return fine;
    if (s->source_tokenizer != tokenizer->type || s->source_lowercase != tokenizer->lowercase)
        return (struct misfit){"source_tokenizer", "data.source_tokenizer"};
    if ((s->source_tokens == NULL) != model->data.tokenizer.shared ||
        (s->source_tokens && !is_vocabulary_of(s->source_tokens, tokenizer)))
        return (struct misfit){"source_tokens", "data.source_tokenizer"};
    if (!f->on_steps || f->features != 1 ||
        f->classes != sl_vocabulary_get_size(s->source_tokens ? s->source_tokens : s->tokens))
        return (struct misfit){"source", NULL};
    return fine;
}

/* The target of a language model is the next token of the input. */
static struct misfit check_next(const struct sl_data_state *s)
{
    const struct sl_field_facts *f = &s->facts.target, *input = &s->facts.input;
    if (f->kind != SL_FIELD_IDS || f->kind != input->kind || !f->on_steps || !input->on_steps ||
        f->features != input->features || f->classes != input->classes)
        return (struct misfit){"target", NULL};
    if (s->classes || s->binary_values || s->classes_are_tokens != (s->tokens != NULL))
        return (struct misfit){"classes_are_tokens", NULL};
    return fine;
}

static struct misfit check_form(const struct sl_data_state *s, const struct sl_model *model)
{
    const bool steps = s->facts.has_steps && sl_model_wants_step_targets(model);
    if (s->form == SL_TARGET_NONE || (s->form == SL_TARGET_NEXT) != is_tokens(model))
        return (struct misfit){"form", "train.task"};
    if ((s->form == SL_TARGET_AHEAD) != (s->ahead > 0) && s->form != SL_TARGET_NEXT)
        return (struct misfit){"ahead", NULL};
    if (s->form == SL_TARGET_NEXT || s->form == SL_TARGET_AHEAD)
        return fine;
    return (s->form == SL_TARGET_STEP) == steps ? fine : (struct misfit){"form", "model"};
}

static bool is_class_list(const struct sl_vocabulary *classes, int64_t count)
{
    for (int s = 0; classes && s < SL_SPECIAL_COUNT; s++)
        if (sl_vocabulary_get_special(classes, (enum sl_special)s) >= 0)
            return false;
    return classes && sl_vocabulary_get_size(classes) == count;
}

static struct misfit check_target(const struct sl_data_state *s, const struct sl_model *model)
{
    const struct sl_field_facts *f = &s->facts.target;
    const enum sl_loss_kind loss = model->train.loss.kind;
    const int64_t ahead = s->ahead > 0 ? s->ahead : 1;
    if (f->kind == SL_FIELD_NONE || (f->kind == SL_FIELD_IDS) != (loss == SL_LOSS_CROSS_ENTROPY))
        return (struct misfit){"target", "train.loss"};
    if (s->target_columns < 1)
        return (struct misfit){"target_columns", NULL};
    if (s->form == SL_TARGET_NEXT)
        return check_next(s);
    if (s->classes_are_tokens)
        return (struct misfit){"classes_are_tokens", "train.task"};
    if (f->on_steps != (s->form == SL_TARGET_STEP))
        return (struct misfit){"on_steps", NULL};
    if (s->binary_values && (f->kind != SL_FIELD_VALUES || loss != SL_LOSS_BINARY_CROSS_ENTROPY || f->classes != 2))
        return (struct misfit){"binary_values", "train.loss"};
    if (f->kind == SL_FIELD_IDS || s->binary_values)
        return f->features == 1 && is_class_list(s->classes, f->classes) ? fine : (struct misfit){"classes", NULL};
    if (s->classes || f->classes != 0)
        return (struct misfit){"classes", NULL};
    return f->features == s->target_columns * ahead ? fine : (struct misfit){"target_columns", NULL};
}

static struct misfit check_ignore(const struct sl_data_state *s, const struct sl_model *model)
{
    const struct sl_vocabulary *known = s->classes_are_tokens ? s->tokens : s->classes;
    const char *label = s->facts.target.kind == SL_FIELD_IDS ? model->train.loss.ignore : NULL;
    if (!label != !s->ignore_label || (label && strcmp(label, s->ignore_label) != 0))
        return (struct misfit){"ignore", "train.loss.ignore"};
    if (s->ignore_id >= 0 && (!label || s->ignore_id >= s->facts.target.classes))
        return (struct misfit){"ignore_id", NULL};
    if (label && known && s->ignore_id != sl_vocabulary_find(known, label, strlen(label)))
        return (struct misfit){"ignore_id", NULL};
    return fine;
}

static bool are_positive(const double *values, int64_t count)
{
    for (int64_t i = 0; values && i < count; i++)
        if (!(values[i] > 0))
            return false;
    return true;
}

static struct misfit check_columns(const struct sl_data_state *s, const struct sl_model *model)
{
    const enum sl_scale_type scale = model->data.splits[SL_SPLIT_TRAIN].scale.type;
    const bool values = s->facts.input.kind == SL_FIELD_VALUES;
    const bool numbers = s->facts.target.kind == SL_FIELD_VALUES && !s->binary_values;
    if (s->scale != scale)
        return (struct misfit){"scale", "data.train.scale"};
    if (!s->input_offset != !s->input_factor || (s->input_offset && (scale == SL_SCALE_NONE || !values)))
        return (struct misfit){"input_offset", "data.train.scale"};
    if (!s->target_offset != !s->target_factor || (s->target_offset && (scale == SL_SCALE_NONE || !numbers)))
        return (struct misfit){"target_offset", "data.train.scale"};
    if (!are_positive(s->input_factor, s->input_columns))
        return (struct misfit){"input_factor", NULL};
    if (!are_positive(s->target_factor, s->target_columns))
        return (struct misfit){"target_factor", NULL};
    if (s->input_fill && !values)
        return (struct misfit){"input_fill", NULL};
    if ((s->target_fill || s->target_naive) && !numbers)
        return (struct misfit){s->target_fill ? "target_fill" : "target_naive", NULL};
    return s->facts.records < 1 ? (struct misfit){"records", NULL} : fine;
}

seqlstm_status sl_data_state_check(struct sl_data_state *state, const struct sl_model *model, const char *name,
                                   struct seqlstm_error *err)
{
    static struct misfit (*const checks[])(const struct sl_data_state *, const struct sl_model *) = {
        check_input, check_source, check_form, check_target, check_ignore, check_columns};
    for (size_t c = 0; c < sizeof checks / sizeof *checks; c++) {
        const struct misfit misfit = checks[c](state, model);
        if (misfit.key && misfit.model)
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                         "%s: the key \"%s\" does not fit `%s` of the configuration: one of them was changed after the "
                         "training",
                         name, misfit.key, misfit.model);
        if (misfit.key)
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: the key \"%s\" does not fit the other keys of the file", name,
                         misfit.key);
    }
    state->facts.has_weight = sl_data_state_needs_weight(state, model);
    return SEQLSTM_OK;
}
