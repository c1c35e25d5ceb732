/* SPDX-License-Identifier: Apache-2.0 */
/* The slots of every operation, derived from its descriptor alone, and names for messages. */
#include "base/operation/op_signature.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <seqlstm/desc_check.h>

seqlstm_status sl_op_desc_check(const struct seqlstm_desc *desc, struct seqlstm_error *err)
{
    struct seqlstm_answer answer;
    memset(&answer, 0, sizeof answer);
    answer.struct_size = (uint32_t)sizeof answer;
    if (!seqlstm_desc_check(desc, &answer))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%s descriptor: %s", sl_op_name(desc->op), answer.reason);
    if (desc->struct_size != sl_op_desc_bytes(desc->op))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%s descriptor: struct_size is %u, expected %u",
                     sl_op_name(desc->op), desc->struct_size, sl_op_desc_bytes(desc->op));
    return SEQLSTM_OK;
}

/* A slot of a fixed name; features as given, FREE slots set `rows` afterwards. */
static struct sl_slot *put(struct sl_slot *slot, const char *name, enum sl_slot_role role, enum sl_slot_axis axis,
                           int64_t features)
{
    slot->name = name;
    slot->role = role;
    slot->axis = axis;
    slot->features = role == SL_SLOT_ABSENT ? 0 : features;
    return slot;
}

static struct sl_slot *put_free(struct sl_slot *slot, const char *name, enum sl_slot_role role, int64_t rows,
                                int64_t features)
{
    put(slot, name, role, SL_SLOT_FREE, features);
    slot->rows = role == SL_SLOT_ABSENT ? 0 : rows;
    return slot;
}

static enum sl_slot_role when(bool present, enum sl_slot_role role)
{
    return present ? role : SL_SLOT_ABSENT;
}

static void recurrent_name(struct sl_slot *slot, const char *base, int64_t layer, bool backward)
{
    snprintf(slot->name_storage, sizeof slot->name_storage, "%s.l%d.%s", base, (int)layer,
             backward ? "backward" : "forward");
    slot->name = slot->name_storage;
}

static int32_t recurrent_slots(const struct seqlstm_recurrent_desc *d, struct sl_slot *slots)
{
    static const char *const state_names[4] = {"h0", "c0", "hn", "cn"};
    static const char *const param_names[SEQLSTM_PARAM_COUNT] = {"w_x",      "w_h",        "bias",
                                                                 "peephole", "projection", "norm"};
    const bool lstm = d->cell == SEQLSTM_CELL_LSTM, bidirectional = d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL;
    const int64_t directions = bidirectional ? 2 : 1, ld = d->layers * directions, hidden = d->hidden;
    const int64_t gates = lstm ? 4 : d->cell == SEQLSTM_CELL_GRU ? 3 : 1;
    const int64_t out = d->projection > 0 ? d->projection : hidden;
    const int64_t merged = bidirectional && d->merge == SEQLSTM_KIND_MERGE_CONCAT ? 2 * out : out;
    const uint32_t o = d->options;
    const bool initial = o & SEQLSTM_BIT_RECURRENT_INITIAL_STATE, final = o & SEQLSTM_BIT_RECURRENT_FINAL_STATE;

    put(&slots[SEQLSTM_SLOT_RECURRENT_X], "x", SL_SLOT_INPUT, SL_SLOT_ON_ROWS, d->input);
    put(&slots[SEQLSTM_SLOT_RECURRENT_Y], "y", when(o & SEQLSTM_BIT_RECURRENT_OUTPUT, SL_SLOT_OUTPUT), SL_SLOT_ON_ROWS,
        merged);
    for (int64_t n = 0; n < ld; n++) {
        const int64_t layer = n / directions;
        const bool backward = bidirectional ? n % 2 == 1 : d->direction == SEQLSTM_DIRECTION_BACKWARD;
        const int64_t input = layer == 0 ? d->input : merged;
        struct sl_slot *state = &slots[SEQLSTM_SLOT_RECURRENT_STATE(n, 0)];
        for (int which = 0; which < 4; which++) {
            const bool cell = which == SEQLSTM_STATE_C0 || which == SEQLSTM_STATE_CN;
            const bool out_state = which >= SEQLSTM_STATE_HN;
            const bool present = (out_state ? final : initial) && (!cell || lstm);
            put(&state[which], "", when(present, out_state ? SL_SLOT_OUTPUT : SL_SLOT_INPUT), SL_SLOT_ON_STATES,
                cell ? hidden : out);
            state[which].optional = present && out_state;
            recurrent_name(&state[which], state_names[which], layer, backward);
        }
        struct sl_slot *param = &slots[SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, 0)];
        const bool reset_after = o & SEQLSTM_BIT_RECURRENT_RESET_AFTER;
        put_free(&param[SEQLSTM_PARAM_W_X], "", SL_SLOT_PARAM, gates * hidden, input);
        put_free(&param[SEQLSTM_PARAM_W_H], "", SL_SLOT_PARAM, gates * hidden, out);
        put_free(&param[SEQLSTM_PARAM_BIAS], "", when(o & SEQLSTM_BIT_RECURRENT_USE_BIAS, SL_SLOT_PARAM), 1,
                 (reset_after ? 4 : gates) * hidden);
        put_free(&param[SEQLSTM_PARAM_PEEPHOLE], "", when(o & SEQLSTM_BIT_RECURRENT_PEEPHOLE, SL_SLOT_PARAM), 1,
                 3 * hidden);
        put_free(&param[SEQLSTM_PARAM_PROJECTION], "", when(d->projection > 0, SL_SLOT_PARAM), out, hidden);
        put_free(&param[SEQLSTM_PARAM_NORM], "", when(o & SEQLSTM_BIT_RECURRENT_LAYER_NORM, SL_SLOT_PARAM), 1,
                 (2 * gates + (lstm ? 2 : 0)) * hidden);
        for (int which = 0; which < SEQLSTM_PARAM_COUNT; which++)
            recurrent_name(&param[which], param_names[which], layer, backward);
    }
    return (int32_t)SEQLSTM_SLOT_RECURRENT_COUNT(ld);
}

static void loss_slots(uint32_t kind, uint32_t options, int64_t x_features, int64_t classes, struct sl_slot *slots)
{
    const bool cross_entropy = kind == SEQLSTM_KIND_LOSS_CROSS_ENTROPY;
    put(&slots[SEQLSTM_SLOT_LOSS_X], "x", SL_SLOT_INPUT, SL_SLOT_ON_ROWS, x_features);
    put(&slots[SEQLSTM_SLOT_LOSS_TARGET], "target", SL_SLOT_CONST, SL_SLOT_ON_ROWS, cross_entropy ? 1 : classes)
        ->dtype = cross_entropy ? SEQLSTM_DTYPE_INT32 : SEQLSTM_DTYPE_FLOAT32;
    put(&slots[SEQLSTM_SLOT_LOSS_ROW_WEIGHT], "weight", when(options & SEQLSTM_BIT_LOSS_ROW_WEIGHT, SL_SLOT_CONST),
        SL_SLOT_ON_ROWS, 1);
    put_free(&slots[SEQLSTM_SLOT_LOSS_CLASS_WEIGHT], "class_weight",
             when(options & SEQLSTM_BIT_LOSS_CLASS_WEIGHT, SL_SLOT_CONST), 1, classes);
    put_free(&slots[SEQLSTM_SLOT_LOSS_SUMS], "sums", SL_SLOT_INOUT, 1, 2)->dtype = SEQLSTM_DTYPE_FLOAT64;
    put(&slots[SEQLSTM_SLOT_LOSS_ROW_LOSS], "row_loss", when(options & SEQLSTM_BIT_LOSS_ROW_LOSS, SL_SLOT_OUTPUT),
        SL_SLOT_ON_ROWS, 1);
}

static int32_t merge_slots(const struct seqlstm_merge_desc *d, struct sl_slot *slots)
{
    static const char *const names[SEQLSTM_MAX_MERGE_INPUTS] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
    int64_t width = 0;
    for (uint32_t k = 0; k < SEQLSTM_MAX_MERGE_INPUTS; k++) {
        put(&slots[SEQLSTM_SLOT_MERGE_X + k], names[k], when(k < d->inputs, SL_SLOT_INPUT), SL_SLOT_ON_ROWS,
            d->widths[k]);
        width += d->widths[k];
    }
    put(&slots[SEQLSTM_SLOT_MERGE_Y], "y", SL_SLOT_OUTPUT, SL_SLOT_ON_ROWS,
        d->kind == SEQLSTM_KIND_MERGE_CONCAT ? width : d->widths[0]);
    return SEQLSTM_SLOT_MERGE_COUNT;
}

static int32_t attention_slots(const struct seqlstm_attention_desc *d, struct sl_slot *slots)
{
    const bool shared = d->options & SEQLSTM_BIT_ATTENTION_SHARED,
               additive = d->kind == SEQLSTM_KIND_ATTENTION_ADDITIVE;
    put(&slots[SEQLSTM_SLOT_ATTENTION_QUERIES], "queries", SL_SLOT_INPUT, SL_SLOT_ON_ROWS, d->key);
    put(&slots[SEQLSTM_SLOT_ATTENTION_KEYS], "keys", SL_SLOT_INPUT, SL_SLOT_ON_ROWS_IN, d->key);
    put(&slots[SEQLSTM_SLOT_ATTENTION_VALUES], "values", when(!shared, SL_SLOT_INPUT), SL_SLOT_ON_ROWS_IN, d->value);
    put(&slots[SEQLSTM_SLOT_ATTENTION_CONTEXT], "context", SL_SLOT_OUTPUT, SL_SLOT_ON_ROWS, d->value);
    put_free(&slots[SEQLSTM_SLOT_ATTENTION_OFFSETS], "offsets", SL_SLOT_CONST, d->head.max_sequences + 1, 1)->dtype =
        SEQLSTM_DTYPE_INT32;
    put(&slots[SEQLSTM_SLOT_ATTENTION_MEMORY_OF], "memory_of", SL_SLOT_CONST, SL_SLOT_ON_ROWS, 1)->dtype =
        SEQLSTM_DTYPE_INT32;
    put(&slots[SEQLSTM_SLOT_ATTENTION_WEIGHTS], "weights",
        when(d->options & SEQLSTM_BIT_ATTENTION_WEIGHTS, SL_SLOT_OUTPUT), SL_SLOT_ON_ROWS, d->head.max_steps);
    put_free(&slots[SEQLSTM_SLOT_ATTENTION_SCORE], "score", when(additive, SL_SLOT_PARAM), 1, d->key);
    return SEQLSTM_SLOT_ATTENTION_COUNT;
}

static int32_t optimizer_slots(const struct seqlstm_optimizer_desc *d, struct sl_slot *slots)
{
    const uint32_t k = d->kind;
    const bool first = k != SEQLSTM_KIND_OPTIMIZER_SGD;
    const bool second = k == SEQLSTM_KIND_OPTIMIZER_ADAM || k == SEQLSTM_KIND_OPTIMIZER_ADADELTA ||
                        (k == SEQLSTM_KIND_OPTIMIZER_RMSPROP && d->momentum > 0);
    put(&slots[SEQLSTM_SLOT_OPTIMIZER_PARAM], "param", SL_SLOT_INOUT, SL_SLOT_ON_ROWS, 1);
    put(&slots[SEQLSTM_SLOT_OPTIMIZER_GRAD], "grad", SL_SLOT_CONST, SL_SLOT_ON_ROWS, 1);
    put(&slots[SEQLSTM_SLOT_OPTIMIZER_STATE_1], "state_1", when(first, SL_SLOT_INOUT), SL_SLOT_ON_ROWS, 1);
    put(&slots[SEQLSTM_SLOT_OPTIMIZER_STATE_2], "state_2", when(second, SL_SLOT_INOUT), SL_SLOT_ON_ROWS, 1);
    put(&slots[SEQLSTM_SLOT_OPTIMIZER_STATE_3], "state_3", when(d->options != 0, SL_SLOT_INOUT), SL_SLOT_ON_ROWS, 1);
    put_free(&slots[SEQLSTM_SLOT_OPTIMIZER_SUMS], "sums", SL_SLOT_CONST, 1, 2)->dtype = SEQLSTM_DTYPE_FLOAT64;
    put_free(&slots[SEQLSTM_SLOT_OPTIMIZER_SQUARES], "squares", SL_SLOT_CONST, 1, 1)->dtype = SEQLSTM_DTYPE_FLOAT64;
    return SEQLSTM_SLOT_OPTIMIZER_COUNT;
}

static int32_t unary_slots(struct sl_slot *slots, int64_t features, enum sl_slot_axis y_axis)
{
    put(&slots[SEQLSTM_SLOT_UNARY_X], "x", SL_SLOT_INPUT, SL_SLOT_ON_ROWS, features);
    put(&slots[SEQLSTM_SLOT_UNARY_Y], "y", SL_SLOT_OUTPUT, y_axis, features);
    return SEQLSTM_SLOT_UNARY_COUNT;
}

static int32_t table_slots(const union seqlstm_any_desc *d, struct sl_slot *slots)
{
    switch (d->head.op) {
    case SEQLSTM_OP_EMBEDDING:
        put(&slots[SEQLSTM_SLOT_EMBEDDING_IDS], "ids", SL_SLOT_CONST, SL_SLOT_ON_ROWS, 1)->dtype = SEQLSTM_DTYPE_INT32;
        put(&slots[SEQLSTM_SLOT_EMBEDDING_Y], "y", SL_SLOT_OUTPUT, SL_SLOT_ON_ROWS, d->embedding.features);
        put_free(&slots[SEQLSTM_SLOT_EMBEDDING_W], "w", SL_SLOT_PARAM, d->embedding.vocabulary, d->embedding.features);
        return SEQLSTM_SLOT_EMBEDDING_COUNT;
    case SEQLSTM_OP_DENSE:
        unary_slots(slots, d->dense.input, SL_SLOT_ON_ROWS);
        slots[SEQLSTM_SLOT_DENSE_Y].features = d->dense.output;
        put_free(&slots[SEQLSTM_SLOT_DENSE_W], "w", SL_SLOT_PARAM, d->dense.output, d->dense.input);
        put_free(&slots[SEQLSTM_SLOT_DENSE_BIAS], "bias",
                 when(d->dense.options & SEQLSTM_BIT_DENSE_USE_BIAS, SL_SLOT_PARAM), 1, d->dense.output);
        return SEQLSTM_SLOT_DENSE_COUNT;
    case SEQLSTM_OP_LAYER_NORM:
        unary_slots(slots, d->layer_norm.features, SL_SLOT_ON_ROWS);
        put_free(&slots[SEQLSTM_SLOT_LAYER_NORM_GAIN], "gain",
                 when(d->layer_norm.options & SEQLSTM_BIT_LAYER_NORM_GAIN, SL_SLOT_PARAM), 1, d->layer_norm.features);
        put_free(&slots[SEQLSTM_SLOT_LAYER_NORM_BIAS], "bias",
                 when(d->layer_norm.options & SEQLSTM_BIT_LAYER_NORM_BIAS, SL_SLOT_PARAM), 1, d->layer_norm.features);
        return SEQLSTM_SLOT_LAYER_NORM_COUNT;
    case SEQLSTM_OP_GATHER:
    case SEQLSTM_OP_SCATTER:
        put(&slots[SEQLSTM_SLOT_GATHER_X], "x", SL_SLOT_INPUT, SL_SLOT_ON_ROWS_IN, d->gather.features);
        put(&slots[SEQLSTM_SLOT_GATHER_Y], "y", SL_SLOT_OUTPUT, SL_SLOT_ON_ROWS, d->gather.features);
        put(&slots[SEQLSTM_SLOT_GATHER_INDEX], "index", SL_SLOT_CONST,
            d->head.op == SEQLSTM_OP_GATHER ? SL_SLOT_ON_ROWS : SL_SLOT_ON_ROWS_IN, 1)
            ->dtype = SEQLSTM_DTYPE_INT32;
        return SEQLSTM_SLOT_GATHER_COUNT;
    case SEQLSTM_OP_DENSE_LOSS:
        loss_slots(d->dense_loss.kind, d->dense_loss.options, d->dense_loss.input, d->dense_loss.output, slots);
        put_free(&slots[SEQLSTM_SLOT_DENSE_LOSS_W], "w", SL_SLOT_PARAM, d->dense_loss.output, d->dense_loss.input);
        put_free(&slots[SEQLSTM_SLOT_DENSE_LOSS_BIAS], "bias",
                 when(d->dense_loss.dense_options & SEQLSTM_BIT_DENSE_USE_BIAS, SL_SLOT_PARAM), 1,
                 d->dense_loss.output);
        return SEQLSTM_SLOT_DENSE_LOSS_COUNT;
    case SEQLSTM_OP_TOP_K:
        put(&slots[SEQLSTM_SLOT_TOP_K_X], "x", SL_SLOT_CONST, SL_SLOT_ON_ROWS, d->top_k.features);
        put(&slots[SEQLSTM_SLOT_TOP_K_INDEX], "index", SL_SLOT_OUTPUT, SL_SLOT_ON_ROWS, d->top_k.k)->dtype =
            SEQLSTM_DTYPE_INT32;
        put(&slots[SEQLSTM_SLOT_TOP_K_VALUE], "value", SL_SLOT_OUTPUT, SL_SLOT_ON_ROWS, d->top_k.k);
        return SEQLSTM_SLOT_TOP_K_COUNT;
    default:
        return 0;
    }
}

static int32_t vector_slots(const union seqlstm_any_desc *d, struct sl_slot *slots)
{
    const bool reads_x = d->vector.kind != SEQLSTM_KIND_VECTOR_FILL && d->vector.kind != SEQLSTM_KIND_VECTOR_SCALE &&
                         d->vector.kind != SEQLSTM_KIND_VECTOR_CLAMP;
    switch (d->head.op) {
    case SEQLSTM_OP_FINITE_CHECK:
    case SEQLSTM_OP_SQUARED_NORM:
        put(&slots[SEQLSTM_SLOT_REDUCE_X], "x", SL_SLOT_CONST, SL_SLOT_ON_ROWS, 1);
        put_free(&slots[SEQLSTM_SLOT_REDUCE_RESULT], d->head.op == SEQLSTM_OP_FINITE_CHECK ? "flag" : "sum",
                 SL_SLOT_INOUT, 1, 1)
            ->dtype = d->head.op == SEQLSTM_OP_FINITE_CHECK ? SEQLSTM_DTYPE_INT32 : SEQLSTM_DTYPE_FLOAT64;
        return SEQLSTM_SLOT_REDUCE_COUNT;
    case SEQLSTM_OP_OPTIMIZER:
        return optimizer_slots(&d->optimizer, slots);
    default: /* VECTOR */
        put(&slots[SEQLSTM_SLOT_VECTOR_Y], "y", SL_SLOT_INOUT, SL_SLOT_ON_ROWS, 1);
        put(&slots[SEQLSTM_SLOT_VECTOR_X], "x", when(reads_x, SL_SLOT_CONST), SL_SLOT_ON_ROWS, 1);
        return SEQLSTM_SLOT_VECTOR_COUNT;
    }
}

static int32_t slot_count(const union seqlstm_any_desc *d)
{
    static const int32_t counts[SEQLSTM_OP_COUNT] = {0,
                                                     0,
                                                     SEQLSTM_SLOT_EMBEDDING_COUNT,
                                                     SEQLSTM_SLOT_DENSE_COUNT,
                                                     SEQLSTM_SLOT_UNARY_COUNT,
                                                     SEQLSTM_SLOT_UNARY_COUNT,
                                                     SEQLSTM_SLOT_LAYER_NORM_COUNT,
                                                     SEQLSTM_SLOT_UNARY_COUNT,
                                                     SEQLSTM_SLOT_MERGE_COUNT,
                                                     SEQLSTM_SLOT_GATHER_COUNT,
                                                     SEQLSTM_SLOT_GATHER_COUNT,
                                                     SEQLSTM_SLOT_UNARY_COUNT,
                                                     SEQLSTM_SLOT_LOSS_COUNT,
                                                     SEQLSTM_SLOT_DENSE_LOSS_COUNT,
                                                     SEQLSTM_SLOT_TOP_K_COUNT,
                                                     SEQLSTM_SLOT_REDUCE_COUNT,
                                                     SEQLSTM_SLOT_REDUCE_COUNT,
                                                     SEQLSTM_SLOT_OPTIMIZER_COUNT,
                                                     SEQLSTM_SLOT_VECTOR_COUNT,
                                                     SEQLSTM_SLOT_ATTENTION_COUNT};
    if (d->head.op != SEQLSTM_OP_RECURRENT)
        return counts[d->head.op];
    const bool both = d->recurrent.direction == SEQLSTM_DIRECTION_BIDIRECTIONAL;
    return (int32_t)SEQLSTM_SLOT_RECURRENT_COUNT(d->recurrent.layers * (both ? 2 : 1));
}

seqlstm_status sl_op_signature(const struct seqlstm_desc *desc, struct sl_slot *out_slots, int32_t capacity,
                               int32_t *out_count, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_op_desc_check(desc, err));
    const union seqlstm_any_desc *d = (const union seqlstm_any_desc *)(const void *)desc;
    const int32_t count = slot_count(d);
    if (count > capacity)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%s has %d slots, there is room for %d", sl_op_name(desc->op),
                     count, capacity);
    memset(out_slots, 0, (size_t)count * sizeof *out_slots);
    int32_t filled;
    switch (desc->op) {
    case SEQLSTM_OP_RECURRENT:
        filled = recurrent_slots(&d->recurrent, out_slots);
        break;
    case SEQLSTM_OP_ACTIVATION:
        filled = unary_slots(out_slots, d->activation.features, SL_SLOT_ON_ROWS);
        break;
    case SEQLSTM_OP_DROPOUT:
        filled = unary_slots(out_slots, d->dropout.features, SL_SLOT_ON_ROWS);
        break;
    case SEQLSTM_OP_POOL:
        filled = unary_slots(out_slots, d->pool.features, SL_SLOT_ON_SEQUENCES);
        break;
    case SEQLSTM_OP_CAST:
        filled = unary_slots(out_slots, d->cast.features, SL_SLOT_ON_ROWS);
        out_slots[SEQLSTM_SLOT_UNARY_X].dtype = d->cast.from;
        out_slots[SEQLSTM_SLOT_UNARY_Y].dtype = d->cast.to;
        break;
    case SEQLSTM_OP_MERGE:
        filled = merge_slots(&d->merge, out_slots);
        break;
    case SEQLSTM_OP_LOSS:
        loss_slots(d->loss.kind, d->loss.options, d->loss.features, d->loss.features, out_slots);
        filled = SEQLSTM_SLOT_LOSS_COUNT;
        break;
    case SEQLSTM_OP_ATTENTION:
        filled = attention_slots(&d->attention, out_slots);
        break;
    case SEQLSTM_OP_FINITE_CHECK:
    case SEQLSTM_OP_SQUARED_NORM:
    case SEQLSTM_OP_OPTIMIZER:
    case SEQLSTM_OP_VECTOR:
        filled = vector_slots(d, out_slots);
        break;
    default:
        filled = table_slots(d, out_slots);
        break;
    }
    assert(filled == count);
    *out_count = filled;
    return SEQLSTM_OK;
}

bool sl_op_has_backward(uint32_t op)
{
    return (op > SEQLSTM_OP_NONE && op < SEQLSTM_OP_TOP_K) || op == SEQLSTM_OP_ATTENTION;
}

const char *sl_op_name(uint32_t op)
{
    static const char *const names[SEQLSTM_OP_COUNT] = {
        "none",  "recurrent",    "embedding",    "dense",     "activation", "dropout",  "layer_norm",
        "pool",  "merge",        "gather",       "scatter",   "cast",       "loss",     "dense_loss",
        "top_k", "finite_check", "squared_norm", "optimizer", "vector",     "attention"};
    return op < SEQLSTM_OP_COUNT ? names[op] : "unknown operation";
}

const char *sl_dtype_name(uint32_t dtype)
{
    static const char *const names[] = {"float32", "tf32", "bfloat16", "float16", "float64", "int32", "int8", "uint8"};
    return dtype < sizeof names / sizeof *names ? names[dtype] : "unknown dtype";
}

const char *sl_activation_name(uint32_t kind)
{
    static const char *const names[SEQLSTM_ACT_COUNT] = {
        "linear",       "tanh", "sigmoid",  "relu",     "leaky_relu", "thresholded_relu", "scaled_tanh",
        "hard_sigmoid", "elu",  "softsign", "softplus", "affine",     "softmax",          "log_softmax"};
    return kind < SEQLSTM_ACT_COUNT ? names[kind] : "unknown activation";
}

int64_t sl_dtype_bytes(uint32_t dtype)
{
    switch (dtype) {
    case SEQLSTM_DTYPE_FLOAT64:
        return 8;
    case SEQLSTM_DTYPE_BFLOAT16:
    case SEQLSTM_DTYPE_FLOAT16:
        return 2;
    case SEQLSTM_DTYPE_INT8:
    case SEQLSTM_DTYPE_UINT8:
        return 1;
    default:
        return 4;
    }
}

uint32_t sl_op_desc_bytes(uint32_t op)
{
    return seqlstm_desc_bytes(op);
}
