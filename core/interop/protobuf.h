/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol Buffers' wire format, written: as much of it as ONNX files need. A message is a buffer of fields; a message
 * inside a message is appended with sl_protobuf_append_message. Failures are sticky in the buffer. Source:
 * protobuf.dev, "Encoding". */
#ifndef SL_INTEROP_PROTOBUF_H
#define SL_INTEROP_PROTOBUF_H

#include <stdint.h>

#include "base/value/buf.h"

/* Fields of integers and enumerations; negative numbers take ten bytes, as the format wants. */
void sl_protobuf_append_int(struct sl_buf *out, uint32_t field, int64_t value);
void sl_protobuf_append_float(struct sl_buf *out, uint32_t field, float value);
void sl_protobuf_append_text(struct sl_buf *out, uint32_t field, const char *text);
void sl_protobuf_append_bytes(struct sl_buf *out, uint32_t field, const void *data, size_t bytes);
void sl_protobuf_append_message(struct sl_buf *out, uint32_t field, const struct sl_buf *message);

#endif
