/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of a plugin to the question whether it runs a descriptor, checked before it is used. */
#ifndef SL_REGISTRY_ANSWER_H
#define SL_REGISTRY_ANSWER_H

#include <seqlstm/backend.h>

/* Asks whether a backend runs exactly this descriptor, on a device of this class. `desc` is readable for
 * desc->struct_size bytes.
 *
 * OK: the answer is complete, whatever the plugin wrote. A "no" has code, option and reason, a "yes" at least one
 * variant. An answer that makes no sense becomes a refusal with SEQLSTM_BIT_REFUSED_ABI which names the plugin. If
 * bytes of the descriptor are set that the backend does not read, the answer is "no" without asking. Errors: INTERNAL
 * when the plugin's function failed, which is a bug of the plugin. [any] */
seqlstm_status sl_table_supports(const struct seqlstm_backend *table, const char *device_class,
                                 const struct seqlstm_desc *desc, struct seqlstm_answer *out_answer,
                                 struct seqlstm_error *err);

#endif
