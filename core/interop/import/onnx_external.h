/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of tensors that an ONNX file keeps in other files of its folder (`external_data` of onnx.proto). Each file
 * is read once and lives as long as the list. A name may not lead out of the folder, because an ONNX file may come
 * from an untrusted source. */
#ifndef SL_INTEROP_ONNX_EXTERNAL_H
#define SL_INTEROP_ONNX_EXTERNAL_H

#include <stddef.h>

#include <seqlstm/status.h>

#include "interop/protobuf_read.h"

struct sl_onnx_external;

/* The numbers of `tensor`, a TensorProto of the file `onnx_path` whose data_location is EXTERNAL. They belong to
 * `*list`, which begins as NULL. Errors: NOT_FOUND, IO, NO_MEMORY, CORRUPT_DATA. [any thread] */
seqlstm_status sl_onnx_external_read(struct sl_onnx_external **list, const char *onnx_path,
                                     const struct sl_protobuf_field *tensor, const unsigned char **out_data,
                                     size_t *out_bytes, struct seqlstm_error *err);

/* NULL: nothing. */
void sl_onnx_external_free(struct sl_onnx_external *list);

#endif
