/* SPDX-License-Identifier: Apache-2.0 */
/* What this backend runs: the head of every descriptor, and the checks that several operations share.
 *
 * Strict by the contract: a value or bit whose meaning is not known here is answered no, with the option, the
 * value and a sentence.
 */
#include "plugin.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct blas_operation *const operations[SEQLSTM_OP_COUNT] = {
    [SEQLSTM_OP_EMBEDDING] = &blas_embedding,       [SEQLSTM_OP_DENSE] = &blas_dense,
    [SEQLSTM_OP_DROPOUT] = &blas_dropout,           [SEQLSTM_OP_LOSS] = &blas_loss,
    [SEQLSTM_OP_FINITE_CHECK] = &blas_finite_check, [SEQLSTM_OP_SQUARED_NORM] = &blas_squared_norm,
    [SEQLSTM_OP_OPTIMIZER] = &blas_optimizer,       [SEQLSTM_OP_VECTOR] = &blas_vector,
};

const uint32_t blas_desc_bytes[SEQLSTM_OP_COUNT] = {
#ifdef BLAS_HAVE_RECURRENT
    [SEQLSTM_OP_RECURRENT] = sizeof(struct seqlstm_recurrent_desc),
#endif
    [SEQLSTM_OP_EMBEDDING] = sizeof(struct seqlstm_embedding_desc),
    [SEQLSTM_OP_DENSE] = sizeof(struct seqlstm_dense_desc),
    [SEQLSTM_OP_DROPOUT] = sizeof(struct seqlstm_dropout_desc),
    [SEQLSTM_OP_LOSS] = sizeof(struct seqlstm_loss_desc),
    [SEQLSTM_OP_FINITE_CHECK] = sizeof(struct seqlstm_reduce_desc),
    [SEQLSTM_OP_SQUARED_NORM] = sizeof(struct seqlstm_reduce_desc),
    [SEQLSTM_OP_OPTIMIZER] = sizeof(struct seqlstm_optimizer_desc),
    [SEQLSTM_OP_VECTOR] = sizeof(struct seqlstm_vector_desc),
};

const struct blas_operation *blas_operation_get(uint32_t op)
{
    return op < SEQLSTM_OP_COUNT ? operations[op] : NULL;
}

/* ---- answers ---------------------------------------------------------------------------------- */

void blas_accept(struct seqlstm_answer *answer, const char *const *variants)
{
    uint32_t count = 0;
    for (; count < SEQLSTM_VARIANTS && variants[count] != NULL; count++)
        snprintf(answer->variants[count], sizeof answer->variants[count], "%s", variants[count]);
    answer->accepted = 1;
    answer->variant_count = count;
}

void blas_accept_plain(struct seqlstm_answer *answer)
{
    static const char *const variants[] = {"default", NULL};
    blas_accept(answer, variants);
}

void blas_refuse(struct seqlstm_answer *answer, uint32_t code, uint32_t option, const char *reason,
                 const char *hint, const char *value_format, ...)
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
}

/* ---- shared checks -------------------------------------------------------------------------- */

/* Below 2^31, since OpenBLAS counts in 32 bits. */
bool blas_check_features(struct seqlstm_answer *answer, const char *what, int64_t features)
{
    if (features >= 1 && features <= INT32_MAX)
        return true;
    char reason[128];
    snprintf(reason, sizeof reason, "The number of %s must be from 1 to 2147483647.", what);
    blas_refuse(answer, SEQLSTM_REFUSED_SHAPE, SEQLSTM_OPTION_UNITS, reason, "", "%lld", (long long)features);
    return false;
}

bool blas_check_bits(struct seqlstm_answer *answer, uint32_t option, uint32_t bits, uint32_t known)
{
    if ((bits & ~known) == 0)
        return true;
    blas_refuse(answer, SEQLSTM_REFUSED_ABI, option,
                "The descriptor has option bits that this backend does not know.", "", "0x%x",
                (unsigned)(bits & ~known));
    return false;
}

bool blas_check_activation(struct seqlstm_answer *answer, const struct seqlstm_activation *act)
{
    if (act->kind >= SEQLSTM_ACT_COUNT) {
        blas_refuse(answer, SEQLSTM_REFUSED_ABI, SEQLSTM_OPTION_ACTIVATION,
                    "This backend does not know an activation of that number.", "", "%u",
                    (unsigned)act->kind);
        return false;
    }
    if (act->reserved0 != 0)
        return blas_check_bits(answer, SEQLSTM_OPTION_ACTIVATION, act->reserved0, 0);
    if (!isfinite(act->alpha) || !isfinite(act->beta)) {
        blas_refuse(answer, SEQLSTM_REFUSED_OPTION, SEQLSTM_OPTION_ACTIVATION,
                    "alpha and beta of an activation must be finite.", "", "%g",
                    (double)(isfinite(act->alpha) ? act->beta : act->alpha));
        return false;
    }
    return true;
}

/* Zero means float32 in every role; nothing else is computed here (CAST names its dtypes itself). */
static bool check_dtypes(const struct seqlstm_desc *head, struct seqlstm_answer *answer)
{
    static const char *const names[] = {"float32", "tf32",  "bfloat16", "float16",
                                        "float64", "int32", "int8",     "uint8"};
    const uint32_t dtypes[] = {head->dtype_activation, head->dtype_activation_grad, head->dtype_state,
                               head->dtype_compute,    head->dtype_weight,          head->dtype_weight_grad};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if (dtypes[i] == SEQLSTM_FLOAT32 || (i == 0 && head->op == SEQLSTM_OP_CAST))
            continue;
        if (dtypes[i] < sizeof names / sizeof *names)
            blas_refuse(answer, SEQLSTM_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE,
                        "cpu-blas computes in float32 alone.", "precision: float32", "%s", names[dtypes[i]]);
        else
            blas_refuse(answer, SEQLSTM_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE,
                        "This backend does not know a dtype of that number.", "precision: float32", "%u",
                        (unsigned)dtypes[i]);
        return false;
    }
    return true;
}

static bool check_head(const struct seqlstm_desc *head, struct seqlstm_answer *answer)
{
    if (head->mode != SEQLSTM_MODE_INFERENCE && head->mode != SEQLSTM_MODE_TRAINING) {
        blas_refuse(answer, SEQLSTM_REFUSED_MODE, SEQLSTM_OPTION_MODE,
                    "The mode is neither inference nor training.", "", "%u", (unsigned)head->mode);
        return false;
    }
    if (!blas_check_bits(answer, SEQLSTM_OPTION_NONE, head->flags,
                         SEQLSTM_DESC_DETERMINISTIC | SEQLSTM_DESC_UNIFORM))
        return false;
    if (!check_dtypes(head, answer))
        return false;
    if (head->reserved0 != 0) {
        blas_refuse(answer, SEQLSTM_REFUSED_ABI, SEQLSTM_OPTION_NONE,
                    "A reserved field of the descriptor is not zero.", "", "%lld",
                    (long long)head->reserved0);
        return false;
    }
    bool flat = head->op >= SEQLSTM_OP_FINITE_CHECK;
    if (head->max_rows < 1 || head->max_sequences < 0 || head->max_steps < 0 ||
        head->max_rows > (flat ? INT64_MAX / 64 : INT32_MAX)) {
        blas_refuse(answer, SEQLSTM_REFUSED_SHAPE, SEQLSTM_OPTION_SHAPE,
                    "The largest number of rows is not given or beyond what this backend can address.", "",
                    "%lld", (long long)head->max_rows);
        return false;
    }
    return true;
}

void blas_supports(const char *device_class, const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                   union seqlstm_any_desc *out_desc)
{
    answer->accepted = 0;
    if (device_class == NULL || strncmp(device_class, "cpu", 3) != 0 ||
        (device_class[3] != '\0' && device_class[3] != ':')) {
        blas_refuse(answer, SEQLSTM_REFUSED_DEVICE, SEQLSTM_OPTION_NONE, "cpu-blas runs on CPUs alone.",
                    "device: cpu", "%s", device_class != NULL ? device_class : "");
        return;
    }
    const uint32_t known = desc->op < SEQLSTM_OP_COUNT ? blas_desc_bytes[desc->op] : 0;
    if (known == 0) {
        blas_refuse(answer, SEQLSTM_REFUSED_OPERATION, SEQLSTM_OPTION_NONE,
                    "This operation is not among those of cpu-blas.", "", "%u", (unsigned)desc->op);
        return;
    }
    for (uint32_t i = known; i < desc->struct_size; i++)
        if (((const unsigned char *)desc)[i] != 0) {
            blas_refuse(answer, SEQLSTM_REFUSED_ABI, SEQLSTM_OPTION_NONE,
                        "The descriptor says something beyond the bytes that this backend reads.", "",
                        "byte %u", (unsigned)i);
            return;
        }
    memset(out_desc, 0, sizeof *out_desc);
    memcpy(out_desc, desc, desc->struct_size < known ? desc->struct_size : known);
    if (!check_head(&out_desc->head, answer))
        return;
#ifdef BLAS_HAVE_RECURRENT
    if (desc->op == SEQLSTM_OP_RECURRENT)
        blas_recurrent_supports(&out_desc->recurrent, answer);
#endif
    if (operations[desc->op] != NULL)
        operations[desc->op]->supports(out_desc, answer);
}
