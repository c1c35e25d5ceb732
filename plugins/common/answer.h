/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to `supports`, and the choice of a variant in `op_create`. Rules over descriptors, no state. */
#ifndef COMMON_ANSWER_H
#define COMMON_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

/* Fills a yes. `variants` ends with NULL, the one that is probably fastest first. Always returns true. [any] */
bool answer_yes(struct seqlstm_answer *answer, const char *const *variants);

/* Fills a no, with the refused value as text, and a hint at what to write instead ("" if there is none). Always
 * returns false. [any] */
bool answer_no(struct seqlstm_answer *answer, uint32_t code, uint32_t option, const char *reason, const char *hint,
               const char *value_format, ...) SEQLSTM_PRINTF(6, 7);

/* ---- rules, which return false after a no [any] ---------------------------------------------------------- */

/* Refuses a `device_class` that is not a CPU, such as "cpu" or "cpu:x86-64-v4". */
bool answer_on_cpu(struct seqlstm_answer *answer, const char *id, const char *device_class);

/* Refuses more than 2^31 - 1 rows in a call, except for flat vectors. */
bool answer_rows_in_32_bits(struct seqlstm_answer *answer, const char *id, const struct seqlstm_desc *head);

/* Requires float32 in every role except dtype_compute, which is not checked. (CAST names its dtypes itself.) */
bool answer_float32_edges(struct seqlstm_answer *answer, const char *id, const struct seqlstm_desc *head);

/* The same, and requires float32 for dtype_compute, too. */
bool answer_float32(struct seqlstm_answer *answer, const char *id, const struct seqlstm_desc *head);

/* Accepts casts between float32, float64, float16 and bfloat16. */
bool answer_cast(struct seqlstm_answer *answer, const struct seqlstm_cast_desc *desc);

/* Such as "float32"; "?" for a number that has no name. */
const char *answer_dtype_name(uint32_t dtype);
/* "relu", as the model file writes it. */
const char *answer_activation_name(uint32_t kind);

/* ---- op_create -------------------------------------------------------------------------------------------- */

/* Finds the index of `variant` (NULL or "": the first one) among those of a yes. UNSUPPORTED for a no,
 * INVALID_ARGUMENT for another name. [any] */
seqlstm_status answer_choose(const struct seqlstm_answer *answer, const char *id, const char *variant,
                             uint32_t *out_index, struct seqlstm_error *err);

#endif
