/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to `supports`, and the rules that several backends share. */
#include "common/answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool answer_yes(struct seqlstm_answer *answer, const char *const *variants)
{
    uint32_t count = 0;
    for (; count < SEQLSTM_MAX_VARIANTS && variants[count] != NULL; count++)
        snprintf(answer->variants[count], sizeof answer->variants[count], "%s", variants[count]);
    answer->accepted = 1;
    answer->variant_count = count;
    return true;
}

bool answer_no(struct seqlstm_answer *answer, uint32_t code, uint32_t option, const char *reason, const char *hint,
               const char *value_format, ...)
{
    va_list args;
    va_start(args, value_format);
    vsnprintf(answer->value, sizeof answer->value, value_format, args);
    va_end(args);
    answer->accepted = 0;
    answer->code = code;
    answer->option = option;
    snprintf(answer->reason, sizeof answer->reason, "%s", reason);
    snprintf(answer->hint, sizeof answer->hint, "%s", hint);
    return false;
}

/* Like answer_no, with a reason that begins with the backend's id. */
static bool refuse(struct seqlstm_answer *answer, const char *id, uint32_t code, uint32_t option, const char *what,
                   const char *hint, const char *value)
{
    char reason[sizeof answer->reason];
    snprintf(reason, sizeof reason, "%s %s", id, what);
    return answer_no(answer, code, option, reason, hint, "%s", value);
}

/* ---- rules ------------------------------------------------------------------------------------------------ */

bool answer_on_cpu(struct seqlstm_answer *answer, const char *id, const char *device_class)
{
    if (strncmp(device_class, "cpu", 3) == 0 && (device_class[3] == '\0' || device_class[3] == ':'))
        return true;
    return refuse(answer, id, SEQLSTM_BIT_REFUSED_DEVICE, SEQLSTM_OPTION_NONE, "runs on CPUs alone.", "device: cpu",
                  device_class);
}

bool answer_rows_in_32_bits(struct seqlstm_answer *answer, const char *id, const struct seqlstm_desc *head)
{
    const bool flat = head->op >= SEQLSTM_OP_FINITE_CHECK && head->op <= SEQLSTM_OP_VECTOR;
    if (flat || head->max_rows <= INT32_MAX)
        return true;
    char rows[24];
    snprintf(rows, sizeof rows, "%lld", (long long)head->max_rows);
    return refuse(answer, id, SEQLSTM_BIT_REFUSED_SHAPE, SEQLSTM_OPTION_SHAPE, "runs at most 2147483647 rows a call.",
                  "smaller batches", rows);
}

const char *answer_dtype_name(uint32_t dtype)
{
    static const char *const names[] = {
        [SEQLSTM_DTYPE_FLOAT32] = "float32", [SEQLSTM_DTYPE_TF32] = "tf32",       [SEQLSTM_DTYPE_BFLOAT16] = "bfloat16",
        [SEQLSTM_DTYPE_FLOAT16] = "float16", [SEQLSTM_DTYPE_FLOAT64] = "float64", [SEQLSTM_DTYPE_INT32] = "int32",
        [SEQLSTM_DTYPE_INT8] = "int8",       [SEQLSTM_DTYPE_UINT8] = "uint8",
    };
    return dtype < sizeof names / sizeof *names ? names[dtype] : "?";
}

const char *answer_activation_name(uint32_t kind)
{
    static const char *const names[SEQLSTM_ACT_COUNT] = {
        "linear",       "tanh", "sigmoid",  "relu",     "leaky_relu", "thresholded_relu", "scaled_tanh",
        "hard_sigmoid", "elu",  "softsign", "softplus", "affine",     "softmax",          "log_softmax"};
    return kind < SEQLSTM_ACT_COUNT ? names[kind] : "?";
}

bool answer_float32_edges(struct seqlstm_answer *answer, const char *id, const struct seqlstm_desc *head)
{
    const uint32_t dtypes[] = {head->dtype_activation, head->dtype_activation_grad, head->dtype_state,
                               head->dtype_weight, head->dtype_weight_grad};
    for (size_t i = head->op == SEQLSTM_OP_CAST; i < sizeof dtypes / sizeof *dtypes; i++)
        if (dtypes[i] != SEQLSTM_DTYPE_FLOAT32)
            return refuse(answer, id, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE, "takes and gives float32 alone.",
                          "precision: float32", answer_dtype_name(dtypes[i]));
    return true;
}

bool answer_float32(struct seqlstm_answer *answer, const char *id, const struct seqlstm_desc *head)
{
    if (!answer_float32_edges(answer, id, head))
        return false;
    return head->dtype_compute == SEQLSTM_DTYPE_FLOAT32 ||
           refuse(answer, id, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE, "computes in float32 alone.",
                  "precision: float32", answer_dtype_name(head->dtype_compute));
}

bool answer_cast(struct seqlstm_answer *answer, const struct seqlstm_cast_desc *desc)
{
    const uint32_t ends[] = {desc->from, desc->to};
    for (size_t i = 0; i < 2; i++)
        if (ends[i] == SEQLSTM_DTYPE_TF32 || ends[i] > SEQLSTM_DTYPE_FLOAT64)
            return answer_no(answer, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE,
                             "A cast is between float32, float64, float16 and bfloat16.", "", "%s",
                             answer_dtype_name(ends[i]));
    return true;
}

/* ---- op_create -------------------------------------------------------------------------------------------- */

seqlstm_status answer_choose(const struct seqlstm_answer *answer, const char *id, const char *variant,
                             uint32_t *out_index, struct seqlstm_error *err)
{
    if (!answer->accepted)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "%s (%s)", answer->reason, answer->value);
    uint32_t index = 0;
    if (variant != NULL && variant[0] != '\0')
        while (index < answer->variant_count && strcmp(variant, answer->variants[index]) != 0)
            index++;
    if (index == answer->variant_count)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%s has no variant `%s` of this operation", id, variant);
    *out_index = index;
    return SEQLSTM_OK;
}
