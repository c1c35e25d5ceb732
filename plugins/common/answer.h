/* SPDX-License-Identifier: Apache-2.0 */
/* What `supports` of our backends says, and what `op_create` makes of it. Rules over descriptors, no state. */
#ifndef COMMON_ANSWER_H
#define COMMON_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

/* Yes; names end with NULL, best guess first. Always true. [any] */
bool answer_yes(struct seqlstm_answer *answer, const char *const *variants);

/* No, with the value as text and what to write instead ("" where nothing helps). Always false. [any] */
bool answer_no(struct seqlstm_answer *answer, uint32_t code, uint32_t option, const char *reason, const char *hint,
               const char *value_format, ...) SEQLSTM_PRINTF(6, 7);

/* ---- rules: false after a no [any] ----------------------------------------------------------------------- */

/* `device_class` is of CPUs: "cpu", "cpu:x86-64-v4". */
bool answer_on_cpu(struct seqlstm_answer *answer, const char *id, const char *device_class);

/* At most 2^31 - 1 rows a call, where the operation has rows and not a flat vector. */
bool answer_rows_in_32_bits(struct seqlstm_answer *answer, const char *id, const struct seqlstm_desc *head);

/* What enters and leaves is float32 in every role (CAST names its dtypes itself); dtype_compute is not looked at. */
bool answer_float32_edges(struct seqlstm_answer *answer, const char *id, const struct seqlstm_desc *head);

/* And dtype_compute too. */
bool answer_float32(struct seqlstm_answer *answer, const char *id, const struct seqlstm_desc *head);

/* Between float32, float64, float16 and bfloat16. */
bool answer_cast(struct seqlstm_answer *answer, const struct seqlstm_cast_desc *desc);

/* "float32"; "?" for a number without a name. */
const char *answer_dtype_name(uint32_t dtype);
/* "relu", as the model file writes it. */
const char *answer_activation_name(uint32_t kind);

/* ---- op_create -------------------------------------------------------------------------------------------- */

/* The index of `variant` (NULL or "": the first) among those of a yes. A no is UNSUPPORTED, another name
 * INVALID_ARGUMENT. [any] */
seqlstm_status answer_choose(const struct seqlstm_answer *answer, const char *id, const char *variant,
                             uint32_t *out_index, struct seqlstm_error *err);

#endif
