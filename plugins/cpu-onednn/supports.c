/* SPDX-License-Identifier: Apache-2.0 */
/* What this backend runs. Values and bits whose meaning the headers do not define are refused by
 * <seqlstm/desc_check.h>; what the library does not offer, by the rules of each operation. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <seqlstm/desc_check.h>

#include "plugin.h"

static const struct odn_operation *const operations[SEQLSTM_OP_COUNT] = {
    [SEQLSTM_OP_RECURRENT] = &odn_recurrent_operation,
    [SEQLSTM_OP_DENSE] = &odn_dense_operation,
    [SEQLSTM_OP_LAYER_NORM] = &odn_norm_operation,
};

const uint32_t odn_desc_bytes[SEQLSTM_OP_COUNT] = {
    [SEQLSTM_OP_RECURRENT] = sizeof(struct seqlstm_recurrent_desc),
    [SEQLSTM_OP_DENSE] = sizeof(struct seqlstm_dense_desc),
    [SEQLSTM_OP_LAYER_NORM] = sizeof(struct seqlstm_layer_norm_desc),
};

const struct odn_operation *odn_operation_get(uint32_t op)
{
    return op < SEQLSTM_OP_COUNT ? operations[op] : NULL;
}

bool odn_refuse(struct seqlstm_answer *answer, uint32_t code, uint32_t option, const char *reason,
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
    return false;
}

/* Edges are float32; inside, products may be in bfloat16 or int8 where the processor has AVX-512. */
static bool check_dtypes(const char *device_class, const struct seqlstm_desc *head, struct seqlstm_answer *answer)
{
    static const char *const names[] = {"float32", "tf32",  "bfloat16", "float16",
                                        "float64", "int32", "int8",     "uint8"};
    const uint32_t dtypes[] = {head->dtype_activation, head->dtype_activation_grad, head->dtype_state,
                               head->dtype_weight,     head->dtype_weight_grad};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (dtypes[i] != SEQLSTM_FLOAT32)
            return odn_refuse(answer, SEQLSTM_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE,
                              "cpu-onednn takes and gives float32 alone.", "precision: float32", "%s",
                              names[dtypes[i]]);
    if (head->dtype_compute == SEQLSTM_FLOAT32)
        return true;
    if (head->dtype_compute != SEQLSTM_BFLOAT16 && head->dtype_compute != SEQLSTM_INT8)
        return odn_refuse(answer, SEQLSTM_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE,
                          "cpu-onednn computes in float32, bfloat16 or int8.", "precision: float32", "%s",
                          names[head->dtype_compute]);
    if (strcmp(device_class, "cpu:x86-64-v4") != 0)
        return odn_refuse(answer, SEQLSTM_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE,
                          "cpu-onednn leaves float32 on processors with AVX-512 alone.", "precision: float32", "%s",
                          names[head->dtype_compute]);
    return true;
}

/* The library counts rows in 32 bits. */
static bool check_rows(const struct seqlstm_desc *head, struct seqlstm_answer *answer)
{
    if (head->max_rows <= INT32_MAX)
        return true;
    return odn_refuse(answer, SEQLSTM_REFUSED_SHAPE, SEQLSTM_OPTION_SHAPE,
                      "cpu-onednn runs at most 2147483647 rows a call.", "smaller batches", "%lld",
                      (long long)head->max_rows);
}

void odn_supports(const char *device_class, const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                  union seqlstm_any_desc *out_desc)
{
    answer->accepted = 0;
    if (device_class == NULL || strncmp(device_class, "cpu", 3) != 0 ||
        (device_class[3] != '\0' && device_class[3] != ':')) {
        odn_refuse(answer, SEQLSTM_REFUSED_DEVICE, SEQLSTM_OPTION_NONE, "cpu-onednn runs on CPUs alone.",
                   "device: cpu", "%s", device_class != NULL ? device_class : "");
        return;
    }
    const uint32_t known = desc->op < SEQLSTM_OP_COUNT ? odn_desc_bytes[desc->op] : 0;
    if (known == 0) {
        odn_refuse(answer, SEQLSTM_REFUSED_OPERATION, SEQLSTM_OPTION_NONE,
                   "This operation is not among those of cpu-onednn.", "", "%u", (unsigned)desc->op);
        return;
    }
    for (uint32_t i = known; i < desc->struct_size; i++)
        if (((const unsigned char *)desc)[i] != 0) {
            odn_refuse(answer, SEQLSTM_REFUSED_ABI, SEQLSTM_OPTION_NONE,
                       "The descriptor says something beyond the bytes that this backend reads.", "", "byte %u",
                       (unsigned)i);
            return;
        }
    memset(out_desc, 0, sizeof *out_desc);
    memcpy(out_desc, desc, desc->struct_size < known ? desc->struct_size : known);
    if (!seqlstm_desc_check(desc, answer) || !check_dtypes(device_class, &out_desc->head, answer) ||
        !check_rows(&out_desc->head, answer) || !operations[desc->op]->supports(out_desc, answer))
        return;
    snprintf(answer->variants[0], sizeof answer->variants[0], "sliced");
    snprintf(answer->variants[1], sizeof answer->variants[1], "exclusive");
    answer->accepted = 1;
    answer->variant_count = 2;
}
