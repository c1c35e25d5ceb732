/* SPDX-License-Identifier: Apache-2.0 */
/* The map of names of each framework. */
#ifndef SL_INTEROP_NAMES_MAPS_H
#define SL_INTEROP_NAMES_MAPS_H

#include "interop/names_tensor.h"

/* The map of one framework: fills up to SL_NAME_TENSORS tensors; `*out_count` 0: the framework has no name for it. */
typedef seqlstm_status sl_name_map_fn(const struct sl_name_param *param, struct sl_name_tensor *tensors,
                                      int32_t *out_count, struct seqlstm_error *err);
sl_name_map_fn sl_names_map_pytorch;
sl_name_map_fn sl_names_map_keras;

/* Keras's other paths for the tensor that sl_names_map_keras named: doubled layer names and `:0` (Keras 2), numbered
 * cells, `forward_*` and `backward_*` of any name, dense layers in a TimeDistributed. The entry's index; -1: none; -2:
 * several. */
int32_t sl_names_find_keras(const struct sl_name_param *param, const struct sl_name_tensor *tensor,
                            const struct sl_safetensors *file);

#endif
