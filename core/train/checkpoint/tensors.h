/* SPDX-License-Identifier: Apache-2.0 */
/* Flat buffers of parameters as named tensors of a file, and back. Private to core/train. */
#ifndef SL_TRAIN_CHECKPOINT_TENSORS_H
#define SL_TRAIN_CHECKPOINT_TENSORS_H

#include <stdint.h>

#include <seqlstm/status.h>

#include "base/memory/arena.h"
#include "exec/params/params.h"
#include "interop/safetensors.h"

/* A list that grows by whole buffers. Zeroed: empty. */
struct sl_tensor_list {
    struct sl_arena arena; /* of the names */
    struct sl_safetensors_entry *entries;
    int32_t count;
    int32_t capacity;
};

/* One entry per view: prefix + name, data in `flat`, which must outlive the list. NO_MEMORY. */
seqlstm_status sl_tensor_list_add(struct sl_tensor_list *list, const struct sl_params *params, const char *prefix,
                                  const float *flat, struct seqlstm_error *err);

/* One vector. A vector of no elements is fine. */
seqlstm_status sl_tensor_list_add_vector(struct sl_tensor_list *list, const char *name, const float *data,
                                         int64_t elems, struct seqlstm_error *err);
void sl_tensor_list_deinit(struct sl_tensor_list *list);

/* For an error about a tensor that does not fit the configuration: sets `err->where` to the tensor's name, by which the
 * option that causes it can be found. Returns INVALID_CONFIG. */
seqlstm_status sl_tensor_blame(const char *name, struct seqlstm_error *err);

/* Checks that prefix + name of a view is in the file, as float32 (or another float type) and with its shape.
 * `*out_entry` is NULL with status OK when it is absent. INVALID_CONFIG: another shape or type. */
seqlstm_status sl_tensor_find(const struct sl_safetensors *file, const char *prefix, const struct sl_param_view *view,
                              const struct sl_safetensors_entry **out_entry, struct seqlstm_error *err);

/* All views must be there. */
seqlstm_status sl_tensors_check(const struct sl_safetensors *file, const char *prefix, const struct sl_params *params,
                                struct seqlstm_error *err);
/* After a check; absent ones are left as they are. */
seqlstm_status sl_tensors_read(const struct sl_safetensors *file, const char *prefix, const struct sl_params *params,
                               float *flat, struct seqlstm_error *err);

#endif
