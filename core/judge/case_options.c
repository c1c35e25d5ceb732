/* SPDX-License-Identifier: Apache-2.0 */
/* The options of case strings as one table: the name, the field that it sets, and how. */
#include <stddef.h>
#include <string.h>

#include "base/operation/op_signature.h"
#include "base/value/text.h"
#include "judge/case.h"

enum kind {
    SET_BIT, /* sets the bits `value` in a uint32_t */
    CLEAR_BIT,
    SET_FLOAT, /* a float; `value` if =value is missing */
    SET_WORD,  /* a uint32_t: a name from `words`, counted from `value`, or a number */
    SET_INT64,
    SET_ACTIVATION, /* `value`: 0 both directions, 1 only backward; the field is activations[place][0] */
    SET_FLAG,       /* a bool of struct sl_case */
    SET_DTYPE       /* a uint32_t, by the name of a dtype */
};

struct option {
    const char *name;
    uint32_t op; /* SEQLSTM_OP_…; NONE: any */
    enum kind kind;
    size_t offset; /* in struct sl_case */
    double value;
    const char *words; /* "a|b|c" */
};

#define DESC(member) offsetof(struct sl_case, desc.member)
#define R            SEQLSTM_OP_RECURRENT
#define ROPT         DESC(recurrent.options)
#define LOSSES       "mse|mae|huber|binary_cross_entropy|cross_entropy"
#define MERGES       "concat|sum|mul|ave"

static const struct option options[] = {
    {"no_bias", R, CLEAR_BIT, ROPT, SEQLSTM_BIT_RECURRENT_USE_BIAS, NULL},
    {"peephole", R, SET_BIT, ROPT, SEQLSTM_BIT_RECURRENT_PEEPHOLE, NULL},
    {"coupled_gates", R, SET_BIT, ROPT, SEQLSTM_BIT_RECURRENT_COUPLED_GATES, NULL},
    {"layer_norm", R, SET_FLOAT, DESC(recurrent.layer_norm_epsilon), 1e-3, NULL},
    {"reset_after", R, SET_BIT, ROPT, SEQLSTM_BIT_RECURRENT_RESET_AFTER, NULL},
    {"initial", R, SET_BIT, ROPT, SEQLSTM_BIT_RECURRENT_INITIAL_STATE, NULL},
    {"final", R, SET_BIT, ROPT, SEQLSTM_BIT_RECURRENT_FINAL_STATE, NULL},
    {"no_output", R, CLEAR_BIT, ROPT, SEQLSTM_BIT_RECURRENT_OUTPUT, NULL},
    {"stepwise", R, SET_BIT, ROPT, SEQLSTM_BIT_RECURRENT_STEPWISE, NULL},
    {"backward", R, SET_WORD, DESC(recurrent.direction), 0, "forward|backward|bidirectional"},
    {"merge", R, SET_WORD, DESC(recurrent.merge), 0, MERGES},
    {"dropout", R, SET_FLOAT, DESC(recurrent.dropout), 0.25, NULL},
    {"recurrent_dropout", R, SET_FLOAT, DESC(recurrent.recurrent_dropout), 0.25, NULL},
    {"zoneout_cell", R, SET_FLOAT, DESC(recurrent.zoneout_cell), 0.25, NULL},
    {"zoneout_hidden", R, SET_FLOAT, DESC(recurrent.zoneout_hidden), 0.125, NULL},
    {"weight_drop", R, SET_FLOAT, DESC(recurrent.weight_drop), 0.5, NULL},
    {"cell_clip", R, SET_FLOAT, DESC(recurrent.cell_clip), 0.3, NULL},
    {"gate_clip", R, SET_FLOAT, DESC(recurrent.gate_clip), 0.4, NULL},
    {"act", R, SET_ACTIVATION, DESC(recurrent.activations[SEQLSTM_PLACE_CANDIDATE]), 0, NULL},
    {"gate_act", R, SET_ACTIVATION, DESC(recurrent.activations[SEQLSTM_PLACE_GATE]), 0, NULL},
    {"out_act", R, SET_ACTIVATION, DESC(recurrent.activations[SEQLSTM_PLACE_OUTPUT]), 0, NULL},
    {"act2", R, SET_ACTIVATION, DESC(recurrent.activations[SEQLSTM_PLACE_CANDIDATE]), 1, NULL},
    {"gate_act2", R, SET_ACTIVATION, DESC(recurrent.activations[SEQLSTM_PLACE_GATE]), 1, NULL},
    {"out_act2", R, SET_ACTIVATION, DESC(recurrent.activations[SEQLSTM_PLACE_OUTPUT]), 1, NULL},
    {"no_bias", SEQLSTM_OP_DENSE, CLEAR_BIT, DESC(dense.options), SEQLSTM_BIT_DENSE_USE_BIAS, NULL},
    {"act", SEQLSTM_OP_DENSE, SET_ACTIVATION, DESC(dense.activation), 2, NULL},
    {"act", SEQLSTM_OP_ACTIVATION, SET_ACTIVATION, DESC(activation.activation), 2, NULL},
    {"rate", SEQLSTM_OP_DROPOUT, SET_FLOAT, DESC(dropout.rate), 0.5, NULL},
    {"mask", SEQLSTM_OP_DROPOUT, SET_WORD, DESC(dropout.mask), 0, "step|sequence"},
    {"no_gain", SEQLSTM_OP_LAYER_NORM, CLEAR_BIT, DESC(layer_norm.options), SEQLSTM_BIT_LAYER_NORM_GAIN, NULL},
    {"no_bias", SEQLSTM_OP_LAYER_NORM, CLEAR_BIT, DESC(layer_norm.options), SEQLSTM_BIT_LAYER_NORM_BIAS, NULL},
    {"kind", SEQLSTM_OP_POOL, SET_WORD, DESC(pool.kind), 0, "last|mean|max|sum|first"},
    {"nan", SEQLSTM_OP_POOL, SET_FLAG, offsetof(struct sl_case, nan), 0, NULL},
    {"kind", SEQLSTM_OP_MERGE, SET_WORD, DESC(merge.kind), 0, MERGES},
    {"width0", SEQLSTM_OP_MERGE, SET_INT64, DESC(merge.widths[0]), 1, NULL},
    {"from", SEQLSTM_OP_CAST, SET_DTYPE, DESC(cast.from), 0, NULL},
    {"to", SEQLSTM_OP_CAST, SET_DTYPE, DESC(cast.to), 0, NULL},
    {"kind", SEQLSTM_OP_LOSS, SET_WORD, DESC(loss.kind), 1, LOSSES},
    {"row_weight", SEQLSTM_OP_LOSS, SET_BIT, DESC(loss.options), SEQLSTM_BIT_LOSS_ROW_WEIGHT, NULL},
    {"class_weight", SEQLSTM_OP_LOSS, SET_BIT, DESC(loss.options), SEQLSTM_BIT_LOSS_CLASS_WEIGHT, NULL},
    {"row_loss", SEQLSTM_OP_LOSS, SET_BIT, DESC(loss.options), SEQLSTM_BIT_LOSS_ROW_LOSS, NULL},
    {"smoothing", SEQLSTM_OP_LOSS, SET_FLOAT, DESC(loss.label_smoothing), 0.1, NULL},
    {"kind", SEQLSTM_OP_DENSE_LOSS, SET_WORD, DESC(dense_loss.kind), 1, LOSSES},
    {"row_weight", SEQLSTM_OP_DENSE_LOSS, SET_BIT, DESC(dense_loss.options), SEQLSTM_BIT_LOSS_ROW_WEIGHT, NULL},
    {"class_weight", SEQLSTM_OP_DENSE_LOSS, SET_BIT, DESC(dense_loss.options), SEQLSTM_BIT_LOSS_CLASS_WEIGHT, NULL},
    {"row_loss", SEQLSTM_OP_DENSE_LOSS, SET_BIT, DESC(dense_loss.options), SEQLSTM_BIT_LOSS_ROW_LOSS, NULL},
    {"smoothing", SEQLSTM_OP_DENSE_LOSS, SET_FLOAT, DESC(dense_loss.label_smoothing), 0.1, NULL},
    {"no_bias", SEQLSTM_OP_DENSE_LOSS, CLEAR_BIT, DESC(dense_loss.dense_options), SEQLSTM_BIT_DENSE_USE_BIAS, NULL},
    {"kind", SEQLSTM_OP_TOP_K, SET_WORD, DESC(top_k.kind), 0, "best|sample"},
    {"top_k", SEQLSTM_OP_TOP_K, SET_WORD, DESC(top_k.top_k), 0, ""},
    {"top_p", SEQLSTM_OP_TOP_K, SET_FLOAT, DESC(top_k.top_p), 0.8, NULL},
    {"temperature", SEQLSTM_OP_TOP_K, SET_FLOAT, DESC(top_k.temperature), 0.7, NULL},
    {"kind", SEQLSTM_OP_OPTIMIZER, SET_WORD, DESC(optimizer.kind), 1,
     "sgd|momentum|nesterov|adam|rmsprop|adagrad|adadelta"},
    {"momentum", SEQLSTM_OP_OPTIMIZER, SET_FLOAT, DESC(optimizer.momentum), 0.9, NULL},
    {"weight_decay", SEQLSTM_OP_OPTIMIZER, SET_FLOAT, DESC(optimizer.weight_decay), 0.01, NULL},
    {"clip_norm", SEQLSTM_OP_OPTIMIZER, SET_FLOAT, DESC(optimizer.clip_norm), 0.25, NULL},
    {"diverged", SEQLSTM_OP_OPTIMIZER, SET_WORD, offsetof(struct sl_case, diverged), 1, "loss|squares"},
    {"amsgrad", SEQLSTM_OP_OPTIMIZER, SET_BIT, DESC(optimizer.options), SEQLSTM_BIT_OPTIMIZER_AMSGRAD, NULL},
    {"centered", SEQLSTM_OP_OPTIMIZER, SET_BIT, DESC(optimizer.options), SEQLSTM_BIT_OPTIMIZER_CENTERED, NULL},
    {"kind", SEQLSTM_OP_VECTOR, SET_WORD, DESC(vector.kind), 1, "fill|axpy|scale|lerp|sign_axpy|clamp|copy"},
    {"nan", SEQLSTM_OP_VECTOR, SET_FLAG, offsetof(struct sl_case, nan), 0, NULL},
    {"kind", SEQLSTM_OP_ATTENTION, SET_WORD, DESC(attention.kind), 1, "dot|additive"},
    {"shared", SEQLSTM_OP_ATTENTION, SET_BIT, DESC(attention.options), SEQLSTM_BIT_ATTENTION_SHARED, NULL},
    {"weights", SEQLSTM_OP_ATTENTION, SET_BIT, DESC(attention.options), SEQLSTM_BIT_ATTENTION_WEIGHTS, NULL},
    {"scale", SEQLSTM_OP_ATTENTION, SET_FLOAT, DESC(attention.scale), 0.25, NULL},
    {"memories", SEQLSTM_OP_ATTENTION, SET_WORD, offsetof(struct sl_case, memories), 0, "ragged|uniform|ones|long"},
    {"queries", SEQLSTM_OP_ATTENTION, SET_WORD, offsetof(struct sl_case, queries), 0, "mixed|packed|beams"},
    {"deterministic", SEQLSTM_OP_NONE, SET_BIT, DESC(head.flags), SEQLSTM_BIT_DESC_DETERMINISTIC, NULL},
    {"stream", SEQLSTM_OP_NONE, SET_FLAG, offsetof(struct sl_case, stream), 0, NULL},
    {"on_sequences", SEQLSTM_OP_NONE, SET_FLAG, offsetof(struct sl_case, on_sequences), 0, NULL},
    {"no_dx", SEQLSTM_OP_NONE, SET_FLAG, offsetof(struct sl_case, no_input_grad), 0, NULL},
    {"no_dy", SEQLSTM_OP_NONE, SET_FLAG, offsetof(struct sl_case, no_output_grad), 0, NULL},
    {"no_dstate", SEQLSTM_OP_NONE, SET_FLAG, offsetof(struct sl_case, no_state_grad), 0, NULL},
    {"saturated", SEQLSTM_OP_NONE, SET_FLAG, offsetof(struct sl_case, saturated), 0, NULL},
    {"skip", SEQLSTM_OP_OPTIMIZER, SET_FLAG, offsetof(struct sl_case, skip), 0, NULL},
};

/* The index of a word in "a|b|c", or -1. */
static int word_index(const char *words, const char *word)
{
    size_t length = strlen(word);
    int index = 0;
    for (const char *p = words; *p; index++) {
        size_t n = strcspn(p, "|");
        if (n == length && strncmp(p, word, n) == 0)
            return index;
        p += n + (p[n] == '|');
    }
    return -1;
}

/* The defaults of ONNX; values of our own for activations whose default is not worth testing. */
static void fill_activation(struct seqlstm_activation *a, uint32_t kind)
{
    static const float alpha[SEQLSTM_ACT_COUNT] = {[SEQLSTM_ACT_LEAKY_RELU] = 0.01f,
                                                   [SEQLSTM_ACT_THRESHOLDED_RELU] = 0.1f,
                                                   [SEQLSTM_ACT_SCALED_TANH] = 1.7159f,
                                                   [SEQLSTM_ACT_HARD_SIGMOID] = 0.2f,
                                                   [SEQLSTM_ACT_ELU] = 1.0f,
                                                   [SEQLSTM_ACT_AFFINE] = 0.75f};
    static const float beta[SEQLSTM_ACT_COUNT] = {
        [SEQLSTM_ACT_SCALED_TANH] = 0.6667f, [SEQLSTM_ACT_HARD_SIGMOID] = 0.5f, [SEQLSTM_ACT_AFFINE] = 0.125f};
    memset(a, 0, sizeof *a);
    a->kind = kind;
    a->alpha = alpha[kind];
    a->beta = beta[kind];
}

static bool set_activation(struct sl_case *c, const struct option *o, const char *value)
{
    struct seqlstm_activation *field = (void *)((char *)c + o->offset);
    char name[48];
    size_t n = strcspn(value, "/"); /* name or name/alpha */
    if (n >= sizeof name)
        return false;
    memcpy(name, value, n);
    name[n] = 0;
    for (uint32_t kind = 0; kind < SEQLSTM_ACT_COUNT; kind++)
        if (strcmp(name, sl_activation_name(kind)) == 0) {
            double alpha = 0;
            if (value[n] == '/' && !sl_text_parse_float64(value + n + 1, strlen(value + n + 1), &alpha))
                return false;
            for (int direction = o->value > 0 && o->value < 2 ? 1 : 0; direction < (o->value < 2 ? 2 : 1);
                 direction++) {
                fill_activation(&field[direction], kind);
                if (value[n] == '/')
                    field[direction].alpha = (float)alpha;
            }
            return true;
        }
    return false;
}

static bool set_dtype(uint32_t *field, const char *value)
{
    static const char words[] = "f32|tf32|bf16|f16|f64|i32|i8|u8";
    int index = word_index(words, value);
    if (index < 0)
        return false;
    *field = (uint32_t)index;
    return true;
}

/* Applies one row of the table; returns false if the value is not valid. */
static bool apply(struct sl_case *c, const struct option *o, const char *value)
{
    void *field = (char *)c + o->offset;
    int64_t integer;
    double number = o->value;
    switch (o->kind) {
    case SET_BIT:
        *(uint32_t *)field |= (uint32_t)o->value;
        return !*value;
    case CLEAR_BIT:
        *(uint32_t *)field &= ~(uint32_t)o->value;
        return !*value;
    case SET_FLOAT:
        if (*value && !sl_text_parse_float64(value, strlen(value), &number))
            return false;
        *(float *)field = (float)number;
        return true;
    case SET_WORD: {
        int index = word_index(o->words, *value ? value : o->name);
        if (index >= 0) {
            *(uint32_t *)field = (uint32_t)((int)o->value + index);
            return true;
        }
        if (!sl_text_parse_int64(value, strlen(value), &integer))
            return false;
        *(uint32_t *)field = (uint32_t)integer;
        return true;
    }
    case SET_INT64:
        if (!sl_text_parse_int64(value, strlen(value), &integer))
            return false;
        *(int64_t *)field = integer;
        return true;
    case SET_ACTIVATION:
        return set_activation(c, o, value);
    case SET_DTYPE:
        return set_dtype(field, value);
    case SET_FLAG:
        *(bool *)field = true;
        return !*value;
    }
    return false;
}

seqlstm_status sl_case_apply_option(struct sl_case *c, const char *option, size_t length, struct seqlstm_error *err)
{
    char name[64], value[64] = "";
    size_t name_length = 0;
    while (name_length < length && option[name_length] != '=')
        name_length++;
    size_t value_length = name_length < length ? length - name_length - 1 : 0;
    if (name_length >= sizeof name || value_length >= sizeof value)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the option '%.*s' of the case is too long", (int)length, option);
    memcpy(name, option, name_length);
    name[name_length] = 0;
    if (value_length > 0)
        memcpy(value, option + name_length + 1, value_length);
    value[value_length] = 0;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const struct option *o = &options[i];
        if ((o->op != SEQLSTM_OP_NONE && o->op != c->desc.head.op) || strcmp(o->name, name) != 0)
            continue;
        if (!apply(c, o, value))
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the option '%.*s' of the case has a wrong value", (int)length,
                         option);
        if (o->op == R && strcmp(name, "layer_norm") == 0)
            c->desc.recurrent.options |= SEQLSTM_BIT_RECURRENT_LAYER_NORM;
        if (o->op == SEQLSTM_OP_ATTENTION && c->desc.attention.kind == SEQLSTM_KIND_ATTENTION_ADDITIVE)
            c->desc.attention.scale = 0;
        return SEQLSTM_OK;
    }
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%s has no case option '%s'", sl_op_name(c->desc.head.op), name);
}
