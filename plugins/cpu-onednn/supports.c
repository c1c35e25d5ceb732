/* SPDX-License-Identifier: Apache-2.0 */
/* What this backend accepts. <seqlstm/desc_check.h> refuses values and bits that the headers do not define; the rules
 * of each operation refuse what the library does not offer. */
#include <string.h>

#include <seqlstm/desc_check.h>

#include "cpu-onednn/plugin.h"

static const struct odn_operation *const operations[SEQLSTM_OP_COUNT] = {
    [SEQLSTM_OP_RECURRENT] = &odn_recurrent_operation,
    [SEQLSTM_OP_DENSE] = &odn_dense_operation,
    [SEQLSTM_OP_LAYER_NORM] = &odn_norm_operation,
};

const struct odn_operation *odn_operation_get(uint32_t op)
{
    return op < SEQLSTM_OP_COUNT ? operations[op] : NULL;
}

/* Products may be in bfloat16 or int8 if the processor has AVX-512. */
static bool check_compute(const char *device_class, const struct seqlstm_desc *head, struct seqlstm_answer *answer)
{
    if (head->dtype_compute == SEQLSTM_DTYPE_FLOAT32)
        return true;
    if (head->dtype_compute != SEQLSTM_DTYPE_BFLOAT16 && head->dtype_compute != SEQLSTM_DTYPE_INT8)
        return answer_no(answer, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE,
                         "cpu-onednn computes in float32, bfloat16 or int8.", "precision: float32", "%s",
                         answer_dtype_name(head->dtype_compute));
    if (strcmp(device_class, "cpu:x86-64-v4") != 0)
        return answer_no(answer, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE,
                         "cpu-onednn needs a processor with AVX-512 for bfloat16 and int8.", "precision: float32", "%s",
                         answer_dtype_name(head->dtype_compute));
    return true;
}

void odn_supports(const char *device_class, const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                  union seqlstm_any_desc *out_desc)
{
    static const char *const variants[] = {"sliced", "exclusive", NULL};
    const struct odn_operation *operation = odn_operation_get(desc->op);
    answer->accepted = 0;
    if (!answer_on_cpu(answer, ODN_ID, device_class) || !seqlstm_desc_check(desc, answer))
        return;
    if (operation == NULL) {
        answer_no(answer, SEQLSTM_BIT_REFUSED_OPERATION, SEQLSTM_OPTION_NONE,
                  "cpu-onednn does not compute this operation.", "", "%u", (unsigned)desc->op);
        return;
    }
    seqlstm_desc_copy(desc, out_desc);
    /* The library counts rows in 32 bits. */
    if (answer_float32_edges(answer, ODN_ID, &out_desc->head) && check_compute(device_class, &out_desc->head, answer) &&
        answer_rows_in_32_bits(answer, ODN_ID, &out_desc->head) && operation->supports(out_desc, answer))
        answer_yes(answer, variants);
}
