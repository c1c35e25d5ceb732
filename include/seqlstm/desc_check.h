/* SPDX-License-Identifier: Apache-2.0 */
/* Is a descriptor well formed? The checks that ops.h requires of every backend, as source that plugins compile in.
 *
 * ops.h: "A backend must answer *no* to every value or bit that it does not know in a field that it knows." Which ones
 * it knows depends on the headers that it was built with, so the check is part of the headers. In `supports` a backend
 * first calls seqlstm_desc_check, and then refuses what it does not offer. The host checks the descriptors that it
 * makes in the same way. This header is not part of the ABI.
 *
 * Checked are: the size, unknown values and bits, zeros in reserved fields, ranges, and the combinations that ops.h
 * defines.
 */
#ifndef SEQLSTM_DESC_CHECK_H
#define SEQLSTM_DESC_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "any_desc.h"
#include "backend.h"
#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every operation of this version, with the struct of its descriptor: X(OP, desc). */
#define SEQLSTM_EACH_DESC(X)                                                                                           \
    X(RECURRENT, recurrent)                                                                                            \
    X(EMBEDDING, embedding)                                                                                            \
    X(DENSE, dense)                                                                                                    \
    X(ACTIVATION, activation)                                                                                          \
    X(DROPOUT, dropout)                                                                                                \
    X(LAYER_NORM, layer_norm)                                                                                          \
    X(POOL, pool)                                                                                                      \
    X(MERGE, merge)                                                                                                    \
    X(GATHER, gather)                                                                                                  \
    X(SCATTER, gather)                                                                                                 \
    X(CAST, cast)                                                                                                      \
    X(LOSS, loss)                                                                                                      \
    X(DENSE_LOSS, dense_loss)                                                                                          \
    X(TOP_K, top_k)                                                                                                    \
    X(FINITE_CHECK, reduce)                                                                                            \
    X(SQUARED_NORM, reduce)                                                                                            \
    X(OPTIMIZER, optimizer)                                                                                            \
    X(VECTOR, vector)                                                                                                  \
    X(ATTENTION, attention)

/* An entry of `desc_bytes` in the table of a backend. A backend that runs all operations has, in C:
 *   static const uint32_t desc_bytes[SEQLSTM_OP_COUNT] = {SEQLSTM_EACH_DESC(SEQLSTM_DESC_BYTES_ENTRY)};
 */
#define SEQLSTM_DESC_BYTES_ENTRY(OP, desc) [SEQLSTM_OP_##OP] = (uint32_t)sizeof(struct seqlstm_##desc##_desc),

#define SEQLSTM_DESC_BYTES_CASE(OP, desc)                                                                              \
    case SEQLSTM_OP_##OP:                                                                                              \
        return (uint32_t)sizeof(struct seqlstm_##desc##_desc);

/* Bytes of an operation's descriptor in this version of the headers; 0: unknown operation. */
static inline uint32_t seqlstm_desc_bytes(uint32_t op)
{
    switch (op) {
        SEQLSTM_EACH_DESC(SEQLSTM_DESC_BYTES_CASE)
    default:
        return 0;
    }
}

/* Copies a descriptor to the size that it has in this version. Members that an older host does not have become zero,
 * which means "off". Members that a later host has added are left out (the host answers for them). A backend keeps this
 * copy and reads only that. */
static inline void seqlstm_desc_copy(const struct seqlstm_desc *desc, union seqlstm_any_desc *out_desc)
{
    const uint32_t known = seqlstm_desc_bytes(desc->op);
    memset(out_desc, 0, sizeof *out_desc);
    memcpy(out_desc, desc, desc->struct_size < known ? desc->struct_size : known);
}

/* Fills the answer *no* and returns 0, so that `supports` can return it; backends use it for their own refusals too.
 * `value` may be NULL. */
static inline int32_t seqlstm_answer_no(struct seqlstm_answer *answer, uint32_t code, uint32_t option,
                                        const char *value, const char *reason)
{
    answer->accepted = 0;
    answer->code = code;
    answer->option = option;
    snprintf(answer->value, sizeof answer->value, "%s", value ? value : "");
    snprintf(answer->reason, sizeof answer->reason, "%s", reason);
    return 0;
}

enum { SEQLSTM_DESC_NUMBER_BYTES = 24 }; /* of any number as text */

/* Writes a number as text, whatever the locale: "-12.5000", "nan", "out of range". */
static inline const char *seqlstm_desc_number(double value, char text[SEQLSTM_DESC_NUMBER_BYTES])
{
    if (!(value > -1e12 && value < 1e12)) {
        snprintf(text, SEQLSTM_DESC_NUMBER_BYTES, "%s", value == value ? "out of range" : "nan");
        return text;
    }
    int64_t scaled = (int64_t)((value < 0 ? -value : value) * 1e4 + 0.5);
    snprintf(text, SEQLSTM_DESC_NUMBER_BYTES, "%s%lld.%04lld", value < 0 ? "-" : "", (long long)(scaled / 10000),
             (long long)(scaled % 10000));
    return text;
}

static inline int32_t seqlstm_check_range(struct seqlstm_answer *answer, uint32_t option, const char *field,
                                          int64_t value, int64_t low, int64_t high)
{
    if (value >= low && value <= high)
        return 1;
    char text[SEQLSTM_DESC_NUMBER_BYTES], reason[256];
    snprintf(text, sizeof text, "%lld", (long long)value);
    snprintf(reason, sizeof reason, "%s is %lld, expected %lld to %lld", field, (long long)value, (long long)low,
             (long long)high);
    return seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_SHAPE, option, text, reason);
}

static inline int32_t seqlstm_check_enum(struct seqlstm_answer *answer, uint32_t option, const char *field,
                                         uint32_t value, uint32_t low, uint32_t high)
{
    if (value >= low && value <= high)
        return 1;
    char text[SEQLSTM_DESC_NUMBER_BYTES], reason[256];
    snprintf(text, sizeof text, "%lu", (unsigned long)value);
    snprintf(reason, sizeof reason, "%s is %lu, which this version does not know", field, (unsigned long)value);
    return seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_ABI, option, text, reason);
}

static inline int32_t seqlstm_check_bits(struct seqlstm_answer *answer, uint32_t option, const char *field,
                                         uint64_t value, uint64_t known)
{
    if ((value & ~known) == 0)
        return 1;
    char text[SEQLSTM_DESC_NUMBER_BYTES], reason[256];
    snprintf(text, sizeof text, "0x%llx", (unsigned long long)(value & ~known));
    snprintf(reason, sizeof reason, "%s has the bits %s, which this version does not know", field, text);
    return seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_ABI, option, text, reason);
}

/* low <= value <= high, or < high if `open`. NaN is refused. */
static inline int32_t seqlstm_check_float(struct seqlstm_answer *answer, uint32_t option, const char *field,
                                          float value, float low, float high, int32_t open)
{
    if (value >= low && (open ? value < high : value <= high))
        return 1;
    char text[SEQLSTM_DESC_NUMBER_BYTES], reason[256];
    seqlstm_desc_number((double)value, text);
    snprintf(reason, sizeof reason, "%s is %s, which is out of its range", field, text);
    return seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_OPTION, option, text, reason);
}

static inline int32_t seqlstm_check_needs(struct seqlstm_answer *answer, int32_t fine, uint32_t option,
                                          const char *reason)
{
    return fine ? 1 : seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_COMBINATION, option, NULL, reason);
}

static inline int32_t seqlstm_check_activation(struct seqlstm_answer *answer, uint32_t option,
                                               const struct seqlstm_activation *activation, uint32_t last)
{
    const float big = 3.0e38f;
    return seqlstm_check_enum(answer, option, "the activation", activation->kind, 0, last) &&
           seqlstm_check_float(answer, option, "the activation's alpha", activation->alpha, -big, big, 0) &&
           seqlstm_check_float(answer, option, "the activation's beta", activation->beta, -big, big, 0) &&
           seqlstm_check_bits(answer, option, "activation.reserved0", activation->reserved0, 0);
}

static inline int32_t seqlstm_check_head(const struct seqlstm_desc *d, struct seqlstm_answer *answer)
{
    uint32_t bytes = seqlstm_desc_bytes(d->op);
    if (bytes == 0) {
        char text[SEQLSTM_DESC_NUMBER_BYTES];
        snprintf(text, sizeof text, "%lu", (unsigned long)d->op);
        return seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_ABI | SEQLSTM_BIT_REFUSED_OPERATION, SEQLSTM_OPTION_NONE,
                                 text, "this version does not know the operation");
    }
    if (d->struct_size < sizeof *d)
        return seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_ABI, SEQLSTM_OPTION_NONE, NULL,
                                 "the descriptor is shorter than its head");
    const uint32_t flags = SEQLSTM_BIT_DESC_DETERMINISTIC | SEQLSTM_BIT_DESC_UNIFORM, last = SEQLSTM_DTYPE_UINT8;
    const uint32_t dtype = SEQLSTM_OPTION_DTYPE, shape = SEQLSTM_OPTION_SHAPE;
    const int64_t most = INT64_C(1) << 48;
    return seqlstm_check_enum(answer, SEQLSTM_OPTION_MODE, "mode", d->mode, SEQLSTM_MODE_INFERENCE,
                              SEQLSTM_MODE_TRAINING) &&
           seqlstm_check_bits(answer, SEQLSTM_OPTION_DETERMINISM, "flags", d->flags, flags) &&
           seqlstm_check_enum(answer, dtype, "dtype_activation", d->dtype_activation, 0, last) &&
           seqlstm_check_enum(answer, dtype, "dtype_activation_grad", d->dtype_activation_grad, 0, last) &&
           seqlstm_check_enum(answer, dtype, "dtype_state", d->dtype_state, 0, last) &&
           seqlstm_check_enum(answer, dtype, "dtype_compute", d->dtype_compute, 0, last) &&
           seqlstm_check_enum(answer, dtype, "dtype_weight", d->dtype_weight, 0, last) &&
           seqlstm_check_enum(answer, dtype, "dtype_weight_grad", d->dtype_weight_grad, 0, last) &&
           seqlstm_check_range(answer, shape, "max_rows", d->max_rows, 1, most) &&
           seqlstm_check_range(answer, shape, "max_sequences", d->max_sequences, 0, most) &&
           seqlstm_check_range(answer, shape, "max_steps", d->max_steps, 0, most) &&
           seqlstm_check_range(answer, shape, "reserved0", d->reserved0, 0, 0);
}

static inline int32_t seqlstm_check_quantization(const struct seqlstm_recurrent_desc *d, struct seqlstm_answer *answer)
{
    const uint32_t dtype = SEQLSTM_OPTION_DTYPE;
    if (d->head.dtype_compute != SEQLSTM_DTYPE_INT8)
        return seqlstm_check_float(answer, dtype, "data_scale without int8", d->data_scale, 0, 0, 0) &&
               seqlstm_check_float(answer, dtype, "data_shift without int8", d->data_shift, 0, 0, 0);
    return seqlstm_check_float(answer, dtype, "data_scale", d->data_scale, 1e-30f, 1e30f, 0) &&
           seqlstm_check_float(answer, dtype, "data_shift", d->data_shift, 0, 255, 0) &&
           seqlstm_check_needs(answer, d->head.mode == SEQLSTM_MODE_INFERENCE, dtype, "int8 is for inference") &&
           seqlstm_check_needs(answer, d->layers == 1, dtype, "int8 runs layer by layer");
}

static inline int32_t seqlstm_check_recurrent(const struct seqlstm_recurrent_desc *d, struct seqlstm_answer *answer)
{
    static const uint32_t place_option[3] = {SEQLSTM_OPTION_RECURRENT_ACTIVATION, SEQLSTM_OPTION_ACTIVATION,
                                             SEQLSTM_OPTION_OUTPUT_ACTIVATION};
    const int64_t wide = INT64_C(1) << 30;
    const float big = 3.0e38f;
    const uint32_t o = d->options;
    const int32_t lstm = d->cell == SEQLSTM_CELL_LSTM, gru = d->cell == SEQLSTM_CELL_GRU;
    if (!seqlstm_check_enum(answer, SEQLSTM_OPTION_CELL, "cell", d->cell, SEQLSTM_CELL_LSTM, SEQLSTM_CELL_RNN) ||
        !seqlstm_check_enum(answer, SEQLSTM_OPTION_DIRECTION, "direction", d->direction, 0,
                            SEQLSTM_DIRECTION_BIDIRECTIONAL) ||
        !seqlstm_check_enum(answer, SEQLSTM_OPTION_MERGE, "merge", d->merge, 0, SEQLSTM_KIND_MERGE_AVE) ||
        !seqlstm_check_bits(answer, SEQLSTM_OPTION_NONE, "options", o, 0x1FF) ||
        !seqlstm_check_range(answer, SEQLSTM_OPTION_LAYERS, "layers", d->layers, 1, SEQLSTM_MAX_LAYERS) ||
        !seqlstm_check_range(answer, SEQLSTM_OPTION_SHAPE, "input", d->input, 1, wide) ||
        !seqlstm_check_range(answer, SEQLSTM_OPTION_UNITS, "hidden", d->hidden, 1, wide) ||
        !seqlstm_check_range(answer, SEQLSTM_OPTION_PROJECTION, "projection", d->projection, 0, wide) ||
        !seqlstm_check_range(answer, SEQLSTM_OPTION_SHAPE, "max_sequences", d->head.max_sequences, 1,
                             INT64_C(1) << 48) ||
        !seqlstm_check_range(answer, SEQLSTM_OPTION_SHAPE, "max_steps", d->head.max_steps, 1, INT64_C(1) << 48))
        return 0;
    for (int place = 0; place < 3; place++)
        for (int direction = 0; direction < 2; direction++)
            if (!seqlstm_check_activation(answer, place_option[place], &d->activations[place][direction],
                                          SEQLSTM_ACT_AFFINE))
                return 0;
    return seqlstm_check_float(answer, SEQLSTM_OPTION_DROPOUT, "dropout", d->dropout, 0, 1, 1) &&
           seqlstm_check_float(answer, SEQLSTM_OPTION_RECURRENT_DROPOUT, "recurrent_dropout", d->recurrent_dropout, 0,
                               1, 1) &&
           seqlstm_check_float(answer, SEQLSTM_OPTION_ZONEOUT, "zoneout_cell", d->zoneout_cell, 0, 1, 0) &&
           seqlstm_check_float(answer, SEQLSTM_OPTION_ZONEOUT, "zoneout_hidden", d->zoneout_hidden, 0, 1, 0) &&
           seqlstm_check_float(answer, SEQLSTM_OPTION_WEIGHT_DROP, "weight_drop", d->weight_drop, 0, 1, 1) &&
           seqlstm_check_float(answer, SEQLSTM_OPTION_CELL_CLIP, "cell_clip", d->cell_clip, 0, big, 0) &&
           seqlstm_check_float(answer, SEQLSTM_OPTION_GATE_CLIP, "gate_clip", d->gate_clip, 0, big, 0) &&
           seqlstm_check_float(answer, SEQLSTM_OPTION_LAYER_NORM, "layer_norm_epsilon", d->layer_norm_epsilon, 0, big,
                               0) &&
           seqlstm_check_needs(answer, lstm || d->projection == 0, SEQLSTM_OPTION_PROJECTION,
                               "projection needs the LSTM cell") &&
           seqlstm_check_needs(answer, lstm || !(o & SEQLSTM_BIT_RECURRENT_PEEPHOLE), SEQLSTM_OPTION_PEEPHOLE,
                               "peephole needs the LSTM cell") &&
           seqlstm_check_needs(answer, lstm || !(o & SEQLSTM_BIT_RECURRENT_COUPLED_GATES), SEQLSTM_OPTION_COUPLED_GATES,
                               "coupled gates need the LSTM cell") &&
           seqlstm_check_needs(answer, lstm || d->cell_clip == 0, SEQLSTM_OPTION_CELL_CLIP,
                               "cell_clip needs the LSTM cell") &&
           seqlstm_check_needs(answer, lstm || d->zoneout_cell == 0, SEQLSTM_OPTION_ZONEOUT,
                               "zoneout of the cell needs the LSTM cell") &&
           seqlstm_check_needs(answer, gru || !(o & SEQLSTM_BIT_RECURRENT_RESET_AFTER), SEQLSTM_OPTION_RESET_AFTER,
                               "reset_after needs the GRU cell") &&
           seqlstm_check_needs(
               answer, !gru || (o & SEQLSTM_BIT_RECURRENT_RESET_AFTER) || !(o & SEQLSTM_BIT_RECURRENT_LAYER_NORM),
               SEQLSTM_OPTION_LAYER_NORM, "layer normalisation of a GRU needs reset_after") &&
           seqlstm_check_needs(answer, !(o & SEQLSTM_BIT_RECURRENT_LAYER_NORM) || d->layer_norm_epsilon > 0,
                               SEQLSTM_OPTION_LAYER_NORM, "layer_norm_epsilon must be positive") &&
           seqlstm_check_quantization(d, answer) &&
           seqlstm_check_needs(answer, (o & (SEQLSTM_BIT_RECURRENT_OUTPUT | SEQLSTM_BIT_RECURRENT_FINAL_STATE)) != 0,
                               SEQLSTM_OPTION_STATES, "neither the output nor the final state is wanted");
}

static inline int32_t seqlstm_check_loss(uint32_t kind, uint32_t options, float smoothing, float delta,
                                         struct seqlstm_answer *answer)
{
    const int32_t classes = kind == SEQLSTM_KIND_LOSS_CROSS_ENTROPY;
    return seqlstm_check_enum(answer, SEQLSTM_OPTION_LOSS, "the loss", kind, SEQLSTM_KIND_LOSS_MSE,
                              SEQLSTM_KIND_LOSS_CROSS_ENTROPY) &&
           seqlstm_check_bits(answer, SEQLSTM_OPTION_LOSS, "the loss's options", options, 7) &&
           seqlstm_check_float(answer, SEQLSTM_OPTION_LOSS, "label_smoothing", smoothing, 0, 1, 1) &&
           seqlstm_check_float(answer, SEQLSTM_OPTION_LOSS, "delta", delta, 0, 3.0e38f, 0) &&
           seqlstm_check_needs(answer, classes || !(options & SEQLSTM_BIT_LOSS_CLASS_WEIGHT), SEQLSTM_OPTION_LOSS,
                               "class weights need the cross-entropy") &&
           seqlstm_check_needs(answer, classes || smoothing == 0, SEQLSTM_OPTION_LOSS,
                               "label smoothing needs the cross-entropy") &&
           seqlstm_check_needs(answer, kind != SEQLSTM_KIND_LOSS_HUBER || delta > 0, SEQLSTM_OPTION_LOSS,
                               "the Huber loss needs a positive delta");
}

static inline int32_t seqlstm_check_merge(const struct seqlstm_merge_desc *d, struct seqlstm_answer *answer)
{
    if (!seqlstm_check_enum(answer, SEQLSTM_OPTION_MERGE, "kind", d->kind, 0, SEQLSTM_KIND_MERGE_AVE) ||
        !seqlstm_check_range(answer, SEQLSTM_OPTION_MERGE, "inputs", d->inputs, 2, SEQLSTM_MAX_MERGE_INPUTS))
        return 0;
    for (uint32_t k = 0; k < SEQLSTM_MAX_MERGE_INPUTS; k++) {
        const int64_t low = k < d->inputs, high = k < d->inputs ? INT64_C(1) << 30 : 0;
        if (!seqlstm_check_range(answer, SEQLSTM_OPTION_SHAPE, "a width", d->widths[k], low, high))
            return 0;
        if (k < d->inputs && d->kind != SEQLSTM_KIND_MERGE_CONCAT && d->widths[k] != d->widths[0])
            return seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_COMBINATION, SEQLSTM_OPTION_MERGE, NULL,
                                     "only concat joins inputs of different widths");
    }
    return 1;
}

static inline int32_t seqlstm_check_top_k(const struct seqlstm_top_k_desc *d, struct seqlstm_answer *answer)
{
    if (!seqlstm_check_enum(answer, SEQLSTM_OPTION_KIND, "kind", d->kind, 0, SEQLSTM_KIND_TOP_K_SAMPLE) ||
        !seqlstm_check_range(answer, SEQLSTM_OPTION_SHAPE, "features", d->features, 1, INT64_C(1) << 30) ||
        !seqlstm_check_range(answer, SEQLSTM_OPTION_SHAPE, "k", d->k, 1, d->features))
        return 0;
    if (d->kind == SEQLSTM_KIND_TOP_K_BEST)
        return 1;
    return seqlstm_check_range(answer, SEQLSTM_OPTION_SHAPE, "k of a draw", d->k, 1, 1) &&
           seqlstm_check_needs(answer, d->temperature > 0 && d->temperature < 3.0e38f, SEQLSTM_OPTION_KIND,
                               "the temperature must be positive") &&
           seqlstm_check_needs(answer, d->top_p > 0 && d->top_p <= 1, SEQLSTM_OPTION_KIND, "top_p must lie in (0, 1]");
}

static inline int32_t seqlstm_check_optimizer(const struct seqlstm_optimizer_desc *d, struct seqlstm_answer *answer)
{
    const uint32_t option = SEQLSTM_OPTION_OPTIMIZER;
    return seqlstm_check_enum(answer, option, "kind", d->kind, SEQLSTM_KIND_OPTIMIZER_SGD,
                              SEQLSTM_KIND_OPTIMIZER_ADADELTA) &&
           seqlstm_check_float(answer, option, "beta_1", d->beta_1, 0, 1, 1) &&
           seqlstm_check_float(answer, option, "beta_2", d->beta_2, 0, 1, 1) &&
           seqlstm_check_float(answer, option, "rho", d->rho, 0, 1, 0) &&
           seqlstm_check_float(answer, option, "momentum", d->momentum, 0, 3.0e38f, 0) &&
           seqlstm_check_float(answer, option, "epsilon", d->epsilon, 0, 3.0e38f, 0) &&
           seqlstm_check_float(answer, option, "weight_decay", d->weight_decay, 0, 3.0e38f, 0) &&
           seqlstm_check_float(answer, option, "clip_norm", d->clip_norm, 0, 3.0e38f, 0) &&
           seqlstm_check_bits(answer, option, "reserved0", d->reserved0, 0) &&
           seqlstm_check_bits(answer, option, "options", d->options,
                              SEQLSTM_BIT_OPTIMIZER_AMSGRAD | SEQLSTM_BIT_OPTIMIZER_CENTERED) &&
           seqlstm_check_needs(answer,
                               d->kind == SEQLSTM_KIND_OPTIMIZER_ADAM || !(d->options & SEQLSTM_BIT_OPTIMIZER_AMSGRAD),
                               option, "amsgrad needs Adam") &&
           seqlstm_check_needs(
               answer, d->kind == SEQLSTM_KIND_OPTIMIZER_RMSPROP || !(d->options & SEQLSTM_BIT_OPTIMIZER_CENTERED),
               option, "centered needs RMSprop");
}

static inline int32_t seqlstm_check_attention(const struct seqlstm_attention_desc *d, struct seqlstm_answer *answer)
{
    const uint32_t option = SEQLSTM_OPTION_KIND, shape = SEQLSTM_OPTION_SHAPE;
    const int64_t wide = INT64_C(1) << 30;
    const int32_t dot = d->kind == SEQLSTM_KIND_ATTENTION_DOT;
    return seqlstm_check_enum(answer, option, "kind", d->kind, SEQLSTM_KIND_ATTENTION_DOT,
                              SEQLSTM_KIND_ATTENTION_ADDITIVE) &&
           seqlstm_check_bits(answer, option, "options", d->options,
                              SEQLSTM_BIT_ATTENTION_SHARED | SEQLSTM_BIT_ATTENTION_WEIGHTS) &&
           seqlstm_check_bits(answer, SEQLSTM_OPTION_NONE, "reserved0", d->reserved0, 0) &&
           seqlstm_check_range(answer, shape, "key", d->key, 1, wide) &&
           seqlstm_check_range(answer, shape, "value", d->value, 1, wide) &&
           seqlstm_check_range(answer, shape, "max_rows", d->head.max_rows, 1, INT32_MAX) &&
           seqlstm_check_range(answer, shape, "max_sequences", d->head.max_sequences, 1, INT32_MAX) &&
           seqlstm_check_range(answer, shape, "max_steps", d->head.max_steps, 1, wide) &&
           seqlstm_check_float(answer, option, "scale", d->scale, 0, 3.0e38f, 0) &&
           seqlstm_check_needs(answer, dot == (d->scale > 0), option, "scale is positive with dot, else 0") &&
           seqlstm_check_needs(answer, !(d->options & SEQLSTM_BIT_ATTENTION_SHARED) || d->key == d->value, shape,
                               "values that are the keys have their width");
}

/* Checks what follows the head, which differs from operation to operation. The head has been checked. */
static inline int32_t seqlstm_check_body(const struct seqlstm_desc *head, struct seqlstm_answer *answer)
{
    const int64_t wide = INT64_C(1) << 30;
    const uint32_t shape = SEQLSTM_OPTION_SHAPE;
    const union seqlstm_any_desc *d = (const union seqlstm_any_desc *)(const void *)head;
    switch (head->op) {
    case SEQLSTM_OP_RECURRENT:
        return seqlstm_check_recurrent(&d->recurrent, answer);
    case SEQLSTM_OP_EMBEDDING:
        return seqlstm_check_range(answer, shape, "vocabulary", d->embedding.vocabulary, 1, INT32_MAX) &&
               seqlstm_check_range(answer, shape, "features", d->embedding.features, 1, wide);
    case SEQLSTM_OP_DENSE:
        return seqlstm_check_range(answer, shape, "input", d->dense.input, 1, wide) &&
               seqlstm_check_range(answer, SEQLSTM_OPTION_UNITS, "output", d->dense.output, 1, wide) &&
               seqlstm_check_bits(answer, SEQLSTM_OPTION_USE_BIAS, "options", d->dense.options,
                                  SEQLSTM_BIT_DENSE_USE_BIAS) &&
               seqlstm_check_bits(answer, SEQLSTM_OPTION_NONE, "reserved0", d->dense.reserved0, 0) &&
               seqlstm_check_activation(answer, SEQLSTM_OPTION_ACTIVATION, &d->dense.activation,
                                        SEQLSTM_ACT_LOG_SOFTMAX);
    case SEQLSTM_OP_ACTIVATION:
        return seqlstm_check_range(answer, shape, "features", d->activation.features, 1, wide) &&
               seqlstm_check_activation(answer, SEQLSTM_OPTION_ACTIVATION, &d->activation.activation,
                                        SEQLSTM_ACT_LOG_SOFTMAX);
    case SEQLSTM_OP_DROPOUT:
        return seqlstm_check_range(answer, shape, "features", d->dropout.features, 1, wide) &&
               seqlstm_check_float(answer, SEQLSTM_OPTION_RATE, "rate", d->dropout.rate, 0, 1, 1) &&
               seqlstm_check_enum(answer, SEQLSTM_OPTION_MASK, "mask", d->dropout.mask, SEQLSTM_KIND_DROPOUT_STEP,
                                  SEQLSTM_KIND_DROPOUT_SEQUENCE);
    case SEQLSTM_OP_LAYER_NORM:
        return seqlstm_check_range(answer, shape, "features", d->layer_norm.features, 1, wide) &&
               seqlstm_check_float(answer, SEQLSTM_OPTION_LAYER_NORM, "epsilon", d->layer_norm.epsilon, 0, 3.0e38f,
                                   0) &&
               seqlstm_check_needs(answer, d->layer_norm.epsilon > 0, SEQLSTM_OPTION_LAYER_NORM,
                                   "epsilon must be positive") &&
               seqlstm_check_bits(answer, SEQLSTM_OPTION_LAYER_NORM, "options", d->layer_norm.options,
                                  SEQLSTM_BIT_LAYER_NORM_GAIN | SEQLSTM_BIT_LAYER_NORM_BIAS);
    case SEQLSTM_OP_POOL:
        return seqlstm_check_range(answer, shape, "features", d->pool.features, 1, wide) &&
               seqlstm_check_range(answer, shape, "max_sequences", head->max_sequences, 1, INT64_C(1) << 48) &&
               seqlstm_check_enum(answer, SEQLSTM_OPTION_KIND, "kind", d->pool.kind, SEQLSTM_KIND_POOL_LAST,
                                  SEQLSTM_KIND_POOL_FIRST) &&
               seqlstm_check_bits(answer, SEQLSTM_OPTION_NONE, "reserved0", d->pool.reserved0, 0);
    case SEQLSTM_OP_MERGE:
        return seqlstm_check_merge(&d->merge, answer);
    case SEQLSTM_OP_GATHER:
    case SEQLSTM_OP_SCATTER:
        return seqlstm_check_range(answer, shape, "features", d->gather.features, 1, wide);
    case SEQLSTM_OP_CAST:
        return seqlstm_check_range(answer, shape, "features", d->cast.features, 1, wide) &&
               seqlstm_check_enum(answer, SEQLSTM_OPTION_DTYPE, "from", d->cast.from, 0, SEQLSTM_DTYPE_UINT8) &&
               seqlstm_check_enum(answer, SEQLSTM_OPTION_DTYPE, "to", d->cast.to, 0, SEQLSTM_DTYPE_UINT8);
    case SEQLSTM_OP_LOSS:
        return seqlstm_check_range(answer, shape, "features", d->loss.features, 1, wide) &&
               seqlstm_check_loss(d->loss.kind, d->loss.options, d->loss.label_smoothing, d->loss.delta, answer);
    case SEQLSTM_OP_DENSE_LOSS:
        return seqlstm_check_range(answer, shape, "input", d->dense_loss.input, 1, wide) &&
               seqlstm_check_range(answer, shape, "output", d->dense_loss.output, 1, wide) &&
               seqlstm_check_bits(answer, SEQLSTM_OPTION_USE_BIAS, "dense_options", d->dense_loss.dense_options,
                                  SEQLSTM_BIT_DENSE_USE_BIAS) &&
               seqlstm_check_bits(answer, SEQLSTM_OPTION_NONE, "reserved0", d->dense_loss.reserved0, 0) &&
               seqlstm_check_loss(d->dense_loss.kind, d->dense_loss.options, d->dense_loss.label_smoothing,
                                  d->dense_loss.delta, answer);
    case SEQLSTM_OP_TOP_K:
        return seqlstm_check_top_k(&d->top_k, answer);
    case SEQLSTM_OP_OPTIMIZER:
        return seqlstm_check_optimizer(&d->optimizer, answer);
    case SEQLSTM_OP_VECTOR:
        return seqlstm_check_enum(answer, SEQLSTM_OPTION_KIND, "kind", d->vector.kind, SEQLSTM_KIND_VECTOR_FILL,
                                  SEQLSTM_KIND_VECTOR_COPY) &&
               seqlstm_check_bits(answer, SEQLSTM_OPTION_NONE, "reserved0", d->vector.reserved0, 0);
    case SEQLSTM_OP_ATTENTION:
        return seqlstm_check_attention(&d->attention, answer);
    default:
        return 1; /* FINITE_CHECK, SQUARED_NORM: the descriptor is only a head */
    }
}

/* 1: well formed; `answer` is untouched. 0: the answer is *no*, with code, option, value and reason. [any] */
static inline int32_t seqlstm_desc_check(const struct seqlstm_desc *desc, struct seqlstm_answer *answer)
{
    union seqlstm_any_desc copy;
    if (!seqlstm_check_head(desc, answer))
        return 0;
    seqlstm_desc_copy(desc, &copy);
    return seqlstm_check_body(&copy.head, answer);
}

#ifdef __cplusplus
}
#endif

#endif
